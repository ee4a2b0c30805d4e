//! `knee.json`: what was found for each target, and what it comes from.

use plimsoll_run_files::{RunFileError, read_stored};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kept::{KeptShare, State};
use crate::result::{Found, Kind, Load, Probe, ProbeFigures};
use crate::search::Search;

/// The name and version of the format.
pub const FORMAT: &str = "plimsoll.knee/2";

/// The knees of one or several targets, and all that was measured to find them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KneeReport {
    /// `plimsoll.knee/2`.
    pub format: String,
    /// Version of the tool.
    pub tool_version: String,
    /// When the search began, in UTC.
    pub started: String,
    /// Name of the profile.
    pub profile: String,
    /// The objective, like `ttft<500ms : 99%`.
    pub objective: String,
    /// What the load is counted in.
    pub load: Load,
    /// Whether the user ended it.
    #[serde(default)]
    pub interrupted: bool,
    /// Seconds that each target could take, its confirmation included; `null` if it is not known.
    #[serde(default)]
    pub budget_s: Option<f64>,
    /// Each target; several took turns probe by probe.
    pub knees: Vec<TargetKnee>,
}

/// The knee of a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetKnee {
    /// Its name; empty where it has none.
    #[serde(default)]
    pub name: String,
    /// Its URL.
    pub target: String,
    /// Hash of its plan without the stages.
    pub plan_hash: String,
    /// What was found.
    pub knee: Found,
    /// Good requests per second where they were measured next to the knee; `null` if no load was
    /// kept.
    #[serde(default)]
    pub goodput: Option<Goodput>,
    /// The provider itself at a higher load, if it was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<ProviderProbe>,
    /// The load that was asked for, and whether it is carried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<AtLeast>,
    /// Seconds that its probes took.
    pub took_s: f64,
    /// The figures of every whole and valid probe, by rising load.
    #[serde(default)]
    pub curve: Vec<CurvePoint>,
    /// Every probe, in the order of time.
    pub probes: Vec<Probe>,
}

/// The rate of requests that keep the objective, as measured at a load that does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Goodput {
    /// The load: that of the confirmation, else the highest below the knee that was kept.
    pub load: f64,
    /// Requests per second that kept the objective.
    pub per_s: f64,
}

/// A point of the curves: a probe that lasted to its end and is valid.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurvePoint {
    /// Its place among the probes, from 0.
    pub probe: usize,
    /// Requests per second, or virtual users.
    pub load: f64,
    /// What it measured; a figure that must not be used is `null`.
    #[serde(flatten)]
    pub figures: ProbeFigures,
}

/// A probe of the upstream itself at more than the knee.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderProbe {
    /// Its URL.
    pub url: String,
    /// The load.
    pub load: f64,
    /// The share of requests that kept the objective.
    pub kept: Option<KeptShare>,
    /// What it shows.
    pub state: State,
}

/// Whether a load that was asked for is carried.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AtLeast {
    /// The load.
    pub load: f64,
    /// `kept`: the whole interval is above it; `missed`: below it; else `unclear`.
    pub state: State,
}

impl AtLeast {
    /// Judges a knee by its interval.
    pub fn judge(load: f64, found: &Found) -> Self {
        let above = found.low.is_some_and(|low| low >= load);
        let below = found.high.is_some_and(|high| high < load);
        let state = match (above && found.kind != Kind::Unstable, below) {
            (true, _) => State::Kept,
            (false, true) => State::Missed,
            (false, false) => State::Unclear,
        };
        Self { load, state }
    }
}

impl KneeReport {
    /// Reads a `knee.json`.
    ///
    /// # Errors
    /// [`RunFileError`] if it is damaged or has another format.
    pub fn read_json(bytes: &[u8]) -> Result<Self, RunFileError> {
        read_stored(bytes, FORMAT)
    }

    /// Seconds that all probes took.
    pub fn took_s(&self) -> f64 {
        self.knees.iter().fold(0.0, |sum, knee| sum + knee.took_s)
    }
}

impl TargetKnee {
    /// What a search found of a target: `target` is its URL, `wanted` the load that was asked for.
    pub fn new(
        search: &Search,
        wanted: Option<f64>,
        name: &str,
        target: String,
        plan_hash: String,
    ) -> Self {
        let knee = search.found().cloned().unwrap_or_else(Found::unknown);
        let probes = search.probes().to_vec();
        Self {
            name: name.to_owned(),
            target,
            plan_hash,
            goodput: goodput(&knee, &probes),
            provider: None,
            at_least: wanted.map(|wanted| AtLeast::judge(wanted, &knee)),
            took_s: search.spent_s(),
            curve: curve(&probes),
            knee,
            probes,
        }
    }
}

fn goodput(found: &Found, probes: &[Probe]) -> Option<Goodput> {
    let kept = probes.iter().filter(|probe| probe.state == State::Kept);
    let confirmed = found.confirmed.and_then(|confirmed| {
        kept.clone().rfind(|probe| probe.load.to_bits() == confirmed.load.to_bits())
    });
    let limit = found.load.or(found.low).or(found.high).unwrap_or(f64::INFINITY);
    let probe = confirmed.or_else(|| {
        kept.filter(|probe| probe.load <= limit && probe.ended.is_none())
            .max_by(|a, b| a.load.total_cmp(&b.load))
    })?;
    Some(Goodput { load: probe.load, per_s: probe.figures.goodput_per_s? })
}

fn curve(probes: &[Probe]) -> Vec<CurvePoint> {
    let whole = probes
        .iter()
        .enumerate()
        .filter(|(_, probe)| probe.ended.is_none() && probe.state != State::Invalid);
    let mut points: Vec<_> = whole
        .map(|(index, probe)| CurvePoint { probe: index, load: probe.load, figures: probe.figures })
        .collect();
    points.sort_by(|a, b| a.load.total_cmp(&b.load));
    points
}
