//! `knee.json`: the capacity of each target, and its probes.

use plimsoll_rules::{Finding, Level};
use plimsoll_run_files::{RunFileError, read_stored};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::probe::{KeptShare, Measured, Phase, Planned, Probe, State};
use crate::result::{Found, Kind, Load, Verdict};
use crate::search::Search;

/// Name and version of the format.
pub const FORMAT: &str = "plimsoll.knee/3";

/// The capacity of one or several targets, with all measurements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KneeReport {
    /// `plimsoll.knee/3`.
    pub format: String,
    /// Version of the tool.
    pub tool_version: String,
    /// Start of the search, in UTC.
    pub started: String,
    /// Name of the profile.
    pub profile: String,
    /// Objective, such as `ttft<500ms : 99%`.
    pub objective: String,
    /// Unit of the load.
    pub load: Load,
    /// Whether the user interrupted it.
    #[serde(default)]
    pub interrupted: bool,
    /// Time budget for the probes of each target, in seconds; `null` if unknown.
    pub budget_s: Option<f64>,
    /// Results by target; the probes of several targets alternate.
    pub knees: Vec<TargetKnee>,
}

/// The capacity of a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetKnee {
    /// Name of the target; may be empty.
    #[serde(default)]
    pub name: String,
    /// URL of the target.
    pub target: String,
    /// Hash of the plan without its stages.
    pub plan_hash: String,
    /// The capacity.
    pub knee: Found,
    /// Verdict of the search.
    pub verdict: Verdict,
    /// Findings.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// Goodput at the highest load that met the objective; `null` if no load did.
    pub goodput: Option<Goodput>,
    /// Required load, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<AtLeast>,
    /// Total time of the probes, in seconds.
    pub took_s: f64,
    /// All probes in chronological order.
    pub probes: Vec<Probe>,
}

/// Rate of requests that met the objective, at a load that meets it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Goodput {
    /// Load of the measurement.
    pub load: f64,
    /// Requests per second that kept the objective.
    pub per_s: f64,
}

/// Judgement of a required load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AtLeast {
    /// Required load.
    pub load: f64,
    /// `kept`: the lower end of the capacity reaches it; `missed`: it is above the upper end;
    /// otherwise `unclear`.
    pub state: State,
}

impl AtLeast {
    /// Judges a required load by the ends of the capacity.
    pub fn judge(load: f64, found: &Found) -> Self {
        let state = if found.low.is_some_and(|low| low >= load) && found.kept_only_s.is_none() {
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
    /// Parses a `knee.json`.
    ///
    /// # Errors
    /// [`RunFileError`] if it is damaged or has another format.
    pub fn read_json(bytes: &[u8]) -> Result<Self, RunFileError> {
        read_stored(bytes, FORMAT)
    }

    /// Total time of all probes, in seconds.
    pub fn took_s(&self) -> f64 {
        self.knees.iter().fold(0.0, |sum, knee| sum + knee.took_s)
    }

    /// The worst verdict of all targets.
    pub fn verdict(&self) -> Verdict {
        let worst = [Verdict::Fail, Verdict::Inconclusive].into_iter();
        let mut worst = worst.filter(|bad| self.knees.iter().any(|knee| knee.verdict == *bad));
        worst.next().unwrap_or(Verdict::Pass)
    }
}

impl TargetKnee {
    /// Builds the result of a search; `target` is the URL, and `required` the required load.
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
            (None, Kind::Between | Kind::AtLeast) if knee.kept_only_s.is_some() => {
                Verdict::Inconclusive
            }
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

    /// The probe of the upstream that shows whether it misses the objective too; `None` if the
    /// target missed it nowhere.
    pub fn upstream_probe(&self, search: &Search) -> Option<Planned> {
        let planned = search.planned(self.knee.missed?, Phase::Prove);
        Some(Planned { most_misses: u64::MAX, ..planned })
    }

    /// Adds the result of a probe of the upstream.
    pub fn add_upstream(&mut self, url: &str, load: &str, measured: &Measured, share: f64) {
        let value = match KeptShare::judge(&measured.batches, share).1 {
            State::Kept => "kept",
            State::Missed => "missed",
            State::Unclear | State::Down => "unclear",
        };
        self.findings.push(Finding::new(606).with("url", url).with(value, load));
    }

    /// The completed probes with the target up, with their indices, by ascending load: the points
    /// of curves.
    pub fn curve(&self) -> Vec<(usize, &Probe)> {
        let whole = self.probes.iter().enumerate().filter(|(_, probe)| {
            !probe.has_ended_early && probe.state != State::Down && probe.phase != Phase::Check
        });
        let mut points: Vec<_> = whole.collect();
        points.sort_by(|(_, a), (_, b)| a.load.total_cmp(&b.load));
        points
    }
}

fn goodput(found: &Found, probes: &[Probe]) -> Option<Goodput> {
    let load = found.kept?;
    let mut proofs = probes.iter().filter(|probe| probe.phase == Phase::Prove);
    let proof = proofs.rfind(|probe| probe.load.to_bits() == load.to_bits())?;
    Some(Goodput { load, per_s: proof.figures.goodput_per_s? })
}

// Runs several searches that alternate probe by probe, so that a drift of the machine affects all
// alike.

/// Runs searches until all of them end. `probe` runs the next probe of the search with that index;
/// if it returns `None`, the user interrupted all searches.
///
/// The order rotates from round to round, so that no search always follows the same other one.
///
/// # Errors
/// The first error of `probe`.
pub fn in_turns<E>(
    searches: &mut [Search],
    mut probe: impl FnMut(usize, Planned, &Search) -> Result<Option<Measured>, E>,
) -> Result<(), E> {
    let count = searches.len();
    for round in 0.. {
        if searches.iter().all(|search| search.next().is_none()) {
            break;
        }
        for place in 0..count {
            // Odd rounds run backwards.
            let turn = if round % 2 == 0 { place } else { count - 1 - place };
            let index = (turn + round / 2) % count;
            let elapsed_s = searches.iter().map(Search::spent_s).sum();
            let search = &mut searches[index];
            let Some(planned) = search.next() else { continue };
            let Some(measured) = probe(index, planned, search)? else {
                searches.iter_mut().for_each(Search::interrupt);
                return Ok(());
            };
            search.record(elapsed_s, measured);
        }
    }
    Ok(())
}
