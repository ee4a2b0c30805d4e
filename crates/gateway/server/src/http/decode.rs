//! Decodes answers that an upstream compressed although asked not to (RFC 9110, 8.4.1), chunk by
//! chunk, for the layers that read them.

use std::fmt;
use std::io::{self, Write};

use brotli_decompressor::DecompressorWriter;
use bytes::Bytes;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use hyper::HeaderMap;
use hyper::header::{ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, ETAG, HeaderValue};

use crate::http::body_filter::{BodyFilter, BoxError};

/// The most decoded bytes of one chunk.
const MOST_PIECE: usize = 16 << 20;

/// The most content codings of one body.
const MOST_CODINGS: usize = 4;

/// Buffer of a decoder.
const BUFFER: usize = 4 << 10;

/// A body cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DecodeError {
    #[error("the upstream's answer is not encoded as its content-encoding says")]
    Malformed,
    #[error("the upstream's answer decodes to more than allowed")]
    TooLarge,
}

/// Decodes a body with any supported codings.
#[derive(Debug)]
pub(crate) struct Decoder {
    /// In the order of decoding.
    codings: Vec<Coding>,
}

/// The decoder of one coding.
enum Coding {
    Gzip(MultiGzDecoder<Bounded>),
    Zlib(ZlibDecoder<Bounded>),
    /// `deflate` without the zlib header, as some servers send it.
    Deflate(DeflateDecoder<Bounded>),
    /// `deflate` before its first byte.
    AnyDeflate,
    Brotli(Box<DecompressorWriter<Bounded>>),
    Zstd(zstd::stream::write::Decoder<'static, Bounded>),
}

impl fmt::Debug for Coding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip(_) => "gzip",
            Self::Zlib(_) | Self::Deflate(_) | Self::AnyDeflate => "deflate",
            Self::Brotli(_) => "br",
            Self::Zstd(_) => "zstd",
        })
    }
}

/// Collects the decoded bytes of a chunk, up to a limit.
#[derive(Debug, Default)]
struct Bounded {
    decoded: Vec<u8>,
    most: usize,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.decoded.len() + bytes.len() > self.most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.decoded.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Decoder {
    /// The decoder of a body with these headers; `None` if it is not encoded, or with an
    /// unsupported coding.
    pub(crate) fn of_body(headers: &HeaderMap) -> Option<Self> {
        let values = headers.get_all(CONTENT_ENCODING).iter();
        let names = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
        let names = names.map(|name| name.trim_ascii().to_ascii_lowercase());
        let names: Vec<_> = names.filter(|name| !name.is_empty() && name != b"identity").collect();
        if names.is_empty() || names.len() > MOST_CODINGS {
            return None;
        }
        let codings = names.iter().rev().map(|name| Coding::named(name));
        Some(Self { codings: codings.collect::<Option<_>>()? })
    }

    /// Removes the codings from the headers of a body that will be decoded.
    pub(crate) fn take_from(headers: &mut HeaderMap) -> Option<Self> {
        let decoder = Self::of_body(headers)?;
        for name in [CONTENT_ENCODING, CONTENT_LENGTH, ACCEPT_RANGES] {
            headers.remove(name);
        }
        // A strong entity tag does not apply to the decoded bytes.
        if let Some(tag) = headers.get(ETAG).filter(|tag| !tag.as_bytes().starts_with(b"W/"))
            && let Ok(weak) = HeaderValue::try_from([b"W/", tag.as_bytes()].concat())
        {
            headers.insert(ETAG, weak);
        }
        Some(decoder)
    }

    /// Decodes a chunk of the body to at most `most` bytes.
    ///
    /// # Errors
    /// It is malformed, or decodes to more.
    pub(crate) fn decode(&mut self, piece: &[u8], most: usize) -> Result<Vec<u8>, DecodeError> {
        let mut decoded = Vec::new();
        for (number, coding) in self.codings.iter_mut().enumerate() {
            let encoded = if number == 0 { piece } else { &decoded };
            if encoded.is_empty() {
                return Ok(Vec::new());
            }
            decoded = coding.decode(encoded, most).map_err(|error| match error.kind() {
                io::ErrorKind::FileTooLarge => DecodeError::TooLarge,
                _ => DecodeError::Malformed,
            })?;
        }
        Ok(decoded)
    }
}

impl Coding {
    fn named(name: &[u8]) -> Option<Self> {
        let sink = Bounded::default();
        Some(match name {
            b"gzip" | b"x-gzip" => Self::Gzip(MultiGzDecoder::new(sink)),
            b"deflate" => Self::AnyDeflate,
            b"br" => Self::Brotli(Box::new(DecompressorWriter::new(sink, BUFFER))),
            b"zstd" => Self::Zstd(zstd::stream::write::Decoder::new(sink).ok()?),
            _ => return None,
        })
    }

    fn decode(&mut self, encoded: &[u8], most: usize) -> io::Result<Vec<u8>> {
        if let (Self::AnyDeflate, [first, ..]) = (&*self, encoded) {
            // The header of zlib: method 8, and a window of at most 32 KiB (RFC 1950).
            let has_header = first & 0x0f == 8 && first >> 4 <= 7;
            *self = if has_header {
                Self::Zlib(ZlibDecoder::new(Bounded::default()))
            } else {
                Self::Deflate(DeflateDecoder::new(Bounded::default()))
            };
        }
        match self {
            Self::Gzip(coder) => undo(coder, MultiGzDecoder::get_mut, encoded, most),
            Self::Zlib(coder) => undo(coder, ZlibDecoder::get_mut, encoded, most),
            Self::Deflate(coder) => undo(coder, DeflateDecoder::get_mut, encoded, most),
            Self::Brotli(coder) => undo(&mut **coder, DecompressorWriter::get_mut, encoded, most),
            Self::Zstd(coder) => undo(coder, zstd::stream::write::Decoder::get_mut, encoded, most),
            Self::AnyDeflate => Ok(Vec::new()),
        }
    }
}

/// Decodes a chunk. `sink` is the output of the coder.
fn undo<C: Write>(
    coder: &mut C,
    sink: impl Fn(&mut C) -> &mut Bounded,
    encoded: &[u8],
    most: usize,
) -> io::Result<Vec<u8>> {
    sink(coder).most = most;
    coder.write_all(encoded)?;
    coder.flush()?;
    Ok(std::mem::take(&mut sink(coder).decoded))
}

/// Decodes a body for the later filters.
pub(crate) struct DecodeFilter(pub(crate) Decoder);

impl BodyFilter for DecodeFilter {
    fn chunk(&mut self, chunk: Bytes) -> Result<Bytes, BoxError> {
        Ok(Bytes::from(self.0.decode(&chunk, MOST_PIECE)?))
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;

    use super::*;

    fn headers(coding: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(CONTENT_ENCODING, HeaderValue::from_static(coding))])
    }

    /// The same text by Node's zlib.
    const BROTLI: &[u8] = &[
        0x1b, 0xef, 0x23, 0xf8, 0x8d, 0x94, 0x6e, 0xde, 0xb4, 0x04, 0x09, 0x9b, 0x2b, 0xb2, 0xb4,
        0x14, 0xc4, 0x90, 0xd7, 0xd2, 0x04, 0x6c, 0xf8, 0x31, 0x5f, 0x8d, 0x4f, 0x6e, 0x00, 0x5c,
        0x00,
    ];

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut coder = flate2::write::GzEncoder::new(Vec::new(), Compression::default());
        coder.write_all(bytes).unwrap();
        coder.finish().unwrap()
    }

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut coder = flate2::write::ZlibEncoder::new(Vec::new(), Compression::default());
        coder.write_all(bytes).unwrap();
        coder.finish().unwrap()
    }

    fn deflate(bytes: &[u8]) -> Vec<u8> {
        let mut coder = flate2::write::DeflateEncoder::new(Vec::new(), Compression::default());
        coder.write_all(bytes).unwrap();
        coder.finish().unwrap()
    }

    #[test]
    fn every_coding_is_undone_in_any_split_and_several_in_their_order() {
        let text = "what the provider said ".repeat(400);
        let zstd = zstd::stream::encode_all(text.as_bytes(), 3).unwrap();
        for (coding, encoded) in [
            ("gzip", gzip(text.as_bytes())),
            ("X-GZip", gzip(text.as_bytes())),
            ("deflate", zlib(text.as_bytes())),
            ("deflate", deflate(text.as_bytes())),
            ("zstd", zstd),
            ("br", BROTLI.to_vec()),
            ("identity, gzip", gzip(text.as_bytes())),
            ("deflate, gzip", gzip(&zlib(text.as_bytes()))),
        ] {
            for size in [1, 7, 100_000] {
                let mut decoder = Decoder::of_body(&headers(coding)).unwrap();
                let pieces = encoded.chunks(size);
                let decoded: Vec<u8> =
                    pieces.flat_map(|piece| decoder.decode(piece, 1 << 20).unwrap()).collect();
                assert_eq!(String::from_utf8(decoded).unwrap(), text, "{coding} by {size}");
            }
        }
    }

    #[test]
    fn what_is_flushed_is_there_at_once() {
        let mut coder = flate2::write::GzEncoder::new(Vec::new(), Compression::default());
        coder.write_all(b"data: first\n\n").unwrap();
        coder.flush().unwrap();
        let mut decoder = Decoder::of_body(&headers("gzip")).unwrap();
        assert_eq!(decoder.decode(coder.get_ref(), 100).unwrap(), b"data: first\n\n");
    }

    #[test]
    fn a_bomb_and_nonsense_are_errors() {
        let bomb = gzip(&vec![0; 1 << 20]);
        let mut decoder = Decoder::of_body(&headers("gzip")).unwrap();
        assert!(matches!(decoder.decode(&bomb, 10_000), Err(DecodeError::TooLarge)));
        for coding in ["gzip", "deflate", "br", "zstd"] {
            let mut decoder = Decoder::of_body(&headers(coding)).unwrap();
            let read = decoder.decode(b"{\"this\": \"is not encoded at all\"}", 10_000);
            assert!(matches!(read, Err(DecodeError::Malformed)), "{coding}: {read:?}");
        }
    }

    #[test]
    fn unknown_codings_stay_and_known_ones_leave_the_headers() {
        for coding in ["", "identity", "compress", "gzip, x-other", "gzip,gzip,gzip,gzip,gzip"] {
            assert!(Decoder::take_from(&mut headers(coding)).is_none(), "{coding}");
        }
        let mut known = headers("gzip");
        known.insert(ETAG, HeaderValue::from_static("\"a\""));
        known.insert(CONTENT_LENGTH, HeaderValue::from_static("7"));
        assert!(Decoder::take_from(&mut known).is_some());
        assert_eq!((known.len(), &known[ETAG]), (1, &HeaderValue::from_static("W/\"a\"")));
    }
}
