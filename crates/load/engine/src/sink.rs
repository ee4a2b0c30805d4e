//! Writes samples to a file on a thread of its own, which never delays the load.
//!
//! Where the writer cannot keep up, a part of the conversations is written by a stated rule
//! ([`SamplingRate`]), long before the channel is full. Every sample is accounted for: written,
//! left out by the rule, or lost.

mod batch;
mod channel;
mod row_batcher;
mod sampling;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use plimsoll_measure::IdSeed;

use crate::error::EngineError;
pub use batch::{RowExtras, SampleBatch};
use channel::{RowChannel, RowCounters};
pub(crate) use row_batcher::RowBatcher;
use sampling::MAX_WAITING;
pub use sampling::SamplingRate;

/// Takes samples as they complete; called on a thread of its own.
pub trait SampleSink: Send {
    /// Writes samples, so that a reader sees them when the call returns.
    ///
    /// # Errors
    /// Any error of the device. After an error the sink stops writing, and counts the lost samples.
    fn write(&mut self, batch: &SampleBatch) -> io::Result<()>;
}

/// The writer's thread.
#[derive(Debug)]
pub(crate) struct Sink {
    sender: SyncSender<SampleBatch>,
    counters: Arc<RowCounters>,
    ids: IdSeed,
    thread: JoinHandle<Option<io::Error>>,
}

/// Counts of the samples of a run, by outcome. `offered = written + left_out + overflowed`.
#[derive(Debug, Default)]
pub struct SinkReport {
    /// Samples that there were to write.
    pub offered: u64,
    /// Samples written.
    pub written: u64,
    /// Samples left out by the rule of [`SamplingRate`], because the writer did not keep up.
    pub left_out: u64,
    /// The lowest sampling rate that applied to any of these: one conversation in N. 1 where none
    /// was left out.
    pub least_share_one_in: u32,
    /// Samples lost without a rule, because the writer stalled or had failed.
    pub overflowed: u64,
    /// The writer's error.
    pub error: Option<String>,
}

impl Sink {
    /// Starts the writer of a run with this seed.
    pub(crate) fn start(target: Box<dyn SampleSink>, ids: IdSeed) -> Result<Self, EngineError> {
        let (sender, receiver) = sync_channel(MAX_WAITING);
        let counters = Arc::new(RowCounters::default());
        let of_thread = Arc::clone(&counters);
        let thread = std::thread::Builder::new()
            .name("plimsoll-sink".to_owned())
            .spawn(move || write_all(target, &receiver, &of_thread))
            .map_err(EngineError::Thread)?;
        Ok(Self { sender, counters, ids, thread })
    }

    /// The sending side for one worker.
    pub(crate) fn row_batcher(&self) -> RowBatcher {
        RowBatcher::new(RowChannel {
            sender: self.sender.clone(),
            counters: Arc::clone(&self.counters),
            ids: self.ids,
        })
    }

    /// Waits until everything is written; all row batchers must be gone.
    pub(crate) fn finish(self) -> SinkReport {
        drop(self.sender);
        let error = match self.thread.join() {
            Ok(error) => error.map(|error| error.to_string()),
            Err(_) => Some("the writer panicked".to_owned()),
        };
        SinkReport {
            offered: self.counters.offered.load(Ordering::Relaxed),
            written: self.counters.written.load(Ordering::Relaxed),
            left_out: self.counters.left_out.load(Ordering::Relaxed),
            least_share_one_in: self.counters.lowest_rate_one_in.load(Ordering::Relaxed).max(1),
            overflowed: self.counters.lost.load(Ordering::Relaxed),
            error,
        }
    }
}

/// Writes until every row batcher is gone. After an error the rest is only counted.
fn write_all(
    mut target: Box<dyn SampleSink>,
    receiver: &Receiver<SampleBatch>,
    counters: &RowCounters,
) -> Option<io::Error> {
    let mut error = None;
    for batch in receiver {
        if error.is_none() {
            error = target.write(&batch).err();
        }
        let counter = if error.is_none() { &counters.written } else { &counters.lost };
        counters.batch_done(batch, counter);
    }
    error
}

#[cfg(test)]
mod tests;
