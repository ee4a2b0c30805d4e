//! Integration tests of the dialects.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

mod properties;
mod translation;
