//! Progress of a process, for scrapers.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_measure::{Nanos, Outcome};
use plimsoll_metrics::catalog::{COUNTERS, CounterSpec, side_word};
use plimsoll_metrics::{
    IntervalUpdate, Judgement, Metric, ProcessNow, RunMetadata, Snapshot, ThresholdResult,
};
use plimsoll_report::prometheus::{Exposition, Kind, Labels};

use crate::counts::{Cell, Counts, LAGS, LIMITS_NS, TIMES, Times};

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
    pub fn update(&self, update: IntervalUpdate<'_>) {
        let mut state = self.change();
        let state = &mut *state;
        state.now.add(&state.run, update.cells);
        state.snapshots += 1;
        (state.elapsed, state.stage) = (update.elapsed, Some(update.stage));
        state.in_flight = update.in_flight;
        state.taken_out = update.taken_out.iter().map(Option::is_some).collect();
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
        let page = state.written.take().unwrap_or_else(|| write_page(&state).into());
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

// The page at `/metrics`.

/// The present page.
fn write_page(state: &State) -> String {
    let mut out = Exposition::new(&state.run.labels);
    let counts = state.counts();
    run(&mut out, state);
    stages(&mut out, state);
    state.series.iter().for_each(|found| series(&mut out, found));
    outcomes(&mut out, &counts);
    for counter in COUNTERS.iter().filter(|counter| !is_outcome(counter)) {
        let name = format!("plimsoll_live_{}_total", counter.name);
        let cells = counts.cells.iter();
        let lines = cells.map(|(cell, counts)| (of_cell(cell), (counter.of)(&counts.counters)));
        out.described(&name, Kind::Counter, counter.definition, lines);
    }
    errors(&mut out, &counts);
    for (index, metric) in TIMES.into_iter().enumerate() {
        let lines = counts.cells.iter().map(|(cell, counts)| (of_cell(cell), &counts.times[index]));
        histogram(&mut out, metric, lines);
    }
    for (index, metric) in LAGS.into_iter().enumerate() {
        let lines = counts
            .lags
            .iter()
            .map(|(warmup, lags)| (vec![("warmup", Cow::from(warmup.to_string()))], &lags[index]));
        histogram(&mut out, metric, lines);
    }
    processes(&mut out, state);
    out.finish()
}

fn run(out: &mut Exposition, state: &State) {
    let info = &state.run.run;
    let labels = vec![
        ("name", Cow::from(info.name.as_str())),
        ("version", Cow::from(info.tool_version.as_str())),
        ("run_id", Cow::from(info.run_id.as_str())),
    ];
    let present = (state.runs > 0).then_some((labels, 1));
    out.family("plimsoll_live_run_info", present);
    out.single("plimsoll_live_runs_total", state.runs);
    out.single("plimsoll_live_snapshots_total", state.snapshots);
    out.single("plimsoll_live_run_over", u8::from(state.is_over()));
    let elapsed = state.elapsed.as_secs_f64();
    out.single("plimsoll_live_elapsed_seconds", elapsed);
    out.single("plimsoll_live_in_flight_requests", state.in_flight);
    if let Some(verdict) = state.verdict {
        out.single("plimsoll_live_run_valid", u8::from(verdict.valid));
        let words = ["pass", "fail", "inconclusive"].map(|word| vec![("judgement", word.into())]);
        let lines = words.into_iter().zip(verdict.thresholds);
        out.family("plimsoll_live_thresholds", lines);
    }
}

fn stages(out: &mut Exposition, state: &State) {
    let lines = state.run.stages.iter().enumerate().map(|(index, stage)| {
        let labels = vec![
            ("stage", Cow::from(stage.name.as_str())),
            ("index", Cow::from((index + 1).to_string())),
            ("warmup", Cow::from(stage.warmup.to_string())),
        ];
        (labels, u8::from(state.stage == Some(index)))
    });
    out.family("plimsoll_live_stage", lines);
    let targets = state.run.targets.iter().zip(&state.taken_out);
    let lines = targets.map(|(target, is_out)| {
        (vec![("target", Cow::from(target.name.as_str()))], u8::from(*is_out))
    });
    out.family("plimsoll_live_target_taken_out", lines);
}

/// Which part of a search or a suite goes on, and what came of all. The names of labels are among
/// those that profiles cannot have.
fn series(out: &mut Exposition, series: &Series) {
    let lines = series.parts.iter().enumerate().map(|(index, (part, target))| {
        let labels = vec![("name", part.as_str().into()), ("target", target.as_str().into())];
        (labels, u8::from(series.present == Some(index)))
    });
    out.family("plimsoll_live_part", lines);
    let Some(Conclusion { outcome, knees }) = &series.conclusion else { return };
    let lines = [(vec![("outcome", Cow::from(*outcome))], 1)];
    out.family("plimsoll_live_outcome", lines);
    if !knees.is_empty() {
        of_knees(out, knees);
    }
}

fn of_knees(out: &mut Exposition, knees: &[LiveKnee]) {
    let lines = knees.iter().map(|knee| (of_knee(knee, "status", knee.kind), 1));
    out.family("plimsoll_live_knee_state", lines);
    let families = ["plimsoll_live_knee_load_low", "plimsoll_live_knee_load_high"];
    for (index, name) in families.into_iter().enumerate() {
        let lines = knees
            .iter()
            .filter_map(|knee| Some((of_knee(knee, "metric", knee.unit), knee.load[index]?)));
        out.family(name, lines);
    }
}

fn of_knee(knee: &LiveKnee, key: &'static str, value: &'static str) -> Labels<'static> {
    vec![("target", knee.target.clone().into()), (key, value.into())]
}

fn is_outcome(counter: &CounterSpec) -> bool {
    Outcome::NAMES.contains(&counter.name)
}

/// All requests that ended, once each.
fn outcomes(out: &mut Exposition, counts: &Counts) {
    let lines = counts.cells.iter().flat_map(|(cell, counts)| {
        COUNTERS.iter().filter(|counter| is_outcome(counter)).map(|counter| {
            let mut labels = of_cell(cell);
            labels.push(("outcome", counter.name.into()));
            (labels, (counter.of)(&counts.counters))
        })
    });
    out.family("plimsoll_live_requests_total", lines);
}

fn of_target(target: &str, warmup: bool) -> Labels<'static> {
    vec![("target", target.to_owned().into()), ("warmup", warmup.to_string().into())]
}

fn errors(out: &mut Exposition, counts: &Counts) {
    let lines = counts.errors.iter().map(|(((target, warmup), class), n)| {
        let mut labels = of_target(target, *warmup);
        labels.push(("class", class.name().into()));
        labels.push(("side", side_word(class.side()).into()));
        (labels, n)
    });
    out.family("plimsoll_live_errors_total", lines);
    let lines = counts.statuses.iter().map(|(((target, warmup), status), n)| {
        let mut labels = of_target(target, *warmup);
        labels.push(("status", status.to_string().into()));
        (labels, n)
    });
    out.family("plimsoll_live_responses_total", lines);
}

/// A family of times; nothing if no request has such a time yet.
fn histogram<'a>(
    out: &mut Exposition,
    metric: Metric,
    lines: impl Iterator<Item = (Labels<'a>, &'a Times)>,
) {
    let lines: Vec<_> = lines.filter(|(_, times)| times.count > 0).collect();
    if lines.is_empty() {
        return;
    }
    let name = format!("plimsoll_live_{}_seconds", metric.name());
    out.head(&name, Kind::Histogram, metric.definition());
    let bucket = format!("{name}_bucket");
    for (labels, times) in lines {
        let mut up_to = 0;
        for (limit, n) in LIMITS_NS.iter().zip(times.classes) {
            up_to += n;
            let mut labels = labels.clone();
            labels.push(("le", (*limit as f64 / 1e9).to_string().into()));
            out.line(&bucket, &labels, up_to);
        }
        let mut all = labels.clone();
        all.push(("le", "+Inf".into()));
        out.line(&bucket, &all, times.count);
        out.line(&format!("{name}_sum"), &labels, times.sum_ns as f64 / 1e9);
        out.line(&format!("{name}_count"), &labels, times.count);
    }
}

fn processes(out: &mut Exposition, state: &State) {
    if let Some(cpu) = state.own_cpu {
        let seconds = cpu.as_secs_f64();
        out.single("plimsoll_live_generator_cpu_seconds_total", seconds);
    }
    let lines =
        state.processes.iter().filter_map(|process| Some((of_process(process), process.cores?)));
    out.family("plimsoll_live_process_cpu_cores", lines);
    let lines = state
        .processes
        .iter()
        .filter_map(|process| Some((of_process(process), process.rss_bytes?)));
    out.family("plimsoll_live_process_resident_bytes", lines);
}

fn of_process(process: &ProcessNow) -> Labels<'_> {
    vec![("process", process.name.as_str().into())]
}

fn of_cell(cell: &Cell) -> Labels<'static> {
    vec![
        ("scenario", cell.scenario.clone().into()),
        ("target", cell.target.clone().into()),
        ("warmup", cell.warmup.to_string().into()),
    ]
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
