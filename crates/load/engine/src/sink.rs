//! The way of samples to a file, which must never hold up the load.
//!
//! Where the writer cannot keep up, a share of the conversations is written by a stated rule ([`Share`]), long before
//! the room is used up. Every sample that is offered is accounted for: written, left out by the rule, or lost.

mod share;

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use plimsoll_measure::{Moment, Sample, Seed};

use crate::error::EngineError;
pub use share::Share;

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
    fn write(&mut self, batch: &SampleBatch) -> io::Result<()>;
}

/// Samples of a stretch of the run.
#[derive(Debug, Default)]
pub struct SampleBatch {
    /// The samples, in the order in which their turns ended.
    pub samples: Vec<Sample>,
    /// Arrivals of the content events of some of them, by their places in `samples`, ascending.
    pub events: Vec<(usize, Vec<Moment>)>,
    /// The share of which the samples are what it keeps.
    pub share: Share,
}

impl SampleBatch {
    /// Every sample, with the arrivals of its events where they are to be told.
    pub fn rows(&self) -> impl Iterator<Item = (&Sample, Option<&[Moment]>)> {
        let mut events = self.events.iter().peekable();
        self.samples.iter().enumerate().map(move |(place, sample)| {
            let told = events.next_if(|(of, _)| *of == place);
            (sample, told.map(|(_, times)| times.as_slice()))
        })
    }
}

/// What became of the samples.
#[derive(Debug, Default)]
struct Tally {
    offered: AtomicU64,
    written: AtomicU64,
    left_out: AtomicU64,
    lost: AtomicU64,
    /// The smallest share under which any was left out, as one in so many.
    least: AtomicU32,
    /// Batches on their way to the writer.
    waiting: AtomicUsize,
    /// Empty batches, so that a run needs no more of them than ever waited at once.
    spares: Mutex<Vec<SampleBatch>>,
}

impl Tally {
    fn spare(&self) -> SampleBatch {
        let spare = self.spares.lock().ok().and_then(|mut spares| spares.pop());
        spare.unwrap_or_else(|| SampleBatch {
            samples: Vec::with_capacity(BATCH),
            ..SampleBatch::default()
        })
    }

    fn keep(&self, mut batch: SampleBatch) {
        batch.samples.clear();
        batch.events.clear();
        if let Ok(mut spares) = self.spares.lock() {
            spares.push(batch);
        }
    }
}

/// The writing side: one thread.
#[derive(Debug)]
pub(crate) struct Sink {
    sender: SyncSender<SampleBatch>,
    tally: Arc<Tally>,
    seed: Seed,
    thread: JoinHandle<Option<io::Error>>,
}

/// What the sink did in a run. `offered = written + left_out + overflowed`.
#[derive(Debug, Default)]
pub struct SinkReport {
    /// Samples that there were to write.
    pub offered: u64,
    /// Samples written.
    pub written: u64,
    /// Samples left out by the rule of [`Share`], because the writer did not keep up.
    pub left_out: u64,
    /// The smallest share that applied to any of these: one conversation in so many. 1 where none was left out.
    pub least_share_one_in: u32,
    /// Samples lost, by no rule, because the writer stood still or had failed.
    pub overflowed: u64,
    /// What made the writer fail.
    pub error: Option<String>,
}

impl Sink {
    /// Starts the writer of a run with this seed.
    pub(crate) fn start(target: Box<dyn SampleSink>, seed: Seed) -> Result<Self, EngineError> {
        let (sender, receiver) = sync_channel(WAITING);
        let tally = Arc::new(Tally::default());
        let counted = Arc::clone(&tally);
        let thread = std::thread::Builder::new()
            .name("plimsoll-sink".to_owned())
            .spawn(move || write_all(target, &receiver, &counted))
            .map_err(EngineError::Thread)?;
        Ok(Self { sender, tally, seed, thread })
    }

    /// The entrance for one worker.
    pub(crate) fn outbox(&self) -> Outbox {
        let way =
            Way { sender: self.sender.clone(), tally: Arc::clone(&self.tally), seed: self.seed };
        let batch = self.tally.spare();
        Outbox { way: Some(way), batch, ..Outbox::default() }
    }

    /// Waits until everything is written; all outboxes must be gone.
    pub(crate) fn finish(self) -> SinkReport {
        drop(self.sender);
        let error = match self.thread.join() {
            Ok(error) => error.map(|error| error.to_string()),
            Err(_) => Some("the writer panicked".to_owned()),
        };
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        SinkReport {
            offered: count(&self.tally.offered),
            written: count(&self.tally.written),
            left_out: count(&self.tally.left_out),
            least_share_one_in: self.tally.least.load(Ordering::Relaxed).max(1),
            overflowed: count(&self.tally.lost),
            error,
        }
    }
}

#[derive(Debug)]
struct Way {
    sender: SyncSender<SampleBatch>,
    tally: Arc<Tally>,
    seed: Seed,
}

/// A worker's end of the way: collects samples and sends them in batches, without ever waiting.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    way: Option<Way>,
    /// Its share is the one that applies.
    batch: SampleBatch,
    /// Samples offered and left out since the last batch was sent.
    offered: u64,
    left_out: u64,
    /// Is the load over, so that waiting holds nothing up?
    patient: bool,
}

impl Outbox {
    /// Is there a writer?
    pub(crate) const fn is_open(&self) -> bool {
        self.way.is_some()
    }

    /// Takes a sample, with the arrivals of its content events where its row shall tell them.
    pub(crate) fn offer(&mut self, sample: &Sample, events: Option<Vec<Moment>>) {
        let Some(way) = &self.way else { return };
        self.offered += 1;
        let share = self.batch.share;
        if share != Share::WHOLE && !share.keeps(way.seed, sample) {
            self.left_out += 1;
            return;
        }
        self.batch.events.extend(events.map(|events| (self.batch.samples.len(), events)));
        self.batch.samples.push(*sample);
        if self.batch.samples.len() >= BATCH {
            self.send();
        }
    }

    /// Sends what is collected; samples that find no room are counted as lost. Then looks which share applies.
    pub(crate) fn send(&mut self) {
        if self.patient {
            return self.send_all();
        }
        self.pass_on(|sender, batch| match sender.try_send(batch) {
            Err(TrySendError::Full(lost) | TrySendError::Disconnected(lost)) => Some(lost),
            Ok(()) => None,
        });
    }

    /// Sends what is collected and waits for room, from now on: for the end of a run, when there is no load to hold
    /// up, and requests that were never sent come by the million.
    pub(crate) fn send_all(&mut self) {
        self.patient = true;
        self.pass_on(|sender, batch| sender.send(batch).err().map(|lost| lost.0));
    }

    /// `send` gives back what it could not send.
    fn pass_on(
        &mut self,
        send: impl FnOnce(&SyncSender<SampleBatch>, SampleBatch) -> Option<SampleBatch>,
    ) {
        let Some(Way { sender, tally, .. }) = &self.way else { return };
        tally.offered.fetch_add(std::mem::take(&mut self.offered), Ordering::Relaxed);
        if self.left_out > 0 {
            tally.left_out.fetch_add(std::mem::take(&mut self.left_out), Ordering::Relaxed);
            tally.least.fetch_max(self.batch.share.one_in(), Ordering::Relaxed);
        }
        if !self.batch.samples.is_empty() {
            let batch = std::mem::replace(&mut self.batch, tally.spare());
            // Counted before it is sent: the writer may be done with it before `send` returns.
            tally.waiting.fetch_add(1, Ordering::Relaxed);
            if let Some(lost) = send(sender, batch) {
                tally.waiting.fetch_sub(1, Ordering::Relaxed);
                tally.lost.fetch_add(lost.samples.len() as u64, Ordering::Relaxed);
                tally.keep(lost);
            }
        }
        self.batch.share = if self.patient {
            Share::WHOLE
        } else {
            Share::under(tally.waiting.load(Ordering::Relaxed))
        };
    }
}

/// Writes until every outbox is gone. After an error the rest is only counted.
fn write_all(
    mut target: Box<dyn SampleSink>,
    receiver: &Receiver<SampleBatch>,
    tally: &Tally,
) -> Option<io::Error> {
    let mut error = None;
    for batch in receiver {
        if error.is_none() {
            error = target.write(&batch).err();
        }
        let counter = if error.is_none() { &tally.written } else { &tally.lost };
        counter.fetch_add(batch.samples.len() as u64, Ordering::Relaxed);
        tally.waiting.fetch_sub(1, Ordering::Relaxed);
        tally.keep(batch);
    }
    error
}

#[cfg(test)]
mod tests;
