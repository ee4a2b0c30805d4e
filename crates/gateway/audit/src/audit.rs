//! The audit log: the public handle.

use std::fmt;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use parking_lot::Mutex;

use crate::error::AuditError;
use crate::queue::{Offered, Queue};
use crate::row::Row;
use crate::settings::{Settings, Target};
use crate::sink::{ClickHouseSink, FileSink, Sink};
use crate::stats::{Notice, Stats};
use crate::writer::Writer;

/// Takes a row for every request and writes it, see the crate's documentation.
///
/// Dropping it closes it.
pub struct Audit {
    queue: Arc<Queue>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Audit {
    /// Opens the target and starts the writer. `notify` is called on the writer's thread, once when
    /// writing begins to fail and once when it works again.
    ///
    /// # Errors
    /// When the settings make no sense or the file cannot be opened, with its path and what to do.
    /// A `ClickHouse` server need not run yet.
    pub fn open(
        settings: &Settings,
        notify: impl Fn(Notice) + Send + 'static,
    ) -> Result<Self, AuditError> {
        settings.check()?;
        let sink = open_sink(settings)?;
        let queue = Arc::new(Queue::new(settings));
        let writer = Writer::new(Arc::clone(&queue), sink, settings, Box::new(notify));
        let thread = Builder::new().name("audit-writer".to_owned());
        let writer = thread.spawn(move || writer.run()).map_err(AuditError::Writer)?;
        Ok(Self { queue, writer: Mutex::new(Some(writer)) })
    }

    /// Takes a row if there is room; never waits. Dropped rows are counted.
    pub fn offer(&self, row: &Row<'_>) -> Offered {
        self.queue.offer(row, false)
    }

    /// Takes a row as soon as there is room, and blocks the thread meanwhile; drops it only when
    /// the audit is closed.
    pub fn offer_blocking(&self, row: &Row<'_>) -> Offered {
        self.queue.offer(row, true)
    }

    /// Counts of rows by fate up to now.
    pub fn stats(&self) -> Stats {
        self.queue.stats()
    }

    /// The last thing that went wrong, with its cause and what to do; it stays after writing works
    /// again.
    pub fn last_error(&self) -> Option<String> {
        self.queue.last_error()
    }

    /// Stops accepting rows, writes the queued ones, syncs them and returns the final counts. If
    /// the sink fails, the writer retries one batch as configured and drops it and all later rows.
    /// Blocks until done, so call it outside async threads. A second call only returns the counts
    /// again.
    pub fn close(&self) -> Stats {
        self.queue.close();
        if let Some(writer) = self.writer.lock().take() {
            // If the writer panicked, its rows stay counted as queued, which is correct.
            drop(writer.join());
        }
        self.stats()
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audit").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

fn open_sink(settings: &Settings) -> Result<Box<dyn Sink>, AuditError> {
    Ok(match &settings.target {
        Target::File(path) => Box::new(
            FileSink::open(path, settings.sync)
                .map_err(|source| AuditError::File { path: path.clone(), source })?,
        ),
        Target::ClickHouse(store) => {
            Box::new(ClickHouseSink::open(store).map_err(AuditError::Writer)?)
        }
    })
}
