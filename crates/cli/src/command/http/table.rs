//! Several endpoints side by side.

use plimsoll_measure::Nanos;
use plimsoll_metrics::{DistributionSummary, Metric, RunSummary};

use crate::progress::{rate, time};

const COLUMNS: [&str; 7] = ["done/s", "completed", "p50", "p90", "p99", "max", "URL"];

/// A row for each endpoint; the times are response times.
pub(super) fn side_by_side<'a>(runs: impl Iterator<Item = (&'a String, &'a RunSummary)>) -> String {
    let mut rows = vec![COLUMNS.map(str::to_owned)];
    rows.extend(runs.map(|(url, summary)| row(url, summary)));
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; COLUMNS.len()] = std::array::from_fn(width);
    let lines: Vec<_> = rows.iter().map(|row| line(row, &widths)).collect();
    format!("\nSide by side (response times)\n{}", lines.concat())
}

/// Numbers to the right; the last column, the longest, stays ragged.
fn line([numbers @ .., url]: &[String; COLUMNS.len()], widths: &[usize]) -> String {
    let numbers: Vec<_> =
        numbers.iter().zip(widths).map(|(number, width)| format!("{number:>width$}  ")).collect();
    format!("{}{url}\n", numbers.concat())
}

fn row(url: &str, summary: &RunSummary) -> [String; COLUMNS.len()] {
    let total = &summary.results.total;
    let times = total.distribution(Metric::ResponseTime);
    let figure =
        |of: fn(&DistributionSummary) -> Option<f64>| times.and_then(of).map_or_else(dash, millis);
    [
        total.rates.throughput_per_s.map_or_else(dash, rate),
        format!("{} of {}", total.counters.completed, total.counters.scheduled),
        figure(|times| times.p50),
        figure(|times| times.p90),
        figure(|times| times.p99),
        figure(|times| Some(times.max)),
        url.to_owned(),
    ]
}

fn dash() -> String {
    "-".to_owned()
}

fn millis(millis: f64) -> String {
    time(Nanos::from_secs_f64(millis / 1e3))
}
