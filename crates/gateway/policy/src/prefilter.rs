//! Selects the rules that can match: their literals are in the text, and enough digits.

use std::array;

use aho_corasick::automaton::{Automaton as _, StateID};
use aho_corasick::dfa::DFA;
use aho_corasick::{Anchored, BuildError, MatchKind};

use crate::byte_classes::ByteClasses;
use crate::ngram_filter::{Candidates, NgramFilter};
use crate::rule_bitset::RuleBitSet;
use crate::spec::RuleSpec;

/// The number of literal lists of a rule. One literal of each list must be in the text.
const LISTS: usize = 3;

/// The conditions that a text must meet before a rule's pattern runs.
#[derive(Clone, Debug)]
pub(crate) struct Prefilter {
    ngram_filter: NgramFilter,
    /// Finds all distinct literals, ignoring ASCII case.
    literals: DFA,
    start: Option<StateID>,
    /// For each literal: the rules of which it satisfies the first, second and third list.
    satisfied: Vec<[RuleBitSet; LISTS]>,
    /// For the first, second and third list: the rules without it.
    unconditional: [RuleBitSet; LISTS],
}

impl Prefilter {
    /// # Errors
    /// The literals are too many for an automaton.
    pub(crate) fn new(specs: &[RuleSpec]) -> Result<Self, BuildError> {
        let literals = specs.iter().flat_map(RuleSpec::lists).flatten();
        let mut distinct: Vec<String> =
            literals.map(|literal| literal.to_ascii_lowercase()).collect();
        distinct.sort();
        distinct.dedup();
        // A DFA takes about a megabyte and is the fastest automaton.
        let literals = DFA::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .build(&distinct)?;
        Ok(Self {
            ngram_filter: NgramFilter::new(specs),
            start: literals.start_state(Anchored::No).ok(),
            literals,
            satisfied: distinct
                .iter()
                .map(|own| array::from_fn(|nth| rules_with(specs, nth, own)))
                .collect(),
            unconditional: array::from_fn(|nth| {
                matching(specs, |spec| spec.lists().nth(nth).is_some_and(<[_]>::is_empty))
            }),
        })
    }

    /// The rules of `among` that can match in a text with these byte classes.
    pub(crate) fn candidates(
        &self,
        text: &str,
        classes: ByteClasses,
        among: RuleBitSet,
    ) -> RuleBitSet {
        let Candidates { certain, possible } = self.ngram_filter.candidates(text, classes, among);
        if possible.is_empty() { certain } else { certain | self.satisfied_by(text) & possible }
    }

    /// All rules whose literals are in a text.
    fn satisfied_by(&self, text: &str) -> RuleBitSet {
        let mut lists = self.unconditional;
        self.find_literals(text, |literal| {
            let satisfied = self.satisfied.get(literal).copied().unwrap_or_default();
            lists.iter_mut().zip(satisfied).for_each(|(list, rules)| *list |= rules);
        });
        let [first, second, third] = lists;
        first & second & third
    }

    /// Calls `found` with the number of every literal in the text, overlapping ones included. This
    /// loop replaces the library's iterator, which takes three times as long because it can stop
    /// after every match.
    fn find_literals(&self, text: &str, mut found: impl FnMut(usize)) {
        // Every automaton that is built as above has an unanchored start.
        let Some(mut state) = self.start else { return };
        for byte in text.bytes() {
            state = self.literals.next_state(Anchored::No, state, byte);
            if self.literals.is_special(state) && self.literals.is_match(state) {
                let matches = 0..self.literals.match_len(state);
                matches.for_each(|nth| found(self.literals.match_pattern(state, nth).as_usize()));
            }
        }
    }
}

fn matching(specs: &[RuleSpec], wanted: impl Fn(&RuleSpec) -> bool) -> RuleBitSet {
    specs.iter().enumerate().filter(|(_, spec)| wanted(spec)).map(|(at, _)| at).collect()
}

/// The rules whose list of this number has this literal, which is in small letters.
fn rules_with(specs: &[RuleSpec], nth: usize, literal: &str) -> RuleBitSet {
    matching(specs, |spec| {
        let list = spec.lists().nth(nth);
        list.is_some_and(|list| list.iter().any(|own| own.to_ascii_lowercase() == literal))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;
    use crate::compile::{BUILTIN, parse};
    use crate::corpus::examples;

    static SPECS: LazyLock<Vec<RuleSpec>> = LazyLock::new(|| {
        let files = BUILTIN.into_iter().filter_map(|file| parse(file).ok()).flatten();
        files.map(|(_, spec)| spec).collect()
    });

    static PREFILTER: LazyLock<Prefilter> = LazyLock::new(|| Prefilter::new(&SPECS).unwrap());

    /// The expected result: the literals of each list, searched one by one.
    fn search_plainly(specs: &[RuleSpec], text: &str) -> RuleBitSet {
        let text = text.to_ascii_lowercase();
        let digits = text.bytes().filter(u8::is_ascii_digit).count();
        matching(specs, |spec| {
            spec.digits <= digits
                && spec.lists().all(|list: &[String]| {
                    list.is_empty()
                        || list.iter().any(|word| text.contains(&word.to_ascii_lowercase()))
                })
        })
    }

    fn all_rules() -> RuleBitSet {
        (0..RuleBitSet::CAPACITY).collect()
    }

    fn check(text: &str) {
        let (prefilter, specs) = (&*PREFILTER, &*SPECS);
        let all = prefilter.candidates(text, ByteClasses::from_text(text), all_rules());
        let names = |rules: RuleBitSet| rules.iter().map(|at| &*specs[at].id).collect::<Vec<_>>();
        assert_eq!(names(all), names(search_plainly(specs, text)), "{text}");
        // A subset of the rules gives the same result for that subset.
        for part in [0, 1, 2] {
            let among: RuleBitSet = (0..specs.len()).filter(|at| at % 3 == part).collect();
            let some = prefilter.candidates(text, ByteClasses::from_text(text), among);
            assert_eq!(names(some), names(all & among), "{part}: {text}");
        }
    }

    #[test]
    fn the_prefilter_is_exact_on_the_corpus_and_the_examples() {
        for example in examples() {
            check(&example.text);
        }
        for spec in SPECS.iter() {
            for text in spec.positive.iter().chain(&spec.negative).chain(&spec.evasion) {
                check(text);
            }
        }
    }

    #[test]
    fn the_prefilter_is_exact_on_hostile_texts() {
        let pieces = [
            "ignor ",
            "ign",
            "restrictio",
            "unio",
            "1",
            "@",
            "or",
            "\u{e9}",
            "nÉ",
            "忽",
            "dan",
            "a\0",
        ];
        for (first, second) in pieces.iter().flat_map(|a| pieces.map(|b| (a, b))) {
            for tail in ["", "union select", "ignore previous instruction", "né 1234"] {
                check(&format!("{}{}{tail}", first.repeat(99), second.repeat(99)));
            }
        }
    }

    #[test]
    fn a_word_is_found_wherever_it_stands() {
        for word in SPECS.iter().flat_map(RuleSpec::lists).flatten() {
            for place in 0..24 {
                let (before, after) = ("x".repeat(place / 4), "y".repeat(place % 4));
                check(&[&before, word.as_str(), &after].concat());
            }
        }
    }

    proptest! {
        #[test]
        fn the_prefilter_is_exact_on_random_texts(picks in prop::collection::vec(any::<(u16, u16)>(), 0..20), noise in any::<String>()) {
            let words: Vec<&String> = SPECS.iter().flat_map(RuleSpec::lists).flatten().collect();
            // Words of the rules, whole, cut short and in capitals, between other words.
            let mut text = noise;
            for (pick, how) in picks {
                let word = words[usize::from(pick) % words.len()];
                let end = word.floor_char_boundary(usize::from(how >> 4) % (word.len() + 1));
                match how % 4 {
                    0 => text.push_str(word),
                    1 => text.push_str(&word.to_ascii_uppercase()),
                    2 => text.push_str(&word[..end]),
                    _ => text.extend([" ", &how.to_string(), " "]),
                }
            }
            check(&text);
        }
    }
}
