//! The screen at the end of a comparison: gates, notable changes, and the verdict.

use plimsoll_metrics::{Judgement, Verdict};
use plimsoll_report::screen::{Item, Rest, Rows, SKIPPED, Screen, SerializeError, Tone, junit};

use crate::comparison::{Comparison, RunRef};
use crate::text::{self, explanation, explanations};

/// Maximum number of gates shown.
const MOST: usize = 12;

/// Number of trailing columns that a narrow screen omits: the smallest detectable change.
const SPARE: usize = 1;

/// Maximum number of changed parts shown; the file has all.
const CELLS: usize = 20;

// Remedies for unusable runs and for differences.
const AGAIN: &str = "remove the cause, then run that side again";
const ALLOW: &str = "run both sides alike, or allow it: --allow-different";

impl Comparison {
    /// Formats the screen; `--full` prints the omitted parts.
    pub fn screen(&self) -> Screen {
        let mut screen = Screen::new(Rest::Flag);
        screen.title(&self.headline());
        let rows = Rows {
            table: self.table().with_content(),
            unit: "gates",
            first: self.by_importance(),
            most: MOST,
            drops_columns: true,
            spare_columns: SPARE,
            ..Rows::default()
        };
        screen.rows("", rows);
        screen.stands_out(self.obstacles());
        let failed = self.gates.iter().any(|gate| gate.judged.judgement == Judgement::Fail);
        let tone = if failed { Tone::Bad } else { Tone::Unsure };
        // All open gates share one piece of advice, below the first of them.
        let open = self.verdict == Verdict::Inconclusive;
        let advice = self.advice().filter(|_| open).unwrap_or_default();
        let others = explanations(&self.gates).into_iter();
        let others = others.zip(std::iter::once(advice).chain(std::iter::repeat(String::new())));
        screen.stands_out(others.map(|(text, fix)| Item::new(tone, &text).fix(&fix)));
        let notes = self.notes.iter().cloned().chain(self.worth_a_look(CELLS));
        screen.stands_out(notes.map(|text| Item::new(Tone::Unsure, &text)));
        self.spread_sentence().iter().for_each(|text| screen.fact(text));
        screen.verdict(self.tone(), &self.verdict_sentence());
        screen
    }

    /// Differences that were not allowed, and unusable runs before them, each with its remedy.
    fn obstacles(&self) -> Vec<Item> {
        let refused = self.same_machine.differs.iter().filter(|found| !found.allowed);
        let allow: Vec<_> = refused.map(|found| format!("{ALLOW} {}", found.name)).collect();
        let unusable = self.obstacles.len().saturating_sub(allow.len());
        let fixes = std::iter::repeat_n(AGAIN.to_owned(), unusable).chain(allow);
        let items = self.obstacles.iter().zip(fixes);
        items.map(|(why, fix): (&String, String)| Item::new(Tone::Bad, why).fix(&fix)).collect()
    }

    const fn tone(&self) -> Tone {
        match self.verdict {
            Verdict::Pass => Tone::Good,
            Verdict::Fail => Tone::Bad,
            Verdict::Inconclusive => Tone::Unsure,
        }
    }

    /// Indices of failed gates, then undecided ones, then the others.
    fn by_importance(&self) -> Vec<usize> {
        let mut order: Vec<_> = (0..self.gates.len()).collect();
        order.sort_by_key(|index: &usize| {
            std::cmp::Reverse(self.gates[*index].judged.judgement.verdict())
        });
        order
    }
}

// A comparison as a pull request comment: its screen, and the runs.

/// Maximum number of runs shown.
const RUNS_SHOWN: usize = 100;

impl Comparison {
    /// Formats the comparison as Markdown, below 60,000 bytes. Names come from files and are
    /// escaped.
    pub fn markdown(&self) -> String {
        let base = self.base.iter().map(|run| line("base", run));
        let runs = base.chain(self.new.iter().map(|run| line("new", run)));
        let lines = runs.take(RUNS_SHOWN).collect::<Vec<_>>().join("\n");
        let runs = format!("<details><summary>runs</summary>\n\n{lines}\n\n</details>");
        self.screen().markdown(&runs)
    }
}

fn line(side: &str, run: &RunRef) -> String {
    format!("- {side}: `{}`", run.path.replace(['`', '\n', '\r'], " "))
}

// A comparison as `JUnit` XML, with a test case per gate.

impl Comparison {
    /// Formats the comparison as `JUnit` XML. A failed gate is a failure, an inconclusive one an
    /// error, or skipped with `inconclusive_passes`. A further test case reports whether the runs
    /// are comparable.
    ///
    /// # Errors
    /// None that a comparison causes.
    pub fn junit(&self, inconclusive_passes: bool) -> Result<String, SerializeError> {
        let comparable = match self.verdict {
            _ if self.obstacles.is_empty() => (Tone::Good, "PASS"),
            Verdict::Fail => (Tone::Bad, "FAIL"),
            Verdict::Pass | Verdict::Inconclusive => (Tone::Unsure, "INCONCLUSIVE"),
        };
        let comparable =
            ("the runs may be compared".to_owned(), comparable, self.obstacles.join("; "));
        let gates = self.gates.iter().map(|gate| {
            let judged = match &gate.judged.judgement {
                Judgement::Pass => (Tone::Good, "PASS"),
                Judgement::Fail => (Tone::Bad, "FAIL"),
                Judgement::Inconclusive(_) if inconclusive_passes => (Tone::Unsure, SKIPPED),
                Judgement::Inconclusive(_) => (Tone::Unsure, "INCONCLUSIVE"),
            };
            let why = explanation(gate).unwrap_or_default();
            (gate.name.clone(), judged, format!("{why} ({})", text::change_of(gate)))
        });
        let items = std::iter::once(comparable).chain(gates);
        let items = items.map(|(name, (tone, word), text)| (name, Item::judged(tone, word, &text)));
        let items: Vec<_> = items.collect();
        junit("plimsoll compare", items.iter().map(|(name, item)| (name.clone(), item)))
    }
}
