//! Personal data is taken out of answers while they pass.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE};
use plimsoll_gateway_dialect::{Dialect, StreamRewriter, TextEvent};
use plimsoll_gateway_policy::{Policy, Scrubber, TextScrubber};

use crate::body::Broken;
use crate::relay::{Relay, Tap};

/// Scrubs an answer if it is text. What is compressed cannot be looked into, and passes.
pub(crate) fn attach(policy: &Arc<Policy>, headers: &HeaderMap, relay: &mut Relay) {
    if is_text(headers) {
        relay.tap(Box::new(Scrub(Scrubber::new(Arc::clone(policy)))));
    }
}

fn is_text(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map_or(&b""[..], |kind| kind.as_bytes());
    let text = kind.starts_with(b"text/") || kind.starts_with(b"application/json");
    text && !headers.contains_key(CONTENT_ENCODING)
}

/// Any text, across the borders of its pieces.
struct Scrub(Scrubber);

impl Tap for Scrub {
    fn piece(&mut self, piece: Bytes) -> Result<Bytes, Broken> {
        Ok(match self.0.feed(&piece) {
            Cow::Borrowed(same) => piece.slice_ref(same),
            Cow::Owned(changed) => Bytes::from(changed),
        })
    }

    fn end(&mut self) -> Result<Bytes, Broken> {
        Ok(Bytes::from(self.0.finish()))
    }
}

/// The texts of an LLM's stream: a number whose digits come in several events is found as well.
pub(crate) struct ScrubDeltas {
    policy: Arc<Policy>,
    stream: StreamRewriter,
    lanes: HashMap<u64, TextScrubber>,
}

impl ScrubDeltas {
    pub(crate) fn new(policy: Arc<Policy>, dialect: Dialect) -> Self {
        Self { policy, stream: StreamRewriter::new(dialect), lanes: HashMap::new() }
    }
}

/// What becomes of a piece of a text.
fn change<'t>(
    policy: &Arc<Policy>,
    lanes: &mut HashMap<u64, TextScrubber>,
    piece: TextEvent<'t>,
) -> Cow<'t, str> {
    let lane = piece.index();
    match piece {
        TextEvent::Delta { text, .. } => {
            lanes.entry(lane).or_insert_with(|| TextScrubber::new(Arc::clone(policy))).feed(text)
        }
        TextEvent::End { .. } => lanes
            .remove(&lane)
            .map(|mut scrubber| Cow::Owned(scrubber.finish()))
            .unwrap_or_default(),
    }
}

impl Tap for ScrubDeltas {
    fn piece(&mut self, piece: Bytes) -> Result<Bytes, Broken> {
        let mut out = Vec::with_capacity(piece.len());
        let (policy, lanes) = (&self.policy, &mut self.lanes);
        self.stream.feed(&piece, &mut out, |piece| change(policy, lanes, piece))?;
        Ok(Bytes::from(out))
    }

    fn end(&mut self) -> Result<Bytes, Broken> {
        let mut out = Vec::new();
        let (policy, lanes) = (&self.policy, &mut self.lanes);
        self.stream.finish(&mut out, |piece| change(policy, lanes, piece))?;
        Ok(Bytes::from(out))
    }
}
