//! The example does what it says.

use std::path::PathBuf;
use std::process::Command;

/// The program of the example, which `cargo test` has built beside this one.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("examples").join(name)
}

#[test]
fn the_example_prints_the_percentiles_that_its_samples_allow() {
    let output = Command::new(example("distribution")).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    // Buckets are at most 0.8 % wide.
    let p50: f64 = text.strip_prefix("p50 ").unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((496.0..=504.0).contains(&p50), "{text}");
    assert!(text.contains("\np99.9 needs 10000 samples\n"), "{text}");
}
