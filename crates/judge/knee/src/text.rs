//! The texts of a [`KneeReport`]: its screen, and what its file holds.

use plimsoll_report::Style;
use plimsoll_report::format::{digits, or_dash, time_or_dash};
use plimsoll_report::screen::{Item, Rest, Rows, Screen, Tone};
use plimsoll_report::table::Table;

use crate::kept::{KeptShare, State};
use crate::report::{KneeReport, TargetKnee};
use crate::result::{Kind, Load, Probe};

/// The most probes of a target on the screen.
const SHOWN: usize = 12;

impl KneeReport {
    /// The screen: of one target the probes near its knee, of several a line for each; what stands
    /// out; and the verdict as the last line.
    pub fn screen(&self, rest: Rest) -> Screen {
        match self.knees.as_slice() {
            [one] => self.of_one(one, rest),
            _ => self.of_several(rest),
        }
    }

    /// The same with every probe, for a file of this width.
    pub fn text(&self, width: usize, rest: Rest) -> String {
        let mut screen = self.screen(rest);
        if let [_, _, ..] = self.knees.as_slice() {
            for knee in &self.knees {
                screen.rows(&format!("probes of {}", knee.name), self.rows(knee));
            }
        }
        screen.whole(Style::plain(width))
    }

    /// The verdict, and how it is to be taken.
    pub fn verdict(&self) -> (Tone, String) {
        let (tone, verdict) = self.finding();
        match verdict.split_once(": ") {
            Some((_, found)) if self.interrupted => (Tone::Unsure, format!("INTERRUPTED: {found}")),
            _ => (tone, verdict),
        }
    }

    /// What the probes show, however the search ended.
    fn finding(&self) -> (Tone, String) {
        match self.knees.as_slice() {
            [one] => self.verdict_of(one),
            _ => self.verdict_of_several(),
        }
    }

    fn of_one(&self, knee: &TargetKnee, rest: Rest) -> Screen {
        let mut screen = Screen::new(rest);
        screen.title(&format!("knee: {} of {}", self.objective, knee.target));
        screen.rows("", self.rows(knee));
        let doubts = knee.knee.why.iter().map(|why| sentence(why));
        let doubts = doubts.chain(knee.provider_sentence(self.load));
        screen.stands_out(doubts.map(|text| Item::new(Tone::Unsure, &text)));
        for fact in knee.confirmed(self.load) {
            screen.fact(&fact);
        }
        screen.fact(&counted(knee.probes.len(), knee.took_s));
        let (tone, verdict) = self.verdict();
        screen.verdict(tone, &verdict);
        screen
    }

    fn of_several(&self, rest: Rest) -> Screen {
        let mut screen = Screen::new(rest);
        let count = self.knees.len();
        screen.title(&format!("knee: {} of {count} targets", self.objective));
        let mut table = Table::new(["target", "knee [95 %]", "goodput", "confirmed", "URL"]);
        for knee in &self.knees {
            table.row(knee.row(self.load));
        }
        let rows = Rows { table, unit: "targets", most: count, ..Rows::default() };
        screen.rows("", Rows { drops_columns: true, drops_dashes: true, ..rows });
        let pointed_out = self.knees.iter().flat_map(|knee| {
            let doubts = knee.knee.why.iter().map(|why| sentence(why));
            let all = doubts.chain(knee.provider_sentence(self.load));
            all.map(|text| Item::new(Tone::Unsure, &text).named(&knee.name))
        });
        screen.stands_out(pointed_out);
        let probes = self.knees.iter().map(|knee| knee.probes.len()).sum();
        let took = counted(probes, self.took_s());
        screen.fact(&format!("{took}; the targets took turns, probe by probe"));
        let (tone, verdict) = self.verdict();
        screen.verdict(tone, &verdict);
        screen
    }

    fn rows(&self, knee: &TargetKnee) -> Rows {
        let (table, first) = (knee.table(self.load), knee.by_nearness());
        let rows = Rows { table, first, most: SHOWN, unit: "probes", ..Rows::default() };
        Rows { drops_columns: true, drops_dashes: true, ..rows }
    }

    /// The last line. Without a load that was asked for, a knee is a finding and no verdict.
    fn verdict_of(&self, knee: &TargetKnee) -> (Tone, String) {
        let found = knee.headline(self.load);
        if let Some(wanted) = knee.at_least {
            let load = self.load.text(wanted.load);
            return match wanted.state {
                State::Kept => (Tone::Good, format!("PASS: it carries {load}: {found}")),
                State::Missed => (Tone::Bad, format!("FAIL: it does not carry {load}: {found}")),
                State::Unclear | State::Invalid => {
                    (Tone::Unsure, format!("INCONCLUSIVE: {load} may be too much: {found}"))
                }
            };
        }
        match knee.knee.kind {
            Kind::Interval | Kind::Bracket | Kind::AtLeast => {
                (Tone::Good, format!("FOUND: {found}"))
            }
            Kind::NotEven => (Tone::Bad, format!("FAIL: {found}")),
            Kind::Unstable | Kind::Unknown => (Tone::Unsure, format!("INCONCLUSIVE: {found}")),
        }
    }

    fn verdict_of_several(&self) -> (Tone, String) {
        let count = self.knees.len();
        if let Some(wanted) = self.knees.first().and_then(|knee| knee.at_least) {
            let load = self.load.text(wanted.load);
            if let Some(names) = self.names_of(|knee| knee.state() == Some(State::Missed)) {
                return (Tone::Bad, format!("FAIL: {load} is not carried by {names}"));
            }
            if let Some(names) = self.names_of(|knee| knee.state() != Some(State::Kept)) {
                return (Tone::Unsure, format!("INCONCLUSIVE: {load} may be too much for {names}"));
            }
            return (Tone::Good, format!("PASS: all {count} targets carry {load}"));
        }
        if let Some(names) = self.names_of(|knee| knee.knee.kind == Kind::NotEven) {
            return (Tone::Bad, format!("FAIL: not even the lowest load is carried by {names}"));
        }
        if let Some(names) =
            self.names_of(|knee| matches!(knee.knee.kind, Kind::Unstable | Kind::Unknown))
        {
            return (Tone::Unsure, format!("INCONCLUSIVE: the knee is unknown for {names}"));
        }
        (Tone::Good, format!("FOUND: the knees of {count} targets"))
    }

    /// `None` if it is so of no target.
    fn names_of(&self, is: impl Fn(&TargetKnee) -> bool) -> Option<String> {
        let found = self.knees.iter().filter(|knee| is(knee));
        let names: Vec<_> = found.map(|knee| &*knee.name).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }
}

impl TargetKnee {
    /// How it kept the load that was asked for.
    fn state(&self) -> Option<State> {
        self.at_least.map(|wanted| wanted.state)
    }

    /// What was found, in a sentence.
    pub fn headline(&self, load: Load) -> String {
        let found = &self.knee;
        let [at, low, high] = [found.load, found.low, found.high]
            .map(|at| at.map_or_else(|| "-".to_owned(), |at| load.text(at)));
        match found.kind {
            Kind::Interval => format!("knee at {at} [{low}, {high}]"),
            Kind::Bracket => format!("knee between {low} and {high}"),
            Kind::AtLeast => format!("knee at {low} or more"),
            Kind::NotEven => format!("the objective is not met even at {high}"),
            Kind::Unstable => {
                format!("no stable knee: [{low}, {high}] was found and not confirmed")
            }
            Kind::Unknown => "the knee is unknown".to_owned(),
        }
    }

    /// Where the objective was kept for long, and the rate of good requests there.
    pub fn confirmed(&self, load: Load) -> Vec<String> {
        let confirmed = self.knee.confirmed.map(|confirmed| {
            let (at, kept) = (load.text(confirmed.load), share(&confirmed.kept));
            format!("confirmed: {:.0} s at {at} kept {kept}", confirmed.seconds)
        });
        let goodput = self.goodput.map(|goodput| {
            format!("goodput {}/s at {}", digits(goodput.per_s), load.text(goodput.load))
        });
        confirmed.into_iter().chain(goodput).collect()
    }

    /// The line of a table of several targets.
    fn row(&self, load: Load) -> [String; 5] {
        [
            self.name.clone(),
            self.knee.cell(|at| load.text(at)),
            or_dash(self.goodput, |goodput| format!("{}/s", digits(goodput.per_s))),
            or_dash(self.knee.confirmed, |confirmed| load.text(confirmed.load)),
            self.target.clone(),
        ]
    }

    /// What the probe of the provider itself shows.
    pub fn provider_sentence(&self, load: Load) -> Option<String> {
        let provider = self.provider.as_ref()?;
        let load = load.text(provider.load);
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

    fn table(&self, load: Load) -> Table {
        let mut table = Table::new([
            "load",
            "for",
            "kept",
            "",
            "p50",
            "p99",
            "in flight",
            "good",
            "tokens",
            "per user",
        ]);
        for probe in self.by_load() {
            let figures = &probe.figures;
            let [good, tokens, per_user] =
                [figures.goodput_per_s, figures.tokens_per_s, figures.tokens_per_s_per_user]
                    .map(|value| or_dash(value, |value| format!("{}/s", digits(value))));
            table.row([
                load.text(probe.load),
                format!("{:.0} s", probe.seconds),
                probe.kept.as_ref().map_or_else(|| "-".to_owned(), share),
                word(probe).to_owned(),
                time_or_dash(figures.p50_ms),
                time_or_dash(figures.p99_ms),
                or_dash(figures.in_flight, digits),
                good,
                tokens,
                per_user,
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
        let distances: Vec<_> =
            self.by_load().iter().map(|probe| (probe.load / centre).ln().abs()).collect();
        let mut rows: Vec<_> = (0..distances.len()).collect();
        rows.sort_by(|a, b| distances[*a].total_cmp(&distances[*b]));
        rows
    }
}

impl KeptShare {
    /// `99.3 % [99.1, 99.5]`.
    pub fn text(&self) -> String {
        share(self)
    }
}

fn counted(probes: usize, took_s: f64) -> String {
    let s = if probes == 1 { "" } else { "s" };
    format!("{probes} probe{s} in {took_s:.0} s")
}

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
