//! Statements about results.
//!
//! A statement is a [`Rule`]: a row of `rules.md` with a code, a level, a text and a fix. The code
//! that owns the evidence decides whether a rule fires and returns a [`Finding`], which consists of
//! the code and the typed values. No other code composes sentences about a result.

mod finding;
pub mod number;
mod rule;

pub use finding::Finding;
pub use rule::{Level, Rule};
