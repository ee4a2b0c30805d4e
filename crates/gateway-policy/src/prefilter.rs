//! Which rules can match at all: one pass over the text for the literals of all rules.

use aho_corasick::automaton::{Automaton as _, StateID};
use aho_corasick::dfa::DFA;
use aho_corasick::{Anchored, BuildError, MatchKind};

use crate::rule_set::RuleSet;
use crate::spec::RuleSpec;

/// What a rule needs of a text before its pattern is worth running.
#[derive(Clone, Debug)]
pub(crate) struct Prefilter {
    /// Over the distinct literals, without regard to ASCII case.
    literals: DFA,
    start: Option<StateID>,
    /// By literal: the rules it satisfies with their first list, and with their second.
    first: Vec<RuleSet>,
    second: Vec<RuleSet>,
    /// The rules which have no first, or no second list.
    free_first: RuleSet,
    free_second: RuleSet,
    /// Least numbers of digits, with the rules that need them.
    digits: Vec<(usize, RuleSet)>,
}

impl Prefilter {
    /// # Errors
    /// When the literals together are too many for an automaton.
    pub(crate) fn new(specs: &[RuleSpec]) -> Result<Self, BuildError> {
        let lower = |literal: &String| literal.to_ascii_lowercase();
        let mut distinct: Vec<String> = specs
            .iter()
            .flat_map(|spec| spec.literals.iter().chain(&spec.and))
            .map(lower)
            .collect();
        distinct.sort();
        distinct.dedup();
        let rules = |matching: &dyn Fn(&RuleSpec) -> bool| -> RuleSet {
            specs.iter().enumerate().filter(|(_, spec)| matching(spec)).map(|(at, _)| at).collect()
        };
        let having = |list: &[String], literal: &str| list.iter().any(|own| lower(own) == literal);
        let mut digits: Vec<usize> = specs.iter().map(|spec| spec.digits).collect();
        digits.sort_unstable();
        digits.dedup();
        // A full table costs a megabyte, and is the fastest of all automata.
        let literals = DFA::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .build(&distinct)?;
        Ok(Self {
            start: literals.start_state(Anchored::No).ok(),
            literals,
            first: distinct.iter().map(|own| rules(&|spec| having(&spec.literals, own))).collect(),
            second: distinct.iter().map(|own| rules(&|spec| having(&spec.and, own))).collect(),
            free_first: rules(&|spec| spec.literals.is_empty()),
            free_second: rules(&|spec| spec.and.is_empty()),
            digits: digits
                .into_iter()
                .filter(|least| *least > 0)
                .map(|least| (least, rules(&|spec| spec.digits == least)))
                .collect(),
        })
    }

    /// Of the rules `among`, those which can match in `text`.
    pub(crate) fn candidates(&self, text: &str, among: RuleSet) -> RuleSet {
        let (mut first, mut second) = (self.free_first, self.free_second);
        self.hits(text, |at| {
            first |= self.first.get(at).copied().unwrap_or_default();
            second |= self.second.get(at).copied().unwrap_or_default();
        });
        let candidates = first & second & among;
        if candidates.is_empty() { candidates } else { self.with_enough_digits(text, candidates) }
    }

    /// The numbers of all literals in a text, overlapping ones too. The steps of the automaton are taken here one by
    /// one: the library's own iterator does the same in three times the time, as it can stop after every match.
    fn hits(&self, text: &str, mut found: impl FnMut(usize)) {
        // There is a start without an anchor in every automaton that is built as above.
        let Some(mut state) = self.start else { return };
        for byte in text.bytes() {
            state = self.literals.next_state(Anchored::No, state, byte);
            if self.literals.is_special(state) && self.literals.is_match(state) {
                let matches = 0..self.literals.match_len(state);
                matches.for_each(|nth| found(self.literals.match_pattern(state, nth).as_usize()));
            }
        }
    }

    fn with_enough_digits(&self, text: &str, candidates: RuleSet) -> RuleSet {
        let count = text.bytes().filter(u8::is_ascii_digit).count();
        self.digits
            .iter()
            .filter(|(least, _)| count < *least)
            .fold(candidates, |left, (_, rules)| left.without(*rules))
    }
}
