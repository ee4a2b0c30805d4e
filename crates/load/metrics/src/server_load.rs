//! The figures of a server by its own metrics, in a stage or an interval.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use plimsoll_measure::{Moment, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run_metadata::StageInfo;

/// The quantities that a server publishes, at one moment.
pub type ServerValues = BTreeMap<&'static str, f64>;

/// The metrics of a server over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerTrack {
    /// Name in reports.
    pub name: String,
    /// Its page.
    pub page: String,
    /// The program, if its metrics are known; otherwise empty.
    pub server: &'static str,
    /// The readings, by the clock of the run.
    pub readings: Vec<(Moment, ServerValues)>,
    /// Why there are no readings.
    pub error: Option<String>,
}

/// The figures of a server in a measured stage, by its own metrics.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerLoad {
    /// Its name, as given by the user.
    pub name: String,
    /// The page of its metrics.
    pub page: String,
    /// The program, such as `vLLM`; empty if only patterns match its metrics.
    pub server: String,
    /// Name of the stage.
    pub stage: String,
    /// The figures, as far as the page has them. Empty if the readings cover less than half of the
    /// stage.
    pub figures: BTreeMap<String, f64>,
}

impl ServerLoad {
    /// A figure.
    pub fn figure(&self, key: &str) -> Option<f64> {
        self.figures.get(key).copied()
    }

    /// A figure that is not below a limit.
    pub(crate) fn at_least(&self, key: &str, limit: f64) -> Option<f64> {
        self.figure(key).filter(|value| *value >= limit)
    }
}

/// A figure of a server.
#[derive(Clone, Copy, Debug)]
pub struct ServerFigure {
    /// Key in JSON.
    pub key: &'static str,
    /// Title in tables and charts.
    pub title: &'static str,
    /// `number`, `count`, `share` or `time` (milliseconds).
    pub format: &'static str,
    /// Its chart over time, if any.
    pub chart: &'static str,
    rule: &'static str,
    quantities: &'static str,
    /// Definition.
    pub definition: &'static str,
}

static FIGURES: LazyLock<Vec<ServerFigure>> = LazyLock::new(|| {
    let lines = include_str!("server_figures.tsv").lines().filter(|line| !line.starts_with('#'));
    lines.map(ServerFigure::parse).collect()
});

impl ServerFigure {
    fn parse(line: &'static str) -> Self {
        let mut columns = line.split('\t');
        let [key, title, format, chart, rule, quantities, definition] =
            std::array::from_fn(|_| columns.next().unwrap_or_default());
        Self { key, title, format, chart, rule, quantities, definition }
    }

    /// Every figure once, in the order of reports.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        let mut last = "";
        FIGURES.iter().filter(move |figure| std::mem::replace(&mut last, figure.key) != figure.key)
    }

    /// The value from the readings of a time span, and the reading before them, if there is one.
    fn of(&self, within: &[(Moment, ServerValues)], before: usize) -> Option<f64> {
        let mut names = self.quantities.split(' ');
        let (first, second) = (names.next()?, names.next());
        let values = within.iter().skip(before).filter_map(|(_, all)| all.get(first).copied());
        match self.rule {
            "max" => values.reduce(f64::max),
            "mean" => mean(values),
            "above" => mean(values.filter(|value| *value > 0.0)),
            "increase" => increase(within, first),
            "rate" => {
                let other = second.map_or(Some(0.0), |second| increase(within, second))?;
                let all = increase(within, first)? + other;
                let (from, to) = (within.first()?.0, within.last()?.0);
                Some(all / to.since(from).as_secs_f64())
            }
            rule => {
                let (part, other) = (increase(within, first)?, increase(within, second?)?);
                let whole = if rule == "part" { part + other } else { other };
                (whole > 0.0).then(|| part / whole)
            }
        }
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    (count > 0.0).then(|| sum / count)
}

/// The increase of a counter; `None` if the server restarted.
fn increase(within: &[(Moment, ServerValues)], name: &str) -> Option<f64> {
    let values: Vec<_> = within.iter().filter_map(|(_, all)| all.get(name).copied()).collect();
    let (first, last) = (values.first()?, values.last()?);
    (values.len() > 1 && values.is_sorted()).then(|| last - first)
}

impl ServerTrack {
    /// A note where no page could be read.
    pub fn note(&self) -> Option<String> {
        let (name, error) = (&self.name, self.error.as_ref()?);
        Some(format!(
            "--server-metrics {name}: {error}; enable metrics at the server, or correct the URL"
        ))
    }

    /// The number of readings before a moment.
    fn before(&self, at_s: f64) -> usize {
        let at = Moment::EPOCH + Nanos::from_secs_f64(at_s.max(0.0));
        self.readings.partition_point(|(read, _)| *read < at)
    }

    /// The figures of a time span of the run, in seconds of its clock. Counters count from the last
    /// reading before it, which is up to a second old.
    pub(crate) fn figures(&self, from_s: f64, to_s: f64) -> BTreeMap<String, f64> {
        let (from, to) = (self.before(from_s), self.before(to_s));
        let first = from.saturating_sub(1);
        let within = &self.readings[first..to.max(first)];
        // If several rows have a key, the last one here counts, which is the first one of the
        // table.
        let rows = FIGURES.iter().rev().filter(|_| from < to);
        rows.filter_map(|row| Some((row.key.to_owned(), row.of(within, from - first)?))).collect()
    }

    /// The figures in each measured stage.
    pub fn loads(&self, stages: &[StageInfo]) -> Vec<ServerLoad> {
        let measured = stages.iter().filter(|stage| !stage.warmup && !self.readings.is_empty());
        let loads = measured.map(|stage| {
            let (from, to) = (stage.start_s, stage.start_s + stage.duration_s);
            let within = &self.readings[self.before(from)..self.before(to)];
            let ends = within.first().zip(within.last());
            let covered = ends.map_or(0.0, |(first, last)| last.0.since(first.0).as_secs_f64());
            let is_covered = covered >= COVERED * stage.duration_s;
            ServerLoad {
                name: self.name.clone(),
                page: self.page.clone(),
                server: self.server.to_owned(),
                stage: stage.name.clone(),
                figures: if is_covered { self.figures(from, to) } else { BTreeMap::new() },
            }
        });
        loads.collect()
    }
}

/// Readings must cover this share of a stage.
const COVERED: f64 = 0.5;
