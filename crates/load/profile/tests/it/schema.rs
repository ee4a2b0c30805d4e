//! The JSON Schema: stored in the documentation, and valid for the built-in profiles.

use plimsoll_profile::{builtin, builtin_names, schema};
use serde_json::Value;

const STORED: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/profile.schema.json");

#[test]
fn the_schema_in_the_documentation_is_current() {
    let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    expect_test::expect_file![STORED].assert_eq(&text);
}

#[test]
fn an_independent_validator_accepts_every_built_in_profile() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for name in builtin_names() {
        let profile: Value = serde_saphyr::from_str(builtin(name).unwrap()).unwrap();
        let errors: Vec<_> =
            validator.iter_errors(&profile).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
    }
}
