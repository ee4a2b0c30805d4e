//! The calibration through its public interface.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod experiments;
mod record;
mod screens;
mod support;
