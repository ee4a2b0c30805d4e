//! Settings of the audit log.

use std::path::PathBuf;
use std::time::Duration;

use crate::error::AuditError;

mod clickhouse;

pub use clickhouse::ClickHouse;

/// Settings of the audit log. [`Settings::new`] has the defaults.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where rows go.
    pub target: Target,
    /// Rows that may wait, those being written included. A row is about 250 bytes, 8 KiB at most.
    pub queue: usize,
    /// Bytes of rows that may wait, those being written included; the last row may go beyond.
    /// Buffers that grow may take up to twice as much.
    pub queue_bytes: usize,
    /// Rows that make the writer write at once; also the most rows of one `INSERT`.
    pub batch: usize,
    /// The longest time a row waits for a batch to become full.
    pub flush: Duration,
    /// The longest time between two `fsync` of a file that is written to.
    pub sync: Duration,
    /// Retries of a failed write.
    pub retry: Retry,
}

impl Settings {
    /// A queue of 65,536 rows or 32 MiB, batches of 2,048 or 100 ms, and `fsync` once a second.
    pub const fn new(target: Target) -> Self {
        Self {
            target,
            queue: 65_536,
            queue_bytes: 32 << 20,
            batch: 2048,
            flush: Duration::from_millis(100),
            sync: Duration::from_secs(1),
            retry: Retry::DEFAULT,
        }
    }

    /// # Errors
    /// The first value out of range.
    pub fn check(&self) -> Result<(), AuditError> {
        let checks = [
            (self.queue > 0, "queue must be at least 1"),
            (self.queue_bytes > 0, "queue_bytes must be at least 1"),
            (self.batch > 0, "batch must be at least 1"),
            (!self.flush.is_zero(), "flush must be longer than 0"),
            (self.retry.attempts > 0, "retry.attempts must be at least 1"),
        ];
        let wrong = checks.iter().find(|(fine, _)| !fine);
        wrong.map_or(Ok(()), |(_, problem)| Err(AuditError::Settings(problem)))
    }
}

/// Where rows go.
#[derive(Clone, Debug)]
pub enum Target {
    /// A file of JSON lines, which is appended to. It is opened anew when it was moved or removed.
    File(PathBuf),
    /// A table of a `ClickHouse` server.
    ClickHouse(ClickHouse),
}

/// Retries of a failed write before the rows of its batch are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Attempts in all.
    pub attempts: u32,
    /// Pause after the first failure; it doubles with every further one.
    pub first: Duration,
    /// The longest pause.
    pub longest: Duration,
}

impl Retry {
    /// Eight attempts within 3.5 seconds, plus the time they take themselves.
    pub const DEFAULT: Self =
        Self { attempts: 8, first: Duration::from_millis(50), longest: Duration::from_secs(1) };

    /// The pause after the given number of failures, from 1.
    pub(crate) fn pause(&self, failures: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
        self.first.saturating_mul(doubled).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let pauses: Vec<u128> = (1..8).map(|n| Retry::DEFAULT.pause(n).as_millis()).collect();
        assert_eq!(pauses, [50, 100, 200, 400, 800, 1000, 1000]);
        assert_eq!(Retry::DEFAULT.pause(u32::MAX).as_millis(), 1000);
    }

    #[test]
    fn values_out_of_range_are_named() {
        let settings = Settings::new(Target::File("x".into()));
        assert!(settings.check().is_ok());
        let wrong = Settings { queue: 0, ..settings };
        assert!(wrong.check().unwrap_err().to_string().contains("queue must be at least 1"));
    }
}
