//! Writes a row for every request, in batches, and counts what it could not write.
//!
//! ```text
//! worker --.
//! worker ---+-> queue of lines -> writer thread -> JSON lines file, or ClickHouse over HTTP
//! ```
//!
//! A worker offers a [`Row`] of borrowed texts. It becomes a JSON line in the queue, whose lock is
//! held for the time of one line: no worker waits for a disk or for a network. The writer empties
//! the queue as soon as a batch of rows waits, or after the flush interval, and both sinks take the
//! very same lines.
//!
//! # What is counted
//! Every row that was offered is accepted, and then is exactly one of written, dropped (with a
//! reason) and queued: [`Stats::balanced`] holds for every snapshot, whatever happens beside it.
//!
//! # What is durable
//! - After [`Audit::close`] returned, all that is counted as written is on the disk (`fsync`).
//! - After a kill of the process, at most the rows queued are lost: those offered within the last
//!   flush interval, or up to [`Settings::queue`] of them when the sink is slower than the load.
//!   The last line of the file may be torn; the next writer starts on a line of its own.
//! - After a loss of power, in addition the rows since the last `fsync`, see [`Settings::sync`].
//! - `ClickHouse`: written is what it confirmed. A batch whose confirmation was lost is sent again
//!   with the same deduplication token; a batch counted as dropped may still have arrived.

mod audit;
mod error;
mod queue;
mod row;
mod settings;
mod sink;
mod stats;
mod writer;

pub use audit::Audit;
pub use error::AuditError;
pub use queue::Offered;
pub use row::Row;
pub use settings::{ClickHouse, Retry, Settings, Target};
pub use stats::{Drops, Notice, Stats};
