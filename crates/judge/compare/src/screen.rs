//! The end of a comparison on a screen: the gates, what stands out, and the verdict.

use plimsoll_metrics::{Judgement, Verdict};
use plimsoll_report::screen::{Item, Rest, Rows, Screen, Tone};

use crate::comparison::Comparison;
use crate::text::explanations;

/// The most gates that are shown.
const MOST: usize = 12;

/// Columns at the end of the table that a narrow screen leaves out: what a gate could see.
const SPARE: usize = 1;

/// Most parts of the runs that are pointed out; the file has all.
const CELLS: usize = 20;

/// What to do about runs that must not be compared.
const OBSTACLE: &str =
    "make the runs again alike; --allow-different NAME compares them as they are";

impl Comparison {
    /// The screen; what it leaves out is printed by `--full`.
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
        screen.stands_out(self.obstacles.iter().map(|why| Item::new(Tone::Bad, why).fix(OBSTACLE)));
        let failed = self.gates.iter().any(|gate| gate.judged.judgement == Judgement::Fail);
        let tone = if failed { Tone::Bad } else { Tone::Unsure };
        // One advice for all gates that are open: it stands below the first.
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

    const fn tone(&self) -> Tone {
        match self.verdict {
            Verdict::Pass => Tone::Good,
            Verdict::Fail => Tone::Bad,
            Verdict::Inconclusive => Tone::Unsure,
        }
    }

    /// The gates that failed, then those that could not be decided, then the others.
    fn by_importance(&self) -> Vec<usize> {
        let mut order: Vec<_> = (0..self.gates.len()).collect();
        order.sort_by_key(|index: &usize| {
            std::cmp::Reverse(self.gates[*index].judged.judgement.verdict())
        });
        order
    }
}
