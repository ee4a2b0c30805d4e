//! The JSON Schema of `join.json` is up to date, and results conform to it.

use plimsoll_join::Join;
use serde_json::Value;

use crate::support::{Files, audit_row};

fn schema() -> Value {
    serde_json::to_value(schemars::schema_for!(Join)).unwrap()
}

#[test]
fn the_schema_of_join_json_equals_its_type() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/join.schema.json");
    expect_test::expect_file![path]
        .assert_eq(&(serde_json::to_string_pretty(&schema()).unwrap() + "\n"));
}

#[test]
fn results_keep_the_schema() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let files = Files::run(100);
    for map in [&[][..], &["total=", "at="]] {
        files.lines("log", (0..90).map(|n| audit_row(n, 0, 65)));
        let json = serde_json::to_value(files.join("log", map).unwrap()).unwrap();
        let errors: Vec<_> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
        let read: Join = serde_json::from_value(json).unwrap();
        assert_eq!(read.schema, plimsoll_join::SCHEMA);
    }
}
