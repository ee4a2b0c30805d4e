//! `report.csv`: one row per stage x scenario x target, and per operation of tool servers and
//! agents. `stages.csv`: one row per stage. Columns from the catalog.

use std::collections::BTreeMap;
use std::fmt::Display;

use plimsoll_measure::ErrorClass;
use plimsoll_metrics::catalog::{COUNTERS, RATES};
use plimsoll_metrics::{DistributionSummary, Group, Metric, QUANTILES, RunSummary};

use crate::escape::one_line;

/// The summary's cells as CSV. A figure without a value is an empty field; one that must not be
/// used is named in the column `_refused` of its metric.
///
/// # Errors
/// [`ReportError::Csv`], which writing to memory does not cause.
pub fn csv(summary: &RunSummary) -> Result<String, ReportError> {
    table(&summary.results.cells)
}

/// The stages of the summary as CSV, with the same columns. Percentiles of whole stages cannot be
/// derived from the percentiles of their scenarios.
///
/// # Errors
/// As for [`csv()`].
pub fn stages_csv(summary: &RunSummary) -> Result<String, ReportError> {
    table(&summary.results.by_stage)
}

fn table(groups: &[Group]) -> Result<String, ReportError> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let head = fields(&Group::default()).into_iter().map(|(name, _)| name);
    writer.write_record(head).map_err(refused)?;
    for group in groups {
        let values = fields(group).into_iter().map(|(_, value)| value);
        writer.write_record(values).map_err(refused)?;
    }
    let bytes = writer.into_inner().map_err(refused)?;
    String::from_utf8(bytes).map_err(refused)
}

#[expect(clippy::needless_pass_by_value, reason = "the argument of `map_err`")]
fn refused(error: impl ToString) -> ReportError {
    ReportError::Csv(error.to_string())
}

/// Every column: its name, and its value for a group.
fn fields(cell: &Group) -> Vec<(String, String)> {
    let labels = [
        ("stage", &cell.stage),
        ("scenario", &cell.scenario),
        ("category", &cell.category),
        ("target", &cell.target),
        ("operation", &cell.operation),
    ];
    let labels = labels.map(|(name, text)| (name, label(text.as_deref())));
    let counts = COUNTERS.iter().map(|c| (c.name, (c.of)(&cell.counters).to_string()));
    let rates = RATES.iter().map(|rate| (rate.key, optional((rate.of)(&cell.rates))));
    let errors = ErrorClass::ALL.iter().map(|class| {
        let count = cell.errors.get(class.name()).copied().unwrap_or_default();
        (format!("error_{}", class.name()), count.to_string())
    });
    let lists = [
        ("statuses", pairs(&cell.statuses, u64::to_string)),
        ("rpc_errors", pairs(&cell.rpc_errors, u64::to_string)),
        ("policy_decisions", policy_decisions(cell)),
        ("rate_bounds", pairs(&cell.rate_bounds, f64::to_string)),
        ("rate_intervals", pairs(&cell.rate_intervals, |[low, high]| format!("{low}..{high}"))),
        ("refused_rates", pairs(&cell.refused_rates, |why| why.name().to_owned())),
    ];
    let whole = [("warmup", cell.warmup.to_string()), ("duration_s", cell.duration_s.to_string())];
    let named = labels.into_iter().chain(whole).chain(counts).chain(rates);
    let mut fields: Vec<_> = named.map(|(name, value)| (name.to_owned(), value)).collect();
    fields.extend(errors);
    fields.extend(lists.map(|(name, value)| (name.to_owned(), value)));
    fields.extend(Metric::ALL.into_iter().flat_map(|metric| times(metric, cell)));
    fields
}

/// The columns of a metric. `_bounds` has the measurement errors, and `_refused` the figures that
/// must not be used: `p99:890.1` and `p99:generator`.
fn times(metric: Metric, cell: &Group) -> Vec<(String, String)> {
    let (name, unit) = (metric.name(), plimsoll_metrics::Unit::Time.suffix());
    let times = cell.distribution(metric);
    let exact = times.map(DistributionSummary::raw_mean_min_max);
    let mut fields = vec![(format!("{name}_count"), times.map_or(0, |t| t.count).to_string())];
    fields.extend(["mean", "min", "max"].into_iter().zip(0..).map(|(figure, nth): (_, usize)| {
        (format!("{name}_{figure}{unit}"), optional(exact.map(|exact| exact[nth])))
    }));
    fields.extend(QUANTILES.iter().map(|q| {
        let value = times.and_then(|times| times.raw_quantile(q));
        (format!("{name}_{}{unit}", q.key), optional(value))
    }));
    if metric.is_bounded() {
        let bounds = times.map(|times| pairs(&times.bound_ms, f64::to_string));
        let refused = times.map(|times| pairs(&times.refused, |why| why.name().to_owned()));
        fields.push((format!("{name}_bounds{unit}"), bounds.unwrap_or_default()));
        fields.push((format!("{name}_refused"), refused.unwrap_or_default()));
    }
    if metric.has_interval() {
        fields.extend(QUANTILES.iter().flat_map(|q| {
            let interval = times.and_then(|times| times.interval(q));
            let ends = [("low", interval.map(|ci| ci.low)), ("high", interval.map(|ci| ci.high))];
            ends.map(|(end, at)| (format!("{name}_{}_ci_{end}{unit}", q.key), optional(at)))
        }));
    }
    fields
}

/// Expected policy decision, actual policy decision, requests: `allow>allow:95 block>allow:5`.
fn policy_decisions(cell: &Group) -> String {
    let rows = cell.policy_decisions.iter();
    let pairs = rows.flat_map(|(expected, row)| row.iter().map(move |pair| (expected, pair)));
    let words: Vec<_> = pairs.map(|(e, (actual, n))| format!("{e}>{actual}:{n}")).collect();
    words.join(" ")
}

/// A text of others in a cell: without control characters, and with an apostrophe before what
/// spreadsheets would take for a formula.
fn label(text: Option<&str>) -> String {
    let text = one_line(text.unwrap_or_default());
    // A stage like `@100:10s` is not a formula.
    let is_stage = text.strip_prefix('@').is_some_and(|rest| rest.starts_with(char::is_numeric));
    let is_formula = text.starts_with(['=', '+', '-', '@']) && !is_stage;
    if is_formula { format!("'{text}") } else { text }
}

/// `200:95 429:5`.
fn pairs<K: Display, T>(map: &BTreeMap<K, T>, show: impl Fn(&T) -> String) -> String {
    let pairs: Vec<_> = map.iter().map(|(key, value)| format!("{key}:{}", show(value))).collect();
    pairs.join(" ")
}

fn optional(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

// Errors of this crate.

/// An error of writing a report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// A summary could not be written as CSV. Remedy: none; writing to memory does not fail.
    #[error("the summary cannot be written as CSV: {0}")]
    Csv(String),
}
