//! Determines the end of a response body (RFC 9112, section 6.3).

use httparse::Header;

use crate::header_name::is_named;

/// The delimitation of a response body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyFraming {
    /// No body, whatever the headers say.
    Empty,
    /// Exactly this many bytes.
    Length(u64),
    /// Chunked coding.
    Chunked,
    /// Everything until the connection is closed.
    UntilClose,
}

/// The framing of a response and whether its connection stays open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MessageFraming {
    pub(super) body: BodyFraming,
    pub(super) keep_alive: bool,
}

/// The `content-length` headers are invalid or contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConflictingLengths;

impl MessageFraming {
    /// Evaluates the head of an HTTP/1.`minor` response. `to_head`: the request was a `HEAD`.
    pub(super) fn new(
        status: u16,
        minor: u8,
        headers: &[Header<'_>],
        to_head: bool,
    ) -> Result<Self, ConflictingLengths> {
        let mut keep_alive = minor >= 1;
        let mut length = None;
        let mut coding: Option<bool> = None;
        for header in headers {
            let (name, value) = (header.name, header.value);
            match name.len() {
                14 if is_named(name, b"content-length") => {
                    length = Some(merge_length(length, value)?);
                }
                17 if is_named(name, b"transfer-encoding") => coding = Some(last_is_chunked(value)),
                10 if is_named(name, b"connection") => {
                    keep_alive = connection_option(value).unwrap_or(keep_alive);
                }
                _ => {}
            }
        }
        let body = match (coding, length) {
            _ if to_head || matches!(status, 100..=199 | 204 | 304) => BodyFraming::Empty,
            (Some(true), _) => BodyFraming::Chunked,
            (Some(false), _) | (None, None) => BodyFraming::UntilClose,
            (None, Some(length)) => BodyFraming::Length(length),
        };
        // Having both headers can smuggle a response, so the connection is not reused.
        let suspicious = coding.is_some() && length.is_some();
        let switched = status == 101;
        let keep_alive = keep_alive && body != BodyFraming::UntilClose && !suspicious && !switched;
        Ok(Self { body, keep_alive })
    }
}

/// A repeated length is valid if all values are equal.
fn merge_length(earlier: Option<u64>, value: &[u8]) -> Result<u64, ConflictingLengths> {
    if let (None, Some(length)) = (earlier, digits(value)) {
        return Ok(length);
    }
    value
        .split(|&b| b == b',')
        .try_fold(earlier, |earlier, part| {
            let length = digits(part.trim_ascii()).ok_or(ConflictingLengths)?;
            if earlier.is_none_or(|e| e == length) {
                Ok(Some(length))
            } else {
                Err(ConflictingLengths)
            }
        })?
        .ok_or(ConflictingLengths)
}

/// A number that consists of digits only.
fn digits(text: &[u8]) -> Option<u64> {
    let (first, rest) = text.split_first()?;
    rest.iter()
        .try_fold(digit(*first)?, |number, byte| number.checked_mul(10)?.checked_add(digit(*byte)?))
}

fn digit(byte: u8) -> Option<u64> {
    byte.is_ascii_digit().then(|| u64::from(byte - b'0'))
}

fn last_is_chunked(value: &[u8]) -> bool {
    value
        .rsplit(|&b| b == b',')
        .next()
        .is_some_and(|last| last.trim_ascii().eq_ignore_ascii_case(b"chunked"))
}

fn connection_option(value: &[u8]) -> Option<bool> {
    if value == b"keep-alive" {
        return Some(true);
    }
    value.split(|&b| b == b',').find_map(|option| match option.trim_ascii() {
        close if close.eq_ignore_ascii_case(b"close") => Some(false),
        keep if keep.eq_ignore_ascii_case(b"keep-alive") => Some(true),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framing(
        status: u16,
        to_head: bool,
        headers: &[(&str, &str)],
    ) -> Result<(BodyFraming, bool), ConflictingLengths> {
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| Header { name, value: value.as_bytes() }).collect();
        MessageFraming::new(status, 1, &headers, to_head).map(|c| (c.body, c.keep_alive))
    }

    #[test]
    fn the_end_of_a_body_is_determined_as_in_the_rfc() {
        use BodyFraming::{Chunked, Empty, Length, UntilClose};
        let length = ("Content-Length", "5");
        let chunked = ("transfer-encoding", "gzip, Chunked");
        for (sentence, status, to_head, headers, expected) in [
            ("a length", 200, false, vec![length], (Length(5), true)),
            ("chunks", 200, false, vec![chunked], (Chunked, true)),
            (
                "chunks win over a length, and the connection ends",
                200,
                false,
                vec![length, chunked],
                (Chunked, false),
            ),
            ("a response to HEAD has no body", 200, true, vec![length], (Empty, true)),
            ("204 has no body", 204, false, vec![length], (Empty, true)),
            ("304 has no body", 304, false, vec![length], (Empty, true)),
            ("neither means until close", 200, false, vec![], (UntilClose, false)),
            (
                "another last coding means until close",
                200,
                false,
                vec![("transfer-encoding", "gzip")],
                (UntilClose, false),
            ),
            (
                "close is honoured",
                200,
                false,
                vec![length, ("connection", "Close")],
                (Length(5), false),
            ),
            (
                "the same length twice is one",
                200,
                false,
                vec![length, ("content-length", "5, 5")],
                (Length(5), true),
            ),
        ] {
            assert_eq!(framing(status, to_head, &headers), Ok(expected), "{sentence}");
        }
    }

    #[test]
    fn conflicting_and_invalid_lengths_are_rejected() {
        for value in ["5, 6", "", "-1", "+5", "5x", "0x5", "99999999999999999999"] {
            assert_eq!(
                framing(200, false, &[("content-length", value)]),
                Err(ConflictingLengths),
                "{value}"
            );
        }
        assert_eq!(
            framing(200, false, &[("content-length", "5"), ("content-length", "6")]),
            Err(ConflictingLengths)
        );
    }

    #[test]
    fn http_1_0_closes_unless_keep_alive_is_set() {
        let length = Header { name: "content-length", value: b"1" };
        let keep = Header { name: "connection", value: b"keep-alive" };
        let keeps = |headers: &[Header<'_>]| {
            MessageFraming::new(200, 0, headers, false).map(|c| c.keep_alive)
        };
        assert_eq!(keeps(&[length]), Ok(false));
        assert_eq!(keeps(&[length, keep]), Ok(true));
    }
}
