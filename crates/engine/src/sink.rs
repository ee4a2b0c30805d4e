//! The way of samples to a file, which must never hold up the load.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use plimsoll_measure::Sample;

use crate::error::EngineError;

/// Samples that travel together.
const BATCH: usize = 256;
/// Batches that may wait for the writer: at 100,000 samples/s this is more than half a second.
const WAITING: usize = 256;

/// Takes samples as they complete; called on a thread of its own.
pub trait SampleSink: Send {
    /// Writes samples, so that a reader sees them when the call returns.
    ///
    /// # Errors
    /// Whatever the device says. After an error nothing more is written, and what is lost is counted.
    fn write(&mut self, samples: &[Sample]) -> io::Result<()>;
}

/// What became of the samples.
#[derive(Debug, Default)]
struct Tally {
    written: AtomicU64,
    overflowed: AtomicU64,
}

/// The writing side: one thread.
#[derive(Debug)]
pub(crate) struct Sink {
    sender: SyncSender<Vec<Sample>>,
    tally: Arc<Tally>,
    thread: JoinHandle<Option<io::Error>>,
}

/// What the sink did in a run.
#[derive(Debug, Default)]
pub struct SinkReport {
    /// Samples written.
    pub written: u64,
    /// Samples lost because the writer did not keep up, or had failed.
    pub overflowed: u64,
    /// What made the writer fail.
    pub error: Option<String>,
}

impl Sink {
    /// Starts the writer.
    pub(crate) fn start(target: Box<dyn SampleSink>) -> Result<Self, EngineError> {
        let (sender, receiver) = sync_channel(WAITING);
        let tally = Arc::new(Tally::default());
        let counted = Arc::clone(&tally);
        let thread = std::thread::Builder::new()
            .name("plimsoll-sink".to_owned())
            .spawn(move || write_all(target, &receiver, &counted).err())
            .map_err(EngineError::Thread)?;
        Ok(Self { sender, tally, thread })
    }

    /// The entrance for one worker.
    pub(crate) fn outbox(&self) -> Outbox {
        let tally = Arc::clone(&self.tally);
        Outbox { way: Some((self.sender.clone(), tally)), batch: Vec::with_capacity(BATCH) }
    }

    /// Waits until everything is written; all outboxes must be gone.
    pub(crate) fn finish(self) -> SinkReport {
        drop(self.sender);
        let error = match self.thread.join() {
            Ok(error) => error.map(|error| error.to_string()),
            Err(_) => Some("the writer panicked".to_owned()),
        };
        SinkReport {
            written: self.tally.written.load(Ordering::Relaxed),
            overflowed: self.tally.overflowed.load(Ordering::Relaxed),
            error,
        }
    }
}

/// A worker's end of the way: collects samples and sends them in batches, without ever waiting.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    way: Option<(SyncSender<Vec<Sample>>, Arc<Tally>)>,
    batch: Vec<Sample>,
}

impl Outbox {
    /// Takes a sample.
    pub(crate) fn offer(&mut self, sample: &Sample) {
        if self.way.is_some() {
            self.batch.push(*sample);
            if self.batch.len() >= BATCH {
                self.send();
            }
        }
    }

    /// Sends what is collected; samples that find no room are counted as overflow.
    pub(crate) fn send(&mut self) {
        let Some((sender, tally)) = &self.way else { return };
        if self.batch.is_empty() {
            return;
        }
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        if let Err(TrySendError::Full(lost) | TrySendError::Disconnected(lost)) =
            sender.try_send(batch)
        {
            tally.overflowed.fetch_add(lost.len() as u64, Ordering::Relaxed);
        }
    }

    /// Sends what is collected and waits for room: for the end of a run, when there is no load to hold up.
    pub(crate) fn send_all(&mut self) {
        let Some((sender, tally)) = &self.way else { return };
        if let Err(lost) = sender.send(std::mem::take(&mut self.batch)) {
            tally.overflowed.fetch_add(lost.0.len() as u64, Ordering::Relaxed);
        }
    }
}

fn write_all(
    mut target: Box<dyn SampleSink>,
    receiver: &Receiver<Vec<Sample>>,
    tally: &Tally,
) -> io::Result<()> {
    for batch in receiver {
        let result = target.write(&batch);
        let counter = if result.is_ok() { &tally.written } else { &tally.overflowed };
        counter.fetch_add(batch.len() as u64, Ordering::Relaxed);
        result?;
    }
    Ok(())
}
