//! The first stage of the prefilter: which rules can match, at a fraction of the cost of an
//! Aho-Corasick automaton over all literals.
//!
//! It makes two passes of independent table lookups; in an automaton every step waits for the one
//! before it:
//! 1. the byte classes of the text: most rules that need a digit, an `@` or a parenthesis are ruled
//!    out here;
//! 2. windows of four bytes, two bytes apart, compared with the beginnings of the words that the
//!    remaining rules need. A word that begins at an odd position is in the window that begins
//!    within it, or just before it.
//!
//! A rule that is filtered out cannot match. Time is linear in any text: if the second pass finds
//! too many beginnings of words without the words, it gives up and leaves the text to the
//! automaton.

use std::array;

use crate::byte_classes::ByteClasses;
use crate::rule_bitset::RuleBitSet;
use crate::spec::RuleSpec;

/// The number of rules that the second pass tells apart; if there are more, rules share a bucket.
const BUCKETS: usize = u64::BITS as usize;

/// The number of symbols that bytes are mapped to.
const SYMBOLS: usize = 1 << SYMBOL_BITS;
/// A byte's symbol is its lowest bits, so that a letter has the same one in both cases. Other bytes
/// share theirs with letters, which costs a comparison where they stand in for one.
const SYMBOL_BITS: u32 = 5;

/// The number of bytes per step of the second pass.
const STEP: usize = size_of::<u64>();

/// A byte that no word has, to pad the end of the text.
const PADDING: u8 = b' ';

/// The buckets with a word whose window has a pair of symbols.
#[derive(Clone, Copy, Debug, Default)]
struct PairBuckets {
    /// As its first and second byte.
    head: u64,
    /// As its third and fourth byte.
    tail: u64,
}

/// The literals of all rules, as tables.
#[derive(Clone, Debug)]
pub(crate) struct NgramFilter {
    /// Byte classes of which every match has at least one, and the rules for which that holds.
    class_rules: Vec<(ByteClasses, RuleBitSet)>,
    /// Minimum numbers of digits, ascending, and the rules that need them.
    digit_rules: Vec<(usize, RuleBitSet)>,
    /// The rules that need one of a list of words.
    word_rules: RuleBitSet,
    /// Byte classes that stand for the words that contain them. Such words are not in the buckets:
    /// their rules remain possible in every text that has one of the classes.
    word_classes: Vec<(ByteClasses, RuleBitSet)>,
    /// The rules whose literals this filter checks completely, so that no automaton is needed.
    exact_rules: RuleBitSet,
    /// The rules of each bucket and their words.
    buckets: Vec<Bucket>,
    /// By pair of symbols.
    pairs: Box<[PairBuckets; SYMBOLS * SYMBOLS]>,
}

#[derive(Clone, Debug, Default)]
struct Bucket {
    rules: RuleBitSet,
    /// In lower case.
    words: Vec<Box<[u8]>>,
}

/// The rules that can match.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidates {
    /// All their literals are in the text.
    pub(crate) certain: RuleBitSet,
    /// Their literals may be in the text.
    pub(crate) possible: RuleBitSet,
}

impl NgramFilter {
    pub(crate) fn new(specs: &[RuleSpec]) -> Self {
        let mut filter = Self {
            class_rules: Vec::new(),
            digit_rules: Vec::new(),
            word_rules: RuleBitSet::default(),
            word_classes: Vec::new(),
            exact_rules: RuleBitSet::default(),
            buckets: vec![Bucket::default(); BUCKETS],
            pairs: Box::new([PairBuckets::default(); SYMBOLS * SYMBOLS]),
        };
        for (at, spec) in specs.iter().enumerate() {
            filter.add_rule(at, spec);
        }
        filter.digit_rules.sort_by_key(|(least, _)| *least);
        filter
    }

    fn add_rule(&mut self, at: usize, spec: &RuleSpec) {
        if spec.digits > 0 {
            insert(&mut self.digit_rules, spec.digits, at);
        }
        let mut words = None;
        let mut exact = true;
        for list in spec.lists().filter(|list| !list.is_empty()) {
            if let Some(classes) = ByteClasses::of_each(list) {
                insert(&mut self.class_rules, classes, at);
                exact &= list.iter().all(|literal| literal.len() == 1 && !is_digits(literal));
            } else {
                exact &= words.is_none();
                words = words.or(Some(list));
            }
        }
        if let Some(words) = words {
            self.add_words(at, words);
        }
        if exact {
            self.exact_rules.insert(at);
        }
    }

    fn add_words(&mut self, at: usize, words: &[String]) {
        let bucket = self.word_rules.iter().count() % BUCKETS;
        self.word_rules.insert(at);
        let (with_class, plain): (Vec<_>, Vec<_>) =
            words.iter().cloned().partition(|word| ByteClasses::of_rare(word).is_some());
        if let Some(classes) = ByteClasses::of_each(&with_class).filter(|_| !with_class.is_empty())
        {
            insert(&mut self.word_classes, classes, at);
        }
        for word in plain.iter().map(|word| word.to_ascii_lowercase().into_bytes()) {
            self.add_windows(&word, bucket);
            self.buckets[bucket].words.push(word.into_boxed_slice());
        }
        self.buckets[bucket].rules.insert(at);
    }

    /// Adds the window of a word that begins at an even position, and that of one at an odd one.
    fn add_windows(&mut self, word: &[u8], bucket: usize) {
        let odd = if word.len() > 4 {
            symbols(word, 1)
        } else {
            // Too short: the window begins with the byte before the word.
            let [first, second, third, _] = symbols(word, 0);
            [None, first, second, third]
        };
        for [first, second, third, fourth] in [symbols(word, 0), odd] {
            for (pair, buckets) in self.pairs.iter_mut().enumerate() {
                buckets.head |= u64::from(is_pair(pair, [first, second])) << bucket;
                buckets.tail |= u64::from(is_pair(pair, [third, fourth])) << bucket;
            }
        }
    }

    /// The rules of `among` that can match in a text with these byte classes.
    pub(crate) fn candidates(
        &self,
        text: &str,
        classes: ByteClasses,
        among: RuleBitSet,
    ) -> Candidates {
        let mut left = self.with_enough_digits(text, classes, among);
        for (needed, rules) in &self.class_rules {
            if !classes.has_one_of(*needed) {
                left = left.without(*rules);
            }
        }
        let by_class = self.word_classes.iter().filter(|(needed, _)| classes.has_one_of(*needed));
        let by_class = by_class.fold(RuleBitSet::default(), |all, (_, rules)| all | *rules & left);
        let unknown = (left & self.word_rules).without(by_class);
        let found =
            if unknown.is_empty() { Some(unknown) } else { self.search(text.as_bytes(), unknown) };
        let certain = left.without(self.word_rules) | found.unwrap_or_default();
        let certain = certain & self.exact_rules;
        let possible = left.without(unknown) | found.unwrap_or(unknown);
        Candidates { certain, possible: possible.without(certain) }
    }

    fn with_enough_digits(
        &self,
        text: &str,
        classes: ByteClasses,
        among: RuleBitSet,
    ) -> RuleBitSet {
        let count =
            if classes.has_digit() { text.bytes().filter(u8::is_ascii_digit).count() } else { 0 };
        let lacking = self.digit_rules.iter().rev().take_while(|(least, _)| *least > count);
        lacking.fold(among, |left, (_, rules)| left.without(*rules))
    }

    /// The rules of `among` with at least one of their words in the text; None if that costs too
    /// much to find out.
    fn search(&self, text: &[u8], among: RuleBitSet) -> Option<RuleBitSet> {
        let mut search = WordSearch::new(self, text, self.buckets_of(among));
        let (steps, rest) = text.as_chunks::<STEP>();
        let mut end = [PADDING; 2 * STEP];
        end[..rest.len()].copy_from_slice(rest);
        let (ends, _) = end.as_chunks::<STEP>();
        let mut last = pairs([PADDING; STEP])[0];
        steps.iter().chain(ends).enumerate().try_for_each(|(nth, step)| {
            let [first, second, third, fourth] = pairs(*step);
            let windows = [[last, first], [first, second], [second, third], [third, fourth]];
            last = fourth;
            let buckets = windows.map(|pairs| self.lookup(pairs));
            if buckets.iter().fold(0, |all, bits| all | bits) & search.wanted == 0 {
                return Some(());
            }
            search.check(nth * STEP, buckets)
        })?;
        Some(self.rules_of(search.found) & among)
    }

    /// The buckets with a word that may have these four bytes.
    fn lookup(&self, [head, tail]: [usize; 2]) -> u64 {
        self.pairs[head].head & self.pairs[tail].tail
    }

    /// Of the buckets, those with a word that `rest` begins with.
    fn with_word_at(&self, rest: &[u8], buckets: u64) -> u64 {
        ones(buckets)
            .filter(|bucket: &usize| {
                self.buckets[*bucket].words.iter().any(|word| begins_with(rest, word))
            })
            .fold(0, |found, bucket| found | 1 << bucket)
    }

    /// The buckets that contain any of the rules.
    fn buckets_of(&self, rules: RuleBitSet) -> u64 {
        self.buckets.iter().enumerate().fold(0, |bits, (at, bucket)| {
            bits | u64::from(!(bucket.rules & rules).is_empty()) << at
        })
    }

    fn rules_of(&self, buckets: u64) -> RuleBitSet {
        ones(buckets).fold(RuleBitSet::default(), |rules, at| rules | self.buckets[at].rules)
    }
}

/// The four pairs of symbols of a step.
fn pairs(step: [u8; STEP]) -> [usize; STEP / 2] {
    const ONE: u64 = 0x001f_001f_001f_001f;
    let bytes = u64::from_le_bytes(step);
    let pairs = (bytes & ONE) << SYMBOL_BITS | bytes >> 8 & ONE;
    let pairs = pairs.to_le_bytes();
    let (pairs, _) = pairs.as_chunks();
    array::from_fn(|nth| usize::from(u16::from_le_bytes(pairs[nth])) & (SYMBOLS * SYMBOLS - 1))
}

fn symbol(byte: u8) -> usize {
    usize::from(byte) & (SYMBOLS - 1)
}

/// Whether a text begins with a word, in any case.
fn begins_with(text: &[u8], word: &[u8]) -> bool {
    text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

/// Four symbols of a word from a place on; None behind its end.
fn symbols(word: &[u8], from: usize) -> [Option<usize>; 4] {
    array::from_fn(|at| word.get(from + at).map(|byte| symbol(*byte)))
}

/// Whether a pair has these symbols; None stands for any.
fn is_pair(pair: usize, [first, second]: [Option<usize>; 2]) -> bool {
    first.is_none_or(|first| first == pair >> SYMBOL_BITS)
        && second.is_none_or(|second| second == pair & (SYMBOLS - 1))
}

/// The search for words in one text.
struct WordSearch<'s> {
    filter: &'s NgramFilter,
    text: &'s [u8],
    /// The buckets of which no word was found yet.
    wanted: u64,
    /// The buckets of which a word was found.
    found: u64,
    /// How many more windows may pass the pair tables without a word there, before the search gives
    /// up.
    misses_left: usize,
}

impl<'s> WordSearch<'s> {
    const fn new(filter: &'s NgramFilter, text: &'s [u8], wanted: u64) -> Self {
        Self { filter, text, wanted, found: 0, misses_left: 32 + text.len() / 32 }
    }

    /// Checks the windows of a step of which `at` is the first byte, the first of them two bytes
    /// before it, against the words of the given buckets; None to give up.
    #[cold]
    fn check(&mut self, at: usize, buckets: [u64; STEP / 2]) -> Option<()> {
        for (buckets, end) in buckets.into_iter().zip((at..).step_by(2)) {
            let buckets = buckets & self.wanted;
            // A word begins with its window, or with the byte before or after it.
            let starts = end.saturating_sub(3)..end;
            let found = starts.fold(0, |found, start| {
                let rest = self.text.get(start..).unwrap_or_default();
                found | self.filter.with_word_at(rest, buckets & !found)
            });
            self.found |= found;
            self.wanted &= !found;
            let misses = (buckets & !found).count_ones() as usize;
            self.misses_left = self.misses_left.checked_sub(misses)?;
        }
        Some(())
    }
}

fn is_digits(literal: &str) -> bool {
    literal.bytes().all(|byte| byte.is_ascii_digit())
}

/// Adds a rule to the set with this key.
fn insert<K: PartialEq>(list: &mut Vec<(K, RuleBitSet)>, key: K, rule: usize) {
    match list.iter_mut().find(|(known, _)| *known == key) {
        Some((_, rules)) => rules.insert(rule),
        None => list.push((key, [rule].into_iter().collect())),
    }
}

/// The bits that are set, ascending.
fn ones(bits: u64) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(bits), |rest| Some(rest & rest.wrapping_sub(1)))
        .take_while(|rest| *rest != 0)
        .map(|rest| rest.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(rules: &[&str]) -> NgramFilter {
        let fields = "category: pii, description: d, pattern: x";
        let specs = rules
            .iter()
            .map(|rule| serde_saphyr::from_str(&format!("{{id: r, {fields}, {rule}}}")).unwrap());
        NgramFilter::new(&specs.collect::<Vec<RuleSpec>>())
    }

    /// The certain and the possible rules.
    fn candidates(rules: &[&str], text: &str) -> (Vec<usize>, Vec<usize>) {
        let among = (0..rules.len()).collect();
        let Candidates { certain, possible } =
            filter(rules).candidates(text, ByteClasses::from_text(text), among);
        (certain.iter().collect(), possible.iter().collect())
    }

    #[test]
    fn rules_need_their_digits_their_byte_classes_and_their_words() {
        let rules = [
            "digits: 4",
            "literals: ['@']",
            "literals: [select, drop]",
            "literals: [union], and: [select]",
        ];
        let rows: [(&str, &[usize], &[usize]); 7] = [
            ("nothing of interest", &[], &[]),
            ("123 and 4", &[0], &[]),
            ("a@b", &[1], &[]),
            ("please DROP it", &[2], &[]),
            ("select", &[2], &[]),
            // The automaton decides whether the second list is satisfied too.
            ("a union", &[], &[3]),
            ("drops of select unions", &[2], &[3]),
        ];
        for (text, certain, possible) in rows {
            assert_eq!(candidates(&rules, text), (certain.to_vec(), possible.to_vec()), "{text}");
        }
    }

    #[test]
    fn after_too_many_misses_the_automaton_decides() {
        let rules = ["literals: [selection]"];
        assert_eq!(candidates(&rules, "select"), (Vec::new(), Vec::new()));
        assert_eq!(candidates(&rules, &"sele ".repeat(1_000)), (Vec::new(), vec![0]));
    }

    #[test]
    fn words_shorter_than_a_window_match_at_the_end() {
        let rules = ["literals: [or, dan]"];
        for text in ["or", "x or", "xx dan", "a dan b", "door"] {
            assert_eq!(candidates(&rules, text).0, [0], "{text}");
        }
        assert_eq!(candidates(&rules, "o r da n"), (Vec::new(), Vec::new()));
    }

    #[test]
    fn words_of_any_length_match_at_any_position() {
        let word = "pkwbfmzq";
        for length in 1..=word.len() {
            let (word, rule) = (&word[..length], format!("literals: [{}]", &word[..length]));
            for (at, after) in (0..200).map(|nth| (nth / 10, nth % 10)) {
                let text = [&"x".repeat(at), word, &"x".repeat(after)].concat();
                assert_eq!(candidates(&[&rule], &text).0, [0], "{text}");
                let without = text.replace(word, &"x".repeat(length));
                assert_eq!(candidates(&[&rule], &without), (Vec::new(), Vec::new()));
            }
        }
    }

    #[test]
    fn ones_lists_the_set_bits() {
        assert_eq!(ones(1 << 63 | 0b1001).collect::<Vec<_>>(), [0, 3, 63]);
        assert_eq!(ones(0).count(), 0);
    }
}
