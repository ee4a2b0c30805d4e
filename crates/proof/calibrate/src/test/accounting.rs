//! T9: whatever the end, what we say that we sent is what the server says that it saw.

use std::time::Duration;

use plimsoll_engine::Control;
use plimsoll_measure::{Moment, MonotonicClock, Outcome, Seed};

use super::{Found, SMALL};
use crate::bench::{Bench, plan};
use crate::error::CalibrateError;
use crate::finding::Check;
use crate::wait;

/// Requests of every fate: most are answered, some late, some refused, some broken off, some never.
const MODEL: &str = "ttft: {exponential: {mean: 30ms}}, faults: [{fault: '429', share: 0.05}, {fault: '503', share: 0.05}, {fault: reset, share: 0.02}, {fault: hang, share: 0.02}]";

/// Runs that are interrupted at random times, and one that plays to its end.
pub(super) fn t9_conservation(bench: &Bench) -> Result<Found, CalibrateError> {
    let mut draw = Seed(MonotonicClock::start().unix_nanos(Moment::EPOCH)).rng("interrupts", 0);
    let mut checks = Vec::new();
    let models = ["@600:1s,30:1s", "30:1s,@600:1s"];
    for (number, stages) in models.iter().cycle().take(bench.either(4, 20)).enumerate() {
        // The last is left alone.
        let at = (number > 0).then(|| Duration::from_millis(100 + draw.below(1_700)));
        checks.extend(conserved(bench, stages, at)?);
    }
    Ok(checks.into())
}

fn conserved(
    bench: &Bench,
    stages: &str,
    interrupt: Option<Duration>,
) -> Result<[Check; 2], CalibrateError> {
    let mock = bench.mock(MODEL)?;
    let profile = format!("{SMALL}stages: '{stages}'\ntimeout: 400ms\ndrain: 200ms\n");
    let (plan, control) = (plan(&mock.url(), &profile, None)?, Control::new());
    let ran = std::thread::scope(|scope| {
        let ran = scope.spawn(|| bench.run_under(plan, &control, &mut |_| {}));
        if let Some(at) = interrupt {
            wait::rest(at);
            control.interrupt();
        }
        ran.join().unwrap_or_else(|_| Err(CalibrateError::panicked()))
    })?;
    let seen = mock.finish()?.requests.len();
    let end = interrupt.map_or_else(|| "to the end".to_owned(), |at| format!("cut at {at:?}"));
    let sent = ran.samples.iter().filter(|s| s.outcome != Outcome::NeverSent).count();
    let books = ran.accounting();
    let rows = books.balanced() && books.scheduled == ran.samples.len() as u64;
    Ok([
        Check::exact(
            format!("{stages} {end}: requests sent, of those that the server saw"),
            sent,
            seen,
        ),
        Check::holds(format!("{stages} {end}: {books}"), rows),
    ])
}
