//! Tests of the page: what it says, what it refuses, and how large it is.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod comparisons;
mod exemplars;
mod knees;
mod pages;
mod suites;
mod support;
