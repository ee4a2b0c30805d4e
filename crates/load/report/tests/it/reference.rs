//! The reference pages of `results.jsonl` and `summary.json` are up to date.

use plimsoll_metrics::RunSummary;
use plimsoll_report::row::COLUMNS;
use serde_json::Value;

use crate::support::path;

const ROWS: &str = "# results.jsonl

Generated from `crates/load/report/src/row/columns.rs`; do not edit. To refresh it:
`UPDATE_GOLDEN=1 cargo test -p plimsoll-report`.

One line of JSON per turn, in the order in which turns end. Times are in milliseconds with up to six decimals, exact to
the nanosecond. A key that does not apply is left out. If the writer cannot keep up, the file is a sample: count each row
`weight` times.

| key | type or unit | meaning | left out if |
|---|---|---|---|
";

const SUMMARY: &str = "# summary.json

Generated from the type `RunSummary` of `crates/load/metrics`; do not edit. To refresh it:
`UPDATE_GOLDEN=1 cargo test -p plimsoll-report`. [summary.schema.json](summary.schema.json) is the same as a JSON Schema.

Names of metrics, counters and rates are defined in [metrics](metrics.md).
";

fn check(name: &str, text: &str) {
    plimsoll_golden::check(path("../../../docs/reference").join(name), text);
}

fn summary_schema() -> Value {
    serde_json::to_value(schemars::schema_for!(RunSummary)).unwrap()
}

#[test]
fn the_page_of_results_jsonl_equals_the_table_of_its_keys() {
    let rows = COLUMNS.iter().map(|column| {
        let (key, unit) = (column.key, column.unit);
        format!("| `{key}` | {unit} | {} | {} |\n", column.meaning, column.absent)
    });
    check("results.md", &format!("{ROWS}{}", rows.collect::<String>()));
}

#[test]
fn the_page_of_summary_json_equals_its_schema() {
    check(
        "summary.md",
        &format!("{SUMMARY}{}", plimsoll_golden::schema_page::render(&summary_schema())),
    );
}

#[test]
fn the_schema_of_summary_json_equals_its_type() {
    let schema = serde_json::to_string_pretty(&summary_schema()).unwrap();
    check("summary.schema.json", &format!("{schema}\n"));
}
