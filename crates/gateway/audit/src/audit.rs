//! The audit log: the public handle.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};

use crate::accounting::lock;
use crate::error::AuditError;
use crate::producer::{Offered, Producer};
use crate::queue::Queue;
use crate::row::Row;
use crate::settings::{Settings, Target, WhenFull};
use crate::sink::{ClickHouseSink, FileSink, Sink};
use crate::stats::{Notice, Stats};
use crate::writer::Writer;

/// Takes a row for every request and writes it, see the crate's documentation.
///
/// Dropping it closes it.
pub struct Audit {
    queue: Arc<Queue>,
    /// For callers without their own producer.
    common: Producer,
    writer: Mutex<Option<JoinHandle<()>>>,
    when_full: WhenFull,
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
        let queue = Arc::new(Queue::new(settings.queue, settings.queue_bytes, settings.batch));
        let common = Producer::new(&queue);
        let writer = Writer::new(Arc::clone(&queue), sink, settings, Box::new(notify));
        let thread = Builder::new().name("audit-writer".to_owned());
        let writer = thread.spawn(move || writer.run()).map_err(AuditError::Writer)?;
        let writer = Mutex::new(Some(writer));
        Ok(Self { queue, common, writer, when_full: settings.when_full })
    }

    /// A producer for one worker thread.
    pub fn producer(&self) -> Producer {
        Producer::new(&self.queue)
    }

    /// Takes a row when there is room; never waits. Threads that do this often should have a
    /// [`Producer`] each.
    pub fn offer(&self, row: &Row<'_>) -> Offered {
        self.common.offer(row)
    }

    /// The behaviour that the settings ask of callers when the queue is full: [`Producer::offer`]
    /// or [`Producer::offer_or_wait`].
    pub const fn when_full(&self) -> WhenFull {
        self.when_full
    }

    /// Counts of rows by fate up to now.
    pub fn stats(&self) -> Stats {
        lock(&self.queue.accounting).stats()
    }

    /// The last thing that went wrong, with its cause and what to do; it stays after writing works
    /// again.
    pub fn last_error(&self) -> Option<String> {
        lock(&self.queue.accounting).last_error()
    }

    /// Takes no more rows, writes those that wait, makes them durable and says what became of all.
    /// When the sink fails, one batch is tried as often as the settings say, and the rest given up
    /// with it. Blocks for that time: keep it off async threads. A second call only tells the
    /// figures again.
    pub fn close(&self) -> Stats {
        self.queue.wake_to_close();
        if let Some(writer) = lock(&self.writer).take() {
            // Were it to panic, its rows would stay queued in the figures, which is the truth.
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
