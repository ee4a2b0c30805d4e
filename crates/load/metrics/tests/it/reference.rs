//! The reference page of all metrics, `docs/reference/metrics.md`, is up to date.

use std::collections::HashMap;
use std::fmt::Write as _;

use plimsoll_measure::ErrorClass;
use plimsoll_metrics::catalog::{COUNTERS, RATES, side_word};
use plimsoll_metrics::{Metric, QUANTILES, ServerFigure, samples_needed};

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

const TOKENS: &str = "
## Tokens of each request

`tokens` of each group of `summary.json`, over its completed requests whose number of tokens is known: `count`, `sum`,
`mean`, `min`, `p50`, `p90`, `p95`, `p99`, `max`. Lengths up to 2,048 tokens are exact; above, percentiles are within
0.1 %. They say what these requests were, so that no number of requests is too few for a percentile.

| key | definition |
|---|---|
| `input_tokens` | Input tokens. |
| `output_tokens` | Output tokens, reasoning included. |
| `answer_tokens` | Output tokens without reasoning; left out where there was none. |
| `reasoning_tokens` | Output tokens that were spent on reasoning; left out where there was none. |
| `tokens_per_s_per_user` | `1 / tpot` of each request: the speed at which its user gets tokens. |

## Names of AIPerf and GuideLLM

The same figures under the names of AIPerf 0.13 and of GuideLLM's reports, and where they differ.

| here | AIPerf | GuideLLM | difference |
|---|---|---|---|
";

/// Ours, `AIPerf`'s, `GuideLLM`'s, and what differs.
const OTHER_NAMES: [[&str; 4]; 19] = [
    [
        "`ttft`",
        "`time_to_first_token`",
        "time to first token",
        "theirs begin when the client sends; ours when the turn is dispatched, connection set-up included",
    ],
    ["`response_ttft`", "", "", "from the intended start"],
    ["`ttfot`", "`time_to_first_output_token`", "TTFOT", ""],
    ["`itl`", "`inter_chunk_latency`", "", "one value for each gap between events"],
    [
        "`tpot`",
        "`inter_token_latency`",
        "inter-token latency",
        "AIPerf's ends with the response, ours with the last token; hidden reasoning has no part in ours",
    ],
    ["`ntpot`", "", "time per output token", ""],
    ["`service_time`", "`request_latency`", "request latency", ""],
    ["`response_time`", "", "", "from the intended start: also the wait of an overdue request"],
    [
        "`throughput`",
        "`request_throughput`",
        "requests per second",
        "ours counts what ended within the stage; with `-n` and virtual users until the last answer, as theirs",
    ],
    [
        "`output_token_rate_...`",
        "`output_token_throughput`",
        "output tokens per second",
        "reported and estimated tokens are apart here",
    ],
    ["`tokens_per_s_per_user`", "`output_token_throughput_per_user`", "", ""],
    [
        "`input_tokens`",
        "`input_sequence_length`",
        "prompt tokens",
        "AIPerf counts with its own tokenizer unless `--use-server-token-count`",
    ],
    ["`output_tokens`", "`output_sequence_length`", "output tokens", "as above"],
    ["`answer_tokens`", "`output_token_count`", "", "as above"],
    ["`reasoning_tokens`", "`reasoning_token_count`", "", "as above"],
    ["`goodput`", "`goodput`", "", ""],
    ["`good`, `good_share`", "`good_request_count`, `good_request_fraction`", "", ""],
    ["`completed`", "`request_count`", "successful requests", ""],
    [
        "`failed`, `rejected`, `timed_out`",
        "`error_request_count`",
        "error requests",
        "in flight at the end: `in_flight` here, incomplete requests there",
    ],
];

const ERRORS: &str = "
## Error classes

Each failure has one class, and each class a side: errors of the generator make the run invalid.

| class | side | meaning |
|---|---|---|
";

/// A class and its meaning.
const MEANINGS: &str = include_str!("error_classes.tsv");

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

const SERVERS: &str = "
## Figures of servers

By their own metrics (`--server-metrics NAME=URL`), in `servers` of `summary.json` for each measured stage and in
`timeline.json` for each interval. Gauges are read once a second; counters count from the last reading before the stage.

| key | definition |
|---|---|
";

const NAMES: &str = "
Known metrics. A colon in a name equals an underscore. Series of a metric are added; of a ratio, the highest counts. If
a page has several metrics of a quantity, the first row counts. Rows of `other` match any name with this end, on pages
without a known server.

| server | metric | quantity | kind | unit | source |
|---|---|---|---|---|---|
";

#[test]
fn the_reference_page_equals_the_catalog() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/metrics.md");
    expect_test::expect_file![path].assert_eq(&metrics_page());
}

/// The page, in Markdown.
fn metrics_page() -> String {
    let mut page = HEAD.to_owned();
    page.push_str(DISTRIBUTIONS);
    for metric in Metric::ALL {
        row(&mut page, &[&code(metric.name()), metric.population().name(), metric.definition()]);
    }
    page.push_str(COUNTS);
    for counter in &COUNTERS {
        row(&mut page, &[&code(counter.name), counter.unit.name(), counter.definition]);
    }
    page.push_str(DERIVED);
    for rate in &RATES {
        row(&mut page, &[&code(rate.name), &code(rate.key), rate.unit.name(), rate.definition]);
    }
    page.push_str(TOKENS);
    for names in &OTHER_NAMES {
        row(&mut page, names);
    }
    page.push_str(ERRORS);
    let meanings: HashMap<_, _> = MEANINGS.lines().filter_map(|row| row.split_once('\t')).collect();
    for class in ErrorClass::ALL {
        row(&mut page, &[&code(class.name()), side_word(class.side()), meanings[class.name()]]);
    }
    page.push_str(SERVERS);
    for figure in ServerFigure::all() {
        row(&mut page, &[&code(figure.key), &format!("{}.", figure.definition)]);
    }
    page.push_str(NAMES);
    let table = include_str!("../../../engine/src/health/server_metrics.tsv");
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let columns: [&str; 7] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let [server, name, labels, quantity, kind, unit, source] = columns;
        let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        let pattern = if server == "other" { "*" } else { "" };
        let name = code(&format!("{pattern}{name}{labels}"));
        row(&mut page, &[server, &name, quantity, kind, unit, source]);
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
