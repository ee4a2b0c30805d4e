//! Selects the rules that can match: their literals are in the text, and enough digits.

use std::collections::BTreeSet;

use aho_corasick::{AhoCorasick, AhoCorasickKind, BuildError};

use crate::spec::RuleSpec;

/// The conditions that a text must meet before a rule's pattern runs.
#[derive(Clone, Debug)]
pub(crate) struct Prefilter {
    /// Finds all distinct literals, ignoring ASCII case.
    literals: AhoCorasick,
    /// By rule.
    conditions: Vec<Conditions>,
}

#[derive(Clone, Debug)]
struct Conditions {
    /// The minimum number of digits.
    digits: usize,
    /// Lists of literals, by their numbers. One of each list must be in the text.
    lists: Vec<Vec<usize>>,
}

impl Prefilter {
    /// # Errors
    /// The literals are too many for an automaton.
    pub(crate) fn new(specs: &[RuleSpec]) -> Result<Self, BuildError> {
        let literals = specs.iter().flat_map(RuleSpec::lists).flatten();
        let literals: BTreeSet<String> = literals.map(|own| own.to_ascii_lowercase()).collect();
        let literals: Vec<String> = literals.into_iter().collect();
        let conditions = specs.iter().map(|spec| Conditions::new(spec, &literals));
        Ok(Self {
            conditions: conditions.collect(),
            // A DFA takes about a megabyte and is the fastest automaton.
            literals: AhoCorasick::builder()
                .ascii_case_insensitive(true)
                .kind(Some(AhoCorasickKind::DFA))
                .build(&literals)?,
        })
    }

    /// The rules that can match in a text, ascending.
    pub(crate) fn candidates(&self, text: &str) -> Vec<usize> {
        let digits = text.bytes().filter(u8::is_ascii_digit).count();
        let mut found = vec![false; self.literals.patterns_len()];
        for literal in self.literals.find_overlapping_iter(text) {
            found[literal.pattern().as_usize()] = true;
        }
        let rules = self.conditions.iter().enumerate();
        rules.filter(|(_, rule)| rule.are_met(digits, &found)).map(|(at, _)| at).collect()
    }
}

impl Conditions {
    fn new(spec: &RuleSpec, literals: &[String]) -> Self {
        let lists = spec.lists().filter(|list| !list.is_empty()).map(|list: &[String]| {
            let own = list.iter().map(|literal| literal.to_ascii_lowercase());
            own.filter_map(|literal| literals.binary_search(&literal).ok()).collect()
        });
        Self { digits: spec.digits, lists: lists.collect() }
    }

    /// Whether a text has this many digits, and of each list a literal that was found in it.
    fn are_met(&self, digits: usize, found: &[bool]) -> bool {
        self.digits <= digits
            && self.lists.iter().all(|list| list.iter().any(|literal| found[*literal]))
    }
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
            assert_eq!(prefilter.candidates(text), expected, "{text}");
        }
    }
}
