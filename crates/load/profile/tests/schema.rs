//! The JSON Schema: kept in the documentation, and one opinion with the tool.

use std::path::Path;

use plimsoll_profile::{builtin, builtin_names, schema};
use serde_json::Value;

const STORED: &str = "../../../docs/reference/profile.schema.json";

/// Refreshed with `UPDATE_GOLDEN=1 cargo test -p plimsoll-profile --test schema`.
#[test]
fn the_schema_of_the_documentation_is_the_present_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(STORED);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let text = serde_json::to_string_pretty(&schema()).unwrap();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text + "\n").unwrap();
    }
    let stored: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert!(stored == schema(), "run the test with UPDATE_GOLDEN=1, and commit {STORED}");
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
