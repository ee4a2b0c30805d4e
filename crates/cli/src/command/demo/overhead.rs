//! The time that the demo's gateway adds to a request: the same request in turn directly to the
//! provider and through the gateway.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Result;
use plimsoll_engine::{Control, Run};
use plimsoll_harness::statistics::{Spread, median};
use plimsoll_metrics::{Metric, QUANTILES, RunSummary};
use plimsoll_profile::{EnvVars, Overrides, Plan, Profile, Purpose, load};

/// Pairs of windows, after a first pair as a warm-up that is not counted.
const PAIRS: usize = 5;

/// One client whose short requests the provider answers at once, so that only the time on the way
/// is left. Every prompt is new, so the cache never hits.
const PROFILE: &str = "
name: added
model: mock-fast
stages: w1:50ms,1:250ms
content: {mode: sized, approx_input_tokens: 128}
max_tokens: 16
cache_mode: bust
";

/// The measured times.
#[derive(Debug, PartialEq)]
pub(super) struct Overhead {
    /// Service time without the gateway, in microseconds: the median of the windows' medians.
    direct: f64,
    /// Difference of the medians of each pair, in microseconds.
    added: Spread,
}

/// Measures pairs of windows. `None` if the user interrupts, or no request completes.
pub(super) fn measure(
    provider: SocketAddr,
    gateway: SocketAddr,
    control: &Control,
) -> Result<Option<Overhead>> {
    let (mut direct, mut through) = (Vec::new(), Vec::new());
    for _ in 0..=PAIRS {
        for (addr, medians) in [(provider, &mut direct), (gateway, &mut through)] {
            match window(addr, control)? {
                Some(median) => medians.push(median),
                None => return Ok(None),
            }
        }
    }
    Ok(Overhead::of(&direct[1..], &through[1..]))
}

/// The median service time of one window, in microseconds.
fn window(addr: SocketAddr, control: &Control) -> Result<Option<f64>> {
    let result = Run::prepare(plan(addr)?)?.start(None, control, &mut |_| {})?;
    let summary = RunSummary::build(result.metadata, result.health, &result.snapshot, &[])?;
    let times = summary.results.total.distribution(Metric::ServiceTime);
    Ok(times
        .and_then(|times| times.figure(&QUANTILES[0])?.usable())
        .map(|median| median * 1e3)
        .filter(|_| !control.is_interrupted()))
}

fn plan(addr: SocketAddr) -> Result<Plan> {
    let profile = Profile::new(Path::new("added"), PROFILE.as_bytes().to_vec());
    let overrides = Overrides {
        target: Some(format!("http://{addr}")),
        key: Some("demo-key".to_owned()),
        ..Overrides::default()
    };
    Ok(load(&profile, &EnvVars::default(), &overrides, Purpose::Run)?)
}

impl Overhead {
    fn of(direct: &[f64], through: &[f64]) -> Option<Self> {
        let differences: Vec<_> =
            direct.iter().zip(through).map(|(direct, through)| through - direct).collect();
        Some(Self { direct: median(direct)?, added: Spread::of(&differences)? })
    }

    /// A sentence that claims no more than the windows show.
    pub(super) fn text(&self) -> String {
        let Self { direct, added: Spread { low, median, high, count } } = self;
        let added = if *low > 0.0 {
            format!("adds {median:.0} us to the {direct:.0} us")
        } else {
            format!("adds no time that can be told from noise to the {direct:.0} us")
        };
        format!(
            "\nWhat the gateway adds: with one client, it {added} that the provider alone takes \
             (medians of {count} windows each, in turn; the differences are {low:.0} to {high:.0} us).\n",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_claims_no_more_than_the_windows_show() {
        let clear = Overhead::of(&[100.0, 104.0, 90.0], &[150.0, 150.0, 150.0]).unwrap();
        let added = Spread { low: 46.0, median: 50.0, high: 60.0, count: 3 };
        assert_eq!(clear, Overhead { direct: 100.0, added });
        let text = clear.text();
        assert!(text.contains("adds 50 us to the 100 us") && text.contains("46 to 60"), "{text}");
        let noise = Overhead::of(&[100.0, 120.0, 90.0], &[110.0, 110.0, 110.0]).unwrap().text();
        assert!(noise.contains("no time that can be told from noise"), "{noise}");
    }
}
