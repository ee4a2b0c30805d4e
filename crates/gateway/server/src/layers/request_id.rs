//! An id on every request and response.

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use serde::Deserialize;

use crate::layers::{Layer, Setup, header_name};

/// The longest id of a client that is taken.
const MAX_LENGTH: usize = 128;

/// The header of the request id.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct RequestIdSpec {
    /// Header with the id, which is echoed, or generated if the client sent none.
    pub header: String,
}

impl Default for RequestIdSpec {
    fn default() -> Self {
        Self { header: "x-request-id".to_owned() }
    }
}

/// Gives every request an id.
#[derive(Debug)]
pub(crate) struct RequestId {
    pub(crate) header: HeaderName,
}

impl Layer for RequestId {
    type Section = RequestIdSpec;

    fn new(section: &RequestIdSpec, _setup: &Setup<'_>) -> Result<Self, String> {
        header_name("request_id: `header`", &section.header).map(|header| Self { header })
    }

    fn headers(&self) -> Vec<HeaderName> {
        vec![self.header.clone()]
    }
}

impl RequestId {
    /// Takes the client's id, or makes one of a number; the upstream sees it as well.
    pub(crate) fn assign(
        &self,
        headers: &mut HeaderMap,
        number: impl FnOnce() -> u64,
    ) -> HeaderValue {
        let given = headers.get(&self.header).filter(|id| (1..=MAX_LENGTH).contains(&id.len()));
        let id = given.cloned().unwrap_or_else(|| to_hex(number()));
        headers.insert(self.header.clone(), id.clone());
        id
    }
}

/// Sixteen hexadecimal digits.
fn to_hex(number: u64) -> HeaderValue {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut digits = [0; 16];
    for (index, byte) in number.to_be_bytes().into_iter().enumerate() {
        digits[2 * index] = DIGITS[usize::from(byte >> 4)];
        digits[2 * index + 1] = DIGITS[usize::from(byte & 15)];
    }
    // Digits are always allowed.
    HeaderValue::from_maybe_shared(Bytes::copy_from_slice(&digits))
        .unwrap_or_else(|_| HeaderValue::from_static("0"))
}
