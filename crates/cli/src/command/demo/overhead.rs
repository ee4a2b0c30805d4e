//! What the gateway of the demonstration adds to a request: the same request past it and through
//! it, in turn.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Result;
use plimsoll_engine::{Control, Run};
use plimsoll_metrics::{Metric, RunSummary};
use plimsoll_profile::{Environment, Overrides, Plan, Profile, Purpose, load};

/// Pairs of windows. The first window is a warm-up of both ways, and not looked at.
const PAIRS: usize = 5;

/// One client, which asks for short answers that the provider gives at once: what is left is the
/// way there and back. The cache is missed, as each prompt is a new one.
const PROFILE: &str = "
name: added
model: mock-fast
stages: w1:50ms,1:250ms
content: {mode: sized, approx_input_tokens: 128}
max_tokens: 16
cache_mode: bust
";

/// What was found.
#[derive(Debug, PartialEq)]
pub(super) struct Overhead {
    /// Median service time past the gateway, in microseconds: the median over the windows.
    direct: f64,
    /// Differences of the medians of each pair, in microseconds, sorted.
    differences: Vec<f64>,
}

/// Measures pairs of windows; `None` when the user ended it, or nothing was answered.
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
    Ok(Some(Overhead::of(&direct[1..], &through[1..])))
}

/// The median service time of one window, in microseconds.
fn window(addr: SocketAddr, control: &Control) -> Result<Option<f64>> {
    let result = Run::prepare(plan(addr)?)?.start(None, control, &mut |_| {})?;
    let summary = RunSummary::build(result.metadata, result.health, &result.snapshot, &[])?;
    let times = summary.results.total.distribution(Metric::ServiceTime);
    Ok(times
        .and_then(|times| times.p50)
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
    Ok(load(&profile, &Environment::default(), &overrides, Purpose::Run)?)
}

impl Overhead {
    fn of(direct: &[f64], through: &[f64]) -> Self {
        let mut differences: Vec<_> =
            direct.iter().zip(through).map(|(direct, through)| through - direct).collect();
        differences.sort_by(f64::total_cmp);
        let mut direct = direct.to_vec();
        direct.sort_by(f64::total_cmp);
        Self { direct: middle(&direct), differences }
    }

    /// A sentence that claims no more than the windows show.
    pub(super) fn text(&self) -> String {
        let (low, high) = (self.differences.first(), self.differences.last());
        let (low, high) = (low.copied().unwrap_or(0.0), high.copied().unwrap_or(0.0));
        let added = if low > 0.0 {
            format!("adds {:.0} us to the {:.0} us", middle(&self.differences), self.direct)
        } else {
            format!("adds nothing that can be told from noise to the {:.0} us", self.direct)
        };
        format!(
            "\nWhat the gateway adds: with one client, it {added} that the provider alone takes \
             (medians; {} windows of each in turn, differences from {low:.0} to {high:.0} us).\n",
            self.differences.len(),
        )
    }
}

fn middle(sorted: &[f64]) -> f64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_claim_is_no_stronger_than_the_windows() {
        let clear = Overhead::of(&[100.0, 104.0, 90.0], &[150.0, 150.0, 150.0]);
        assert_eq!(clear, Overhead { direct: 100.0, differences: vec![46.0, 50.0, 60.0] });
        let text = clear.text();
        assert!(text.contains("adds 50 us to the 100 us") && text.contains("46 to 60"), "{text}");
        let noise = Overhead::of(&[100.0, 120.0, 90.0], &[110.0, 110.0, 110.0]).text();
        assert!(noise.contains("nothing that can be told from noise"), "{noise}");
    }
}
