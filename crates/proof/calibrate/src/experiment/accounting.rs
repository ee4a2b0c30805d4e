//! T9: however a run ends, we count as many sent requests as the server received.

use std::time::Duration;

use plimsoll_engine::Control;
use plimsoll_measure::{Moment, MonotonicClock, Outcome, Sample, Seed};
use plimsoll_runner::time::sleep;

use super::{Observations, SMALL};
use crate::error::CalibrateError;
use crate::finding::Check;
use crate::runner::{Runner, plan};

/// Most requests are answered, some late; some are refused, reset or never answered.
const MODEL: &str = "ttft: {exponential: {mean: 30ms}}, faults: [{fault: '429', share: 0.05}, {fault: '503', share: 0.05}, {fault: reset, share: 0.02}, {fault: hang, share: 0.02}]";

/// Runs that are interrupted at random times, and one that ends normally.
pub(super) fn t9_conservation(runner: &Runner) -> Result<Observations, CalibrateError> {
    let mut rng = Seed(MonotonicClock::start().unix_nanos(Moment::EPOCH)).rng("interrupts", 0);
    let mut checks = Vec::new();
    let shapes = ["@600:1s,30:1s", "30:1s,@600:1s"];
    for (number, stages) in shapes.iter().cycle().take(runner.usual_or_full(2, 20)).enumerate() {
        // The first is not interrupted.
        let at = (number > 0).then(|| Duration::from_millis(100 + rng.below(1_700)));
        checks.extend(conserved(runner, stages, at)?);
    }
    Ok(checks.into())
}

fn conserved(
    runner: &Runner,
    stages: &str,
    interrupt: Option<Duration>,
) -> Result<[Check; 2], CalibrateError> {
    let mock = runner.mock(MODEL)?;
    let profile = format!("{SMALL}stages: '{stages}'\ntimeout: 400ms\ndrain: 200ms\n");
    let (plan, control) = (plan(&mock.url(), &profile, None)?, Control::new());
    let run = std::thread::scope(|scope| {
        let run = scope.spawn(|| runner.run_plan(plan, &control));
        if let Some(at) = interrupt {
            sleep(at);
            control.interrupt();
        }
        run.join().unwrap_or_else(|_| Err(CalibrateError::panicked()))
    })?;
    let received = mock.finish()?.requests.len();
    let end = interrupt.map_or_else(|| "to the end".to_owned(), |at| format!("cut at {at:?}"));
    // A request that a closing connection never answered is sent twice.
    let sent: usize = run
        .samples
        .iter()
        .map(|sample: &Sample| match (sample.outcome, sample.retried_after) {
            (Outcome::NeverSent, _) => 0,
            (_, None) => 1,
            (_, Some(_)) => 2,
        })
        .sum();
    let accounting = run.accounting();
    let balanced = accounting.balanced() && accounting.scheduled == run.samples.len() as u64;
    let what = format!("{stages} {end}: requests sent, of those that the server received");
    Ok([
        Check::exact(what, sent, received),
        Check::holds(format!("{stages} {end}: {accounting}"), balanced),
    ])
}
