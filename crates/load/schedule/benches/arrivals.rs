//! Benchmark of computing the next arrival in the worker that waits for it.
//!
//! `cargo bench -p plimsoll-schedule`. Each figure is for one arrival of the worker's stripe.
#![expect(clippy::expect_used, reason = "a benchmark may fail loudly")]

use divan::{Bencher, black_box};
use plimsoll_measure::{Seed, Stripe};
use plimsoll_schedule::{Arrivals, Schedule, ScheduleError, Stages};

fn main() {
    divan::main();
}

/// A schedule of a day, longer than any benchmark.
fn schedule(stages: &str, arrivals: Arrivals) -> Result<Schedule, ScheduleError> {
    let stages: Stages = stages.parse()?;
    Schedule::new(&stages, arrivals, Seed(1), None)
}

fn next(bencher: Bencher<'_, '_>, schedule: &Schedule, stripe: Stripe) {
    let mut arrivals = schedule.arrivals(stripe);
    bencher.bench_local(|| black_box(arrivals.next()));
}

#[divan::bench]
fn next_constant(bencher: Bencher<'_, '_>) {
    next(bencher, &schedule("@100000:24h", Arrivals::Constant).expect("valid"), Stripe::WHOLE);
}

#[divan::bench]
fn next_on_a_ramp(bencher: Bencher<'_, '_>) {
    next(
        bencher,
        &schedule("@1000..100000:24h", Arrivals::Constant).expect("valid"),
        Stripe::WHOLE,
    );
}

#[divan::bench]
fn next_poisson(bencher: Bencher<'_, '_>) {
    next(bencher, &schedule("@100000:24h", Arrivals::Poisson).expect("valid"), Stripe::WHOLE);
}

/// One of several workers, which skips the arrivals of the others.
#[divan::bench(args = [2, 8, 64])]
fn next_of_one_worker(bencher: Bencher<'_, '_>, workers: u64) {
    let stripe = Stripe::new(0, workers).unwrap_or(Stripe::WHOLE);
    next(bencher, &schedule("@100000:24h", Arrivals::Constant).expect("valid"), stripe);
}
