//! Error codes (RFC 9113, section 7), and what a broken rule is answered with.

use std::fmt;

/// Why a stream or connection ends. Codes that nobody has defined are kept as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub u32);

impl Code {
    /// Not an error.
    pub const NO_ERROR: Self = Self(0x0);
    /// A rule was broken that has no code of its own.
    pub const PROTOCOL_ERROR: Self = Self(0x1);
    /// A window was overrun or overflows.
    pub const FLOW_CONTROL_ERROR: Self = Self(0x3);
    /// A frame came for a stream that is over.
    pub const STREAM_CLOSED: Self = Self(0x5);
    /// A frame has an impossible length.
    pub const FRAME_SIZE_ERROR: Self = Self(0x6);
    /// The stream is no longer wanted.
    pub const CANCEL: Self = Self(0x8);
    /// A field section cannot be decompressed.
    pub const COMPRESSION_ERROR: Self = Self(0x9);
    /// The peer makes too much work.
    pub const ENHANCE_YOUR_CALM: Self = Self(0xb);

    const NAMES: [&'static str; 14] = [
        "NO_ERROR",
        "PROTOCOL_ERROR",
        "INTERNAL_ERROR",
        "FLOW_CONTROL_ERROR",
        "SETTINGS_TIMEOUT",
        "STREAM_CLOSED",
        "FRAME_SIZE_ERROR",
        "REFUSED_STREAM",
        "CANCEL",
        "COMPRESSION_ERROR",
        "CONNECT_ERROR",
        "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY",
        "HTTP_1_1_REQUIRED",
    ];
}

/// Its name, or its number where it has none.
impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match usize::try_from(self.0).ok().and_then(|index| Self::NAMES.get(index)) {
            Some(name) => f.write_str(name),
            None => write!(f, "error {:#x}", self.0),
        }
    }
}

/// A rule that the target broke, for which the connection ends (RFC 9113, section 5.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What the target is told.
    pub code: Code,
    /// What it did.
    pub detail: &'static str,
}

impl Violation {
    pub(super) const fn new(code: Code, detail: &'static str) -> Self {
        Self { code, detail }
    }

    pub(super) const fn protocol(detail: &'static str) -> Self {
        Self::new(Code::PROTOCOL_ERROR, detail)
    }
}
