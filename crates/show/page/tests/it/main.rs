//! Tests of the page: its content, its missing values, and its size.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod comparisons;
mod knees;
mod pages;
mod suites;
mod support;
