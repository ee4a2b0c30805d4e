//! Requests that were read before: what is the same byte for byte need not be read again to be found in the
//! cache. It saves two passes over the JSON, which is most of what a cache hit costs beside the sockets.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use plimsoll_gateway_dialect::{Endpoint, Streaming};
use plimsoll_gateway_store::CacheKey;
use ring::digest::{Context, SHA256};

use super::Question;

/// Requests that one worker remembers, about 150 bytes each. When there are more, it begins anew.
const MOST: usize = 4_096;

/// Digest of a request as it came.
pub(super) type Raw = [u8; 32];

/// What reading a request brought.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) key: CacheKey,
    pub(super) streaming: Streaming,
    pub(super) prompt_tokens: u64,
    pub(super) max_tokens: Option<u64>,
    pub(super) model: Arc<str>,
}

/// The requests that one worker remembers.
#[derive(Debug, Default)]
pub(crate) struct Memo(RefCell<HashMap<Raw, Known>>);

impl Memo {
    pub(super) fn recall(&self, raw: &Raw) -> Option<Known> {
        self.0.borrow().get(raw).cloned()
    }

    /// Remembers a request that was read and found well-formed.
    pub(super) fn remember(&self, question: &Question, key: CacheKey) {
        let Some(raw) = question.raw else { return };
        let mut known = self.0.borrow_mut();
        if known.len() >= MOST {
            known.clear();
        }
        let entry = Known {
            key,
            streaming: question.streaming,
            prompt_tokens: question.prompt_tokens,
            max_tokens: question.max_tokens,
            model: Arc::clone(&question.model),
        };
        known.insert(raw, entry);
    }
}

/// The digest of a request as it came: whose it is, where it goes, and its bytes.
pub(super) fn digest(apart: [&str; 2], endpoint: Endpoint, body: &[u8]) -> Raw {
    let mut hash = Context::new(&SHA256);
    for name in [apart[0], apart[1], endpoint.path()] {
        hash.update(&(name.len() as u64).to_be_bytes());
        hash.update(name.as_bytes());
    }
    hash.update(body);
    let mut raw = [0; 32];
    raw.copy_from_slice(hash.finish().as_ref());
    raw
}
