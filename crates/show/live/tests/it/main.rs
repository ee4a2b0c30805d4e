//! Tests the view at several sizes, with the input of a run.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod support;
mod view;
