//! The fingerprint against an independent computation, and its inputs.

use std::sync::Arc;

use plimsoll_measure::{Nanos, Seed};
use plimsoll_schedule::{Arrivals, Schedule};

fn fingerprint(stages: &str, process: Arrivals, seed: u64, trace: &[u64]) -> u64 {
    let offsets: Arc<[Nanos]> = trace.iter().copied().map(Nanos::new).collect();
    let stages = stages.parse().unwrap();
    Schedule::new(&stages, process, Seed(seed), Some(offsets)).unwrap().fingerprint()
}

/// The expected values come from a few lines of Python that follow the documentation.
#[test]
fn the_fingerprint_is_what_is_documented() {
    let constant = fingerprint("100:60s,@5..50:1s", Arrivals::Constant, 42, &[]);
    assert_eq!(constant, CONSTANT);
    let poisson = fingerprint("trace,w@5:10s", Arrivals::Poisson, 42, &[0, 1, 1_000_000_007]);
    assert_eq!(poisson, POISSON);
}

#[test]
fn everything_that_determines_the_schedule_changes_it_and_nothing_else_does() {
    let base = fingerprint("trace,@5:10s", Arrivals::Constant, 1, &[0, 5]);
    for (sentence, other) in [
        ("stages", fingerprint("trace,@6:10s", Arrivals::Constant, 1, &[0, 5])),
        ("process", fingerprint("trace,@5:10s", Arrivals::Poisson, 1, &[0, 5])),
        ("seed", fingerprint("trace,@5:10s", Arrivals::Constant, 2, &[0, 5])),
        ("trace", fingerprint("trace,@5:10s", Arrivals::Constant, 1, &[0, 6])),
    ] {
        assert_ne!(base, other, "{sentence}");
    }
    assert_eq!(base, fingerprint(" trace , @5.0:10000ms", Arrivals::Constant, 1, &[0, 5]));
    let unplayed = |trace| fingerprint("@5:10s", Arrivals::Constant, 1, trace);
    assert_eq!(unplayed(&[0, 5]), unplayed(&[9]), "a trace that no stage plays");
}

const CONSTANT: u64 = 0x934F_DE4D_B539_717E;
const POISSON: u64 = 0x0E6A_92D3_A532_1388;
