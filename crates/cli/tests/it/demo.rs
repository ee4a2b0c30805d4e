//! `plimsoll demo`: the first thing a new user sees.

use crate::support::{FAST, Fixture};

#[test]
fn the_demo_runs_without_any_set_up_and_passes() {
    let fixture = Fixture::with(FAST);
    let output = fixture.run_as_its_summary_says(&["demo"]);
    assert!(output.stdout.contains("plimsoll run realistic --target"), "{}", output.stdout);
    assert!(output.stderr.contains("a mock LLM provider listens on"), "{}", output.stderr);
    assert!(output.stderr.contains("the reference gateway in front of it"), "{}", output.stderr);
    // A busy host may leave it unknown, and then it is said.
    assert!(output.stdout.contains("What the gateway adds: "), "{}", output.stdout);
    let summary = fixture.summary();
    assert_eq!(summary.metadata.scenarios, ["simple", "medium", "complex"]);
    let accounting = summary.results.accounting();
    assert!(accounting.balanced() && accounting.completed > 50, "{accounting}");
    assert_eq!(accounting.completed, accounting.scheduled);
    // It starts its own provider.
    assert_eq!(fixture.mock.stats().requests, 0);
}
