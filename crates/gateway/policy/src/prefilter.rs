//! Selects the rules that can match: their literals are in the text, and enough digits.

use std::collections::BTreeMap;
use std::mem;

use aho_corasick::automaton::{Automaton as _, StateID};
use aho_corasick::dfa::DFA;
use aho_corasick::{Anchored, BuildError};

use crate::spec::RuleSpec;

/// The conditions that a text must meet before a rule's pattern runs.
#[derive(Clone, Debug)]
pub(crate) struct Prefilter {
    /// Finds all distinct literals, ignoring ASCII case.
    literals: DFA,
    /// By literal: the rules that have it, each with a bit for the list.
    uses: Vec<Vec<(usize, u8)>>,
    /// By rule.
    conditions: Vec<Conditions>,
}

/// The bit of each list of a rule.
const BITS: [u8; 3] = [1, 2, 4];

#[derive(Clone, Debug)]
struct Conditions {
    /// The minimum number of digits.
    digits: usize,
    /// A bit for each list of literals. One of each list must be in the text.
    lists: u8,
    /// The byte that must be in the text, if the first list has no other literal.
    mark: Option<u8>,
}

impl Prefilter {
    /// # Errors
    /// The literals are too many for an automaton.
    pub(crate) fn new(specs: &[RuleSpec]) -> Result<Self, BuildError> {
        let mut literals: BTreeMap<String, Vec<(usize, u8)>> = BTreeMap::new();
        for (rule, spec) in specs.iter().enumerate() {
            let lists = spec.lists().zip(BITS);
            for (own, bit) in lists.flat_map(|(list, bit)| list.iter().map(move |own| (own, bit))) {
                literals.entry(own.to_ascii_lowercase()).or_default().push((rule, bit));
            }
        }
        let conditions = specs.iter().map(Conditions::new).collect();
        let (literals, uses): (Vec<String>, Vec<_>) = literals.into_iter().unzip();
        // A DFA takes about a megabyte and is the fastest automaton.
        let literals =
            DFA::builder().ascii_case_insensitive(true).prefilter(false).build(&literals)?;
        Ok(Self { literals, uses, conditions })
    }

    /// The rules that can match in a text, ascending, of those that apply. The automaton runs only
    /// if the digits and marks of the text leave any.
    pub(crate) fn candidates(&self, text: &str, applies: impl Fn(usize) -> bool) -> Vec<usize> {
        let digits = count_digits(text);
        let mut rules = Vec::with_capacity(self.conditions.len());
        for (at, rule) in self.conditions.iter().enumerate() {
            if rule.digits <= digits
                && applies(at)
                && rule.mark.is_none_or(|mark| memchr::memchr(mark, text.as_bytes()).is_some())
            {
                rules.push(at);
            }
        }
        if rules.iter().any(|at| self.conditions[*at].lists > 0) {
            let met = self.lists_in(text);
            rules.retain(|at| self.conditions[*at].lists == met[*at]);
        }
        rules
    }

    /// By rule, a bit for each list with a literal that is in the text.
    fn lists_in(&self, text: &str) -> Vec<u8> {
        let mut met = vec![0; self.conditions.len()];
        // Every automaton that is built as above has an unanchored start.
        let Ok(mut state) = self.literals.start_state(Anchored::No) else { return met };
        // Most matches of prose are those of a few states, again and again.
        let mut recent = [StateID::ZERO; 64];
        // The library's iterator takes three times as long: it can stop after every match.
        for byte in text.bytes() {
            state = self.literals.next_state(Anchored::No, state, byte);
            if !self.literals.is_special(state)
                || mem::replace(&mut recent[state.as_usize() / 64 % 64], state) == state
                || !self.literals.is_match(state)
            {
                continue;
            }
            for nth in 0..self.literals.match_len(state) {
                let literal = self.literals.match_pattern(state, nth);
                self.uses[literal].iter().for_each(|(rule, list)| met[*rule] |= list);
            }
        }
        met
    }
}

impl Conditions {
    fn new(spec: &RuleSpec) -> Self {
        let lists = spec.lists().zip(BITS).filter(|(list, _)| !list.is_empty());
        let mark = match spec.literals.as_slice() {
            [only] if only.len() == 1 => only.bytes().find(u8::is_ascii_punctuation),
            _ => None,
        };
        Self { digits: spec.digits, lists: lists.map(|(_, bit)| bit).sum(), mark }
    }
}

/// The number of ASCII digits. In blocks, so that the compiler counts many bytes at once.
fn count_digits(text: &str) -> usize {
    text.as_bytes().chunks(128).map(|block| usize::from(digits_in(block))).sum()
}

fn digits_in(block: &[u8]) -> u8 {
    block.iter().map(|byte| u8::from(byte.is_ascii_digit())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_needs_its_digits_and_a_literal_of_each_list() {
        let rules = [
            "digits: 4",
            "literals: ['@']",
            "literals: [select, drop]",
            "literals: [union], and: [select], also: [FROM]",
        ];
        let fields = "category: pii, description: d, pattern: x";
        let specs = rules
            .map(|rule| serde_saphyr::from_str(&format!("{{id: r, {fields}, {rule}}}")).unwrap());
        let prefilter = Prefilter::new(&specs).unwrap();
        let rows: [(&str, &[usize]); 7] = [
            ("nothing of interest", &[]),
            ("123 and 4", &[0]),
            ("a@b", &[1]),
            ("please DROP it", &[2]),
            ("drops of selection", &[2]),
            ("union or select", &[2]),
            ("from a unionselect", &[2, 3]),
        ];
        for (text, expected) in rows {
            assert_eq!(prefilter.candidates(text, |_| true), expected, "{text}");
        }
    }
}
