//! Any bytes as a request to each endpoint: no panic; what is read is what serde_json reads, and
//! its texts stand where they say.
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
        for text in view.texts() {
            let read: String = serde_json::from_slice(&body[text.range()]).unwrap();
            assert_eq!(read, text.as_str());
        }
        // Half of a surrogate pair, or a number out of range, in a member that nobody reads.
        let Ok(value) = serde_json::from_slice::<Value>(body) else { continue };
        assert_eq!(value["model"], view.model());
    }
});
