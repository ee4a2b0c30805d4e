//! Metrics where teams look: snapshots in; a page for Prometheus out, served or pushed.
//!
//! - [`LiveMetrics`]: progress of a run, updated from its snapshots once a second
//! - [`MetricsServer`]: serves that at `/metrics`, on a thread of its own
//! - [`PushTarget`]: receives the figures of a finished run
//!
//! No code here is on the path of a request: the monitor of a run hands snapshots over, as it does
//! to the live view. Live families begin with `plimsoll_live_`, so they never mix with the families
//! of finished runs (`docs/adr/0072`).

mod counts;
mod live;
mod push;
mod server;

pub use counts::LIMITS_NS;
pub use live::{Conclusion, LiveKnee, LiveMetrics, Verdict};
pub use push::{PushError, PushTarget, PushUrlError};
pub use server::{DEFAULT_ADDRESS, MetricsServer};
