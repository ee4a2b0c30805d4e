//! Runs and logs that are made here, with planted differences.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod books;
mod files;
mod large;
mod planted;
mod reference;
mod robust;
mod support;
mod wrong;
