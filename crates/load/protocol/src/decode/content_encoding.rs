//! Bodies that a target or a proxy has compressed (RFC 9110, section 8.4.1).
//!
//! What has arrived is decoded at once, so that an event of a compressed stream counts when it
//! comes. Memory is bounded: a body ends where it gets larger than the limit, however small it was
//! on the wire. Where a body is not in its coding, what came in the same read before the fault is
//! lost.

use std::fmt;
use std::io::{self, Write};

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use plimsoll_measure::ErrorClass;

use super::response_state::{DecodeError, DecodeResult};

/// Decodes the body of one response, piece by piece.
pub(super) struct ContentDecoder {
    /// As the target wrote it.
    name: String,
    kind: Kind,
}

enum Kind {
    Gzip(MultiGzDecoder<Bounded>),
    Zlib(ZlibDecoder<Bounded>),
    /// `deflate` as some servers write it, without its header.
    Deflate(DeflateDecoder<Bounded>),
    /// `deflate`, whose first byte has not arrived.
    AnyDeflate(Bounded),
    Brotli(Box<brotli_decompressor::DecompressorWriter<Bounded>>),
    Zstd(zstd::stream::write::Decoder<'static, Bounded>),
    /// A coding that is not known here, or several.
    Unknown,
    /// What came was not in this coding.
    Broken,
}

impl fmt::Debug for ContentDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContentDecoder").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Takes decoded bytes, up to a limit.
#[derive(Default)]
struct Bounded {
    decoded: Vec<u8>,
    /// Bytes that may still come.
    room: u64,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.room.checked_sub(bytes.len() as u64);
        self.room = left.ok_or(io::ErrorKind::FileTooLarge)?;
        self.decoded.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl ContentDecoder {
    /// A decoder for a body with this `content-encoding`, of at most `limit` decoded bytes; `None`
    /// if nothing is encoded.
    pub(super) fn new(name: &str, limit: u64) -> Option<Self> {
        const BUFFER: usize = 4096;
        let sink = Bounded { decoded: Vec::new(), room: limit };
        let kind = match name.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => return None,
            "gzip" | "x-gzip" => Kind::Gzip(MultiGzDecoder::new(sink)),
            "deflate" => Kind::AnyDeflate(sink),
            "br" => {
                Kind::Brotli(Box::new(brotli_decompressor::DecompressorWriter::new(sink, BUFFER)))
            }
            "zstd" => zstd::stream::write::Decoder::new(sink).map_or(Kind::Unknown, Kind::Zstd),
            _ => Kind::Unknown,
        };
        Some(Self { name: name.trim().to_owned(), kind })
    }

    /// The coding, as the target wrote it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// What a piece of the body says, up to its first fault.
    pub(super) fn decode(&mut self, bytes: &[u8]) -> (Vec<u8>, DecodeResult) {
        if bytes.is_empty() {
            return (Vec::new(), Ok(()));
        }
        if let Kind::AnyDeflate(sink) = &mut self.kind {
            let sink = std::mem::take(sink);
            // The header of zlib: method 8, and a window of at most 32 KiB (RFC 1950).
            let has_header = bytes[0] & 0x0f == 8 && bytes[0] >> 4 <= 7;
            self.kind = if has_header {
                Kind::Zlib(ZlibDecoder::new(sink))
            } else {
                Kind::Deflate(DeflateDecoder::new(sink))
            };
        }
        let mut none = Bounded::default();
        let (written, sink) = match &mut self.kind {
            Kind::Gzip(coder) => (write(coder, bytes), coder.get_mut()),
            Kind::Zlib(coder) => (write(coder, bytes), coder.get_mut()),
            Kind::Deflate(coder) => (write(coder, bytes), coder.get_mut()),
            Kind::Brotli(coder) => (write_brotli(coder, bytes), coder.get_mut()),
            Kind::Zstd(coder) => (write(coder, bytes), coder.get_mut()),
            Kind::Broken => return (Vec::new(), Ok(())),
            Kind::AnyDeflate(_) | Kind::Unknown => {
                (Err(io::ErrorKind::Unsupported.into()), &mut none)
            }
        };
        let decoded = std::mem::take(&mut sink.decoded);
        if written.is_err() {
            // Nothing behind a fault can be read.
            self.kind = Kind::Broken;
        }
        (decoded, written.map_err(|error| self.fault(&error)))
    }

    fn fault(&self, error: &io::Error) -> DecodeError {
        let name = &self.name;
        match error.kind() {
            io::ErrorKind::FileTooLarge => ErrorClass::BodyTooLarge.into(),
            io::ErrorKind::Unsupported => DecodeError::new(
                ErrorClass::MalformedBody,
                &format!("`content-encoding: {name}` is not read: gzip, deflate, br and zstd are"),
            ),
            _ => DecodeError::new(
                ErrorClass::MalformedBody,
                &format!("the body is not `{name}`, as its content-encoding says"),
            ),
        }
    }
}

/// Decodes all that has arrived. The decoder of brotli keeps what did not fit into its buffer until
/// it is called again.
fn write_brotli(
    coder: &mut brotli_decompressor::DecompressorWriter<Bounded>,
    bytes: &[u8],
) -> io::Result<()> {
    coder.write_all(bytes)?;
    let mut before = usize::MAX;
    while coder.get_ref().decoded.len() != before {
        before = coder.get_ref().decoded.len();
        let _none = coder.write(&[])?;
    }
    Ok(())
}

/// Decodes all that has arrived.
fn write(coder: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    coder.write_all(bytes)?;
    coder.flush()
}
