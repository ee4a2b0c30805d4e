//! `plimsoll demo`: the first thing a new user sees.

use std::fs;

use plimsoll_run_files::pairs::read_pairs;

use crate::support::{FAST, Fixture, summary};

#[test]
fn the_demo_runs_without_any_set_up_and_passes() {
    let fixture = Fixture::with(FAST);
    let output = fixture.plimsoll(&["demo"]).expect(0);
    assert!(output.stdout.contains("plimsoll run realistic --target"), "{}", output.stdout);
    assert!(output.stderr.contains("a mock LLM provider listens on"), "{}", output.stderr);
    assert!(output.stderr.contains("the reference gateway in front of it"), "{}", output.stderr);
    let run = |name: &str| {
        let runs = fixture.runs();
        let run = runs.iter().find(|run| run.to_string_lossy().ends_with(name));
        run.unwrap_or_else(|| panic!("{name}: {runs:?}")).clone()
    };
    // Overhead of the gateway. A busy host may make it invalid, which the screen then reports.
    let header = "versus: 1 target against direct";
    assert!(output.stdout.contains(header), "{}", output.stdout);
    let verdict = output.expect_screen();
    assert!(verdict.starts_with("DONE: ") || verdict.contains("INVALID"), "{verdict}");
    let file = fs::read(run("-demo-added").join("pairs.bin")).unwrap();
    let pairs = read_pairs(&mut file.as_slice()).unwrap();
    assert!(pairs.blocks.len() > 1_000, "{} blocks", pairs.blocks.len());
    let summary = summary(&run("-demo"));
    assert_eq!(summary.metadata.scenarios, ["simple", "medium", "complex"]);
    let accounting = summary.results.accounting();
    assert!(accounting.balanced() && accounting.completed > 50, "{accounting}");
    assert_eq!(accounting.completed, accounting.scheduled);
    // It starts its own provider.
    assert_eq!(fixture.mock.stats().requests, 0);
}
