//! The example does what it says.

use std::path::PathBuf;
use std::process::Command;

/// The program of the example, which `cargo test` has built beside this one.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("examples").join(name)
}

#[test]
fn the_example_loads_a_mock_and_prints_percentiles() {
    let output = Command::new(example("percentile")).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(text.starts_with("100 of 100 completed\np50 "), "{text}");
    let p50 = text.lines().nth(1).unwrap().split(' ').nth(1).unwrap();
    assert!(p50.parse::<f64>().unwrap() > 0.0, "{text}");
}
