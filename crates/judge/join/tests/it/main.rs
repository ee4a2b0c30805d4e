//! Runs and logs that are made here, with planted differences.

mod books;
mod files;
mod large;
mod planted;
mod reference;
mod robust;
mod support;
mod wrong;
