//! An id on every request and response.

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use serde::Deserialize;
use smart_default::SmartDefault;

use crate::layers::{Layer, Setup, header_name};

/// The longest accepted id of a client.
const MAX_LENGTH: usize = 128;

/// The header of the request id.
#[derive(Clone, Debug, SmartDefault, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct RequestIdSpec {
    /// Header with the id, which is echoed, or generated if the client sent none.
    #[default("x-request-id".to_owned())]
    pub header: String,
}

/// Assigns an id to every request.
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
    /// Takes the client's id, or makes one from a number, and forwards it upstream.
    pub(crate) fn assign(
        &self,
        headers: &mut HeaderMap,
        number: impl FnOnce() -> u64,
    ) -> HeaderValue {
        let given = headers.get(&self.header).filter(|id| (1..=MAX_LENGTH).contains(&id.len()));
        let id = given.cloned().unwrap_or_else(|| {
            // Digits are valid header values.
            HeaderValue::try_from(format!("{:016x}", number()))
                .unwrap_or(HeaderValue::from_static("0"))
        });
        headers.insert(self.header.clone(), id.clone());
        id
    }
}
