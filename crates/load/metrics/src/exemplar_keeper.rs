//! Keeps single requests of a run whole, so that they can be shown one by one: the slowest, and a
//! random sample.
//!
//! The choice is made when a request ends. Each list keeps the requests with the largest keys;
//! rejecting a smaller key costs one comparison. Random requests are drawn by a hash of the run's
//! seed and the request, so the choice depends neither on the number of workers nor on the order in
//! which requests end.

use plimsoll_measure::{IdSeed, Moment, Nanos, Sample, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a request was kept.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Chosen {
    /// Among the 20 with the longest response time, or time until the end of the run for requests
    /// that were still in flight.
    ResponseTime,
    /// Among the 10 streams with the longest time to first token.
    Ttft,
    /// Among the 10 streams with the longest gap between two reads.
    LongestGap,
    /// Among 20 random requests.
    Random,
}

impl Chosen {
    /// Every reason, in the order of the lists.
    const ALL: [Self; 4] = [Self::ResponseTime, Self::Ttft, Self::LongestGap, Self::Random];

    /// How many requests are kept for this reason.
    pub const fn most(self) -> usize {
        match self {
            Self::ResponseTime | Self::Random => 20,
            Self::Ttft | Self::LongestGap => 10,
        }
    }
}

/// Requests of all lists together.
const MOST: usize = 60;
/// The memory of all workers of a run, up to 130 of them; 31 KiB for each further one.
const MOST_BYTES: usize = 4 << 20;
/// The most reads that are kept of a stream, so that the file stays small.
const MOST_READS: usize = 4_096;

/// One request, with the times of its reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Exemplar {
    /// Its measurements.
    pub sample: Sample,
    /// When each read arrived that brought content: microseconds after the first of them.
    pub reads_us: Vec<u32>,
    /// When it was recorded: of a request in flight at the end of the run, how long it is known to
    /// have taken.
    pub recorded: Moment,
    /// Why it was kept.
    pub chosen: Vec<Chosen>,
}

impl Exemplar {
    /// How many reads of its stream brought content.
    pub fn reads(&self) -> u32 {
        self.sample.timeline.first_token.map_or(0, |_| self.sample.gaps.count + 1)
    }

    fn is_of_same_turn(&self, other: &Self) -> bool {
        let (own, other) = (&self.sample, &other.sample);
        own.conversation == other.conversation && own.turn == other.turn
    }
}

/// The requests of a run that were kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exemplars {
    /// How many they were chosen from: those that were sent outside of warm-up.
    pub offered: u64,
    /// Each once, by intended start.
    pub requests: Vec<Exemplar>,
}

/// Keeps the exemplars of one worker.
#[derive(Clone, Debug)]
pub struct ExemplarKeeper {
    priorities: Seed,
    /// Gaps that are kept of a stream.
    most_gaps: usize,
    offered: u64,
    lists: [List; Chosen::ALL.len()],
}

impl ExemplarKeeper {
    /// A keeper for one of so many workers of the run with this seed.
    pub fn new(ids: IdSeed, workers: usize) -> Self {
        let of_one = MOST_BYTES / workers.max(1) / MOST;
        let reads = of_one.saturating_sub(size_of::<Kept>()) / size_of::<u32>();
        Self {
            priorities: Seed(ids.rng("exemplars", 0).next_u64()),
            most_gaps: reads.min(MOST_READS).saturating_sub(1),
            offered: 0,
            lists: Chosen::ALL.map(List::new),
        }
    }

    /// Considers a finished request; `gaps` are the gaps of its stream. Requests of a warm-up and
    /// requests that were never sent are ignored.
    #[inline]
    pub fn offer(&mut self, sample: &Sample, gaps: &[Nanos], now: Moment) {
        let line = &sample.timeline;
        if sample.warmup || line.dispatched.is_none() {
            return;
        }
        self.offered += 1;
        let keys = [
            line.finished.unwrap_or(now).since(line.intended).as_u64(),
            line.ttft().map_or(0, Nanos::as_u64),
            sample.gaps.max.as_u64(),
            self.priority(sample),
        ];
        for (list, key) in self.lists.iter_mut().zip(keys) {
            if key > list.least {
                list.keep(key, sample, &gaps[..gaps.len().min(self.most_gaps)], now);
            }
        }
    }

    /// A random number of the request, the same in every worker.
    #[inline]
    fn priority(&self, sample: &Sample) -> u64 {
        let of_turn = Seed(self.priorities.0.wrapping_add(sample.turn.into()));
        of_turn.rng("", sample.conversation.0).next_u64()
    }

    /// Takes what another worker of the run kept.
    pub fn merge(&mut self, other: Self) {
        self.offered += other.offered;
        for (list, more) in self.lists.iter_mut().zip(other.lists) {
            more.kept.into_iter().for_each(|kept| list.put(kept));
        }
    }

    /// The requests that were kept, each once.
    pub fn finish(self) -> Exemplars {
        let mut requests: Vec<Exemplar> = Vec::new();
        for list in self.lists {
            for Kept { exemplar, .. } in list.kept {
                match requests.iter_mut().find(|known| known.is_of_same_turn(&exemplar)) {
                    Some(known) => known.chosen.push(list.why),
                    None => requests.push(Exemplar { chosen: vec![list.why], ..exemplar }),
                }
            }
        }
        requests.sort_by_key(|of| (of.sample.timeline.intended, of.sample.conversation));
        Exemplars { offered: self.offered, requests }
    }

    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.lists
            .iter()
            .map(|list: &List| {
                list.kept.capacity() * size_of::<Kept>()
                    + list
                        .kept
                        .iter()
                        .map(|kept: &Kept| kept.exemplar.reads_us.capacity() * size_of::<u32>())
                        .sum::<usize>()
            })
            .sum()
    }
}

/// A request and its place in a list.
#[derive(Clone, Debug)]
struct Kept {
    key: u64,
    exemplar: Exemplar,
}

/// The requests with the largest keys of one kind.
#[derive(Clone, Debug)]
struct List {
    why: Chosen,
    /// A key that is not larger is not kept: the smallest of a full list, else 0.
    least: u64,
    kept: Vec<Kept>,
}

impl List {
    fn new(why: Chosen) -> Self {
        Self { why, least: 0, kept: Vec::with_capacity(why.most()) }
    }

    /// Keeps a request. The memory of the one that it displaces is used again.
    #[cold]
    fn keep(&mut self, key: u64, sample: &Sample, gaps: &[Nanos], recorded: Moment) {
        let displaced = self.smallest().map(|index| self.kept.swap_remove(index));
        let mut reads_us = displaced.map(|kept| kept.exemplar.reads_us).unwrap_or_default();
        reads_us.clear();
        if sample.timeline.first_token.is_some() {
            reads_us.reserve_exact(gaps.len() + 1);
            let mut at = 0;
            reads_us.push(0);
            reads_us.extend(gaps.iter().map(|gap| {
                at += gap.as_u64();
                u32::try_from(at / 1_000).unwrap_or(u32::MAX)
            }));
        }
        let exemplar = Exemplar { sample: *sample, reads_us, recorded, chosen: Vec::new() };
        self.put(Kept { key, exemplar });
    }

    /// The place of the one with the smallest key, where the list is full.
    fn smallest(&self) -> Option<usize> {
        let full = self.kept.len() >= self.why.most();
        let mut places = (0..self.kept.len()).filter(|_| full);
        let first = places.next()?;
        Some(places.fold(first, |least, index| {
            if self.kept[index].key < self.kept[least].key { index } else { least }
        }))
    }

    /// Keeps a request if its key is large enough.
    fn put(&mut self, kept: Kept) {
        if kept.key <= self.least {
            return;
        }
        if let Some(index) = self.smallest() {
            self.kept.swap_remove(index);
        }
        self.kept.push(kept);
        self.least = self.smallest().map_or(0, |index| self.kept[index].key);
    }
}

#[cfg(test)]
mod tests;
