//! Runs the example.

use std::path::PathBuf;
use std::process::Command;

/// The example's program, which `cargo test` builds.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("examples").join(name)
}

#[test]
fn the_example_writes_a_request_and_reads_an_answer() {
    let output = Command::new(example("decode")).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("POST /v1/chat/completions {"), "{text}");
    assert_eq!(lines[1..], ["Text: A line ", "Text: on a hull.", "Completed"]);
}
