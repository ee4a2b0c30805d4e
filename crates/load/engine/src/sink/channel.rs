//! The channel from the workers to the writer, and the counts of samples on it.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};

use plimsoll_measure::IdSeed;

use super::batch::SampleBatch;

/// Samples that travel together.
pub(super) const BATCH: usize = 256;

/// A worker's end of the channel.
#[derive(Debug)]
pub(super) struct RowChannel {
    pub(super) sender: SyncSender<SampleBatch>,
    pub(super) counters: Arc<RowCounters>,
    pub(super) ids: IdSeed,
}

/// Counts of the samples of a run, by outcome.
#[derive(Debug, Default)]
pub(super) struct RowCounters {
    pub(super) offered: AtomicU64,
    pub(super) written: AtomicU64,
    pub(super) left_out: AtomicU64,
    pub(super) lost: AtomicU64,
    /// The lowest sampling rate under which any was left out, as one in N.
    pub(super) lowest_rate_one_in: AtomicU32,
    /// Batches on their way to the writer.
    pub(super) waiting: AtomicUsize,
    /// Empty batches, so that a run needs no more of them than ever waited at once.
    idle: Mutex<Vec<SampleBatch>>,
}

impl RowCounters {
    /// An empty batch.
    pub(super) fn acquire_batch(&self) -> SampleBatch {
        let idle = self.idle.lock().ok().and_then(|mut idle| idle.pop());
        idle.unwrap_or_else(|| SampleBatch {
            samples: Vec::with_capacity(BATCH),
            ..SampleBatch::default()
        })
    }

    /// Takes a batch back.
    pub(super) fn release_batch(&self, mut batch: SampleBatch) {
        batch.samples.clear();
        batch.extras.clear();
        batch.tasks.clear();
        if let Ok(mut idle) = self.idle.lock() {
            idle.push(batch);
        }
    }

    /// Counts a batch that left the channel, written or lost.
    pub(super) fn batch_done(&self, batch: SampleBatch, counter: &AtomicU64) {
        counter.fetch_add(batch.samples.len() as u64, Ordering::Relaxed);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        self.release_batch(batch);
    }
}
