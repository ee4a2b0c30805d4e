//! The sending side of one worker.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, TrySendError};

use plimsoll_measure::{Sample, TaskSample};

use super::batch::{RowExtras, SampleBatch};
use super::channel::{BATCH, RowChannel};
use super::sampling::SamplingRate;

/// Collects a worker's samples and sends them in batches, without waiting while there is load.
#[derive(Debug, Default)]
pub(crate) struct RowBatcher {
    /// None where nobody writes rows.
    pub(super) channel: Option<RowChannel>,
    /// Its sampling rate is the one that applies now.
    batch: SampleBatch,
    /// Samples offered and left out since the last batch was sent.
    offered: u64,
    left_out: u64,
    /// Set when the load is over, so that waiting delays nothing.
    block_when_full: bool,
}

impl RowBatcher {
    pub(super) fn new(channel: RowChannel) -> Self {
        let batch = channel.counters.acquire_batch();
        Self { channel: Some(channel), batch, ..Self::default() }
    }

    /// Whether there is a writer.
    pub(crate) const fn is_open(&self) -> bool {
        self.channel.is_some()
    }

    /// Takes a sample, with the additional data of its row.
    pub(crate) fn offer(&mut self, sample: &Sample, extras: RowExtras) {
        let Some(channel) = &self.channel else { return };
        self.offered += 1;
        let rate = self.batch.sampling_rate;
        if rate != SamplingRate::FULL && !rate.keeps(channel.ids, sample) {
            self.left_out += 1;
            return;
        }
        if !extras.is_empty() {
            self.batch.extras.push((self.batch.samples.len(), extras));
        }
        self.batch.samples.push(*sample);
        if self.batch.samples.len() >= BATCH {
            self.send();
        }
    }

    /// Takes a task. It is kept where the turns of its conversation are, so that each row of a task
    /// has theirs. The summary counts all of them.
    pub(crate) fn offer_task(&mut self, task: &TaskSample) {
        let Some(channel) = &self.channel else { return };
        let rate = self.batch.sampling_rate;
        if rate == SamplingRate::FULL || rate.keeps_conversation(channel.ids, task.conversation) {
            self.batch.tasks.push(*task);
        }
    }

    /// Sends the collected samples, and sets the sampling rate by the number of waiting batches.
    /// Samples that find the channel full are counted as lost.
    pub(crate) fn send(&mut self) {
        if self.block_when_full {
            return self.flush();
        }
        self.send_with(|sender, batch| match sender.try_send(batch) {
            Err(TrySendError::Full(lost) | TrySendError::Disconnected(lost)) => Some(lost),
            Ok(()) => None,
        });
    }

    /// Sends the collected samples, and from now on waits while the channel is full. Used at the
    /// end of a run, which has no load to delay, and may have millions of requests that were never
    /// sent.
    pub(crate) fn flush(&mut self) {
        self.block_when_full = true;
        self.send_with(|sender, batch| sender.send(batch).err().map(|lost| lost.0));
    }

    /// `send` returns the batch that it could not send.
    fn send_with(
        &mut self,
        send: impl FnOnce(&SyncSender<SampleBatch>, SampleBatch) -> Option<SampleBatch>,
    ) {
        let Some(RowChannel { sender, counters, .. }) = &self.channel else { return };
        counters.offered.fetch_add(std::mem::take(&mut self.offered), Ordering::Relaxed);
        if self.left_out > 0 {
            let one_in = self.batch.sampling_rate.one_in();
            counters.left_out.fetch_add(std::mem::take(&mut self.left_out), Ordering::Relaxed);
            counters.lowest_rate_one_in.fetch_max(one_in, Ordering::Relaxed);
        }
        if !self.batch.samples.is_empty() || !self.batch.tasks.is_empty() {
            let batch = std::mem::replace(&mut self.batch, counters.acquire_batch());
            // Counted before it is sent: the writer may be done with it before `send` returns.
            counters.waiting.fetch_add(1, Ordering::Relaxed);
            if let Some(lost) = send(sender, batch) {
                counters.batch_done(lost, &counters.lost);
            }
        }
        self.batch.sampling_rate = if self.block_when_full {
            SamplingRate::FULL
        } else {
            SamplingRate::for_backlog(counters.waiting.load(Ordering::Relaxed))
        };
    }
}
