//! `plimsoll demo`: the first thing a new user sees.

use crate::support::{FAST, Fixture};

#[test]
fn the_demonstration_needs_nothing_and_passes() {
    let fixture = Fixture::with(FAST);
    let ran = fixture.plimsoll(&["demo"]).expect(0);
    assert!(ran.stdout.contains("plimsoll run realistic --target"), "{}", ran.stdout);
    assert!(ran.stderr.contains("a mock LLM provider listens on"), "{}", ran.stderr);
    assert!(ran.stderr.contains("the reference gateway before it"), "{}", ran.stderr);
    assert!(ran.stdout.contains("What the gateway adds: with one client"), "{}", ran.stdout);
    let summary = fixture.summary();
    assert_eq!(summary.scenarios, ["simple", "medium", "complex"]);
    let accounting = summary.accounting();
    assert!(accounting.balanced() && accounting.completed > 200, "{accounting}");
    assert_eq!(accounting.completed, accounting.scheduled);
    // It brings a provider of its own.
    assert_eq!(fixture.mock.stats().requests, 0);
}
