//! Which rules can match at all: one pass over the text for the literals of all rules.

use aho_corasick::{AhoCorasick, AhoCorasickKind, BuildError, MatchKind};

use crate::rule_set::RuleSet;
use crate::spec::RuleSpec;

/// What a rule needs of a text before its pattern is worth running.
#[derive(Clone, Debug)]
pub(crate) struct Prefilter {
    /// Over the distinct literals, without regard to ASCII case.
    literals: AhoCorasick,
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
        Ok(Self {
            // A full table costs a megabyte and halves the time against the default choice.
            literals: AhoCorasick::builder()
                .ascii_case_insensitive(true)
                .match_kind(MatchKind::Standard)
                .kind(Some(AhoCorasickKind::DFA))
                .build(&distinct)?,
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
        for hit in self.literals.find_overlapping_iter(text) {
            let at = hit.pattern().as_usize();
            first |= self.first.get(at).copied().unwrap_or_default();
            second |= self.second.get(at).copied().unwrap_or_default();
        }
        let candidates = first & second & among;
        if candidates.is_empty() { candidates } else { self.with_enough_digits(text, candidates) }
    }

    fn with_enough_digits(&self, text: &str, candidates: RuleSet) -> RuleSet {
        let count = text.bytes().filter(u8::is_ascii_digit).count();
        self.digits
            .iter()
            .filter(|(least, _)| count < *least)
            .fold(candidates, |left, (_, rules)| left.without(*rules))
    }
}
