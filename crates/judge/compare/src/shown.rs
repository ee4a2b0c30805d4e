//! A comparison in the words of its text, in parts: for pages, which lay them out themselves.

use plimsoll_report::table::Table;

use crate::comparison::Comparison;
use crate::text::explanations;

/// Most cells that are shown; the file has all.
const CELLS_SHOWN: usize = 20;

/// The parts of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// What was compared.
    pub headline: String,
    /// A row for each gate, in their order: gate, base, new, change, margin, and so on.
    pub gates: Table,
    /// Why gates did not pass.
    pub explanations: Vec<String>,
    /// The spread between runs, cells that are worth a look, changes in the history, notes.
    pub facts: Vec<String>,
}

impl Comparison {
    /// The parts of the text. The verdict is [`Comparison::verdict_sentence`].
    pub fn shown(&self) -> Shown {
        let facts = self.spread_sentence().into_iter().chain(self.worth_a_look(CELLS_SHOWN));
        let facts = facts.chain(self.change_sentences()).chain(self.notes.iter().cloned());
        Shown {
            headline: self.headline(),
            gates: self.table(),
            explanations: explanations(&self.gates),
            facts: facts.collect(),
        }
    }
}
