//! When requests were due, when they were sent, and when those were sent that failed.

use std::collections::BTreeMap;

use plimsoll_measure::{ErrorClass, Moment, Outcome, Sample};
use serde::{Deserialize, Serialize};

/// Seconds of a run with a count each, in the order in which they first came.
///
/// A worker counts the requests of one interval: mostly they began in one or two seconds, and the
/// last of them is looked at first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SecondCounts(Vec<(u32, u32)>);

/// The starts of the requests of an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Starts {
    /// By the second of their intended start.
    pub(crate) due: SecondCounts,
    /// By second of dispatch; requests that were never sent are left out.
    pub(crate) sent: SecondCounts,
    /// By the tenth of a second in which they ended.
    pub(crate) ended: SecondCounts,
    /// When those were sent that failed.
    pub(crate) failed: FailedAt,
}

/// A kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum FailedBy {
    Class(ErrorClass),
    Status(u16),
    Timeout,
}

/// The tenths of a second in which requests were sent that failed or have no end, and the last good
/// one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FailedAt {
    /// The first and the last tenth, and the number of requests.
    pub(crate) kinds: BTreeMap<FailedBy, (u32, u32, u64)>,
    pub(crate) last_good: Option<u32>,
    /// By tenth, those that failed and those without an end.
    #[serde(default)]
    pub(crate) bad: BTreeMap<u32, [u64; 2]>,
}

impl FailedAt {
    #[inline]
    fn count(&mut self, sample: &Sample, tenth: u32) {
        if sample.is_unexpected() {
            let by = match sample.outcome {
                Outcome::Failed(class) => Some(FailedBy::Class(class)),
                Outcome::TimedOut => Some(FailedBy::Timeout),
                _ => None,
            };
            let status = (sample.status >= 400).then_some(FailedBy::Status(sample.status));
            by.into_iter().chain(status).for_each(|kind| self.add(kind, (tenth, tenth, 1)));
            let is_open = sample.outcome == Outcome::InFlight;
            self.bad.entry(tenth).or_default()[usize::from(is_open)] += 1;
        } else {
            self.last_good = self.last_good.max(Some(tenth));
        }
    }

    fn add(&mut self, kind: FailedBy, span: (u32, u32, u64)) {
        let (first, last, n) = span;
        let known = self.kinds.entry(kind).or_insert((first, last, 0));
        *known = (known.0.min(first), known.1.max(last), known.2 + n);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        other.kinds.iter().for_each(|(kind, span)| self.add(*kind, *span));
        for (tenth, theirs) in &other.bad {
            let mine = self.bad.entry(*tenth).or_default();
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
        }
        self.last_good = self.last_good.max(other.last_good);
    }
}

impl Starts {
    /// Counts a request of a run that began at `origin`.
    #[inline]
    pub(crate) fn count(&mut self, sample: &Sample, origin: Moment) {
        let timeline = &sample.timeline;
        self.due.add(second(timeline.intended, origin), 1);
        if let Some(dispatched) = timeline.dispatched {
            self.sent.add(second(dispatched, origin), 1);
            self.failed.count(sample, part(dispatched, origin, TENTH));
        }
        if let Some(finished) = timeline.finished {
            self.ended.add(part(finished, origin, TENTH), 1);
        }
    }

    /// Adds the starts of another worker.
    pub(crate) fn merge(&mut self, other: &Self) {
        other.due.iter().for_each(|(second, n)| self.due.add(second, n));
        other.sent.iter().for_each(|(second, n)| self.sent.add(second, n));
        other.ended.iter().for_each(|(tenth, n)| self.ended.add(tenth, n));
        self.failed.merge(&other.failed);
    }

    /// Forgets all of them.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl SecondCounts {
    #[inline]
    fn add(&mut self, second: u32, count: u32) {
        match self.0.iter_mut().rev().find(|(known, _)| *known == second) {
            Some((_, n)) => *n = n.saturating_add(count),
            None => self.0.push((second, count)),
        }
    }

    /// Each second with its count.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.0.iter().copied()
    }
}

/// A tenth of a second, in nanoseconds.
const TENTH: u64 = 100_000_000;

/// The whole seconds between two moments.
#[inline]
fn second(at: Moment, origin: Moment) -> u32 {
    part(at, origin, 1_000_000_000)
}

/// The whole parts of `nanos` between two moments.
#[inline]
fn part(at: Moment, origin: Moment, nanos: u64) -> u32 {
    u32::try_from(at.since(origin).as_u64() / nanos).unwrap_or(u32::MAX)
}
