//! OpenAI's and Anthropic's wire formats and the translation between them; no I/O.
//!
//! | task | entry point |
//! |---|---|
//! | inspect a request | [`RequestView`] |
//! | translate a request, a response, a stream or an error | [`Translator`] |
//! | read usage and completeness of a passing response | [`UsageObserver`], [`Usage::from_body`] |
//! | split a stream into its events, and read their data | [`EventSplitter`], [`event_data`] |
//! | write an error in the caller's format | [`ErrorBody`] |
//! | find the end of a JSON string | [`find_quote_or_backslash`] |
//! | compute the cache key of a request | [`write_cache_key`] |
//!
//! If caller and upstream use the same dialect, nothing is translated and the bytes pass unchanged:
//! [`Translator::between`] returns None.

mod answer;
mod cache_key;
mod depth;
mod dialect;
mod error;
mod error_body;
mod json;
mod json_string;
mod request_view;
mod sse;
mod translate;
mod usage;
mod usage_observer;
mod wire;

pub use answer::{estimated_tokens, is_answer};
pub use cache_key::write_cache_key;
pub use depth::{MAX_DEPTH, is_too_deep};
pub use dialect::{Dialect, Endpoint};
pub use error::DialectError;
pub use error_body::{ErrorBody, ErrorKind, error_event, status_for};
pub use json_string::find_quote_or_backslash;
pub use request_view::{RequestView, Streaming};
pub use sse::{EventSplitter, MAX_EVENT_BYTES, event_data};
pub use translate::{DEFAULT_MAX_TOKENS, LimitName, StreamSettings, StreamTranslator, Translator};
pub use usage::Usage;
pub use usage_observer::{StreamStatus, UsageObserver};
