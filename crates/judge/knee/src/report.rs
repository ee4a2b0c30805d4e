//! `knee.json`: the result with what it comes from, and its text.

use plimsoll_report::Style;
use plimsoll_report::format::{digits, or_dash, time_or_dash};
use plimsoll_report::screen::{Item, LINES, Rest, Rows, Screen, Tone};
use plimsoll_report::table::Table;
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
    /// The screen: probes near the knee, what stands out, and the knee as the last line.
    pub fn screen(&self, rest: Rest) -> Screen {
        self.with_probes(rest, SHOWN)
    }

    fn with_probes(&self, rest: Rest, most: usize) -> Screen {
        let mut screen = Screen::new(rest);
        screen.title(&format!("knee: {} of {}", self.objective, self.target));
        let rows = Rows {
            table: self.table(),
            unit: "probes",
            first: self.by_nearness(),
            most,
            drops_columns: true,
            ..Rows::default()
        };
        screen.rows("", rows);
        let doubts = self.knee.why.iter().map(|why| sentence(why));
        screen.stands_out(
            doubts.chain(self.provider_sentence()).map(|text| Item::new(Tone::Unsure, &text)),
        );
        if let Some(confirmed) = &self.knee.confirmed {
            let load = self.load.text(confirmed.load);
            let kept = share(&confirmed.kept);
            screen.fact(&format!("confirmed: {:.0} s at {load} kept {kept}", confirmed.seconds));
        }
        let probes = self.probes.len();
        let s = if probes == 1 { "" } else { "s" };
        screen.fact(&format!("{probes} probe{s} in {:.0} s", self.took_s));
        let (tone, verdict) = self.verdict();
        screen.verdict(tone, &verdict);
        screen
    }

    /// The same with every probe, for a file of this width.
    pub fn text(&self, width: usize, rest: Rest) -> String {
        let lines = self.probes.len() + LINES;
        self.with_probes(rest, self.probes.len())
            .with_lines(lines)
            .text(Style { width, color: false })
    }

    /// What was found, in a sentence.
    pub fn headline(&self) -> String {
        let text =
            |load: Option<f64>| load.map_or_else(|| "-".to_owned(), |load| self.load.text(load));
        let found = &self.knee;
        let between = format!("[{}, {}]", text(found.low), text(found.high));
        match found.kind {
            Kind::Interval => format!("knee at {} {between}", text(found.load)),
            Kind::Bracket => format!("knee between {} and {}", text(found.low), text(found.high)),
            Kind::AtLeast => format!("knee at {} or more", text(found.low)),
            Kind::NotEven => format!("knee below {}", text(found.high)),
            Kind::Unstable => format!("no stable knee: {between} was found and not confirmed"),
            Kind::Unknown => "the knee cannot be told".to_owned(),
        }
    }

    /// The last line. Without a load that was asked for, a knee is a finding and no verdict.
    fn verdict(&self) -> (Tone, String) {
        let knee = self.headline();
        if let Some(wanted) = self.at_least {
            let load = self.load.text(wanted.load);
            return match wanted.state {
                State::Kept => (Tone::Good, format!("PASS: it carries {load}: {knee}")),
                State::Missed => (Tone::Bad, format!("FAIL: it does not carry {load}: {knee}")),
                State::Unclear | State::Invalid => {
                    (Tone::Unsure, format!("INCONCLUSIVE: {load} may be too much: {knee}"))
                }
            };
        }
        match self.knee.kind {
            Kind::Interval | Kind::Bracket | Kind::AtLeast => {
                (Tone::Good, format!("FOUND: {knee}"))
            }
            Kind::NotEven => (Tone::Bad, format!("FAIL: {knee}")),
            Kind::Unstable | Kind::Unknown => (Tone::Unsure, format!("INCONCLUSIVE: {knee}")),
        }
    }

    fn provider_sentence(&self) -> Option<String> {
        let provider = self.provider.as_ref()?;
        let load = self.load.text(provider.load);
        Some(match provider.state {
            State::Missed => {
                format!("The provider itself misses the objective at {load}: it may be its knee")
            }
            State::Kept => {
                format!("The provider itself keeps it at {load}: the limit is the target's")
            }
            State::Unclear | State::Invalid => {
                format!("Of the provider itself, {load} shows nothing")
            }
        })
    }

    fn table(&self) -> Table {
        let mut table = Table::new(["load", "for", "kept", "", "p50", "p99", "in flight", "good"]);
        for probe in self.by_load() {
            table.row([
                self.load.text(probe.load),
                format!("{:.0} s", probe.seconds),
                probe.kept.as_ref().map_or_else(|| "-".to_owned(), share),
                word(probe).to_owned(),
                time_or_dash(probe.figures.p50_ms),
                time_or_dash(probe.figures.p99_ms),
                or_dash(probe.figures.in_flight, digits),
                or_dash(probe.figures.goodput, |good| format!("{}/s", digits(good))),
            ]);
        }
        table
    }

    fn by_load(&self) -> Vec<&Probe> {
        let mut probes: Vec<_> = self.probes.iter().collect();
        probes.sort_by(|a, b| a.load.total_cmp(&b.load));
        probes
    }

    /// The rows of the table, the nearest to the knee first.
    fn by_nearness(&self) -> Vec<usize> {
        let centre = self.knee.load.or(self.knee.high).unwrap_or(1.0);
        let probes = self.by_load();
        let mut rows: Vec<_> = (0..probes.len()).collect();
        let distance = |row: &usize| (probes[*row].load / centre).ln().abs();
        rows.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
        rows
    }
}

/// The most probes on the screen.
const SHOWN: usize = 12;

const fn word(probe: &Probe) -> &'static str {
    match probe.state {
        State::Kept => "kept",
        State::Missed => "missed",
        State::Unclear => "unclear",
        State::Invalid => "INVALID",
    }
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
