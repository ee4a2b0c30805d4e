//! OpenAI's and Anthropic's wire formats, and the way from one to the other; no I/O.
//!
//! | to do | take |
//! |---|---|
//! | see what a request asks for, redact it, change its model | [`RequestView`] |
//! | say a request, an answer, a stream or an error in the other dialect | [`Translator`] |
//! | read usage and the ending off a passing answer | [`UsageObserver`], [`Usage::of_body`] |
//! | change the text of a passing stream, of a whole answer | [`DeltaText`], [`rewrite_answer`] |
//! | wrap an error as the caller expects it | [`Envelope`] |
//! | find an answer to the same question again | [`write_cache_key`] |
//!
//! Where caller and upstream speak alike nothing here touches the bytes; there is no
//! [`Translator::between`] them.

mod answer_text;
mod cache_key;
mod crossing;
mod delta_text;
mod depth;
mod dialect;
mod envelope;
mod error;
mod peek;
mod scanner;
mod splice;
mod sse;
mod usage;
mod usage_tap;
mod wire;

pub use answer_text::rewrite_answer;
pub use cache_key::write_cache_key;
pub use crossing::{DEFAULT_MAX_TOKENS, StreamSettings, StreamTranslator, Translator};
pub use delta_text::{DeltaText, Piece};
pub use depth::MAX_DEPTH;
pub use dialect::{Dialect, Endpoint};
pub use envelope::{Envelope, Fault, status_for};
pub use error::DialectError;
pub use peek::{RequestView, Streaming, Text};
pub use sse::MAX_EVENT_BYTES;
pub use usage::Usage;
pub use usage_tap::{Ending, UsageObserver};
