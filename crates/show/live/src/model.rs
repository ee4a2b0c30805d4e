//! The state of the view.

use std::collections::{BTreeMap, VecDeque};

use plimsoll_measure::{ErrorClass, Nanos};
use plimsoll_metrics::{
    Counters, Distribution, GroupKey, GroupStats, IntervalUpdate, Metric, ProcessNow,
    ThresholdResult,
};
use plimsoll_report::format::count;
use plimsoll_report::printable;
use plimsoll_schedule::Load;

/// The user's selection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Selected part: 0 is everything, followed by scenarios, then targets.
    pub part: usize,
    /// Whether the display is paused.
    pub frozen: bool,
    /// Whether the help is open.
    pub help: bool,
}

/// The state of the view.
#[derive(Clone, Debug)]
pub struct Model {
    pub(crate) facts: RunFacts,
    pub(crate) elapsed: Nanos,
    pub(crate) stage: usize,
    pub(crate) ending: bool,
    /// Whether anything has been counted.
    pub(crate) begun: bool,
    pub(crate) in_flight: u64,
    /// Number of measured requests that have ended since the start.
    pub(crate) ended: u64,
    /// Requests sent per second.
    pub(crate) sent: f64,
    /// Everything, then each scenario if there are several, then each target if there are several.
    pub(crate) parts: Vec<Part>,
    /// Dispatch lag of the generator in the last second.
    pub(crate) lag: Option<Spread>,
    /// Largest upper end of the dispatch lag in any second so far, in milliseconds.
    pub(crate) worst_lag: Option<f64>,
    pub(crate) own_cores: Option<f64>,
    pub(crate) processes: Vec<ProcessNow>,
    pub(crate) taken_out: Vec<Option<Nanos>>,
    pub(crate) verdict: Option<SoFar>,
    pub(crate) differences: Vec<Difference>,
    /// The latest message.
    pub(crate) message: Option<String>,
}

/// A part of a run that can be selected.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// Title; empty for all requests.
    pub(crate) title: String,
    pub(crate) which: Which,
    pub(crate) history: History,
}

impl Part {
    fn new(title: String, which: Which) -> Self {
        Self { title, which, history: History::default() }
    }

    /// A title that names the part.
    pub(crate) fn titled(&self, what: &str) -> String {
        if self.title.is_empty() { what.to_owned() } else { format!("{what}, {}", self.title) }
    }
}

/// One part per name, if there are several.
fn parts_of(names: &[String], what: &str, which: fn(usize) -> Which) -> Vec<Part> {
    let named = names.iter().enumerate().filter(|_| names.len() > 1);
    named.map(|(index, name)| Part::new(format!("{what} {name}"), which(index))).collect()
}

/// The requests of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    All,
    Scenario(usize),
    Target(usize),
}

impl Which {
    const fn has(self, key: GroupKey) -> bool {
        match self {
            Self::All => true,
            Self::Scenario(index) => key.scenario.index() == index,
            Self::Target(index) => key.target.index() == index,
        }
    }
}

impl Model {
    /// Creates the state of a run before its start. Control characters are removed from names,
    /// which may come from another person's file.
    pub fn new(mut facts: RunFacts) -> Self {
        let names = facts.scenarios.iter_mut().chain(&mut facts.targets);
        let names = names.chain(facts.stages.iter_mut().map(|stage| &mut stage.name));
        names.chain([&mut facts.name]).for_each(|name| *name = harmless(name));
        let mut parts = vec![Part::new(String::new(), Which::All)];
        parts.extend(parts_of(&facts.scenarios, "scenario", Which::Scenario));
        parts.extend(parts_of(&facts.targets, "target", Which::Target));
        Self {
            facts,
            elapsed: Nanos::ZERO,
            stage: 0,
            ending: false,
            begun: false,
            in_flight: 0,
            ended: 0,
            sent: 0.0,
            parts,
            lag: None,
            worst_lag: None,
            own_cores: None,
            processes: Vec::new(),
            taken_out: Vec::new(),
            verdict: None,
            differences: Vec::new(),
            message: None,
        }
    }

    /// Adds the results of the last interval.
    pub fn update(&mut self, update: IntervalUpdate<'_>) {
        self.begun = true;
        (self.elapsed, self.stage, self.ending) = (update.elapsed, update.stage, update.ending);
        let mut lag = Distribution::default();
        let mut intervals: Vec<_> = self.parts.iter().map(|_| Interval::default()).collect();
        for (key, cell) in update.cells.cells() {
            let parts = self.parts.iter().zip(&mut intervals);
            for (_, interval) in parts.filter(|(part, _)| part.which.has(key)) {
                interval.add(cell, self.facts.time);
            }
            let late = cell.pacing_lag().or_else(|| cell.distribution(Metric::DispatchLag));
            if let Some(late) = late {
                lag.merge(late);
            }
        }
        if let Some(all) = intervals.first() {
            self.sent = self.sent_per_s(&all.counters, update.in_flight, update.length);
        }
        for (part, interval) in self.parts.iter_mut().zip(&intervals) {
            part.history.add(interval, update.elapsed, update.length);
        }
        self.lag = Spread::of(&lag);
        let (_, upper, _) = parts(self.lag);
        self.worst_lag = [self.worst_lag, upper].into_iter().flatten().reduce(f64::max);
        (self.in_flight, self.ended) = (update.in_flight, update.ended);
        self.own_cores = update.own_cores;
        self.taken_out = update.taken_out.to_vec();
        self.processes = update.processes;
        self.processes.iter_mut().for_each(|process| process.name = harmless(&process.name));
    }

    /// Requests sent in the last interval: those that ended in it, plus the growth of the number in
    /// flight.
    fn sent_per_s(&self, ended: &Counters, in_flight: u64, length: Nanos) -> f64 {
        let sent = ended.ended() + in_flight;
        let seconds = length.as_secs_f64();
        if seconds > 0.0 { sent.saturating_sub(self.in_flight) as f64 / seconds } else { 0.0 }
    }

    /// Sets the verdict so far.
    pub fn judge(&mut self, mut so_far: SoFar) {
        so_far.invalid.iter_mut().for_each(|why| *why = harmless(why));
        self.verdict = Some(so_far);
    }

    /// Sets the differences between the targets so far.
    pub fn compare(&mut self, differences: Vec<Difference>) {
        self.differences = differences;
    }

    /// Shows a message until the next one.
    pub fn say(&mut self, message: &str) {
        self.message = Some(harmless(message));
    }

    /// Number of parts that can be selected.
    pub const fn parts(&self) -> usize {
        self.parts.len()
    }

    /// The selected part.
    pub(crate) fn part(&self, look: Look) -> Option<&Part> {
        self.parts.get(look.part).or_else(|| self.parts.first())
    }

    /// The current stage.
    pub(crate) fn present(&self) -> Option<&StageFacts> {
        self.facts.stages.get(self.stage)
    }

    /// Number of ended requests, if the run ends after a number of them.
    pub(crate) fn requests(&self) -> Option<String> {
        let most = self.facts.max_requests?;
        Some(format!("{} of {} requests", count(self.ended), count(most)))
    }

    /// The planned load of the current stage.
    pub(crate) fn planned(&self) -> Planned {
        let Some(stage) = self.present().filter(|stage| self.elapsed < stage.end && !self.ending)
        else {
            return Planned::Nothing;
        };
        let length = stage.end.saturating_sub(stage.start).as_secs_f64();
        let gone = self.elapsed.saturating_sub(stage.start).as_secs_f64();
        let share = if length > 0.0 { (gone / length).min(1.0) } else { 0.0 };
        match stage.load {
            Load::Open { .. } | Load::Trace => Planned::Requests,
            Load::Closed { from, to } => {
                let (from, to) = (f64::from(from), f64::from(to));
                Planned::Users((from + (to - from) * share).round())
            }
        }
    }
}

/// The planned load of a stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Planned {
    /// Requests, each at its own time.
    Requests,
    /// Virtual users, each sending its next request after a response.
    Users(f64),
    /// No load, because the stages are over.
    Nothing,
}

/// Removes characters that control a terminal.
pub(crate) fn harmless(text: &str) -> String {
    // `printable` keeps colours, line breaks and tabs.
    printable(text).replace(['\n', '\t'], " ").replace(char::is_control, "?")
}

// Input of the view.

/// Facts about a run, known before its load.
#[derive(Clone, Debug)]
pub struct RunFacts {
    /// Name of the run.
    pub name: String,
    /// Stages in chronological order.
    pub stages: Vec<StageFacts>,
    /// Names of its scenarios, by id.
    pub scenarios: Vec<String>,
    /// Names of its targets, by id.
    pub targets: Vec<String>,
    /// Whether the run compares its targets.
    pub compares: bool,
    /// The report's headline time.
    pub time: Metric,
    /// Number of measured requests that ends the run before its stages do.
    pub max_requests: Option<u64>,
}

impl RunFacts {
    /// Total length of all stages.
    pub fn duration(&self) -> Nanos {
        self.stages.last().map_or(Nanos::ZERO, |stage| stage.end)
    }

    /// Progress of the run within its length: by its time, or by the measured requests that have
    /// ended.
    pub fn position(&self, elapsed: Nanos, ended: u64) -> Nanos {
        let of_requests = self.max_requests.map_or(0, |most| {
            let done = u128::from(self.duration().as_u64()) * u128::from(ended.min(most));
            u64::try_from(done / u128::from(most.max(1))).unwrap_or_default()
        });
        elapsed.min(self.duration()).max(Nanos::new(of_requests))
    }
}

/// A stage.
#[derive(Clone, Debug)]
pub struct StageFacts {
    /// Name of the stage.
    pub name: String,
    /// Whether results exclude it.
    pub warmup: bool,
    /// Start, as an offset from the run's start.
    pub start: Nanos,
    /// End, as an offset from the run's start.
    pub end: Nanos,
    /// Load of the stage.
    pub load: Load,
}

/// The verdict so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SoFar {
    /// Reasons why the run is invalid so far, one sentence each; empty if it is valid.
    pub invalid: Vec<String>,
    /// Thresholds, judged by the data so far.
    pub thresholds: Vec<ThresholdResult>,
}

/// Overhead of a target over another, request by request.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Index of the target.
    pub target: usize,
    /// Index of the target it is compared with.
    pub reference: usize,
    /// Name of the compared time.
    pub figure: String,
    /// The median of the differences in milliseconds, and the ends of an always-valid interval;
    /// `None` if there are too few requests.
    pub millis: Option<[f64; 3]>,
}

// The last two minutes of a part of a run.

/// Number of seconds kept.
pub(crate) const SECONDS: usize = 120;

/// Results of one second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Point {
    /// Time since the run's start, in seconds.
    pub(crate) at_s: f64,
    /// Requests planned per second.
    pub(crate) planned: f64,
    /// Requests completed per second.
    pub(crate) completed: f64,
    /// Output tokens per second, of completed requests.
    pub(crate) tokens: f64,
    /// The headline time.
    pub(crate) time: Option<Spread>,
    /// The time to first token.
    pub(crate) ttft: Option<Spread>,
}

/// Results of all requests, or of one scenario or target.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) points: VecDeque<Point>,
    /// Counts since the start.
    pub(crate) counters: Counters,
    /// Failures since the start, by class.
    pub(crate) errors: BTreeMap<ErrorClass, u64>,
}

/// One interval of a part of a run, while its cells are summed.
#[derive(Default)]
pub(crate) struct Interval {
    pub(crate) counters: Counters,
    time: Distribution,
    ttft: Distribution,
    errors: BTreeMap<ErrorClass, u64>,
}

impl Interval {
    /// Adds the requests of one cell.
    pub(crate) fn add(&mut self, cell: &GroupStats, time: Metric) {
        self.counters.merge(cell.counters());
        let pairs = [(time, &mut self.time), (Metric::Ttft, &mut self.ttft)];
        for (metric, sum) in pairs {
            if let Some(values) = cell.distribution(metric) {
                sum.merge(values);
            }
        }
        cell.errors().iter().for_each(|(class, n)| *self.errors.entry(*class).or_default() += n);
    }
}

impl History {
    /// Adds an interval that ended at `at`.
    pub(crate) fn add(&mut self, interval: &Interval, at: Nanos, length: Nanos) {
        let seconds = length.as_secs_f64();
        let Counters {
            scheduled,
            completed,
            output_tokens_reported_in_stage: reported,
            output_tokens_estimated_in_stage: estimated,
            ..
        } = interval.counters;
        self.counters.merge(&interval.counters);
        for (class, n) in &interval.errors {
            *self.errors.entry(*class).or_default() += n;
        }
        if self.points.len() >= SECONDS {
            self.points.pop_front();
        }
        let [planned, completed, tokens] = [scheduled, completed, reported + estimated]
            .map(|count| if seconds > 0.0 { count as f64 / seconds } else { 0.0 });
        self.points.push_back(Point {
            at_s: at.as_secs_f64(),
            planned,
            completed,
            tokens,
            time: Spread::of(&interval.time),
            ttft: Spread::of(&interval.ttft),
        });
    }

    /// The last second.
    pub(crate) fn last(&self) -> Point {
        self.points.back().copied().unwrap_or_default()
    }
}

/// Times of a second, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) p50: f64,
    /// `None` if there are too few times.
    pub(crate) p99: Option<f64>,
    pub(crate) max: f64,
}

/// The statistic shown for times above their median.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum UpperEnd {
    P99,
    /// The maximum, which exists even for few times.
    #[default]
    Max,
}

impl UpperEnd {
    /// The statistic that all of these times have.
    pub(crate) fn of_all(mut spreads: impl Iterator<Item = Option<Spread>>) -> Self {
        let all = spreads.all(|spread| spread.is_some_and(|spread| spread.p99.is_some()));
        if all { Self::P99 } else { Self::Max }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::P99 => "p99",
            Self::Max => "max",
        }
    }
}

impl Spread {
    pub(crate) fn of(values: &Distribution) -> Option<Self> {
        let [p50, max] = [values.nearest_rank(0.5)?, values.max()?].map(Nanos::as_millis_f64);
        Some(Self { p50, p99: values.quantile(0.99).map(Nanos::as_millis_f64), max })
    }

    pub(crate) const fn upper(self, end: UpperEnd) -> Option<f64> {
        match end {
            UpperEnd::P99 => self.p99,
            UpperEnd::Max => Some(self.max),
        }
    }
}

/// Median, upper end and its name, if they are known.
pub(crate) fn parts(spread: Option<Spread>) -> (Option<f64>, Option<f64>, &'static str) {
    let end = UpperEnd::of_all(std::iter::once(spread));
    (spread.map(|all| all.p50), spread.and_then(|all| all.upper(end)), end.name())
}
