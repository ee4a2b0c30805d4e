//! Decompresses bodies (RFC 9110, section 8.4.1).
//!
//! Each read is decoded at once, so that an event of a compressed stream counts when it arrives.
//! Memory is bounded: a body ends where its decoded size exceeds the limit, however small it is on
//! the wire. If a body is corrupt, the bytes before the error in the same read are lost.

use std::fmt;
use std::io::{self, Write};

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use plimsoll_measure::ErrorClass;

use super::response_state::{DecodeError, DecodeResult};

/// Decodes the body of one response, piece by piece.
pub(super) struct ContentDecoder {
    /// Name of the coding, as sent by the target.
    name: String,
    kind: Kind,
}

enum Kind {
    Gzip(MultiGzDecoder<Bounded>),
    Zlib(ZlibDecoder<Bounded>),
    /// Raw `deflate` without a zlib header, as some servers send it.
    Deflate(DeflateDecoder<Bounded>),
    /// `deflate` before its first byte has arrived.
    AnyDeflate(Bounded),
    Brotli(Box<brotli_decompressor::DecompressorWriter<Bounded>>),
    Zstd(zstd::stream::write::Decoder<'static, Bounded>),
    /// An unsupported coding, or several.
    Unknown,
    /// Corrupt data.
    Broken,
}

impl fmt::Debug for ContentDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContentDecoder").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Collects decoded bytes up to a limit.
#[derive(Default)]
struct Bounded {
    decoded: Vec<u8>,
    /// Remaining bytes.
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
    /// Creates a decoder for a body with this `content-encoding`, of at most `limit` decoded bytes;
    /// `None` if the body is not encoded.
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

    /// Name of the coding, as sent by the target.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Decodes a piece of the body, up to its first error.
    pub(super) fn decode(&mut self, bytes: &[u8]) -> (Vec<u8>, DecodeResult) {
        if bytes.is_empty() {
            return (Vec::new(), Ok(()));
        }
        if let Kind::AnyDeflate(sink) = &mut self.kind {
            let sink = std::mem::take(sink);
            // The zlib header: method 8, and a window of at most 32 KiB (RFC 1950).
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
            // Data after an error cannot be decoded.
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
                &format!("`content-encoding: {name}` is unsupported: use gzip, br or zstd"),
            ),
            _ => DecodeError::new(
                ErrorClass::MalformedBody,
                &format!("the body is not `{name}`, as its content-encoding says"),
            ),
        }
    }
}

/// Decodes everything that has arrived. The brotli decoder keeps output that exceeds its buffer
/// until the next call.
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

/// Decodes everything that has arrived.
fn write(coder: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    coder.write_all(bytes)?;
    coder.flush()
}

// Content types, as far as they determine how a body is decoded.

/// The kind of body that a `content-type` header declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContentType {
    /// `text/event-stream`.
    Events,
    /// `application/json`, or a type that ends in `+json`.
    Json,
    /// Anything else.
    Other,
}

impl ContentType {
    /// Parses a `content-type` header. Parameters are ignored.
    pub(super) fn parse(content_type: &[u8]) -> Self {
        match content_type {
            b"application/json" => Self::Json,
            b"text/event-stream" => Self::Events,
            other => Self::parse_slow(str::from_utf8(other).unwrap_or_default()),
        }
    }

    /// The slow path: a type with parameters or in another case.
    fn parse_slow(content_type: &str) -> Self {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        let suffix =
            media_type.len().checked_sub("+json".len()).and_then(|at| media_type.get(at..));
        if media_type.eq_ignore_ascii_case("text/event-stream") {
            Self::Events
        } else if media_type.eq_ignore_ascii_case("application/json")
            || suffix.is_some_and(|suffix| suffix.eq_ignore_ascii_case("+json"))
        {
            Self::Json
        } else {
            Self::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_parameters_do_not_matter() {
        for (content_type, expected) in [
            ("text/event-stream", ContentType::Events),
            ("Text/Event-Stream; charset=utf-8", ContentType::Events),
            ("application/json", ContentType::Json),
            (" APPLICATION/JSON ;charset=utf-8", ContentType::Json),
            ("application/problem+json", ContentType::Json),
            ("text/html", ContentType::Other),
            ("application/jsonl", ContentType::Other),
            ("text/plain; note=application/json", ContentType::Other),
            ("", ContentType::Other),
            ("ü+jso", ContentType::Other),
        ] {
            assert_eq!(ContentType::parse(content_type.as_bytes()), expected, "{content_type}");
        }
    }
}
