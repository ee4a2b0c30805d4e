//! `knee.json`: the capacity of each target, and the probes behind it.

use plimsoll_rules::{Finding, Level};
use plimsoll_run_files::{RunFileError, read_stored};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::objective_share::{KeptShare, State};
use crate::probe::{Measured, Phase, Planned, Probe};
use crate::result::{Found, Kind, Load, Verdict};
use crate::search::Search;

/// The name and version of the format.
pub const FORMAT: &str = "plimsoll.knee/3";

/// The capacity of one or several targets, and all that was measured to find it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KneeReport {
    /// `plimsoll.knee/3`.
    pub format: String,
    /// Version of the tool.
    pub tool_version: String,
    /// When the search began, in UTC.
    pub started: String,
    /// Name of the profile.
    pub profile: String,
    /// The objective, like `ttft<500ms : 99%`.
    pub objective: String,
    /// Unit of the load.
    pub load: Load,
    /// Whether the user ended it.
    #[serde(default)]
    pub interrupted: bool,
    /// Seconds for the probes of each target; `null` if it is not known.
    #[serde(default)]
    pub budget_s: Option<f64>,
    /// Each target; several took turns probe by probe.
    pub knees: Vec<TargetKnee>,
}

/// The capacity of a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetKnee {
    /// Its name; empty where it has none.
    #[serde(default)]
    pub name: String,
    /// Its URL.
    pub target: String,
    /// Hash of its plan without the stages.
    pub plan_hash: String,
    /// The capacity.
    pub knee: Found,
    /// The outcome.
    pub verdict: Verdict,
    /// The statements beside it.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// Good requests per second at the highest load that was kept; `null` if none was.
    #[serde(default)]
    pub goodput: Option<Goodput>,
    /// The load that is required, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<AtLeast>,
    /// Seconds that its probes took.
    pub took_s: f64,
    /// Every probe, in the order of time.
    pub probes: Vec<Probe>,
}

/// The rate of requests that keep the objective, as measured at a load that does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Goodput {
    /// The load.
    pub load: f64,
    /// Requests per second that kept the objective.
    pub per_s: f64,
}

/// Whether a required load is within the capacity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AtLeast {
    /// The load.
    pub load: f64,
    /// `kept`: the lower end of the capacity reaches it; `missed`: it is above the upper end; else
    /// `unclear`.
    pub state: State,
}

impl AtLeast {
    /// Judges a capacity by its ends.
    pub fn judge(load: f64, found: &Found) -> Self {
        let state = if found.low.is_some_and(|low| low >= load) {
            State::Kept
        } else if found.high.is_some_and(|high| high < load) {
            State::Missed
        } else {
            State::Unclear
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

    /// The worst outcome of all targets.
    pub fn verdict(&self) -> Verdict {
        let is = |verdict| self.knees.iter().any(|knee| knee.verdict == verdict);
        let worst = [Verdict::Fail, Verdict::Inconclusive].into_iter().find(|bad| is(*bad));
        worst.unwrap_or(Verdict::Pass)
    }
}

impl TargetKnee {
    /// The result of a search: `target` is the URL, `required` the load that is required.
    pub fn new(
        search: &Search,
        required: Option<f64>,
        name: &str,
        target: String,
        plan_hash: String,
    ) -> Self {
        let (knee, findings) = (search.found(), search.findings());
        let at_least = required.map(|load| AtLeast::judge(load, &knee));
        let is_failed = findings.iter().any(|finding| finding.level == Level::Fail);
        let verdict = match (at_least.map(|required| required.state), knee.kind) {
            _ if is_failed => Verdict::Fail,
            (Some(State::Kept), _) | (None, Kind::Between | Kind::AtLeast) => Verdict::Pass,
            (Some(State::Missed), _) => Verdict::Fail,
            (None, Kind::Below) if search.is_lowest_missed() => Verdict::Fail,
            _ => Verdict::Inconclusive,
        };
        Self {
            name: name.to_owned(),
            target,
            plan_hash,
            goodput: goodput(&knee, search.probes()),
            verdict,
            findings,
            at_least,
            took_s: search.spent_s(),
            knee,
            probes: search.probes().to_vec(),
        }
    }

    /// The probe of the upstream itself that shows whether it misses the objective, too; `None` if
    /// the target missed it nowhere.
    pub fn upstream_probe(&self, search: &Search) -> Option<Planned> {
        let planned = search.planned(self.knee.missed?, Phase::Prove);
        Some(Planned { most_misses: u64::MAX, ..planned })
    }

    /// Adds what a probe of the upstream shows.
    pub fn add_upstream(&mut self, url: &str, load: &str, measured: &Measured, share: f64) {
        let value = match KeptShare::judge(&measured.batches, share).1 {
            State::Kept => "kept",
            State::Missed => "missed",
            State::Unclear | State::Down => "unclear",
        };
        self.findings.push(Finding::new(606).with("url", url).with(value, load));
    }

    /// The probes that lasted to their end while the target was up, with their places, by rising
    /// load: the points of curves.
    pub fn curve(&self) -> Vec<(usize, &Probe)> {
        let is_whole = |probe: &Probe| {
            !probe.has_ended_early && probe.state != State::Down && probe.phase != Phase::Check
        };
        let mut points: Vec<_> =
            self.probes.iter().enumerate().filter(|(_, probe)| is_whole(probe)).collect();
        points.sort_by(|(_, a), (_, b)| a.load.total_cmp(&b.load));
        points
    }
}

fn goodput(found: &Found, probes: &[Probe]) -> Option<Goodput> {
    let load = found.kept?;
    let is_there =
        |probe: &&Probe| probe.phase == Phase::Prove && probe.load.to_bits() == load.to_bits();
    Some(Goodput { load, per_s: probes.iter().rfind(is_there)?.figures.goodput_per_s? })
}
