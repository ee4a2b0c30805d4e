//! Renders the reference page of all metrics, `docs/reference/metrics.md`.

use std::fmt::Write as _;

use plimsoll_measure::ErrorClass;
use plimsoll_stats::samples_needed;

use crate::catalog::{COUNTERS, Metric, RATES, side_word};
use crate::quantile::QUANTILES;

const HEAD: &str = "# Metrics

Generated from the catalog in `crates/load/metrics/src/catalog`; do not edit. To refresh it:
`UPDATE_EXPECT=1 cargo test -p plimsoll-metrics`.

Instants (`intended`, `dispatched`, `finished`, ...) are those of the glossary.
";

const DISTRIBUTIONS: &str = "
## Distributions

Times. In thresholds: `p(N)`, `med`, `mean`, `min`, `max` with a unit (`p(95)<500ms`), and `count`. In JSON and CSV the
name ends in `_ms`, in Prometheus in `_seconds`. Each distribution covers only the requests in the second column.

| name | requests | definition |
|---|---|---|
";

const COUNTS: &str = "
## Counters

Whole numbers. In thresholds: `count>0`. The first eight are the terms of the accounting identity:
`scheduled = completed + rejected + failed + timed_out + cancelled + in_flight + never_sent`.

| name | unit | definition |
|---|---|---|
";

const DERIVED: &str = "
## Rates and shares

In thresholds: `value>=100`, or for shares `rate<0.01` and `<1%`.

| name | key in JSON and CSV | unit | definition |
|---|---|---|---|
";

const ERRORS: &str = "
## Error classes

Each failure has one class, and each class a side: errors of the generator make the run invalid.

| class | side |
|---|---|
";

const PERCENTILES: &str = "
## When a percentile is printed

A percentile is given only if at least 10 samples lie beyond it on either side: `ceil(10 / (1 - q))` samples for an
upper quantile `q`. Otherwise the value is `null` in JSON, empty in CSV, `-` in tables, and a threshold on it is
inconclusive.

95 % confidence intervals that allow for autocorrelation are in `ci` in JSON, and in CSV in the columns `_ci_low_ms`
and `_ci_high_ms`, for {intervals}.
[Statistics](../statistics.md) explains how they are computed, and when there is none.

| percentile | samples needed |
|---|---|
";

/// The page, in Markdown.
pub fn metrics_page() -> String {
    let mut page = HEAD.to_owned();
    page.push_str(DISTRIBUTIONS);
    for metric in Metric::ALL {
        row(&mut page, &[&code(metric.name()), metric.population().words(), metric.definition()]);
    }
    page.push_str(COUNTS);
    for counter in &COUNTERS {
        row(&mut page, &[&code(counter.name), counter.unit.word(), counter.definition]);
    }
    page.push_str(DERIVED);
    for rate in &RATES {
        row(&mut page, &[&code(rate.name), &code(rate.key), rate.unit.word(), rate.definition]);
    }
    page.push_str(ERRORS);
    for class in ErrorClass::ALL {
        row(&mut page, &[&code(class.name()), side_word(class.side())]);
    }
    let names: Vec<_> = Metric::ALL
        .into_iter()
        .filter(|metric| metric.has_interval())
        .map(|metric| code(metric.name()))
        .collect();
    page.push_str(&PERCENTILES.replace("{intervals}", &names.join(", ")));
    for quantile in &QUANTILES {
        row(&mut page, &[quantile.label, &samples_needed(quantile.q).to_string()]);
    }
    page
}

fn row(page: &mut String, cells: &[&str]) {
    page.push('|');
    for cell in cells {
        // Writing to a String cannot fail.
        let _ = write!(page, " {cell} |");
    }
    page.push('\n');
}

fn code(name: &str) -> String {
    format!("`{name}`")
}
