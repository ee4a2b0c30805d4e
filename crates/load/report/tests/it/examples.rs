//! The example does what it says.

use std::path::PathBuf;
use std::process::Command;

use plimsoll_report::{Style, text};
use plimsoll_run_files::summary_json;

use crate::support::{health, metadata, summary};

/// The program of the example, which `cargo test` has built beside this one.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("examples").join(name)
}

#[test]
fn the_example_shows_a_stored_summary() {
    let summary = summary(metadata(), health());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("summary.json");
    std::fs::write(&path, summary_json(&summary).unwrap()).unwrap();
    let output = Command::new(example("show")).arg(path).output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), text(&summary, Style::default()));
}
