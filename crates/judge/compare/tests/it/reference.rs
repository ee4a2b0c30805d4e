//! The JSON Schema of `comparison.json` is up to date, and comparisons conform to it.

use plimsoll_compare::{Comparison, compare};
use serde_json::Value;

use crate::support::{PLAIN, THREE, options, turns};

fn schema() -> Value {
    serde_json::to_value(schemars::schema_for!(Comparison)).unwrap()
}

#[test]
fn the_schema_of_comparison_json_equals_its_type() {
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/comparison.schema.json");
    expect_test::expect_file![path]
        .assert_eq(&(serde_json::to_string_pretty(&schema()).unwrap() + "\n"));
}

#[test]
fn comparisons_keep_the_schema() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for runs in [1, 6] {
        let (base, new) = turns(runs, || PLAIN, || PLAIN);
        let found = compare(&base, &new, &options(&THREE)).unwrap();
        let json = serde_json::to_value(found).unwrap();
        let errors: Vec<_> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
}
