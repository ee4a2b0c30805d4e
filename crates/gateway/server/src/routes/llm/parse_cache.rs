//! The parse cache: a body that is byte for byte the same as an earlier one is not parsed again.
//! That saves two passes over the JSON, most of the cost of a cache hit apart from the sockets.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use plimsoll_gateway_dialect::{Endpoint, Streaming};
use ring::digest::{Context, SHA256};

use super::cache_key::BodyKey;
use crate::layers::identity::Identity;

/// Most entries of one worker, about 150 bytes each. A full cache is cleared.
const MAX_ENTRIES: usize = 4_096;

/// The longest name of a model in an entry.
const MAX_MODEL_BYTES: usize = 256;

/// The digest of a request's body.
pub(super) type BodyDigest = [u8; 32];

/// The result of parsing a request.
#[derive(Clone, Debug)]
pub(super) struct ParsedRequest {
    pub(super) body_key: BodyKey,
    pub(super) streaming: Streaming,
    pub(super) prompt_tokens: u64,
    pub(super) max_tokens: Option<u64>,
    pub(super) answers: u64,
    pub(super) model: Arc<str>,
    pub(super) left_out: Option<Arc<str>>,
}

/// The parse cache of one worker.
#[derive(Debug, Default)]
pub(crate) struct ParseCache(RefCell<HashMap<BodyDigest, ParsedRequest>>);

impl ParseCache {
    pub(super) fn get(&self, digest: &BodyDigest) -> Option<ParsedRequest> {
        self.0.borrow().get(digest).cloned()
    }

    /// Keeps the result of a request that was parsed successfully.
    pub(super) fn insert(&self, digest: BodyDigest, parsed: ParsedRequest) {
        if parsed.model.len() > MAX_MODEL_BYTES {
            return;
        }
        let mut entries = self.0.borrow_mut();
        if entries.len() >= MAX_ENTRIES {
            entries.clear();
        }
        entries.insert(digest, parsed);
    }
}

/// The digest of a body and its endpoint, with the scope of who asks: how long parsing takes tells
/// nobody what others sent.
pub(super) fn digest(identity: &Identity, endpoint: Endpoint, body: &[u8]) -> BodyDigest {
    let mut hash = Context::new(&SHA256);
    identity.write_scope(&mut hash);
    hash.update(&(endpoint.path().len() as u64).to_be_bytes());
    hash.update(endpoint.path().as_bytes());
    hash.update(body);
    let mut digest = [0; 32];
    digest.copy_from_slice(hash.finish().as_ref());
    digest
}
