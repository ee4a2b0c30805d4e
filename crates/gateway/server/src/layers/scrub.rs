//! Removes personal data from responses.

use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap};
use plimsoll_gateway_inspect::{EventScrubber, FileRule, Inspector, Source, Unread};
use plimsoll_gateway_policy::{Policy, Scrubber};
use serde::Deserialize;
use smart_default::SmartDefault;

use crate::http::body_filter::{BodyFilter, BoxError};
use crate::http::content::{Charset, MediaType, is_encoded, is_event_stream};
use crate::http::error_response::ErrorResponse;
use crate::layers::offload::{self, file_rule};
use crate::layers::policy;
use crate::layers::{Layer, LayerName as _, Reading, Setup};

/// Personal data in responses.
#[derive(Clone, Debug, SmartDefault, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ScrubSpec {
    /// Treatment of unreadable responses: encoded ones, broken JSON and events, other types than
    /// text.
    pub unreadable: Unread,
    /// Types that pass unread; `image/*` matches all images.
    #[default(FileRule::default().pass_types)]
    pub pass_types: Vec<String>,
}

/// Removes personal data from responses.
#[derive(Debug)]
pub(crate) struct Scrub {
    policy: Arc<Policy>,
    inspector: Arc<Inspector>,
    files: FileRule,
}

impl Layer for Scrub {
    type Section = ScrubSpec;
    const READS_ANSWERS: bool = true;
    const CHANGES_ANSWERS: bool = true;

    fn new(spec: &ScrubSpec, _setup: &Setup<'_>) -> Result<Self, String> {
        let policy = policy::builtin()?;
        let files = file_rule(spec.unreadable, &spec.pass_types);
        let inspector = Arc::new(Inspector::personal_data(Arc::clone(&policy), files.clone()));
        Ok(Self { policy, inspector, files })
    }

    fn reading(&self, headers: &HeaderMap, otherwise: Reading) -> Result<Reading, ErrorResponse> {
        if is_encoded(headers) {
            return self.unreadable("it is encoded").map(|()| Reading::Nothing);
        }
        let Some(value) = headers.get(CONTENT_TYPE) else { return Ok(otherwise) };
        // Fast path for the usual value.
        if value == "application/json" {
            return Ok(Reading::Json);
        }
        if is_event_stream(headers) {
            return Ok(Reading::Events);
        }
        let Some(media_type) = MediaType::read(headers) else { return Ok(otherwise) };
        let kind = &media_type.kind;
        if !FileRule::is_text(kind) {
            let allowed = self.files.check(kind).map(|()| Reading::Nothing);
            return allowed.map_err(|_| unreadable(&format!("its type is `{kind}`")));
        }
        if media_type.charset == Charset::Other {
            return self.unreadable("its character set is unusual").map(|()| Reading::Nothing);
        }
        Ok(if is_json(kind) { Reading::Json } else { Reading::Text })
    }

    fn filter(&self, reading: Reading) -> Option<Box<dyn BodyFilter>> {
        match reading {
            Reading::Json | Reading::Nothing => None,
            Reading::Text => Some(Box::new(ScrubText(Scrubber::new(Arc::clone(&self.policy))))),
            Reading::Events => {
                Some(Box::new(ScrubEvents(EventScrubber::new(Arc::clone(&self.inspector)))))
            }
        }
    }

    async fn answer(
        &self,
        body: &Bytes,
        reading: Reading,
        source: Source,
    ) -> Result<Option<Bytes>, ErrorResponse> {
        if reading == Reading::Nothing || body.is_empty() {
            return Ok(None);
        }
        if reading == Reading::Json {
            return match offload::check_document(&self.inspector, body, source).await? {
                Ok(judgement) => Ok(judgement.document.map(Bytes::from)),
                Err(error) => self.unreadable(&error.to_string()).map(|()| None),
            };
        }
        let Some(mut filter) = self.filter(reading) else { return Ok(None) };
        let scrubbed =
            filter.chunk(body.clone()).and_then(|first| Ok([first, filter.end()?].concat()));
        scrubbed
            .map(|bytes| Some(Bytes::from(bytes)))
            .map_err(|error| unreadable(&error.to_string()))
    }
}

impl Scrub {
    /// Whether unreadable content may pass.
    fn unreadable(&self, reason: &str) -> Result<(), ErrorResponse> {
        match self.files.unreadable {
            Unread::Pass => Ok(()),
            Unread::Refuse => Err(unreadable(reason)),
        }
    }
}

fn unreadable(reason: &str) -> ErrorResponse {
    let message = format!("the upstream's response cannot be searched for personal data: {reason}");
    ErrorResponse::response_unreadable(message).by(Scrub::NAME)
}

/// Whether a type is one JSON document. JSON lines may be a stream, which cannot be read as a
/// whole.
fn is_json(kind: &str) -> bool {
    kind.ends_with("/json") || kind.ends_with("+json")
}

/// Scrubs any text, across the boundaries of its chunks.
struct ScrubText(Scrubber);

impl BodyFilter for ScrubText {
    fn chunk(&mut self, chunk: Bytes) -> Result<Bytes, BoxError> {
        Ok(Bytes::from(self.0.feed(&chunk)))
    }

    fn end(&mut self) -> Result<Bytes, BoxError> {
        Ok(Bytes::from(self.0.finish()))
    }

    fn buffered_bytes(&self) -> usize {
        self.0.buffered()
    }
}

/// Scrubs the texts inside a stream of events.
struct ScrubEvents(EventScrubber);

impl BodyFilter for ScrubEvents {
    fn chunk(&mut self, chunk: Bytes) -> Result<Bytes, BoxError> {
        let mut out = Vec::with_capacity(chunk.len());
        self.0.feed(&chunk, &mut out)?;
        Ok(Bytes::from(out))
    }

    fn end(&mut self) -> Result<Bytes, BoxError> {
        let mut out = Vec::new();
        self.0.finish(&mut out)?;
        Ok(Bytes::from(out))
    }

    fn buffered_bytes(&self) -> usize {
        self.0.buffered()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::made;

    #[test]
    fn what_is_held_back_is_counted() {
        let scrub = made::<Scrub>(&ScrubSpec::default()).unwrap();
        let event =
            Bytes::from("data: {\"choices\":[{\"delta\":{\"content\":\"my card is 41\"}}]}\n\n");
        let start = Bytes::from(format!("data: {{\"text\":\"{}", "x".repeat(100_000)));
        let mut events = scrub.filter(Reading::Events).unwrap();
        assert_eq!(events.buffered_bytes(), 0);
        assert!(events.chunk(event.clone()).unwrap().is_empty());
        assert_eq!(events.buffered_bytes(), event.len(), "an event waits");
        let sent = events.chunk(start.clone()).unwrap().len();
        assert_eq!(
            events.buffered_bytes() + sent,
            event.len() + start.len(),
            "so does half an event"
        );

        let mut text = scrub.filter(Reading::Text).unwrap();
        let sent = text.chunk(Bytes::from("my card is 4111 1111 1")).unwrap().len();
        assert!(text.buffered_bytes() > 0 && text.buffered_bytes() + sent == 22);
        text.end().unwrap();
        assert_eq!(text.buffered_bytes(), 0);
    }
}
