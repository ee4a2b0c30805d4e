//! A comparison as text.

use plimsoll_metrics::{Judgement, Margin, Verdict};
use plimsoll_report::Style;
use plimsoll_report::format::{or_dash, percent, rate, time, time_us};
use plimsoll_report::table::Table;

use crate::comparison::{self, Comparison};
use crate::format;
use crate::gates::{FigureUnit, GateResult, SpreadSource};
use crate::judge::Rule;

impl Comparison {
    /// Formats the whole screen, at most `width` columns wide.
    pub fn text(&self, width: usize) -> String {
        self.screen().whole(Style::plain(width))
    }

    /// The first line: the compared runs.
    pub(crate) fn headline(&self) -> String {
        let mut parts = vec![format!("{} + {} runs", self.base.len(), self.new.len())];
        let differs = &self.same_machine.differs;
        let mut names: Vec<_> = differs.iter().map(|d| d.name.as_str()).collect();
        names.dedup();
        let hash = self.new.first().map_or("", |run| &run.plan_hash);
        let plan = match hash.get(..4) {
            _ if names.contains(&"plan") => "different plans".to_owned(),
            Some(hash) => format!("same plan ({hash})"),
            None => "unknown plan".to_owned(),
        };
        names.retain(|name| *name != "plan");
        parts.push(if names.is_empty() {
            "equal machines".to_owned()
        } else {
            format!("different {}", names.join(", "))
        });
        parts.push(plan);
        parts.extend(self.alternating.map(|alternating| {
            if alternating { "alternating in time" } else { "not alternating in time" }.to_owned()
        }));
        format!("compare: {}", parts.join(", "))
    }

    /// The table of gates. The verdict is the first column, because a table that is too wide is
    /// split or loses its last columns. With the simple rule there are no intervals and no
    /// detectable changes.
    pub fn table(&self) -> Table {
        let change = if self.rule == Rule::Simple { "change" } else { "change [95 %]" };
        let head = ["gate", "verdict", "base", "new", change, "margin", "could see"];
        let mut table = Table::new(head);
        for gate in &self.gates {
            table.row(row(gate));
        }
        table
    }

    /// The source of the variation between runs.
    pub(crate) fn spread_sentence(&self) -> Option<String> {
        if self.rule == Rule::Simple {
            return Some(comparison::LABEL.to_owned());
        }
        let mut sources: Vec<_> = self
            .gates
            .iter()
            .filter_map(|gate| gate.judged.spread)
            .map(SpreadSource::words)
            .collect();
        sources.dedup();
        (!sources.is_empty()).then(|| format!("spread between runs: {}", sources.join(", or ")))
    }

    /// The cells that changed.
    pub(crate) fn worth_a_look(&self, most: usize) -> Vec<String> {
        let cells = &self.cells;
        let mut lines: Vec<_> = cells
            .worth_a_look
            .iter()
            .take(most)
            .map(|cell: &comparison::Cell| {
                let target =
                    cell.target.as_ref().map_or_else(String::new, |t| format!(", target {t}"));
                let change = format::change(
                    Margin::Relative(0.0),
                    Some(cell.change),
                    Some((cell.low, cell.high)),
                );
                format!(
                    "worth a look: {}, stage {}{target}: {} {change} (q {})",
                    cell.scenario,
                    cell.stage,
                    cell.figure,
                    p_value(cell.q)
                )
            })
            .collect();
        if !lines.is_empty() {
            let (found, all) = (cells.worth_a_look.len(), cells.compared);
            lines.push(format!(
                "{found} of {all} parts of the runs changed; none of them is a verdict"
            ));
        }
        lines
    }

    /// The verdict in a sentence.
    pub fn verdict_sentence(&self) -> String {
        let judgements = self.gates.iter().map(|gate| &gate.judged.judgement);
        let all = self.gates.len();
        let gates = if all == 1 { "gate" } else { "gates" };
        let [_, failed, open] = Judgement::count(judgements);
        let word = self.verdict.word();
        match (self.verdict, self.obstacles.first()) {
            (Verdict::Fail, Some(why)) => format!("{word}: {why}"),
            (_, Some(why)) => format!("INVALID: these runs must not be compared: {why}"),
            (Verdict::Pass, None) if self.rule == Rule::Simple => {
                format!(
                    "{word}: none of {all} figures is worse by more than its margin, by the simple rule"
                )
            }
            (Verdict::Fail, None) if self.rule == Rule::Simple => {
                format!(
                    "{word}: {failed} of {all} figures are worse by more than their margin, by the simple rule"
                )
            }
            (Verdict::Pass, None) => {
                format!("{word}: {all} of {all} {gates}: no worse than the margins")
            }
            (Verdict::Fail, None) => {
                let names = self.failed_names();
                let open = if open > 0 { format!("; {open} inconclusive") } else { String::new() };
                format!("{word}: {failed} of {all} {gates} failed: {names}{open}")
            }
            (Verdict::Inconclusive, None) if all == 0 => format!("{word}: no gate is defined"),
            (Verdict::Inconclusive, None) => {
                let advice = self.advice().map(|advice| format!("; {advice}"));
                let advice = advice.unwrap_or_default();
                format!("{word}: {open} of {all} {gates} are undecided{advice}")
            }
        }
    }

    fn failed_names(&self) -> String {
        const SHOWN: usize = 3;
        let failed = self.gates.iter().filter(|gate| gate.judged.judgement == Judgement::Fail);
        let names: Vec<_> = failed.map(|gate| gate.name.as_str()).collect();
        let more = if names.len() > SHOWN { ", ..." } else { "" };
        format!("{}{more}", names[..names.len().min(SHOWN)].join(", "))
    }

    /// Advice for open gates.
    pub(crate) fn advice(&self) -> Option<String> {
        let open: Vec<_> = self
            .gates
            .iter()
            .filter(|gate| matches!(gate.judged.judgement, Judgement::Inconclusive(_)))
            .collect();
        // More runs do not help if a figure is missing in each of them.
        if open.iter().all(|gate| gate.base.is_none()) {
            let advice = "make each run longer, or gate another figure";
            return (self.rule == Rule::Simple && !open.is_empty()).then(|| advice.to_owned());
        }
        if self.base.len() + self.new.len() == 2
            && self.gates.iter().all(|g| g.judged.spread.is_none())
        {
            let advice = "run each side 5 times, alternating";
            return Some(advice.to_owned());
        }
        let runs = open.iter().filter_map(|gate| gate.judged.runs_needed).max()?;
        let runs = usize::try_from(runs).unwrap_or(usize::MAX);
        let runs = runs.max(self.base.len().min(self.new.len()) + 1);
        Some(format!("run each side {runs} times, alternating"))
    }
}

/// The cells of a gate, in the order of the table.
pub(crate) fn row(gate: &GateResult) -> [String; 7] {
    [
        gate.name.clone(),
        format::word(&gate.judged.judgement).to_owned(),
        value(gate.unit, gate.base),
        value(gate.unit, gate.new),
        change_of(gate),
        margin_of(gate),
        detectable_of(gate),
    ]
}

/// The reason why a gate did not pass, in a sentence.
pub(crate) fn explanation(gate: &GateResult) -> Option<String> {
    let name = &gate.name;
    match &gate.judged.judgement {
        Judgement::Pass => None,
        Judgement::Fail => {
            let word = if gate.more_is_worse { "more" } else { "less" };
            let margin = format::amount(gate.margin(), gate.margin);
            let proven =
                gate.judged.p_holm.map(|p| format!(" (p {}, adjusted for all gates)", p_value(p)));
            let proven = proven.unwrap_or_default();
            Some(format!("{name}: {word} than before{proven}, and beyond the margin of {margin}"))
        }
        Judgement::Inconclusive(why) => Some(format!("{name}: {why}")),
    }
}

/// Reasons why gates did not pass, one sentence each.
pub(crate) fn explanations(gates: &[GateResult]) -> Vec<String> {
    let mut sentences: Vec<(String, String)> = Vec::new();
    for gate in gates {
        let Some(sentence) = explanation(gate) else { continue };
        let why = sentence.strip_prefix(&format!("{}: ", gate.name)).unwrap_or(&sentence);
        match sentences.iter_mut().find(|(_, known)| *known == why) {
            Some((names, _)) => {
                names.push_str(", ");
                names.push_str(&gate.name);
            }
            None => sentences.push((gate.name.clone(), why.to_owned())),
        }
    }
    sentences.into_iter().map(|(names, why)| format!("{names}: {why}")).collect()
}

fn p_value(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }
}

// Formats the values of a gate for readers.

/// The value of a figure with its unit.
pub(crate) fn value(unit: FigureUnit, value: Option<f64>) -> String {
    or_dash(value, |value| match unit {
        FigureUnit::Ms => time(value),
        FigureUnit::CpuUs => time_us(value),
        FigureUnit::PerS => format!("{}/s", rate(Some(value))),
        FigureUnit::Share => percent(value),
    })
}

/// The change of a gate.
pub(crate) fn change_of(gate: &GateResult) -> String {
    format::change(gate.margin(), gate.judged.change, gate.judged.low.zip(gate.judged.high))
}

/// The margin of a gate, signed in the direction of a regression: `+3%`, `-2%`.
pub(crate) fn margin_of(gate: &GateResult) -> String {
    let sign = if gate.more_is_worse { "+" } else { "-" };
    format!("{sign}{}", format::amount(gate.margin(), gate.margin))
}

/// The smallest detectable change of a gate.
pub(crate) fn detectable_of(gate: &GateResult) -> String {
    or_dash(gate.judged.detectable, |detectable| format::amount(gate.margin(), detectable))
}
