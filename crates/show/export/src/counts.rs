//! State kept from the snapshots: counters, and counts of times in fixed classes.

use std::collections::BTreeMap;

use plimsoll_measure::ErrorClass;
use plimsoll_metrics::{
    Counters, Distribution, GroupKey, GroupStats, Metric, RunMetadata, Snapshot,
};

/// Upper limits of the classes of times, in nanoseconds: 100 us to 100 s, six in each decade, each
/// at most 1.67 times the one before. They never change, or Prometheus could not add up runs.
pub const LIMITS_NS: [u64; 37] = {
    let (mut limits, mut index, mut decade) = ([0; 37], 0, 10_000);
    while index < limits.len() {
        limits[index] = decade * [10, 15, 20, 30, 50, 70][index % 6];
        index += 1;
        if index % 6 == 0 {
            decade *= 10;
        }
    }
    limits
};

/// Times of the target, by scenario.
pub(crate) const TIMES: [Metric; 5] =
    [Metric::ResponseTime, Metric::ServiceTime, Metric::Ttft, Metric::Itl, Metric::Tpot];
/// How late the generator itself was, over all scenarios.
pub(crate) const LAGS: [Metric; 2] = [Metric::DispatchLag, Metric::ReadLag];

/// Cells beyond which scenarios are not told apart: a page must stay small.
const MOST_CELLS: usize = 200;

/// Times in classes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) classes: [u64; LIMITS_NS.len()],
    pub(crate) count: u64,
    pub(crate) sum_ns: u128,
}

impl Default for Times {
    fn default() -> Self {
        Self { classes: [0; LIMITS_NS.len()], count: 0, sum_ns: 0 }
    }
}

impl Times {
    fn add(&mut self, values: &Distribution) {
        let (classes, _) = values.classes(&LIMITS_NS);
        let other = Self { classes, count: values.count(), sum_ns: values.sum() };
        self.merge(&other);
    }

    fn merge(&mut self, other: &Self) {
        self.classes.iter_mut().zip(other.classes).for_each(|(mine, theirs)| *mine += theirs);
        self.count += other.count;
        self.sum_ns += other.sum_ns;
    }
}

/// Labels of a scenario's lines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cell {
    pub(crate) scenario: String,
    pub(crate) target: String,
    pub(crate) warmup: bool,
}

/// The counts of a cell.
#[derive(Clone, Debug, Default)]
pub(crate) struct CellCounts {
    pub(crate) counters: Counters,
    pub(crate) times: [Times; TIMES.len()],
}

/// Labels of a target's lines: its name, and whether it is a warm-up.
pub(crate) type OfTarget = (String, bool);

/// All counts of one run, or of several.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) cells: BTreeMap<Cell, CellCounts>,
    pub(crate) errors: BTreeMap<(OfTarget, ErrorClass), u64>,
    pub(crate) statuses: BTreeMap<(OfTarget, u16), u64>,
    pub(crate) lags: BTreeMap<bool, [Times; LAGS.len()]>,
}

impl Counts {
    /// Every line that a run may have, at zero: Prometheus takes the first value of a line that
    /// appears later for no increase.
    pub(crate) fn planned(run: &RunMetadata) -> Self {
        let mut counts = Self::default();
        for key in keys(run) {
            let cell = cell(run, key);
            let of_target = (cell.target.clone(), cell.warmup);
            for class in ErrorClass::ALL {
                counts.errors.insert((of_target.clone(), class), 0);
            }
            counts.lags.entry(cell.warmup).or_default();
            counts.cells.entry(cell).or_default();
        }
        counts
    }

    /// Adds what a snapshot has.
    pub(crate) fn add(&mut self, run: &RunMetadata, snapshot: &Snapshot) {
        for (key, stats) in snapshot.cells() {
            let cell = cell(run, key);
            self.add_of_target(&(cell.target.clone(), cell.warmup), stats);
            let lags = self.lags.entry(cell.warmup).or_default();
            add_times(lags, LAGS, stats);
            let counts = self.cells.entry(cell).or_default();
            counts.counters.merge(stats.counters());
            add_times(&mut counts.times, TIMES, stats);
        }
    }

    fn add_of_target(&mut self, of_target: &OfTarget, stats: &GroupStats) {
        for (class, n) in stats.errors() {
            *self.errors.entry((of_target.clone(), *class)).or_default() += n;
        }
        for (status, n) in stats.statuses() {
            *self.statuses.entry((of_target.clone(), *status)).or_default() += n;
        }
    }

    /// Adds the counts of another run.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (key, theirs) in &other.cells {
            let mine = self.cells.entry(key.clone()).or_default();
            mine.counters.merge(&theirs.counters);
            mine.times.iter_mut().zip(&theirs.times).for_each(|(mine, times)| mine.merge(times));
        }
        for (warmup, theirs) in &other.lags {
            let mine = self.lags.entry(*warmup).or_default();
            mine.iter_mut().zip(theirs).for_each(|(mine, times)| mine.merge(times));
        }
        for (key, n) in &other.errors {
            *self.errors.entry(key.clone()).or_default() += n;
        }
        for (key, n) in &other.statuses {
            *self.statuses.entry(key.clone()).or_default() += n;
        }
    }
}

fn add_times<const N: usize>(times: &mut [Times; N], metrics: [Metric; N], stats: &GroupStats) {
    for (times, metric) in times.iter_mut().zip(metrics) {
        if let Some(values) = stats.distribution(metric) {
            times.add(values);
        }
    }
}

/// The keys of all cells of a run.
fn keys(run: &RunMetadata) -> impl Iterator<Item = [usize; 3]> {
    let (scenarios, targets) = (run.scenarios.len(), run.targets.len());
    (0..run.stages.len()).flat_map(move |stage| {
        (0..scenarios).flat_map(move |s| (0..targets).map(move |target| [stage, s, target]))
    })
}

/// The cell of a key: stages are one after another, and not told apart.
fn cell(run: &RunMetadata, key: impl Into<Key>) -> Cell {
    let Key([stage, scenario, target]) = key.into();
    let told_apart = run.scenarios.len() * run.targets.len() * 2 <= MOST_CELLS;
    let scenario = run.scenarios.get(scenario).filter(|_| told_apart);
    Cell {
        scenario: scenario.cloned().unwrap_or_default(),
        target: run.targets.get(target).map(|target| target.name.clone()).unwrap_or_default(),
        warmup: run.stages.get(stage).is_some_and(|stage| stage.warmup),
    }
}

/// Indices of stage, scenario and target.
struct Key([usize; 3]);

impl From<[usize; 3]> for Key {
    fn from(indices: [usize; 3]) -> Self {
        Self(indices)
    }
}

impl From<GroupKey> for Key {
    fn from(key: GroupKey) -> Self {
        Self([key.stage.index(), key.scenario.index(), key.target.index()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_rise_by_a_factor_that_a_percentile_can_stand() {
        for pair in LIMITS_NS.windows(2) {
            let factor = pair[1] as f64 / pair[0] as f64;
            assert!(factor > 1.0 && factor < 1.7, "{pair:?}");
        }
    }
}
