//! `metrics.prom`: the Prometheus text exposition format, version 0.0.4.
//!
//! Base units (seconds) and suffixes (`_total`, `_ratio`) follow Prometheus' naming conventions. A
//! quantile with too few samples is left out.

use std::borrow::Cow;
use std::fmt::Write as _;

use plimsoll_measure::ErrorClass;
use plimsoll_metrics::catalog::{COUNTERS, CounterSpec, RATES, RateSpec, side_word};
use plimsoll_metrics::{Group, Metric, QUANTILES, RunSummary, Unit};

/// The summary's cells as Prometheus metrics.
pub fn prometheus(summary: &RunSummary) -> String {
    let mut page = Page { out: String::new(), cells: &summary.cells };
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
    page.errors();
    page.statuses();
    page.out
}

struct Page<'a> {
    out: String,
    cells: &'a [Group],
}

type Labels<'a> = Vec<(&'static str, Cow<'a, str>)>;

impl Page<'_> {
    fn run(&mut self, summary: &RunSummary) {
        let labels = vec![
            ("name", Cow::from(summary.run.name.as_str())),
            ("version", Cow::from(summary.run.tool_version.as_str())),
            ("seed", Cow::from(summary.run.seed.to_string())),
        ];
        self.head("plimsoll_run_info", "gauge", "The run that these figures are of.");
        self.line("plimsoll_run_info", &labels, 1.0);
        let help = "1 where the instrument was good enough for the run, else 0: then do not use the figures.";
        self.head("plimsoll_run_valid", "gauge", help);
        self.line("plimsoll_run_valid", &labels, f64::from(u8::from(summary.validity.is_valid())));
    }

    fn distribution(&mut self, metric: Metric) {
        let name = format!("plimsoll_{}_seconds", metric.name());
        self.head(&name, "summary", metric.definition());
        for cell in self.cells {
            let Some(times) = cell.distribution(metric) else { continue };
            for (q, millis) in QUANTILES.iter().filter_map(|q| Some((q.q, (q.of)(times)?))) {
                let labels = with(cell, "quantile", q.to_string());
                self.line(&name, &labels, seconds(millis));
            }
            let labels = labels(cell);
            self.line(&format!("{name}_sum"), &labels, seconds(times.sum));
            self.line(&format!("{name}_count"), &labels, times.count as f64);
        }
    }

    fn counter(&mut self, counter: &CounterSpec) {
        let name = format!("plimsoll_{}_total", counter.name);
        self.head(&name, "counter", counter.definition);
        for cell in self.cells {
            self.line(&name, &labels(cell), (counter.of)(&cell.counters) as f64);
        }
    }

    fn rate(&mut self, rate: &RateSpec) {
        let name = rate_name(rate);
        self.head(&name, "gauge", rate.definition);
        for cell in self.cells {
            if let Some(value) = (rate.of)(&cell.rates) {
                self.line(&name, &labels(cell), value);
            }
        }
    }

    fn errors(&mut self) {
        let name = "plimsoll_errors_total";
        self.head(name, "counter", "Failed requests by error class and side.");
        for cell in self.cells {
            let count = |class: ErrorClass| Some((class, *cell.errors.get(class.name())?));
            for (class, count) in ErrorClass::ALL.into_iter().filter_map(count) {
                let mut labels = with(cell, "class", class.name().to_owned());
                labels.push(("side", side_word(class.side()).into()));
                self.line(name, &labels, count as f64);
            }
        }
    }

    fn statuses(&mut self) {
        let name = "plimsoll_responses_total";
        self.head(name, "counter", "Responses by HTTP status.");
        for cell in self.cells {
            for (status, count) in &cell.statuses {
                self.line(name, &with(cell, "status", status.to_string()), *count as f64);
            }
        }
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let help = help.replace('\\', r"\\").replace('\n', r"\n");
        // Writing to a String cannot fail.
        let _ = write!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn line(&mut self, name: &str, labels: &Labels<'_>, value: f64) {
        let pairs: Vec<_> =
            labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escape(value))).collect();
        let _ = writeln!(self.out, "{name}{{{}}} {value}", pairs.join(","));
    }
}

/// By way of whole nanoseconds, so that 60.2 ms is written 0.0602 and not 0.060200000000000004.
fn seconds(millis: f64) -> f64 {
    (millis * 1e6).round() / 1e9
}

fn labels(cell: &Group) -> Labels<'_> {
    let text = |label: &'_ Option<String>| label.clone().unwrap_or_default();
    vec![
        ("stage", text(&cell.stage).into()),
        ("scenario", text(&cell.scenario).into()),
        ("lane", text(&cell.lane).into()),
        ("warmup", cell.warmup.to_string().into()),
    ]
}

fn with<'a>(cell: &'a Group, key: &'static str, value: String) -> Labels<'a> {
    let mut labels = labels(cell);
    labels.push((key, value.into()));
    labels
}

/// Shares are ratios in Prometheus, and never rates.
fn rate_name(rate: &RateSpec) -> String {
    match rate.unit {
        Unit::Share => {
            format!("plimsoll_{}_ratio", rate.name.strip_suffix("_rate").unwrap_or(rate.name))
        }
        _ => format!("plimsoll_{}_per_second", rate.name),
    }
}

fn escape(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n")
}
