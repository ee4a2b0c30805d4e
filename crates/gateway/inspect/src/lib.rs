//! Finds every text in a JSON document or a stream of events, and judges it by a policy; no I/O.
//!
//! | task | entry point |
//! |---|---|
//! | judge a request, scrub a whole answer | [`Inspector::document`] |
//! | scrub a stream of events | [`EventScrubber`] |
//! | decide about other files | [`FileRule`] |
//!
//! Texts are found by structure, not by a list of members: every string is a text, except the
//! identifiers and words of the protocols that the module `names` lists.

mod document;
mod error;
mod event;
mod event_scrubber;
mod files;
mod inspector;
mod json_string;
mod mask;
mod names;
mod nested;
mod tokens;
mod walk;

pub use error::Unreadable;
pub use event_scrubber::{EventScrubber, MAX_WAITING_BYTES};
pub use files::{FileRule, Unread};
pub use inspector::{Inspector, Judgement};
pub use walk::Source;
