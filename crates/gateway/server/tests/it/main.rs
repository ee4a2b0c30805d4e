//! The gateway as a whole: raw clients in front of it, scripted upstreams behind it.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::float_cmp,
    clippy::format_push_string,
    clippy::excessive_nesting,
    reason = "tests may fail loudly, sleep in their servers and clients, go through tables of cases, and compare whole \
              numbers that JSON made floats"
)]

mod support;

mod administration;
mod agents;
mod attacks;
mod audit;
mod auth;
mod bodies;
mod broken;
mod budget;
mod budget_bounds;
mod cache;
mod cache_answers;
mod cache_key;
mod cache_reloads;
mod dialects;
mod early_ends;
mod encoded;
mod errors;
/// The corpus of the policy.
#[path = "../../../policy/tests/it/examples.rs"]
mod examples;
mod exchanges;
mod floods;
mod http1;
mod http2;
mod identities;
mod labels;
mod left_out;
mod llm_sdk;
mod owners;
mod policy;
mod presets;
mod rate_limits;
mod redis;
mod reload;
mod scrub;
mod slow_clients;
mod smuggling;
mod spellings;
mod tenant_matrix;
mod texts;
mod tls;
mod tools;
mod uncovered;
mod upstreams;
mod websockets;
