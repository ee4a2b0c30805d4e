//! Integration tests: every structure of the corpus, with a text that must be found and with one
//! that must not be touched.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::excessive_nesting,
    clippy::format_collect,
    reason = "tests may fail loudly, and go through tables of cases"
)]

mod answers;
mod forms;
mod hostile;
mod properties;
mod requests;
mod streams;
