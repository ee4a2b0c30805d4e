//! `report.csv`: one row per stage x scenario x target, and per operation of tool servers and
//! agents. `stages.csv`: one row per stage. Columns from the catalog.

use std::collections::BTreeMap;

use plimsoll_measure::ErrorClass;
use plimsoll_metrics::catalog::{COUNTERS, RATES};
use plimsoll_metrics::{DistributionSummary, Group, Metric, QUANTILES, RunSummary};

use crate::error::ReportError;
use crate::escape::one_line;

const LABELS: [&str; 7] =
    ["stage", "scenario", "category", "target", "operation", "warmup", "duration_s"];

/// The summary's cells as CSV. A figure without a value is an empty field; one that must not be
/// used is named in the column `_refused` of its metric.
///
/// # Errors
/// [`ReportError::Csv`], which writing to memory does not cause.
pub fn csv(summary: &RunSummary) -> Result<String, ReportError> {
    table(&summary.results.cells)
}

/// The stages of the summary as CSV, with the same columns: percentiles of whole stages, which
/// nobody can make from those of their scenarios.
///
/// # Errors
/// Those of [`csv()`].
pub fn stages_csv(summary: &RunSummary) -> Result<String, ReportError> {
    table(&summary.results.by_stage)
}

fn table(groups: &[Group]) -> Result<String, ReportError> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    writer.write_record(header()).map_err(refused)?;
    for group in groups {
        writer.write_record(record(group)).map_err(refused)?;
    }
    let bytes = writer.into_inner().map_err(refused)?;
    String::from_utf8(bytes).map_err(refused)
}

#[expect(clippy::needless_pass_by_value, reason = "the argument of `map_err`")]
fn refused(error: impl ToString) -> ReportError {
    ReportError::Csv(error.to_string())
}

fn header() -> Vec<String> {
    let mut columns: Vec<String> = LABELS.iter().map(ToString::to_string).collect();
    columns.extend(COUNTERS.iter().map(|counter| counter.name.to_owned()));
    columns.extend(RATES.iter().map(|rate| rate.key.to_owned()));
    columns.extend(ErrorClass::ALL.iter().map(|class| format!("error_{}", class.name())));
    columns.extend(
        [
            "statuses",
            "rpc_errors",
            "policy_decisions",
            "rate_bounds",
            "rate_intervals",
            "refused_rates",
        ]
        .map(str::to_owned),
    );
    for metric in Metric::ALL {
        let (name, unit) = (metric.name(), plimsoll_metrics::Unit::Time.suffix());
        columns.push(format!("{name}_count"));
        columns.extend(FIGURES.iter().map(|figure| format!("{name}_{figure}{unit}")));
        columns.extend(QUANTILES.iter().map(|quantile| format!("{name}_{}{unit}", quantile.key)));
        if metric.is_bounded() {
            columns.extend([format!("{name}_bounds{unit}"), format!("{name}_refused")]);
        }
        if metric.has_interval() {
            columns.extend(QUANTILES.iter().flat_map(|quantile| {
                ["low", "high"].map(|end| format!("{name}_{}_ci_{end}{unit}", quantile.key))
            }));
        }
    }
    columns
}

/// The exact figures of a distribution besides its count.
const FIGURES: [&str; 3] = ["mean", "min", "max"];

fn record(cell: &Group) -> Vec<String> {
    let labels = [&cell.stage, &cell.scenario, &cell.category, &cell.target, &cell.operation];
    let mut fields: Vec<_> = labels.map(|text| label(text.as_deref())).into();
    fields.extend([cell.warmup.to_string(), cell.duration_s.to_string()]);
    fields.extend(COUNTERS.iter().map(|counter| (counter.of)(&cell.counters).to_string()));
    fields.extend(RATES.iter().map(|rate| optional((rate.of)(&cell.rates))));
    fields.extend(
        ErrorClass::ALL
            .iter()
            .map(|class| cell.errors.get(class.name()).copied().unwrap_or_default().to_string()),
    );
    fields.push(statuses(cell));
    fields.push(codes(cell));
    fields.push(policy_decisions(cell));
    fields.push(pairs(&cell.rate_bounds, ToString::to_string));
    fields.push(pairs(&cell.rate_intervals, |[low, high]| format!("{low}..{high}")));
    fields.push(pairs(&cell.refused_rates, |why| why.name().to_owned()));
    for metric in Metric::ALL {
        fields.extend(times(cell.distribution(metric)));
        if metric.is_bounded() {
            fields.extend(bounds(cell.distribution(metric)));
        }
        if metric.has_interval() {
            fields.extend(intervals(cell.distribution(metric)));
        }
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

/// `200:95 429:5`.
fn statuses(cell: &Group) -> String {
    let pairs: Vec<_> = cell.statuses.iter().map(|(code, n)| format!("{code}:{n}")).collect();
    pairs.join(" ")
}

/// `-32602:5`.
/// A text of others in a cell: without control characters, and with an apostrophe before what
/// spreadsheets would take for a formula.
fn label(text: Option<&str>) -> String {
    let text = one_line(text.unwrap_or_default());
    // A stage like `@100:10s` is no function's name.
    let is_stage = text.strip_prefix('@').is_some_and(|rest| rest.starts_with(char::is_numeric));
    let is_formula = text.starts_with(['=', '+', '-', '@']) && !is_stage;
    if is_formula { format!("'{text}") } else { text }
}

fn codes(cell: &Group) -> String {
    let pairs: Vec<_> = cell.rpc_errors.iter().map(|(code, n)| format!("{code}:{n}")).collect();
    pairs.join(" ")
}

fn times(distribution: Option<&DistributionSummary>) -> Vec<String> {
    let Some(distribution) = distribution else {
        let mut fields = vec!["0".to_owned()];
        fields.resize(1 + FIGURES.len() + QUANTILES.len(), String::new());
        return fields;
    };
    let mut fields = vec![distribution.count.to_string()];
    // The column `_refused` of the metric says which of them must not be used.
    fields.extend(distribution.raw_mean_min_max().map(|figure| figure.to_string()));
    fields.extend(QUANTILES.iter().map(|quantile| optional(distribution.raw_quantile(quantile))));
    fields
}

/// What the generator may have added, and the figures that must not be used: `p99:890.1` and
/// `p99:generator`.
fn bounds(distribution: Option<&DistributionSummary>) -> [String; 2] {
    let Some(times) = distribution else { return Default::default() };
    [
        pairs(&times.bound_ms, ToString::to_string),
        pairs(&times.refused, |why| why.name().to_owned()),
    ]
}

fn pairs<T>(map: &BTreeMap<String, T>, show: impl Fn(&T) -> String) -> String {
    let pairs: Vec<_> = map.iter().map(|(key, value)| format!("{key}:{}", show(value))).collect();
    pairs.join(" ")
}

/// Lower and upper end of the interval of every quantile.
fn intervals(distribution: Option<&DistributionSummary>) -> Vec<String> {
    let ends = QUANTILES.iter().flat_map(|quantile| {
        let interval = distribution.and_then(|times| times.interval(quantile));
        [interval.map(|interval| interval.low), interval.map(|interval| interval.high)]
    });
    ends.map(optional).collect()
}

fn optional(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}
