//! T13: in a steady closed loop, users = rate x time.

use plimsoll_metrics::Metric;

use super::{Found, SMALL};
use crate::bench::Bench;
use crate::error::CalibrateError;
use crate::finding::Check;

const USERS: f64 = 20.0;

/// Twenty users without a pause: `N = X R`, whatever the distribution of the times.
pub(super) fn t13_steady_state(bench: &Bench) -> Result<Found, CalibrateError> {
    let seconds = bench.either(2, 30);
    let mut checks = Vec::new();
    for (name, law) in [("constant", "10ms"), ("exponential", "{exponential: {mean: 10ms}}")] {
        let mock = bench.mock(&format!("ttft: {law}"))?;
        let ran = bench.run(&mock.url(), &format!("{SMALL}stages: '{USERS}:{seconds}s'\n"))?;
        let summary = ran.summary()?;
        let law = summary.health.littles_law.first();
        let error = law.map_or(f64::NAN, plimsoll_metrics::LittlesLaw::error) * 100.0;
        checks.push(Check::at_most(format!("{name}: |N - X R| / N, as reported"), "%", error, 2.0));
        // By the closed form alone: N is known, X is what the server counted.
        let served = mock.finish()?.requests.len() as f64;
        let in_flight = served / f64::from(seconds) * ran.mean_us(Metric::ResponseTime) / 1e6;
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
