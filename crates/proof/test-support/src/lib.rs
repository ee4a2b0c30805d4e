//! Helpers that the tests of several crates share. For tests only.

pub mod schema_page;
mod screens;

pub use screens::check_screens;
