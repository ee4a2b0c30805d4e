//! The reference pages of `results.jsonl` and `summary.json` are up to date.

use plimsoll_metrics::{RunSummary, RunTimeline};
use plimsoll_run_files::row::{COLUMNS, Column};
use serde_json::{Value, json};

use crate::support::path;

const ROWS: &str = "# results.jsonl

Generated from `crates/load/run_files/src/row.rs`; do not edit. To refresh it:
`UPDATE_EXPECT=1 cargo test -p plimsoll-run-files`. [results.schema.json](results.schema.json) is the same as a JSON
Schema of a row. `--zstd` writes `results.jsonl.zst` instead.

One line of JSON per turn, in the order in which turns end. Times are in milliseconds with up to six decimals, exact to
the nanosecond. A key that does not apply is left out. If the writer cannot keep up, the file is a sample: count each row
`weight` times.

| key | type or unit | meaning | left out if |
|---|---|---|---|
";

const SUMMARY: &str = "# summary.json

Generated from the type `RunSummary` of `crates/load/metrics`; do not edit. To refresh it:
`UPDATE_EXPECT=1 cargo test -p plimsoll-run-files`. [summary.schema.json](summary.schema.json) is the same as a JSON Schema.

Names of metrics, counters and rates are defined in [metrics](metrics.md).
";

const TIMELINE: &str = "# timeline.json

Generated from the type `RunTimeline` of `crates/load/metrics`; do not edit. To refresh it:
`UPDATE_EXPECT=1 cargo test -p plimsoll-run-files`. [timeline.schema.json](timeline.schema.json) is the same as a JSON
Schema.

What happened when in a run. The intervals follow one another without gaps, from the start of the load to the end of the
run. A request counts as `due` in the interval of its intended start, as `sent` in that of its dispatch, and in the
counters and times when it ended: so a target that stands still shows as requests that are due and sent and do not end,
and after it as long times. Counters add up to those of [summary.json](summary.md), warm-up included.

`histograms.hlog` has the same distributions to full resolution: an interval log of HdrHistogram (format 1.3, V2
histograms in nanoseconds), which its own tools read. Its tags are `response_time`, `service_time`, `ttft` and `itl`;
with several targets the name of the target follows (`response_time.direct`), and requests of warm-up stages have
`warmup.` in front.
";

fn timeline_schema() -> Value {
    serde_json::to_value(schemars::schema_for!(RunTimeline)).unwrap()
}

#[test]
fn the_page_and_the_schema_of_timeline_json_equal_its_type() {
    let page = plimsoll_test_support::schema_page::render(&timeline_schema());
    check("timeline.md", &format!("{TIMELINE}{page}"));
    let schema = serde_json::to_string_pretty(&timeline_schema()).unwrap();
    check("timeline.schema.json", &format!("{schema}\n"));
}

fn check(name: &str, text: &str) {
    expect_test::expect_file![path("../../../docs/reference").join(name)].assert_eq(text);
}

fn summary_schema() -> Value {
    serde_json::to_value(schemars::schema_for!(RunSummary)).unwrap()
}

/// The type of a key in JSON.
fn json_type(unit: &str) -> Value {
    match unit {
        "text" => json!({"type": "string"}),
        "boolean" => json!({"type": "boolean"}),
        "bytes" | "tokens" | "ns" => json!({"type": "integer", "minimum": 0}),
        "ms" | "number" => json!({"type": "number"}),
        "list of ms" => json!({"type": "array", "items": {"type": "number"}}),
        "object of ms" => json!({"type": "object", "additionalProperties": {"type": "number"}}),
        "object of texts" => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        other => unreachable!("{other} has no type"),
    }
}

/// A key that is never left out is required.
fn row_schema() -> Value {
    let key = |column: &Column| {
        let mut schema = json_type(column.unit);
        schema["description"] = column.meaning.into();
        (column.key.to_owned(), schema)
    };
    let properties: serde_json::Map<_, _> = COLUMNS.iter().map(key).collect();
    let required: Vec<_> = COLUMNS.iter().filter(|c| c.absent.is_empty()).map(|c| c.key).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A row of results.jsonl",
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

#[test]
fn the_schema_of_a_row_equals_the_table_of_its_keys() {
    let schema = serde_json::to_string_pretty(&row_schema()).unwrap();
    check("results.schema.json", &format!("{schema}\n"));
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
        &format!("{SUMMARY}{}", plimsoll_test_support::schema_page::render(&summary_schema())),
    );
}

#[test]
fn the_schema_of_summary_json_equals_its_type() {
    let schema = serde_json::to_string_pretty(&summary_schema()).unwrap();
    check("summary.schema.json", &format!("{schema}\n"));
}
