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

/// What the demo says about the gateway's part.
#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    /// What it adds.
    Measured(Overhead),
    /// The user ended the demo.
    Interrupted,
    /// It cannot be told, for this reason.
    Unknown(String),
}

impl Outcome {
    /// A sentence, whatever the outcome; nothing if the user does not want to wait for it.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Measured(overhead) => overhead.text(),
            Self::Interrupted => String::new(),
            Self::Unknown(why) => {
                format!("\nWhat the gateway adds: not measured, because {why}.\n")
            }
        }
    }
}

/// The measured times.
#[derive(Debug, PartialEq)]
pub(super) struct Overhead {
    /// Service time without the gateway, in microseconds: the median of the windows' medians.
    direct: f64,
    /// Difference of the medians of each pair, in microseconds.
    added: Spread,
}

/// The fewest pairs that say anything.
const LEAST_PAIRS: usize = 3;

/// Measures pairs of windows. A pair in which a window has too few requests for its median is left
/// out; if more than a few are, the outcome says so.
pub(super) fn measure(
    provider: SocketAddr,
    gateway: SocketAddr,
    control: &Control,
) -> Result<Outcome> {
    let mut pairs = Vec::new();
    for _ in 0..=PAIRS {
        pairs.push((window(provider, control)?, window(gateway, control)?));
        if control.is_interrupted() {
            return Ok(Outcome::Interrupted);
        }
    }
    Ok(Outcome::of(&pairs[1..]))
}

/// The median service time of one window, in microseconds; `None` with too few requests for one.
fn window(addr: SocketAddr, control: &Control) -> Result<Option<f64>> {
    let result = Run::prepare(plan(addr)?)?.start(None, control, &mut |_| {})?;
    let summary = RunSummary::build(result.metadata, result.health, &result.snapshot, &[])?;
    let times = summary.results.total.distribution(Metric::ServiceTime);
    Ok(times.and_then(|times| times.figure(&QUANTILES[0])?.usable()).map(|median| median * 1e3))
}

impl Outcome {
    /// From the medians of each pair of windows: directly, and through the gateway.
    fn of(pairs: &[(Option<f64>, Option<f64>)]) -> Self {
        let whole: Vec<_> = pairs.iter().filter_map(|pair| pair.0.zip(pair.1)).collect();
        let (direct, through): (Vec<_>, Vec<_>) = whole.iter().copied().unzip();
        if whole.len() >= LEAST_PAIRS
            && let Some(overhead) = Overhead::of(&direct, &through)
        {
            return Self::Measured(overhead);
        }
        let of = |which: fn(&(Option<f64>, Option<f64>)) -> bool| {
            pairs.iter().filter(|pair| which(pair)).count()
        };
        let short = of(|pair| pair.0.is_none() || pair.1.is_none());
        let gateway = of(|pair| pair.1.is_none());
        Self::Unknown(format!(
            "in {short} of {} pairs of windows too few requests were answered for a median \
             ({gateway} times through the gateway): this machine is too busy, run the demo again",
            pairs.len()
        ))
    }
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

    #[test]
    fn what_cannot_be_measured_is_said_with_the_reason() {
        let (good, without) = ((Some(100.0), Some(150.0)), (Some(100.0), None));
        let text = |pairs: &[_]| Outcome::of(pairs).text();
        assert!(text(&[good, without, good, without, good]).contains("adds 50 us"));
        let busy = text(&[good, without, (None, Some(1.0)), without, good]);
        for part in ["not measured, because in 3 of 5 pairs", "2 times through the gateway", "busy"]
        {
            assert!(busy.contains(part), "{part} in {busy}");
        }
        assert_eq!(Outcome::Interrupted.text(), "");
    }
}
