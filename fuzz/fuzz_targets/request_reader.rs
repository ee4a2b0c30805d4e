//! Any bytes as a request to each endpoint: no panic, and the model is the one that serde_json
//! reads.
//!
//! Input: the body.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_gateway_dialect::{Endpoint, RequestView, write_cache_key};
use serde_json::Value;

const ENDPOINTS: [Endpoint; 4] =
    [Endpoint::Chat, Endpoint::Responses, Endpoint::Embeddings, Endpoint::Messages];

fuzz_target!(|body: &[u8]| {
    for endpoint in ENDPOINTS {
        let _ = write_cache_key(endpoint, body, |_| {});
        let Ok(view) = RequestView::read(endpoint, body) else { continue };
        // Half of a surrogate pair, or a number out of range, in a member that nobody reads.
        let Ok(value) = serde_json::from_slice::<Value>(body) else { continue };
        assert_eq!(value["model"], view.model);
    }
});
