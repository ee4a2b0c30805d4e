//! Tables as rows of columns: each column is its heading and the cell of a row.

use plimsoll_metrics::BoundedFigure;
use plimsoll_report::format::{
    DASH, bytes, count, digits, or_dash, percent, rate_with_share, time_us, time_with_share,
    with_share,
};
use plimsoll_report::table::Table;

use crate::result::{Figures, MeasurementResult};

/// A column of a table with a row for each `R`.
pub(crate) type Column<R = MeasurementResult> = (&'static str, fn(&R) -> String);

pub(crate) const RPS: Column = ("RPS", throughput);
pub(super) const PLANNED: Column = ("planned/s", |r| or_dash(r.rate, digits));
pub(super) const ACHIEVED: Column =
    ("achieved/s", |r| shown_cell(r, |f| f.requests_per_s, rate_of));
pub(super) const AVG: Column = ("Avg", |r| time(r, |f| f.mean_ms));
pub(crate) const P50: Column = ("p50", |r| time(r, |f| f.p50_ms));
pub(super) const P95: Column = ("p95", |r| time(r, |f| f.p95_ms));
pub(crate) const P99: Column = ("p99", |r| time(r, |f| f.p99_ms));
pub(super) const MAX: Column = ("Max", |r| time(r, |f| f.max_ms));
pub(super) const TTFT_P50: Column = ("TTFT p50", |r| time(r, |f| f.ttft_p50_ms));
pub(super) const TTFT_P99: Column = ("TTFT p99", |r| time(r, |f| f.ttft_p99_ms));
pub(super) const GAP_P99: Column = ("gap p99", |r| time(r, |f| f.gap_p99_ms));
pub(super) const ERRORS: Column =
    ("Errors", |r| shown_cell(r, |f| Some([f.errors, f.requests]), errors));
/// The expected answers of all passes, in the time of [`SECONDS`].
pub(super) const ANSWERS: Column = ("Reqs", |r| shown_cell(r, |f| Some(f.expected()), count));
pub(super) const SECONDS: Column =
    ("Secs", |r| shown_cell(r, |f| Some(f.seconds).filter(|s| *s > 0.0), digits));
/// The size of an answer with its head.
pub(super) const BYTES: Column = ("bytes", |r| shown_cell(r, |f| f.answer_bytes, bytes));
pub(super) const THREADS: Column = ("Threads", |r| shown_cell(r, |f| f.threads, count));
pub(super) const CPU: Column = ("gw CPU/req", |r| shown_cell(r, |f| f.gateway_cpu_us, time_us));
/// Resident memory of the gateway at the end of the measurement.
pub(super) const MEMORY: Column = ("gw memory", |r| shown_cell(r, |f| f.gateway_memory, bytes));
pub(super) const GW_CORE: Column = ("gw core", |r| shown_cell(r, |f| f.busy.gateway, percent));
pub(super) const LOAD_CORE: Column =
    ("load core", |r| shown_cell(r, |f| f.busy.load_core(), percent));
/// The bottleneck; empty where the figures are unusable or the load was below its limit.
pub(crate) const BOTTLENECK: Column = ("Bottleneck", |r| {
    or_dash(r.figures().and_then(|f| f.bottleneck), |answer| answer.name().to_owned())
});
/// The use of the gateway's store, of a core.
pub(super) const STORE: Column = ("store core", |r| shown_cell(r, |f| f.busy.store, percent));

/// Errors and requests, both of all passes.
fn errors([errors, all]: [u64; 2]) -> String {
    if errors == 0 { count(errors) } else { [errors, all].map(count).join(" of ") }
}

/// A table with a row for each of `rows`.
pub(crate) fn table<'r, R: 'r>(
    columns: &[Column<R>],
    rows: impl IntoIterator<Item = &'r R>,
) -> Table {
    let mut table = Table::new(columns.iter().map(|column| column.0));
    for row in rows {
        table.row(columns.iter().map(|column| (column.1)(row)));
    }
    table
}

/// A table of results, whose first column has their labels under `first`.
pub(super) fn results<'r>(
    first: &'static str,
    columns: &[Column],
    results: impl IntoIterator<Item = &'r MeasurementResult>,
) -> Table {
    let label: Column = (first, |result| marked(result, &result.label));
    table(&[&[label], columns].concat(), results)
}

/// Any name of a row behind the mark of its result. The end of a name may be cut off, its beginning
/// never is.
pub(crate) fn marked(result: &MeasurementResult, name: &str) -> String {
    format!("{}{name}", result.marker())
}

/// Throughput, with half its range over the passes.
pub(crate) fn throughput(result: &MeasurementResult) -> String {
    let Some(spread) = result.spread(|figures| figures.requests_per_s) else {
        return shown_cell(result, |f| f.requests_per_s, rate_of);
    };
    let median = digits(spread.median);
    if spread.count > 1 { format!("{median} ±{:.0}%", spread.relative() * 100.0) } else { median }
}

fn rate_of(rate: BoundedFigure) -> String {
    rate_with_share(Some(rate))
}

/// A time, with its limit where the figure proves nothing alone.
pub(crate) fn time(
    result: &MeasurementResult,
    of: impl Fn(&Figures) -> Option<BoundedFigure>,
) -> String {
    time_with_share(result.shown().as_ref().and_then(of))
}

/// A figure for tables.
pub(crate) fn shown_cell<T>(
    result: &MeasurementResult,
    of: impl Fn(&Figures) -> Option<T>,
    format: impl Fn(T) -> String,
) -> String {
    or_dash(result.shown().as_ref().and_then(of), format)
}

/// A figure that stands or falls with the rate of its measurement, and has the rate's limit.
pub(super) fn beside_rate(
    result: &MeasurementResult,
    cell: impl Fn(&Figures) -> Option<String>,
) -> String {
    let Some(figures) = result.shown() else { return DASH.to_owned() };
    or_dash(cell(&figures), |text| match figures.requests_per_s {
        Some(rate) => with_share(text, &rate, "+"),
        None => text,
    })
}
