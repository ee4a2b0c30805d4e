//! Progress of a process, for scrapers.

mod page;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_measure::Nanos;
use plimsoll_metrics::{Judgement, RunMetadata, Snapshot, ThresholdResult};

use crate::counts::Counts;

/// The last interval, about a second long.
#[derive(Debug)]
pub struct Update<'a> {
    /// Time since the run's start.
    pub elapsed: Nanos,
    /// Index of the current stage.
    pub stage: usize,
    /// Counts of the interval.
    pub cells: &'a Snapshot,
    /// Requests in flight.
    pub in_flight: u64,
    /// By target: whether it was taken out of the comparison.
    pub taken_out: Vec<bool>,
    /// The watched processes.
    pub processes: Vec<ProcessNow>,
    /// CPU time of this process since its start.
    pub own_cpu: Option<Nanos>,
}

/// Resources of a process.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessNow {
    /// Its name.
    pub name: String,
    /// CPU time divided by time since the last look; `None` if it is gone.
    pub cores: Option<f64>,
    /// Resident memory.
    pub rss_bytes: Option<u64>,
}

/// The verdict, or the verdict so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Whether Plimsoll kept up.
    pub valid: bool,
    /// Thresholds that pass, fail, and are inconclusive.
    pub thresholds: [usize; 3],
}

impl Verdict {
    /// The verdict of these results.
    pub fn of(valid: bool, thresholds: &[ThresholdResult]) -> Self {
        let thresholds = Judgement::count(thresholds.iter().map(|found| &found.judgement));
        Self { valid, thresholds }
    }
}

/// State of the runs of this process; clones share it. Once a second a run hands its snapshot over.
/// A page is written on request only, once for each snapshot.
#[derive(Clone, Debug, Default)]
pub struct LiveMetrics(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    run: RunMetadata,
    /// Finished runs of this process.
    before: Counts,
    /// The current run.
    now: Counts,
    /// Runs that began.
    runs: u64,
    snapshots: u64,
    elapsed: Nanos,
    stage: Option<usize>,
    in_flight: u64,
    taken_out: Vec<bool>,
    processes: Vec<ProcessNow>,
    own_cpu: Option<Nanos>,
    verdict: Option<Verdict>,
    /// Whether the present run is over and judged.
    over: bool,
    /// The search or suite that makes the runs.
    series: Option<Series>,
    written: Option<Arc<str>>,
}

impl State {
    /// The counts of all runs. They never fall.
    fn counts(&self) -> Counts {
        let mut counts = self.before.clone();
        counts.merge(&self.now);
        counts
    }

    /// Whether everything is over: of a search or a suite not only the present run.
    fn is_over(&self) -> bool {
        self.series.as_ref().map_or(self.over, |series| series.conclusion.is_some())
    }
}

impl LiveMetrics {
    /// A search or a suite begins: all is over when it has a conclusion, and not with each of its
    /// runs.
    pub fn begin_series(&self) {
        self.change().series = Some(Series::default());
    }

    /// A part of the search or suite begins: a phase, a measurement. `target` is empty where there
    /// is one without a name.
    pub fn begin_part(&self, name: &str, target: &str) {
        if let Some(series) = &mut self.change().series {
            series.begin(name, target);
        }
    }

    /// The search or suite is over.
    pub fn conclude(&self, conclusion: Conclusion) {
        if let Some(series) = &mut self.change().series {
            (series.present, series.conclusion) = (None, Some(conclusion));
        }
    }

    /// A run begins. The counts of runs before it stay.
    pub fn begin(&self, run: RunMetadata) {
        let mut state = self.change();
        let ended = std::mem::replace(&mut state.now, Counts::planned(&run));
        state.before.merge(&ended);
        state.runs += 1;
        (state.elapsed, state.stage, state.in_flight) = (Nanos::ZERO, Some(0), 0);
        state.taken_out = vec![false; run.targets.len()];
        (state.verdict, state.over, state.run) = (None, false, run);
    }

    /// An interval of the run is over.
    pub fn update(&self, update: Update<'_>) {
        let mut state = self.change();
        let state = &mut *state;
        state.now.add(&state.run, update.cells);
        state.snapshots += 1;
        (state.elapsed, state.stage) = (update.elapsed, Some(update.stage));
        (state.in_flight, state.taken_out) = (update.in_flight, update.taken_out);
        state.processes = update.processes;
        // A process that cannot be read for once has not used less.
        state.own_cpu = update.own_cpu.max(state.own_cpu);
    }

    /// Sets the verdict so far.
    pub fn judge(&self, verdict: Verdict) {
        self.change().verdict = Some(verdict);
    }

    /// The run is over, with these counts and this verdict.
    pub fn end(&self, whole: &Snapshot, verdict: Verdict) {
        let mut state = self.change();
        let mut counts = Counts::planned(&state.run);
        counts.add(&state.run, whole);
        state.now = counts;
        state.snapshots += 1;
        (state.in_flight, state.stage) = (0, None);
        (state.verdict, state.over) = (Some(verdict), true);
    }

    /// The page, and whether its run, search or suite is over.
    pub fn page(&self) -> (Arc<str>, bool) {
        let mut state = self.lock();
        let page = state.written.take().unwrap_or_else(|| page::write(&state).into());
        state.written = Some(Arc::clone(&page));
        (page, state.is_over())
    }

    fn change(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        state.written = None;
        state
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Parts of a command that are told apart; further ones are `other`.
const MOST_PARTS: usize = 100;
/// The name of all further parts.
const OTHER: &str = "other";

/// Result of a command with many runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conclusion {
    /// In a word, by its exit code: `pass`, `fail`, `inconclusive` or `interrupted`.
    pub outcome: &'static str,
    /// The knees that were searched.
    pub knees: Vec<LiveKnee>,
}

/// A knee that was searched.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveKnee {
    /// The target; empty where there is one without a name.
    pub target: String,
    /// How well it is known, as `knee.json` has it.
    pub kind: &'static str,
    /// Unit of the load: `requests_per_second` or `virtual_users`.
    pub unit: &'static str,
    /// The lower and the upper end, as far as they are known.
    pub load: [Option<f64>; 2],
}

/// A search or a suite.
#[derive(Debug, Default)]
struct Series {
    /// Its parts so far, each with its target.
    parts: Vec<(String, String)>,
    /// The present one.
    present: Option<usize>,
    conclusion: Option<Conclusion>,
}

impl Series {
    /// A part begins, perhaps once more.
    fn begin(&mut self, name: &str, target: &str) {
        let is_full = self.parts.len() + 1 >= MOST_PARTS && self.position(name, target).is_none();
        let (name, target) = if is_full { (OTHER, "") } else { (name, target) };
        self.present = Some(self.position(name, target).unwrap_or_else(|| {
            self.parts.push((name.to_owned(), target.to_owned()));
            self.parts.len() - 1
        }));
    }

    fn position(&self, name: &str, target: &str) -> Option<usize> {
        self.parts.iter().position(|part| part.0 == name && part.1 == target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back_and_are_bounded() {
        let mut series = Series::default();
        for name in ["floor", "bracket", "floor"] {
            series.begin(name, "a");
        }
        assert_eq!((series.parts.len(), series.present), (2, Some(0)));
        series.begin("floor", "b");
        assert_eq!((series.parts.len(), series.present), (3, Some(2)));
        for number in 0..500 {
            series.begin(&number.to_string(), "a");
        }
        assert_eq!(series.parts.len(), MOST_PARTS);
        assert_eq!(series.present, Some(MOST_PARTS - 1));
        assert_eq!(series.parts[MOST_PARTS - 1].0, OTHER);
        series.begin("bracket", "a");
        assert_eq!(series.present, Some(1));
    }
}
