//! T13: Little's law: in a steady closed loop, users = rate x time.

use plimsoll_metrics::Metric;

use super::{Observations, SMALL};
use crate::error::CalibrateError;
use crate::finding::Check;
use crate::runner::Runner;

const USERS: f64 = 20.0;

/// Twenty users without a pause: `N = X R`, whatever the distribution of the times.
pub(super) fn t13_steady_state(runner: &Runner) -> Result<Observations, CalibrateError> {
    let seconds = runner.usual_or_full(2, 30);
    let mut checks = Vec::new();
    for (name, delay) in [("constant", "10ms"), ("exponential", "{exponential: {mean: 10ms}}")] {
        let mock = runner.mock(&format!("ttft: {delay}"))?;
        let run = runner.run(&mock.url(), &format!("{SMALL}stages: '{USERS}:{seconds}s'\n"))?;
        let summary = run.summary()?;
        let littles_law = summary.health.littles_law.first();
        let error = littles_law.map_or(f64::NAN, plimsoll_metrics::LittlesLaw::error) * 100.0;
        checks.push(Check::at_most(format!("{name}: |N - X R| / N, as reported"), "%", error, 2.0));
        // Without the product's own check: N is known, X is what the server counted.
        let served = mock.finish()?.requests.len() as f64;
        let in_flight = served / f64::from(seconds) * run.mean_us(Metric::ResponseTime) / 1e6;
        checks.push(Check::within(
            format!("{name}: X R by the server's count"),
            "",
            in_flight,
            USERS,
            USERS * 0.02,
        ));
    }
    Ok(checks.into())
}
