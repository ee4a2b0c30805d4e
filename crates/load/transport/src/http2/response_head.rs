//! The decoded head of a response.

use httparse::{EMPTY_HEADER, Header};

use super::hpack::HeaderField;
use crate::message::ResponseHead;

/// Largest head, names and values together: the same limit as in HTTP/1.1.
const MAX_HEAD: usize = 64 * 1024;
/// Maximum number of fields of a head.
const MAX_FIELDS: usize = 100;
/// Size of the smaller of two arrays for fields.
const FEW_FIELDS: usize = 16;

/// Why a head is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadError {
    /// It violates a rule of HTTP.
    Malformed(&'static str),
    /// It exceeds the limit of bytes or fields.
    TooLarge,
}

/// A head, in reusable buffers.
#[derive(Debug, Default)]
pub struct DecodedHead {
    status: u16,
    text: Vec<u8>,
    /// End positions of each field's name and value in `text`.
    ends: Vec<(usize, usize)>,
    length: Option<u64>,
    error: Option<HeadError>,
}

impl DecodedHead {
    /// The status; 0 until it is decoded.
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// Why it is invalid, if it is.
    pub const fn error(&self) -> Option<HeadError> {
        self.error
    }

    /// Its `content-length`.
    pub(super) const fn length(&self) -> Option<u64> {
        self.length
    }

    /// Size of its fields in HTTP/1.1, without compression.
    pub(super) fn size(&self) -> usize {
        self.text.len() + 4 * self.ends.len()
    }

    pub(super) fn clear(&mut self) {
        self.status = 0;
        self.text.clear();
        self.ends.clear();
        self.length = None;
        self.error = None;
    }

    fn reject(&mut self, detail: &'static str) {
        self.error = self.error.or(Some(HeadError::Malformed(detail)));
    }

    /// Adds a field. After an error, fields are ignored.
    pub(super) fn push(&mut self, field: HeaderField<'_>) {
        if self.error.is_some() {
            return;
        }
        if !field.valid {
            return self.reject("a field has characters that HTTP does not allow");
        }
        if field.name.first() == Some(&b':') {
            return self.pseudo(field);
        }
        if self.ends.len() >= MAX_FIELDS
            || self.text.len() + field.name.len() + field.value.len() > MAX_HEAD
        {
            self.error = Some(HeadError::TooLarge);
            return;
        }
        match field.name {
            b"content-length" => self.content_length(field.value),
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
            | b"upgrade" => self.reject("a field of HTTP/1.1 connections"),
            _ => {}
        }
        self.text.extend_from_slice(field.name);
        let name = self.text.len();
        self.text.extend_from_slice(field.value);
        self.ends.push((name, self.text.len()));
    }

    /// Handles a pseudo-header. Responses have only `:status`, before all other fields (RFC 9113,
    /// section 8.3.2).
    fn pseudo(&mut self, field: HeaderField<'_>) {
        if field.name != b":status" || self.status != 0 || !self.ends.is_empty() {
            return self.reject("a pseudo-header that is not one `:status` at the beginning");
        }
        let ([a @ b'1'..=b'9', b, c], true) =
            (field.value, field.value.iter().all(u8::is_ascii_digit))
        else {
            return self.reject("`:status` is not a number of three digits");
        };
        let [a, b, c] = [a, b, c].map(|byte| u16::from(byte - b'0'));
        self.status = a * 100 + b * 10 + c;
    }

    /// A repeated length is valid if all values are equal.
    fn content_length(&mut self, value: &[u8]) {
        let number = std::str::from_utf8(value)
            .ok()
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|text| text.parse().ok());
        match number {
            Some(number) if self.length.is_none_or(|length| length == number) => {
                self.length = Some(number);
            }
            _ => self.reject("the content-length headers are not a single number"),
        }
    }

    /// Calls `on` with the head in the form shared by both HTTP versions.
    pub fn with_response_head(&self, on: impl FnOnce(&ResponseHead<'_>)) {
        if self.ends.len() <= FEW_FIELDS {
            self.fill(&mut [EMPTY_HEADER; FEW_FIELDS], on);
        } else {
            self.fill(&mut [EMPTY_HEADER; MAX_FIELDS], on);
        }
    }

    fn fill<'a>(&'a self, headers: &mut [Header<'a>], on: impl FnOnce(&ResponseHead<'_>)) {
        let mut start = 0;
        for (header, &(name, value)) in headers.iter_mut().zip(&self.ends) {
            // Names were checked when they were decoded: they are ASCII.
            header.name = std::str::from_utf8(&self.text[start..name]).unwrap_or_default();
            header.value = &self.text[name..value];
            start = value;
        }
        on(&ResponseHead { status: self.status, headers: &headers[..self.ends.len()] });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(lines: &[(&str, &str)]) -> DecodedHead {
        let mut head = DecodedHead::default();
        for (name, value) in lines {
            head.push(HeaderField { name: name.as_bytes(), value: value.as_bytes(), valid: true });
        }
        head
    }

    #[test]
    fn a_head_keeps_its_fields_in_order() {
        let head = head(&[(":status", "404"), ("a", "b"), ("content-length", "7"), ("a", "")]);
        assert_eq!((head.status(), head.length(), head.error()), (404, Some(7), None));
        assert_eq!(head.size(), "a: b\r\ncontent-length: 7\r\na: \r\n".len());
        let mut seen = Vec::new();
        head.with_response_head(|head| {
            seen.extend(
                head.headers.iter().map(|line| (line.name.to_owned(), line.value.to_vec())),
            );
        });
        let expected = [("a", "b"), ("content-length", "7"), ("a", "")];
        assert_eq!(
            seen,
            expected.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()))
        );
    }

    #[test]
    fn heads_that_break_a_rule_are_malformed() {
        for lines in [
            vec![(":status", "20")],
            vec![(":status", "2000")],
            vec![(":status", "2x0")],
            vec![(":status", "099")],
            vec![(":status", "200"), (":status", "200")],
            vec![(":path", "/")],
            vec![("a", "b"), (":status", "200")],
            vec![(":status", "200"), ("connection", "close")],
            vec![(":status", "200"), ("transfer-encoding", "chunked")],
            vec![(":status", "200"), ("content-length", "1"), ("content-length", "2")],
            vec![(":status", "200"), ("content-length", "+1")],
            vec![(":status", "200"), ("content-length", "")],
        ] {
            assert!(matches!(head(&lines).error(), Some(HeadError::Malformed(_))), "{lines:?}");
        }
    }

    #[test]
    fn a_head_over_the_limit_is_not_stored() {
        let value = "x".repeat(MAX_HEAD / 4);
        let large = head(&vec![("a", &value[..]); 1000]);
        assert_eq!(large.error(), Some(HeadError::TooLarge));
        assert!(large.text.capacity() <= 4 * MAX_HEAD);
        let many = head(&vec![("a", "b"); MAX_FIELDS + 1]);
        assert_eq!((many.error(), many.ends.len()), (Some(HeadError::TooLarge), MAX_FIELDS));
        let full = head(&vec![("a", "b"); MAX_FIELDS]);
        let mut count = 0;
        full.with_response_head(|head| count = head.headers.len());
        assert_eq!((full.error(), count), (None, MAX_FIELDS));
    }
}
