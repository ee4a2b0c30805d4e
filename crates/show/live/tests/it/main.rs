//! The view at several sizes, fed as a run feeds it.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod support;
mod view;
