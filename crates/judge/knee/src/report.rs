//! `knee.json`: the result with what it comes from, and its text.

use plimsoll_report::format::{count, digits, time_or_dash};
use plimsoll_report::table::{Layout, Table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kept::{KeptShare, State};
use crate::result::{Found, Kind, Probe};

/// The name and version of the format.
pub const FORMAT: &str = "plimsoll.knee/1";

/// What the load is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// Arrivals per second, independent of the target.
    RequestsPerSecond,
    /// Virtual users, each of which waits for its response.
    VirtualUsers,
}

impl Load {
    /// A load with its unit.
    pub fn text(self, load: f64) -> String {
        match self {
            Self::RequestsPerSecond => format!("{}/s", digits(load)),
            Self::VirtualUsers => format!("{load:.0} users"),
        }
    }
}

/// The knee of a target, and all that was measured to find it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KneeReport {
    /// `plimsoll.knee/1`.
    pub format: String,
    /// Version of the tool.
    pub tool_version: String,
    /// When the search began, in UTC.
    pub started: String,
    /// Name of the profile.
    pub profile: String,
    /// The target's URL.
    pub target: String,
    /// Hash of the plan without its stages.
    pub plan_hash: String,
    /// The objective, like `ttft<500ms : 99%`.
    pub objective: String,
    /// What the load is counted in.
    pub load: Load,
    /// What was found.
    pub knee: Found,
    /// The provider itself at a higher load, if it was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<ProviderProbe>,
    /// The load that was asked for, and whether it is carried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<AtLeast>,
    /// Whether the user ended it.
    #[serde(default)]
    pub interrupted: bool,
    /// Seconds that it took.
    pub took_s: f64,
    /// Every probe, in the order of time.
    pub probes: Vec<Probe>,
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
    /// The text for a terminal of this width: the knee first, then what shows it.
    pub fn text(&self, width: usize) -> String {
        let mut lines = vec![self.headline(), String::new()];
        lines.extend(plimsoll_report::format::wrap(&self.explanation(), width));
        lines.push(String::new());
        let mut table = Table::new(["load", "for", "kept", "p50", "p99", "in flight", "good", ""]);
        for probe in self.shown() {
            table.row([
                self.load.text(probe.load),
                format!("{:.0} s", probe.seconds),
                probe.kept.as_ref().map_or_else(|| "-".to_owned(), share),
                time_or_dash(probe.figures.p50_ms),
                time_or_dash(probe.figures.p99_ms),
                probe.figures.in_flight.map_or_else(|| "-".to_owned(), digits),
                probe
                    .figures
                    .goodput
                    .map_or_else(|| "-".to_owned(), |good| format!("{}/s", digits(good))),
                word(probe),
            ]);
        }
        lines.extend(table.lines(&Layout::new(width)));
        if self.probes.len() > SHOWN {
            lines.push(format!("{} probes in all: see knee.json", count(self.probes.len() as u64)));
        }
        lines.push(String::new());
        lines.join("\n")
    }

    /// The first line: what was found.
    pub fn headline(&self) -> String {
        let text =
            |load: Option<f64>| load.map_or_else(|| "-".to_owned(), |load| self.load.text(load));
        let found = &self.knee;
        let between = format!("[{}, {}]", text(found.low), text(found.high));
        let what = match found.kind {
            Kind::Interval => format!("knee: {} {between}", text(found.load)),
            Kind::Bracket => format!("knee: between {} and {}", text(found.low), text(found.high)),
            Kind::AtLeast => format!("knee: at least {}", text(found.low)),
            Kind::NotEven => format!("knee: below {}", text(found.high)),
            Kind::Unstable => format!("no stable knee: {between} was found and not confirmed"),
            Kind::Unknown => "knee: cannot be told".to_owned(),
        };
        format!("{what} for {}", self.objective)
    }

    fn explanation(&self) -> String {
        let mut parts = Vec::new();
        if let Some(confirmed) = &self.knee.confirmed {
            let load = self.load.text(confirmed.load);
            let kept = share(&confirmed.kept);
            parts.push(format!("Confirmed: {:.0} s at {load} kept {kept}.", confirmed.seconds));
        }
        parts.extend(self.knee.why.as_ref().map(|why| format!("{}.", sentence(why))));
        if let Some(provider) = &self.provider {
            let load = self.load.text(provider.load);
            parts.push(match provider.state {
                State::Missed => format!("The provider itself misses the objective at {load}: this may be its knee, not the target's."),
                State::Kept => format!("The provider itself keeps the objective at {load}: the limit is the target's."),
                State::Unclear | State::Invalid => format!("Of the provider itself, {load} shows nothing."),
            });
        }
        if let Some(wanted) = self.at_least {
            let load = self.load.text(wanted.load);
            parts.push(match wanted.state {
                State::Kept => format!("PASS: it carries {load}."),
                State::Missed => format!("FAIL: it does not carry {load}."),
                State::Unclear | State::Invalid => {
                    format!("INCONCLUSIVE: whether it carries {load} cannot be told.")
                }
            });
        }
        parts.push(format!("The search took {:.0} s.", self.took_s));
        parts.join(" ")
    }

    /// The probes next to the knee, by their load.
    fn shown(&self) -> Vec<&Probe> {
        let centre = self.knee.load.or(self.knee.high).unwrap_or(1.0);
        let mut probes: Vec<_> = self.probes.iter().collect();
        let distance = |probe: &Probe| (probe.load / centre).ln().abs();
        probes.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
        probes.truncate(SHOWN);
        probes.sort_by(|a, b| a.load.total_cmp(&b.load));
        probes
    }
}

/// Probes in the text.
const SHOWN: usize = 12;

fn word(probe: &Probe) -> String {
    let word = match probe.state {
        State::Kept => "kept",
        State::Missed => "missed",
        State::Unclear => "unclear",
        State::Invalid => "INVALID",
    };
    word.to_owned()
}

/// `99.3 % [99.1, 99.5]`, with more digits near 100 %.
fn share(kept: &KeptShare) -> String {
    let decimals = if kept.low > 0.999 { 3 } else { 2 };
    let [value, low, high] = [kept.value, kept.low, kept.high].map(|share| share * 1e2);
    format!("{value:.decimals$} % [{low:.decimals$}, {high:.decimals$}]")
}

fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
