//! Removes personal data from responses as they pass.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE};
use plimsoll_gateway_dialect::{Dialect, StreamRewriter, TextEvent};
use plimsoll_gateway_policy::{Action, Actions, InputKind, Policy, Scrubber, TextScrubber};

use crate::body_filter::{BodyFilter, BoxError};

/// A text in memory without its personal data.
pub(crate) fn scrub_text<'t>(policy: &Policy, text: &'t str) -> Cow<'t, str> {
    const PERSONAL: Actions = Actions { pii: Action::Redact, ..Actions::all(Action::Allow) };
    policy.scan(text, InputKind::Text, &PERSONAL).text
}

/// Scrubs any text, across the boundaries of its chunks.
pub(crate) struct ScrubText(Scrubber);

impl ScrubText {
    /// A filter for a response that is text. A compressed one cannot be read, and passes unchanged.
    pub(crate) fn for_response(policy: &Arc<Policy>, headers: &HeaderMap) -> Option<Self> {
        is_text(headers).then(|| Self(Scrubber::new(Arc::clone(policy))))
    }
}

fn is_text(headers: &HeaderMap) -> bool {
    let media_type = headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    let text = media_type.starts_with(b"text/") || media_type.starts_with(b"application/json");
    text && !headers.contains_key(CONTENT_ENCODING)
}

impl BodyFilter for ScrubText {
    fn chunk(&mut self, chunk: Bytes) -> Result<Bytes, BoxError> {
        Ok(match self.0.feed(&chunk) {
            Cow::Borrowed(same) => chunk.slice_ref(same),
            Cow::Owned(changed) => Bytes::from(changed),
        })
    }

    fn end(&mut self) -> Result<Bytes, BoxError> {
        Ok(Bytes::from(self.0.finish()))
    }
}

/// Scrubs the texts inside an LLM's stream: a number whose digits are spread over several events is
/// found as well.
pub(crate) struct ScrubDeltas {
    policy: Arc<Policy>,
    stream: StreamRewriter,
    /// By text: a stream can carry several at once.
    scrubbers: HashMap<u64, TextScrubber>,
}

impl ScrubDeltas {
    pub(crate) fn new(policy: Arc<Policy>, dialect: Dialect) -> Self {
        Self { policy, stream: StreamRewriter::new(dialect), scrubbers: HashMap::new() }
    }
}

/// Scrubs a piece of a text.
fn scrub_piece<'t>(
    policy: &Arc<Policy>,
    scrubbers: &mut HashMap<u64, TextScrubber>,
    piece: TextEvent<'t>,
) -> Cow<'t, str> {
    let key = piece.index();
    match piece {
        TextEvent::Delta { text, .. } => {
            scrubbers.entry(key).or_insert_with(|| TextScrubber::new(Arc::clone(policy))).feed(text)
        }
        TextEvent::End { .. } => scrubbers
            .remove(&key)
            .map(|mut scrubber| Cow::Owned(scrubber.finish()))
            .unwrap_or_default(),
    }
}

impl BodyFilter for ScrubDeltas {
    fn chunk(&mut self, chunk: Bytes) -> Result<Bytes, BoxError> {
        let mut out = Vec::with_capacity(chunk.len());
        let (policy, scrubbers) = (&self.policy, &mut self.scrubbers);
        self.stream.feed(&chunk, &mut out, |piece| scrub_piece(policy, scrubbers, piece))?;
        Ok(Bytes::from(out))
    }

    fn end(&mut self) -> Result<Bytes, BoxError> {
        let mut out = Vec::new();
        let (policy, scrubbers) = (&self.policy, &mut self.scrubbers);
        self.stream.finish(&mut out, |piece| scrub_piece(policy, scrubbers, piece))?;
        Ok(Bytes::from(out))
    }
}
