//! Which rules can match at all: their literals are in the text, and so many digits as they need.

use std::array;

use aho_corasick::automaton::{Automaton as _, StateID};
use aho_corasick::dfa::DFA;
use aho_corasick::{Anchored, BuildError, MatchKind};

use crate::marks::Marks;
use crate::rule_set::RuleSet;
use crate::sieve::{Sieve, Sifted};
use crate::spec::RuleSpec;

/// A rule has so many lists of literals, of each of which one must occur.
const LISTS: usize = 3;

/// What a rule needs of a text before its pattern is worth running.
#[derive(Clone, Debug)]
pub(crate) struct Prefilter {
    sieve: Sieve,
    /// Over the distinct literals, without regard to ASCII case.
    literals: DFA,
    start: Option<StateID>,
    /// By literal: the rules of which it satisfies the first, the second and the third list.
    satisfied: Vec<[RuleSet; LISTS]>,
    /// The rules which have no such list.
    free: [RuleSet; LISTS],
}

impl Prefilter {
    /// # Errors
    /// When the literals together are too many for an automaton.
    pub(crate) fn new(specs: &[RuleSpec]) -> Result<Self, BuildError> {
        let lower = |literal: &String| literal.to_ascii_lowercase();
        let mut distinct: Vec<String> =
            specs.iter().flat_map(RuleSpec::lists).flatten().map(lower).collect();
        distinct.sort();
        distinct.dedup();
        let having = |nth: usize, literal: &str| -> RuleSet {
            let has = |list: &[String]| list.iter().any(|own| lower(own) == literal);
            those(specs, |spec| spec.lists().nth(nth).is_some_and(has))
        };
        // A full table costs a megabyte, and is the fastest of all automata.
        let literals = DFA::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .build(&distinct)?;
        Ok(Self {
            sieve: Sieve::new(specs),
            start: literals.start_state(Anchored::No).ok(),
            literals,
            satisfied: distinct.iter().map(|own| array::from_fn(|nth| having(nth, own))).collect(),
            free: array::from_fn(|nth| {
                those(specs, |spec| spec.lists().nth(nth).is_some_and(<[_]>::is_empty))
            }),
        })
    }

    /// Of the rules `among`, those which can match in `text`, whose marks are given.
    pub(crate) fn candidates(&self, text: &str, marks: Marks, among: RuleSet) -> RuleSet {
        let Sifted { settled, open } = self.sieve.sift(text, marks, among);
        if open.is_empty() { settled } else { settled | self.satisfied_by(text) & open }
    }

    /// All rules whose literals are in a text.
    fn satisfied_by(&self, text: &str) -> RuleSet {
        let mut lists = self.free;
        self.hits(text, |literal| {
            let satisfied = self.satisfied.get(literal).copied().unwrap_or_default();
            lists.iter_mut().zip(satisfied).for_each(|(list, rules)| *list |= rules);
        });
        let [first, second, third] = lists;
        first & second & third
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
}

fn those(specs: &[RuleSpec], wanted: impl Fn(&RuleSpec) -> bool) -> RuleSet {
    specs.iter().enumerate().filter(|(_, spec)| wanted(spec)).map(|(at, _)| at).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;
    use crate::corpus::entries;
    use crate::load;
    use crate::policy::BUILTIN;

    static SPECS: LazyLock<Vec<RuleSpec>> = LazyLock::new(|| {
        let files = BUILTIN.into_iter().filter_map(|file| load::read(file).ok()).flatten();
        files.map(|(_, spec)| spec).collect()
    });

    static PREFILTER: LazyLock<Prefilter> = LazyLock::new(|| Prefilter::new(&SPECS).unwrap());

    /// What the sieve must come to, without it: the words of each list looked for one by one.
    fn plainly(specs: &[RuleSpec], text: &str) -> RuleSet {
        let text = text.to_ascii_lowercase();
        let digits = text.bytes().filter(u8::is_ascii_digit).count();
        let said = |list: &[String]| {
            list.is_empty() || list.iter().any(|word| text.contains(&word.to_ascii_lowercase()))
        };
        those(specs, |spec| spec.digits <= digits && spec.lists().all(said))
    }

    fn everything() -> RuleSet {
        (0..RuleSet::CAPACITY).collect()
    }

    fn check(text: &str) {
        let (prefilter, specs) = (&*PREFILTER, &*SPECS);
        let all = prefilter.candidates(text, Marks::of(text), everything());
        let names = |rules: RuleSet| rules.iter().map(|at| &*specs[at].id).collect::<Vec<_>>();
        assert_eq!(names(all), names(plainly(specs, text)), "{text}");
        // Asked for a part of the rules, it says the same of them.
        for part in [0, 1, 2] {
            let among: RuleSet = (0..specs.len()).filter(|at| at % 3 == part).collect();
            let some = prefilter.candidates(text, Marks::of(text), among);
            assert_eq!(names(some), names(all & among), "{part}: {text}");
        }
    }

    #[test]
    fn the_sieve_changes_no_answer_on_the_corpus_and_the_examples() {
        for entry in entries() {
            check(&entry.text);
        }
        for spec in SPECS.iter() {
            for text in spec.positive.iter().chain(&spec.negative).chain(&spec.evasion) {
                check(text);
            }
        }
    }

    #[test]
    fn the_sieve_changes_no_answer_on_hostile_texts() {
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
        fn the_sieve_changes_no_answer(picks in prop::collection::vec(any::<(u16, u16)>(), 0..20), noise in any::<String>()) {
            let words: Vec<&String> = SPECS.iter().flat_map(RuleSpec::lists).flatten().collect();
            // Words of the rules, whole, cut short and in capitals, between others.
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
