//! The text and the JSON of findings.

use plimsoll_audit::{Audit, SCHEMA};
use serde_json::Value;

use crate::support::{audit_file, fixtures};

fn schema() -> Value {
    serde_json::to_value(schemars::schema_for!(Audit)).unwrap()
}

#[test]
fn the_schema_of_the_json_equals_its_type() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/audit.schema.json");
    expect_test::expect_file![path]
        .assert_eq(&(serde_json::to_string_pretty(&schema()).unwrap() + "\n"));
}

#[test]
fn findings_keep_the_schema() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let files = ["layers.md", "policy.md", "quick.md"];
    let files = files.map(|name| audit_file(&fixtures().join("seeds").join(name))).to_vec();
    let json = serde_json::to_value(Audit { schema: SCHEMA, files }).unwrap();
    let errors: Vec<_> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn the_text_fits_a_terminal_and_names_place_arithmetic_and_remedy() {
    let report = audit_file(&fixtures().join("seeds/quick.md"));
    let text = report.text(true);
    expect_test::expect_file![concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/quick.txt")]
        .assert_eq(&text);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}
