//! `metrics.prom`: the Prometheus text exposition format, version 0.0.4.
//!
//! Base units (seconds) and suffixes (`_total`, `_ratio`) follow Prometheus' naming conventions. A
//! quantile with too few samples is left out, and so is one that must not be used. The labels of
//! the run are on every line. A run with labels has further families, `load_test_...`, as
//! dashboards of other load tests expect them.

mod load_test;

use std::borrow::Cow;

use plimsoll_measure::ErrorClass;
use plimsoll_metrics::catalog::{COUNTERS, CounterSpec, RATES, RateSpec, side_word};
use plimsoll_metrics::{
    BandLevel, BandResult, BoundedFigure, DistributionSummary, Group, Metric, ProcessUse,
    QUANTILES, Quantile, RunSummary, Unit,
};

use crate::exposition::{Exposition, Kind, Labels};
use load_test::load_test;

/// The summary's cells as Prometheus metrics.
pub fn prometheus(summary: &RunSummary) -> String {
    let out = Exposition::new(&summary.metadata.labels);
    let mut page = Page { out, cells: &summary.results.cells };
    page.run(summary);
    for metric in Metric::ALL {
        page.distribution(metric);
    }
    for counter in &COUNTERS {
        page.counter(counter);
    }
    for rate in &RATES {
        page.rate(rate);
    }
    page.bounds();
    page.errors();
    page.statuses();
    page.rpc_errors();
    page.policy_decisions();
    page.bands(&summary.bands);
    page.processes(&summary.processes);
    if !summary.metadata.labels.is_empty() {
        load_test(&mut page.out, summary);
    }
    page.out.finish()
}

struct Page<'a> {
    out: Exposition,
    cells: &'a [Group],
}

impl Page<'_> {
    fn run(&mut self, summary: &RunSummary) {
        let labels = vec![
            ("name", Cow::from(summary.metadata.run.name.as_str())),
            ("version", Cow::from(summary.metadata.run.tool_version.as_str())),
            ("seed", Cow::from(summary.metadata.run.seed.to_string())),
        ];
        self.head("plimsoll_run_info", Kind::Gauge, "The run of these figures.");
        self.line("plimsoll_run_info", &labels, 1.0);
        let help = "1 if Plimsoll kept up, so that the figures describe the target; else 0: do not use them.";
        self.head("plimsoll_run_valid", Kind::Gauge, help);
        self.line("plimsoll_run_valid", &labels, f64::from(u8::from(summary.validity.is_valid())));
    }

    fn distribution(&mut self, metric: Metric) {
        let name = format!("plimsoll_{}_seconds", metric.name());
        self.head(&name, Kind::Summary, metric.definition());
        for cell in self.cells {
            let Some(times) = cell.distribution(metric) else { continue };
            for (q, millis) in quantiles(times) {
                let labels = with(cell, "quantile", q.to_string());
                self.line(&name, &labels, seconds(millis));
            }
            let labels = labels(cell);
            self.line(&format!("{name}_sum"), &labels, seconds(times.raw_sum()));
            self.line(&format!("{name}_count"), &labels, times.count as f64);
        }
    }

    fn counter(&mut self, counter: &CounterSpec) {
        let name = format!("plimsoll_{}_total", counter.name);
        self.head(&name, Kind::Counter, counter.definition);
        for cell in self.cells {
            self.line(&name, &labels(cell), (counter.of)(&cell.counters) as f64);
        }
    }

    fn rate(&mut self, rate: &RateSpec) {
        let name = rate_name(rate);
        self.head(&name, Kind::Gauge, rate.definition);
        for cell in self.cells {
            if let Some(value) = cell.rate(rate).map(|figure| figure.value) {
                self.line(&name, &labels(cell), value);
            }
        }
    }

    /// The bounds of the quantiles, and the refused ones, which are nowhere else.
    fn bounds(&mut self) {
        let name = "plimsoll_generator_bound_seconds";
        self.head(name, Kind::Gauge, "What the generator itself may have added to a quantile.");
        self.each_figure(name, |figure| (figure.bound > 0.0).then_some((figure.bound, "")));
        let name = "plimsoll_limited_seconds";
        let help = "Quantiles whose value alone carries no statement: more than 5 % of it may be \
                    the generator's, or requests without an end may be longer.";
        self.head(name, Kind::Gauge, help);
        self.each_figure(name, |figure| Some((figure.value, figure.refused?.name())));
    }

    /// A line for each quantile for which `show` has milliseconds, and a reason if there is one.
    fn each_figure(
        &mut self,
        name: &str,
        show: impl Fn(BoundedFigure) -> Option<(f64, &'static str)>,
    ) {
        for (cell, metric, quantile, figure) in self.cells.iter().flat_map(figures) {
            let Some((millis, reason)) = show(figure) else { continue };
            let mut labels = with(cell, "metric", metric.name().to_owned());
            labels.push(("quantile", quantile.q.to_string().into()));
            if !reason.is_empty() {
                labels.push(("reason", reason.into()));
            }
            self.line(name, &labels, seconds(millis));
        }
    }

    fn errors(&mut self) {
        let name = "plimsoll_errors_total";
        self.head(name, Kind::Counter, "Failed requests by error class and side.");
        for cell in self.cells {
            let classes = ErrorClass::ALL.into_iter();
            let found = classes.filter_map(|class| Some((class, cell.errors.get(class.name())?)));
            for (class, count) in found {
                let mut labels = with(cell, "class", class.name().to_owned());
                labels.push(("side", side_word(class.side()).into()));
                self.line(name, &labels, *count as f64);
            }
        }
    }

    fn statuses(&mut self) {
        let name = "plimsoll_responses_total";
        self.head(name, Kind::Counter, "Responses by HTTP status.");
        for cell in self.cells {
            for (status, count) in &cell.statuses {
                self.line(name, &with(cell, "status", status.to_string()), *count as f64);
            }
        }
    }

    fn rpc_errors(&mut self) {
        if self.cells.iter().all(|cell| cell.rpc_errors.is_empty()) {
            return;
        }
        let name = "plimsoll_rpc_errors_total";
        self.head(name, Kind::Counter, "Errors of JSON-RPC by code.");
        for cell in self.cells {
            for (code, count) in &cell.rpc_errors {
                self.line(name, &with(cell, "code", code.to_string()), *count as f64);
            }
        }
    }

    fn policy_decisions(&mut self) {
        if self.cells.iter().all(|cell| cell.policy_decisions.is_empty()) {
            return;
        }
        let name = "plimsoll_policy_decisions_total";
        self.head(name, Kind::Counter, "Requests by expected and by actual policy decision.");
        for cell in self.cells {
            let rows = cell.policy_decisions.iter();
            let pairs =
                rows.flat_map(|(expected, row)| row.iter().map(move |pair| (expected, pair)));
            for (expected, (actual, count)) in pairs {
                let mut labels = with(cell, "expected", expected.clone());
                labels.push(("policy_decision", actual.as_str().into()));
                self.line(name, &labels, *count as f64);
            }
        }
    }

    fn bands(&mut self, bands: &[BandResult]) {
        if bands.is_empty() {
            return;
        }
        let name = "plimsoll_band";
        let help = "Level reached in a band: 0 target, 1 degraded, 2 critical, -1 inconclusive.";
        self.head(name, Kind::Gauge, help);
        for band in bands {
            let level = match band.level {
                BandLevel::Target => 0.0,
                BandLevel::Degraded => 1.0,
                BandLevel::Critical => 2.0,
                BandLevel::Inconclusive(_) => -1.0,
            };
            let labels = vec![
                ("metric", Cow::from(band.metric.as_str())),
                ("bounds", Cow::from(band.expression.as_str())),
            ];
            self.line(name, &labels, level);
        }
    }

    fn processes(&mut self, processes: &[ProcessUse]) {
        if processes_of_run(processes).next().is_none() {
            return;
        }
        let name = "plimsoll_process_cpu_seconds";
        self.head(name, Kind::Gauge, "CPU time of a watched process.");
        for process in processes_of_run(processes) {
            self.line(name, &vec![("process", process.name.clone().into())], process.cpu_s);
        }
        let name = "plimsoll_process_resident_bytes";
        self.head(name, Kind::Gauge, "Resident memory of a watched process at the end.");
        for process in processes_of_run(processes) {
            let labels = vec![("process", process.name.clone().into())];
            self.line(name, &labels, process.rss_bytes as f64);
        }
    }

    fn head(&mut self, name: &str, kind: Kind, help: &str) {
        self.out.head(name, kind, help);
    }

    fn line(&mut self, name: &str, labels: &Labels<'_>, value: f64) {
        self.out.line(name, labels, value);
    }
}

fn processes_of_run(processes: &[ProcessUse]) -> impl Iterator<Item = &ProcessUse> {
    processes.iter().filter(|process| process.stage.is_none())
}

/// Every quantile of a cell that has a bound.
fn figures(
    cell: &Group,
) -> impl Iterator<Item = (&Group, Metric, &'static Quantile, BoundedFigure)> {
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
