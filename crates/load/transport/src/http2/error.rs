//! Errors of connections and streams (RFC 9113, sections 5.4 and 7).

use std::fmt;

use plimsoll_measure::ErrorClass;

use crate::failure::Failure;

/// Error code of a stream or connection. Undefined codes are kept unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    /// Not an error.
    pub const NO_ERROR: Self = Self(0x0);
    /// A rule without a specific code was violated.
    pub const PROTOCOL_ERROR: Self = Self(0x1);
    /// A flow-control window was exceeded or overflows.
    pub const FLOW_CONTROL_ERROR: Self = Self(0x3);
    /// A frame arrived for a closed stream.
    pub const STREAM_CLOSED: Self = Self(0x5);
    /// A frame has an invalid length.
    pub const FRAME_SIZE_ERROR: Self = Self(0x6);
    /// The stream was refused without any processing.
    pub const REFUSED_STREAM: Self = Self(0x7);
    /// The stream was cancelled.
    pub const CANCEL: Self = Self(0x8);
    /// A header block cannot be decompressed.
    pub const COMPRESSION_ERROR: Self = Self(0x9);
    /// The peer causes excessive load.
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

/// Formats the name, or the number if it has none.
impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match usize::try_from(self.0).ok().and_then(|index| Self::NAMES.get(index)) {
            Some(name) => f.write_str(name),
            None => write!(f, "error {:#x}", self.0),
        }
    }
}

/// A rule that the target violated, which ends the connection (RFC 9113, section 5.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionError {
    /// The code that is sent to the target.
    pub code: ErrorCode,
    /// The violated rule.
    pub detail: &'static str,
}

impl ConnectionError {
    pub(super) const fn new(code: ErrorCode, detail: &'static str) -> Self {
        Self { code, detail }
    }

    pub(super) const fn protocol(detail: &'static str) -> Self {
        Self::new(ErrorCode::PROTOCOL_ERROR, detail)
    }
}

/// Why a stream ended early (RFC 9113, section 5.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamError {
    /// The target reset it.
    Reset(ErrorCode),
    /// The target announced that it will not process it.
    GoAway(ErrorCode),
    /// The response is not valid HTTP.
    Malformed(&'static str),
    /// The head exceeds the limit.
    HeadTooLarge,
    /// The body is this many bytes shorter than announced.
    BodyTruncated(u64),
}

impl From<StreamError> for Failure {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::Reset(code) => {
                let detail = format!("the target reset the stream: {code}");
                // A refused stream was not processed (RFC 9113, section 8.7).
                let is_unprocessed = code == ErrorCode::REFUSED_STREAM;
                Self { is_unprocessed, ..Self::new(ErrorClass::Reset, detail) }
            }
            StreamError::GoAway(code) => Self::unprocessed(
                ErrorClass::ClosedEarly,
                format!("the target closes the connection without processing the request: {code}"),
            ),
            StreamError::Malformed(detail) => Self::new(ErrorClass::MalformedHead, detail),
            StreamError::HeadTooLarge => {
                Self::new(ErrorClass::HeadTooLarge, "more than 64 KiB or 100 headers")
            }
            StreamError::BodyTruncated(missing) => Self::new(
                ErrorClass::BodyTruncated,
                format!("{missing} bytes of the body are missing"),
            ),
        }
    }
}
