//! Counts times of two workers and judges a percentile of all: `cargo run -p plimsoll-metrics
//! --example distribution`.
#![expect(clippy::print_stdout, reason = "an example")]

use plimsoll_measure::Nanos;
use plimsoll_metrics::{Distribution, samples_needed};

fn main() {
    // 1 to 1,000 ms, counted by two workers that share nothing.
    let (mut all, mut other) = (Distribution::default(), Distribution::default());
    for ms in 1..=1_000 {
        let worker = if ms % 2 == 0 { &mut all } else { &mut other };
        worker.record(Nanos::from_millis(ms));
    }
    all.merge(&other);

    for q in [0.5, 0.99, 0.999] {
        match all.quantile(q) {
            Some(time) => println!("p{} {:.1} ms", q * 100.0, time.as_millis_f64()),
            None => println!("p{} needs {} samples", q * 100.0, samples_needed(q)),
        }
    }
}
