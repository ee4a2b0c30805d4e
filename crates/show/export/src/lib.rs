//! Metrics where teams look: the figures of a finished run, pushed to Prometheus.
//!
//! - [`PushTarget`]: receives them

mod push;

pub use push::{PushError, PushTarget, PushUrlError};
