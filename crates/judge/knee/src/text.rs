//! Formats a [`KneeReport`] as a screen and as a file.

use plimsoll_report::Style;
use plimsoll_report::format::{digits, or_dash, seconds, time_or_dash};
use plimsoll_report::screen::{Item, Rest, Rows, Screen, Tone};
use plimsoll_report::table::Table;
use plimsoll_rules::Finding;

use crate::probe::{KeptShare, Phase, Probe, State};
use crate::report::{KneeReport, TargetKnee};
use crate::result::{Kind, Load, Verdict};

/// Legend of the table.
const LEGEND: &str = "kept: share of requests within the objective, with its 98 % interval; a short probe can only prove a miss; p50 and later columns: last probe; capacity: up to half a step beyond the loads kept and missed";
/// Maximum number of a target's loads on the screen.
const SHOWN: usize = 12;

impl KneeReport {
    /// The screen: the loads near the capacity of a single target, or a line for each of several
    /// targets; then the findings, and the verdict as the last line.
    pub fn screen(&self, rest: Rest) -> Screen {
        let mut screen = Screen::new(rest);
        let of = match self.knees.as_slice() {
            [one] => one.target.clone(),
            several => format!("{} targets", several.len()),
        };
        screen.title(&format!("knee: {} of {of}", self.objective));
        match self.knees.as_slice() {
            [one] => screen.rows(LEGEND, self.rows(one)),
            several => screen.rows("", rows(self.overview(), "targets", several.len())),
        }
        for knee in &self.knees {
            screen.stands_out(knee.findings.iter().map(|finding| item(knee, finding)));
        }
        if let [TargetKnee { goodput: Some(goodput), .. }] = self.knees.as_slice() {
            let at = self.load.text(goodput.load);
            screen.fact(&format!("goodput {}/s at {at}", digits(goodput.per_s)));
        }
        let probes: usize = self.knees.iter().map(|knee| knee.probes.len()).sum();
        let s = if probes == 1 { "" } else { "s" };
        screen.fact(&format!("{probes} probe{s} in {}", seconds(self.took_s().round())));
        let (tone, verdict) = self.verdict_line();
        screen.verdict(tone, &verdict);
        screen
    }

    /// The screen with every load, for a file of this width.
    pub fn text(&self, width: usize, rest: Rest) -> String {
        let mut screen = self.screen(rest);
        if let [_, _, ..] = self.knees.as_slice() {
            for knee in &self.knees {
                screen.rows(&format!("loads of {}", knee.name), self.rows(knee));
            }
        }
        screen.whole(Style::plain(width))
    }

    /// The last line: the verdict, and the capacity of each target. Without a required load, a
    /// capacity is a finding rather than a verdict.
    pub fn verdict_line(&self) -> (Tone, String) {
        let required = self.knees.iter().find_map(|knee| knee.at_least);
        let is_found = self.knees.iter().all(|knee| knee.knee.kind == Kind::Between);
        let (tone, word) = match self.verdict() {
            _ if self.interrupted => (Tone::Unsure, "INTERRUPTED"),
            Verdict::Fail => (Tone::Bad, "FAIL"),
            Verdict::Inconclusive => (Tone::Unsure, "INCONCLUSIVE"),
            Verdict::Pass if required.is_some() => (Tone::Good, "PASS"),
            Verdict::Pass if is_found => (Tone::Good, "FOUND"),
            Verdict::Pass => (Tone::Good, "LOWER BOUND"),
        };
        let found = self.knees.iter().map(|knee| {
            let capacity = knee.capacity(self.load);
            if self.knees.len() > 1 { format!("{} {capacity}", knee.name) } else { capacity }
        });
        let found = found.collect::<Vec<_>>().join(", ");
        let required =
            required.map(|required| format!("{} required; ", self.load.text(required.load)));
        let required = required.unwrap_or_default();
        let findings: Vec<_> = self.knees.iter().flat_map(|knee| &knee.findings).collect();
        let down = findings.iter().find(|finding| finding.code == 605);
        let down = down.map(|finding| format!("{}; ", finding.text().trim_end_matches('.')));
        let down = down.unwrap_or_default();
        let is_late = findings.iter().any(|finding| finding.values.contains_key("late"));
        let validity = if is_late { "doubtful" } else { "valid" };
        (tone, format!("{word}: {down}{required}capacity {found} (measurement: {validity})"))
    }

    fn overview(&self) -> Table {
        let mut table = Table::new(["target", "capacity", "goodput", "URL"]);
        for knee in &self.knees {
            table.row([
                knee.name.clone(),
                knee.capacity(self.load),
                or_dash(knee.goodput, |goodput| format!("{}/s", digits(goodput.per_s))),
                knee.target.clone(),
            ]);
        }
        table
    }

    fn rows(&self, knee: &TargetKnee) -> Rows {
        let tried = knee.tried();
        let centre = knee.knee.kept.or(knee.knee.missed).unwrap_or(1.0);
        let mut first: Vec<_> = (0..tried.len()).collect();
        let distance = |index: &usize| (tried[*index].load / centre).ln().abs();
        first.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
        let heads =
            ["load", "for", "kept", "", "p50", "p99", "in flight", "good", "tokens", "per user"];
        let mut table = Table::new(heads);
        for tried in &tried {
            table.row(tried.row(self.load));
        }
        Rows { first, ..rows(table, "loads", SHOWN) }
    }
}

fn rows(table: Table, unit: &'static str, most: usize) -> Rows {
    Rows { table, unit, most, drops_columns: true, ..Rows::default() }
}

/// The probes at a load: the long ones, or else the short ones.
struct Tried<'a> {
    load: f64,
    probes: Vec<&'a Probe>,
}

impl TargetKnee {
    /// Formats the capacity.
    pub fn capacity(&self, load: Load) -> String {
        self.knee.text(|at| load.text(at))
    }

    /// Probed loads in ascending order.
    fn tried(&self) -> Vec<Tried<'_>> {
        let mut probes: Vec<_> =
            self.probes.iter().filter(|probe| probe.phase != Phase::Check).collect();
        probes.sort_by(|a, b| a.load.total_cmp(&b.load));
        let at_loads = probes.chunk_by(|a, b| a.load.to_bits() == b.load.to_bits());
        at_loads
            .filter_map(|at_load| {
                let long: Vec<_> = at_load
                    .iter()
                    .filter(|probe: &&&Probe| probe.phase == Phase::Prove)
                    .copied()
                    .collect();
                let probes = if long.is_empty() { at_load.to_vec() } else { long };
                Some(Tried { load: at_load.first()?.load, probes })
            })
            .collect()
    }
}

impl Tried<'_> {
    fn row(&self, unit: Load) -> Vec<String> {
        let last = self.probes.last();
        let figures = last.map(|probe| probe.figures).unwrap_or_default();
        let rate = |value| or_dash(value, |value| format!("{}/s", digits(value)));
        let kept = last.and_then(|probe| probe.pooled.or(probe.kept));
        let lasted: f64 = self.probes.iter().map(|probe| probe.seconds).sum();
        vec![
            unit.text(self.load),
            seconds(lasted),
            or_dash(kept, |kept| kept.text()),
            last.map_or("", |probe| probe.word()).to_owned(),
            time_or_dash(figures.p50_ms),
            time_or_dash(figures.p99_ms),
            or_dash(figures.in_flight, digits),
            rate(figures.goodput_per_s),
            rate(figures.tokens_per_s),
            rate(figures.tokens_per_s_per_user),
        ]
    }
}

impl Probe {
    /// The conclusion in a word.
    pub const fn word(&self) -> &'static str {
        match (self.state, self.phase) {
            (State::Down, _) => "failed",
            (State::Missed, _) => "missed",
            (_, Phase::Place) => "short",
            (_, Phase::Check) => "check",
            (State::Kept, _) => "kept",
            (State::Unclear, _) => "unclear",
        }
    }
}

impl KeptShare {
    /// Formats as `99.3 % [99.1, 99.5]`, with more digits near 100 %.
    pub fn text(&self) -> String {
        let decimals = if self.low > 0.999 { 3 } else { 2 };
        let [value, low, high] = [self.value, self.low, self.high].map(|share| share * 1e2);
        format!("{value:.decimals$} % [{low:.decimals$}, {high:.decimals$}]")
    }
}

fn item(knee: &TargetKnee, finding: &Finding) -> Item {
    let item = Item::judged(Tone::Unsure, &finding.label(), &finding.text()).fix(&finding.fix());
    if knee.name.is_empty() { item } else { item.named(&knee.name) }
}
