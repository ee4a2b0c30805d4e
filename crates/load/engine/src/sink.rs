//! Writes samples to a file on a thread of its own, which never delays the load.
//!
//! Where the writer cannot keep up, a part of the conversations is written by a stated rule
//! ([`SamplingRate`]), long before the channel is full. Every sample is accounted for: written,
//! left out by the rule, or lost.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use plimsoll_measure::{ConversationKey, IdSeed, Moment, Sample, TaskSample};
use plimsoll_workload::id_rank;

use crate::error::EngineError;
use crate::response_headers::{NamedPart, RecordedHeader};

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

// Samples on their way to the writer.

/// Additional data of a row besides its sample.
#[derive(Debug, Default)]
pub struct RowExtras {
    /// Arrival times of the content events, where the row shall have them.
    pub events: Option<Vec<Moment>>,
    /// Response headers that the profile records.
    pub headers: Vec<RecordedHeader>,
    /// Parts of the target's time, where the response names any.
    pub parts: Vec<NamedPart>,
    /// Error text of the target, or a description of the problem; it may contain credentials.
    pub error_detail: Option<String>,
    /// Size of a body that came compressed, once decoded.
    pub decoded_bytes: Option<u64>,
}

/// Those of most rows.
static NONE: RowExtras = RowExtras {
    events: None,
    headers: Vec::new(),
    parts: Vec::new(),
    error_detail: None,
    decoded_bytes: None,
};

impl RowExtras {
    /// Whether there is nothing.
    pub(crate) const fn is_empty(&self) -> bool {
        self.events.is_none()
            && self.headers.is_empty()
            && self.parts.is_empty()
            && self.error_detail.is_none()
            && self.decoded_bytes.is_none()
    }
}

/// Samples of a stretch of the run.
#[derive(Debug, Default)]
pub struct SampleBatch {
    /// The samples, in the order in which their turns ended.
    pub samples: Vec<Sample>,
    /// Additional data for some of the rows, by index in `samples`, ascending.
    pub extras: Vec<(usize, RowExtras)>,
    /// Tasks of agents, in the order in which they ended.
    pub tasks: Vec<TaskSample>,
    /// The sampling rate that applied while the samples were collected.
    pub sampling_rate: SamplingRate,
}

impl SampleBatch {
    /// Every sample, with the additional data of its row.
    pub fn rows(&self) -> impl Iterator<Item = (&Sample, &RowExtras)> {
        let mut extras = self.extras.iter().peekable();
        self.samples.iter().enumerate().map(move |(index, sample)| {
            let own = extras.next_if(|(of, _)| *of == index);
            (sample, own.map_or(&NONE, |(_, extras)| extras))
        })
    }
}

// The channel from the workers to the writer, and the counts of samples on it.

/// Samples that travel together.
const BATCH: usize = 256;

/// A worker's end of the channel.
#[derive(Debug)]
struct RowChannel {
    sender: SyncSender<SampleBatch>,
    counters: Arc<RowCounters>,
    ids: IdSeed,
}

/// Counts of the samples of a run, by outcome.
#[derive(Debug, Default)]
struct RowCounters {
    offered: AtomicU64,
    written: AtomicU64,
    left_out: AtomicU64,
    lost: AtomicU64,
    /// The lowest sampling rate under which any was left out, as one in N.
    lowest_rate_one_in: AtomicU32,
    /// Batches on their way to the writer.
    waiting: AtomicUsize,
    /// Empty batches, so that a run needs no more of them than ever waited at once.
    idle: Mutex<Vec<SampleBatch>>,
}

impl RowCounters {
    /// An empty batch.
    fn acquire_batch(&self) -> SampleBatch {
        let idle = self.idle.lock().ok().and_then(|mut idle| idle.pop());
        idle.unwrap_or_else(|| SampleBatch {
            samples: Vec::with_capacity(BATCH),
            ..SampleBatch::default()
        })
    }

    /// Takes a batch back.
    fn release_batch(&self, mut batch: SampleBatch) {
        batch.samples.clear();
        batch.extras.clear();
        batch.tasks.clear();
        if let Ok(mut idle) = self.idle.lock() {
            idle.push(batch);
        }
    }

    /// Counts a batch that left the channel, written or lost.
    fn batch_done(&self, batch: SampleBatch, counter: &AtomicU64) {
        counter.fetch_add(batch.samples.len() as u64, Ordering::Relaxed);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        self.release_batch(batch);
    }
}

// The sending side of one worker.

/// Collects a worker's samples and sends them in batches, without waiting while there is load.
#[derive(Debug, Default)]
pub(crate) struct RowBatcher {
    /// None where nobody writes rows.
    channel: Option<RowChannel>,
    /// Its sampling rate is the one that applies now.
    batch: SampleBatch,
    /// Samples offered and left out since the last batch was sent.
    offered: u64,
    left_out: u64,
    /// Set when the load is over, so that waiting delays nothing.
    block_when_full: bool,
}

impl RowBatcher {
    fn new(channel: RowChannel) -> Self {
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

// Which turns are written when the writer cannot keep up.

/// Batches that may wait for the writer: at 100,000 samples/s this is more than half a second.
const MAX_WAITING: usize = 256;
/// Batches that may wait before fewer rows are written: half of them.
const FULL_RATE_BACKLOG: usize = MAX_WAITING / 2;
/// Batches by which the backlog grows until the rate is halved once more.
const STEP: usize = (MAX_WAITING - FULL_RATE_BACKLOG) / MAX_HALVINGS as usize;
/// Halvings at most: one conversation in 4,096.
const MAX_HALVINGS: u32 = 12;
/// Halvings that do not apply to turns with an unexpected end: these are few, or their number is
/// the finding.
const UNEXPECTED_EXEMPT: u32 = 6;

/// The part of the turns that is written, by a rule that does not depend on the measurements.
///
/// A turn is kept if its conversation's id, read as a fraction of the range of ids, is below the
/// rate. Conversations are therefore kept whole, a lower rate keeps a subset of a higher one, and
/// the id alone decides. Rates are 1, 1/2, 1/4 and so on down to 1/4096. A turn with an unexpected
/// end ([`Sample::is_unexpected`]) is kept with 64 times the rate of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SamplingRate {
    /// The rate is one in two to the power of this.
    halvings: u32,
}

impl SamplingRate {
    /// Everything is written.
    pub const FULL: Self = Self { halvings: 0 };

    /// The rate while this number of batches waits for the writer. It falls so fast that the
    /// channel does
    /// not fill up as long as the writer writes at all.
    fn for_backlog(waiting: usize) -> Self {
        let steps = waiting.checked_sub(FULL_RATE_BACKLOG).map_or(0, |beyond| beyond / STEP + 1);
        Self { halvings: u32::try_from(steps).unwrap_or(MAX_HALVINGS).min(MAX_HALVINGS) }
    }

    /// N, where one conversation in N is kept.
    pub const fn one_in(self) -> u32 {
        1 << self.halvings
    }

    /// The number of turns that a written turn represents: the inverse of the probability that one
    /// like it is kept. Sums with these weights are unbiased estimates over all turns (Horvitz and
    /// Thompson, 1952).
    pub fn weight(self, sample: &Sample) -> u32 {
        1 << self.halvings_for(sample)
    }

    /// Whether a turn is written.
    fn keeps(self, ids: IdSeed, sample: &Sample) -> bool {
        is_kept(self.halvings_for(sample), ids, sample.conversation)
    }

    /// Whether the turns of a conversation are written that end as expected.
    fn keeps_conversation(self, ids: IdSeed, conversation: ConversationKey) -> bool {
        is_kept(self.halvings, ids, conversation)
    }

    fn halvings_for(self, sample: &Sample) -> u32 {
        if self.halvings > 0 && sample.is_unexpected() {
            self.halvings.saturating_sub(UNEXPECTED_EXEMPT)
        } else {
            self.halvings
        }
    }
}

fn is_kept(halvings: u32, ids: IdSeed, conversation: ConversationKey) -> bool {
    halvings == 0 || id_rank(ids, conversation) >> (u32::BITS - halvings) == 0
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod row_batcher_tests {
    use super::*;

    #[test]
    fn the_rate_falls_as_the_backlog_grows_and_recovers_with_it() {
        let one_in: Vec<_> =
            (0..=MAX_WAITING).map(|waiting| SamplingRate::for_backlog(waiting).one_in()).collect();
        assert!(one_in.is_sorted());
        assert_eq!((one_in[0], one_in[127], one_in[128], one_in[138]), (1, 1, 2, 4));
        assert_eq!(one_in.last(), Some(&4_096));
    }
}
