//! `metrics.prom`: the Prometheus text exposition format, version 0.0.4.
//!
//! Base units (seconds) and suffixes (`_total`, `_ratio`) follow Prometheus' naming conventions. A
//! quantile with too few samples is left out, and so is one that must not be used. The labels of
//! the run are on every line. A run with labels has further families, `load_test_...`, as
//! dashboards of other load tests expect them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use plimsoll_measure::{ErrorClass, named_enum};
use plimsoll_metrics::catalog::{COUNTERS, RATES, RateSpec, side_word};
use plimsoll_metrics::{
    BandLevel, BoundedFigure, DistributionSummary, Group, Metric, ProcessUse, QUANTILES, Quantile,
    RunSummary, ThresholdResult, Unit,
};

use crate::escape::escape_label;

/// The summary's cells as Prometheus metrics.
pub fn prometheus(summary: &RunSummary) -> String {
    let mut out = Exposition::new(&summary.metadata.labels);
    let cells = &summary.results.cells;
    run(&mut out, summary);
    for metric in Metric::ALL {
        distribution(&mut out, cells, metric);
    }
    for counter in &COUNTERS {
        let lines = cells.iter().map(|cell| (labels(cell), (counter.of)(&cell.counters) as f64));
        let name = format!("plimsoll_{}_total", counter.name);
        out.described(&name, Kind::Counter, counter.definition, lines);
    }
    for rate in &RATES {
        let lines = cells.iter().filter_map(|cell| Some((labels(cell), cell.rate(rate)?.value)));
        out.described(&rate_name(rate), Kind::Gauge, rate.definition, lines);
    }
    bounds(&mut out, cells);
    errors(&mut out, cells);
    bands(&mut out, &summary.thresholds);
    processes(&mut out, &summary.processes);
    if !summary.metadata.labels.is_empty() {
        load_test(&mut out, summary);
    }
    out.finish()
}

fn run(out: &mut Exposition, summary: &RunSummary) {
    let run = &summary.metadata.run;
    let labels = vec![
        ("name", Cow::from(run.name.as_str())),
        ("version", Cow::from(run.tool_version.as_str())),
        ("seed", Cow::from(run.seed.to_string())),
    ];
    out.family("plimsoll_run_info", [(labels.clone(), 1.0)]);
    let valid = f64::from(u8::from(summary.is_valid()));
    out.family("plimsoll_run_valid", [(labels, valid)]);
}

fn distribution(out: &mut Exposition, cells: &[Group], metric: Metric) {
    let name = format!("plimsoll_{}_seconds", metric.name());
    out.head(&name, Kind::Summary, metric.definition());
    for cell in cells {
        let Some(times) = cell.distribution(metric) else { continue };
        for (q, millis) in quantiles(times) {
            out.line(&name, &with(cell, "quantile", q.to_string()), seconds(millis));
        }
        let labels = labels(cell);
        out.line(&format!("{name}_sum"), &labels, seconds(times.raw_sum()));
        out.line(&format!("{name}_count"), &labels, times.count as f64);
    }
}

/// The bounds of the quantiles, and the refused ones, which are nowhere else.
fn bounds(out: &mut Exposition, cells: &[Group]) {
    let lines = cells.iter().flat_map(figures).filter(|(.., figure)| figure.bound > 0.0);
    let lines = lines.map(|found| (of_figure(&found), seconds(found.3.bound)));
    out.family("plimsoll_generator_bound_seconds", lines);
    let lines = cells.iter().flat_map(figures).filter_map(|found| {
        let mut labels = of_figure(&found);
        labels.push(("reason", found.3.refused?.name().into()));
        Some((labels, seconds(found.3.value)))
    });
    out.family("plimsoll_limited_seconds", lines);
}

fn of_figure<'a>(found: &Figure<'a>) -> Labels<'a> {
    let (cell, metric, quantile, _) = found;
    let mut labels = with(cell, "metric", metric.name().to_owned());
    labels.push(("quantile", quantile.q.to_string().into()));
    labels
}

/// Counts by error or status. Families for JSON-RPC or policies are left out if the run has none.
fn errors(out: &mut Exposition, cells: &[Group]) {
    let lines = cells.iter().flat_map(|cell| {
        ErrorClass::ALL.into_iter().filter_map(move |class| {
            let mut labels = with(cell, "class", class.name().to_owned());
            labels.push(("side", side_word(class.side()).into()));
            Some((labels, *cell.errors.get(class.name())? as f64))
        })
    });
    out.family("plimsoll_errors_total", lines);
    let lines = cells.iter().flat_map(|cell| {
        let statuses = cell.statuses.iter();
        statuses.map(|(status, n)| (with(cell, "status", status.to_string()), *n as f64))
    });
    out.family("plimsoll_responses_total", lines);
    let lines = cells.iter().flat_map(|cell| {
        let codes = cell.rpc_errors.iter();
        codes.map(|(code, n)| (with(cell, "code", code.to_string()), *n as f64))
    });
    out.optional("plimsoll_rpc_errors_total", lines);
    let lines = cells.iter().flat_map(|cell| {
        let rows = cell.policy_decisions.iter();
        let pairs = rows.flat_map(|(expected, row)| row.iter().map(move |pair| (expected, pair)));
        pairs.map(|(expected, (actual, n))| {
            let mut labels = with(cell, "expected", expected.clone());
            labels.push(("policy_decision", actual.as_str().into()));
            (labels, *n as f64)
        })
    });
    out.optional("plimsoll_policy_decisions_total", lines);
}

fn bands(out: &mut Exposition, limits: &[ThresholdResult]) {
    let lines = limits.iter().filter(|limit| limit.is_band()).map(|band| {
        let level = match band.level {
            Some(BandLevel::Target) => 0.0,
            Some(BandLevel::Degraded) => 1.0,
            Some(BandLevel::Critical) => 2.0,
            None => -1.0,
        };
        let (metric, bounds) = (band.metric.as_str(), band.expression.as_str());
        (vec![("metric", metric.into()), ("bounds", bounds.into())], level)
    });
    out.optional("plimsoll_band", lines);
}

fn processes(out: &mut Exposition, processes: &[ProcessUse]) {
    let lines = of_run(processes).map(|(labels, process)| (labels, process.cpu_s));
    out.optional("plimsoll_process_cpu_seconds", lines);
    let lines = of_run(processes).map(|(labels, process)| (labels, process.rss_bytes as f64));
    out.optional("plimsoll_process_resident_bytes", lines);
}

fn of_run(processes: &[ProcessUse]) -> impl Iterator<Item = (Labels<'_>, &ProcessUse)> {
    let of_run = processes.iter().filter(|process| process.stage.is_none());
    of_run.map(|process| (vec![("process", process.name.as_str().into())], process))
}

/// A quantile with its limits: of which cell and metric it is.
type Figure<'a> = (&'a Group, Metric, &'static Quantile, BoundedFigure);

/// Every quantile of a cell that has a bound.
fn figures(cell: &Group) -> impl Iterator<Item = Figure<'_>> {
    let bounded = Metric::ALL.into_iter().filter(|metric| metric.is_bounded());
    let times = bounded.filter_map(move |metric| Some((metric, cell.distribution(metric)?)));
    times.flat_map(move |(metric, times)| {
        let figures = QUANTILES.iter().filter_map(|q| Some((q, times.figure(q)?)));
        figures.map(move |(quantile, figure)| (cell, metric, quantile, figure))
    })
}

/// The quantiles that have enough samples, with their milliseconds.
fn quantiles(times: &DistributionSummary) -> impl Iterator<Item = (f64, f64)> {
    QUANTILES.iter().filter_map(|q| Some((q.q, times.raw_quantile(q)?)))
}

/// Rounds to whole nanoseconds, so that 60.2 ms is written 0.0602 and not 0.060200000000000004.
fn seconds(millis: f64) -> f64 {
    (millis * 1e6).round() / 1e9
}

fn labels(cell: &Group) -> Labels<'_> {
    let mut labels = vec![
        ("stage", text(cell.stage.as_ref()).into()),
        ("scenario", text(cell.scenario.as_ref()).into()),
        ("target", text(cell.target.as_ref()).into()),
        ("warmup", cell.warmup.to_string().into()),
    ];
    if let Some(operation) = &cell.operation {
        labels.push(("operation", operation.as_str().into()));
    }
    labels
}

fn text(label: Option<&String>) -> String {
    label.cloned().unwrap_or_default()
}

fn with<'a>(cell: &'a Group, key: &'static str, value: String) -> Labels<'a> {
    let mut labels = labels(cell);
    labels.push((key, value.into()));
    labels
}

/// In Prometheus a share is a ratio, and a rate is per second.
fn rate_name(rate: &RateSpec) -> String {
    match rate.unit {
        Unit::Share => {
            format!("plimsoll_{}_ratio", rate.name.strip_suffix("_rate").unwrap_or(rate.name))
        }
        _ => format!("plimsoll_{}_per_second", rate.name),
    }
}

// `load_test_latency_ms` and `load_test_requests_total`: names that dashboards of other load tests
// use, in milliseconds and with three statuses.
//
// If scenarios have categories, each category has one set of lines, with the category as
// `test_type`. The whole run then has none, so sums over the label are correct. A label
// `test_type` of the run replaces all categories.

const TEST_TYPE: &str = "test_type";

/// Writes the families. Whoever reads them does not know `plimsoll_run_valid`, so an invalid run
/// has counts and no times.
fn load_test(out: &mut Exposition, summary: &RunSummary) {
    let groups = groups(summary);
    let name = "load_test_latency_ms";
    out.head(name, Kind::Summary, Metric::ResponseTime.definition());
    for (test_type, group) in groups.iter().filter(|_| summary.is_valid()) {
        let Some(times) = times(group) else { continue };
        for (q, millis) in quantiles(&times) {
            out.line(
                name,
                &labels_load_test(*test_type, Some(("quantile", q.to_string().into()))),
                millis,
            );
        }
        out.line(&format!("{name}_sum"), &labels_load_test(*test_type, None), times.raw_sum());
        out.line(&format!("{name}_count"), &labels_load_test(*test_type, None), times.count);
    }
    let name = "load_test_requests_total";
    out.begin(name);
    for (test_type, group) in &groups {
        // A block does not count as an error.
        let counters = &group.counters;
        let good = counters.allowed + counters.blocked + counters.cancelled;
        for (status, count) in [
            ("success", counters.allowed),
            ("blocked", counters.blocked),
            ("error", counters.scheduled.saturating_sub(good)),
        ] {
            out.line(name, &labels_load_test(*test_type, Some(("status", status.into()))), count);
        }
    }
}

/// The times of all answers: a block is one, too.
fn times(group: &Group) -> Option<DistributionSummary> {
    let [allowed, blocked] = [Metric::ResponseTime, Metric::RejectedResponseTime]
        .map(|metric| group.distribution(metric));
    match (allowed, blocked) {
        (Some(allowed), Some(blocked)) => allowed.merged(blocked, Metric::ResponseTime).ok(),
        (one, other) => one.or(other).cloned(),
    }
}

/// The groups of requests with their `test_type`; scenarios without a category have their name.
fn groups(summary: &RunSummary) -> Vec<(Option<&str>, &Group)> {
    let (metadata, results) = (&summary.metadata, &summary.results);
    if results.by_category.is_empty() || metadata.labels.contains_key(TEST_TYPE) {
        return vec![(None, &results.total)];
    }
    let of_category = results.by_category.iter().map(|group| (group.category.as_deref(), group));
    let others = results.by_scenario.iter().filter(|group| !has_category(group, metadata));
    of_category.chain(others.map(|group| (group.scenario.as_deref(), group))).collect()
}

fn has_category(group: &Group, metadata: &plimsoll_metrics::RunMetadata) -> bool {
    let at = metadata.scenarios.iter().position(|name| Some(name) == group.scenario.as_ref());
    let expectation = at.and_then(|at| metadata.expectations.get(at));
    expectation.is_some_and(|expectation| expectation.category.is_some())
}

fn labels_load_test<'a>(
    test_type: Option<&'a str>,
    own: Option<(&'static str, Cow<'a, str>)>,
) -> Labels<'a> {
    own.into_iter().chain(test_type.map(|name| (TEST_TYPE, name.into()))).collect()
}

// A page in the Prometheus text exposition format, version 0.0.4.

/// The labels of a line, without the labels of the page.
pub type Labels<'a> = Vec<(&'static str, Cow<'a, str>)>;

named_enum! {
    /// Type of a metric family.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Kind {
        /// Never falls while the process lives; its name ends with `_total`.
        Counter => "counter",
        /// May rise and fall.
        Gauge => "gauge",
        /// Quantiles, a sum and a count.
        Summary => "summary",
    }
}

/// A page: families of lines, each under its head. The labels of the page are on every line.
#[derive(Clone, Debug, Default)]
pub struct Exposition {
    out: String,
    /// Labels of the page, each after a comma.
    common: String,
}

impl Exposition {
    /// An empty page with these labels on every line.
    pub fn new(labels: &BTreeMap<String, String>) -> Self {
        let mut common = String::new();
        for (key, value) in labels {
            // Writing to a String cannot fail.
            let _ = write!(common, ",{key}=\"{}\"", escape_label(value));
        }
        Self { out: String::new(), common }
    }

    /// Begins a family that the catalog defines.
    pub fn head(&mut self, name: &str, kind: Kind, help: &str) {
        self.write_head(name, kind.name(), help);
    }

    /// Begins a family of `families.tsv`.
    pub fn begin(&mut self, name: &str) {
        let mut rows = include_str!("families.tsv").lines();
        let row = rows.find_map(|row| row.strip_prefix(name)?.strip_prefix('\t')?.split_once('\t'));
        let (kind, help) = row.unwrap_or(("untyped", ""));
        self.write_head(name, kind, help);
    }

    fn write_head(&mut self, name: &str, kind: &str, help: &str) {
        let help = help.replace('\\', r"\\").replace('\n', r"\n");
        // Writing to a String cannot fail.
        let _ = write!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    /// A line of the present family.
    pub fn line(&mut self, name: &str, labels: &[(&str, Cow<'_, str>)], value: impl Display) {
        self.out.push_str(name);
        let mut separator = '{';
        for (key, text) in labels {
            let _ = write!(self.out, "{separator}{key}=\"{}\"", escape_label(text));
            separator = ',';
        }
        if separator == '{' && !self.common.is_empty() {
            let _ = write!(self.out, "{{{}", self.common.trim_start_matches(','));
        } else if separator == '{' {
            self.out.push(separator);
        } else {
            self.out.push_str(&self.common);
        }
        let _ = writeln!(self.out, "}} {value}");
    }

    /// A family of the catalog with a line for each of these.
    pub fn described<'a, V: Display>(
        &mut self,
        name: &str,
        kind: Kind,
        help: &str,
        lines: impl IntoIterator<Item = (Labels<'a>, V)>,
    ) {
        self.head(name, kind, help);
        lines.into_iter().for_each(|(labels, value)| self.line(name, &labels, value));
    }

    /// A family of `families.tsv` with a line for each of these.
    pub fn family<'a, V: Display>(
        &mut self,
        name: &str,
        lines: impl IntoIterator<Item = (Labels<'a>, V)>,
    ) {
        self.begin(name);
        lines.into_iter().for_each(|(labels, value)| self.line(name, &labels, value));
    }

    /// The same, but left out without a line.
    pub fn optional<'a, V: Display>(
        &mut self,
        name: &str,
        lines: impl Iterator<Item = (Labels<'a>, V)>,
    ) {
        let mut lines = lines.peekable();
        if lines.peek().is_some() {
            self.family(name, lines);
        }
    }

    /// The text.
    pub fn finish(self) -> String {
        self.out
    }
}
