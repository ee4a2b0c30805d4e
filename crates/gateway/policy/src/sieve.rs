//! A first look at a text: which rules may match at all, for a fraction of what an automaton over all literals costs.
//!
//! It is two passes of table lookups, none of which waits for the one before it, as the steps of an automaton do:
//! 1. the text's marks: rules that need a digit, an `@` or a parenthesis mostly end here;
//! 2. windows of four bytes, compared with the beginnings of the words that the rules left over need.
//!
//! What is held back cannot match. Time is linear in any text: where the second pass finds little but beginnings of
//! words that go on otherwise it gives up, and leaves the text to the automaton.

use std::array;

use crate::marks::Marks;
use crate::rule_set::RuleSet;
use crate::spec::RuleSpec;

/// The second pass tells so many rules apart; of more rules, several share a bit.
const BITS: usize = u64::BITS as usize;

/// Letters, and kinds of other bytes.
const KINDS: usize = 32;
const OTHER: u8 = 31;

/// The second pass goes on by so many bytes at once.
const STEP: usize = 4;

/// A byte that no word has, for what is behind the end of a text.
const END: u8 = b' ';

static KIND: [u8; 256] = kinds();

const fn kinds() -> [u8; 256] {
    let mut table = [OTHER; 256];
    let mut byte = 0_u8;
    loop {
        let at = byte as usize;
        if byte.is_ascii_alphabetic() {
            table[at] = byte.to_ascii_lowercase() - b'a';
        } else if byte.is_ascii_digit() {
            table[at] = 26;
        } else if matches!(byte, b'_' | b'-') {
            table[at] = 27;
        } else if byte.is_ascii_punctuation() {
            table[at] = 28;
        } else if !byte.is_ascii() {
            table[at] = 29;
        }
        if byte == u8::MAX {
            return table;
        }
        byte += 1;
    }
}

/// Bits by two neighbours in a window.
type Pairs = Box<[u64; KINDS * KINDS]>;

/// What the rules need, as tables.
#[derive(Clone, Debug)]
pub(crate) struct Sieve {
    /// Marks of which a match has at least one, with the rules of which that is known.
    marked: Vec<(Marks, RuleSet)>,
    /// Least numbers of digits, ascending, with the rules that need them.
    digits: Vec<(usize, RuleSet)>,
    /// The rules that need one of a list of words.
    worded: RuleSet,
    /// Marks in the place of such a word, with the rules that they are as good for.
    excused: Vec<(Marks, RuleSet)>,
    /// The rules of which the sieve alone knows that their literals are there.
    settled: RuleSet,
    /// By bit: the rules, and their words in lower case.
    shelves: Vec<Shelf>,
    /// By the first two and the last two bytes of a window: bits which may have a word that begins so.
    heads: Pairs,
    tails: Pairs,
}

#[derive(Clone, Debug, Default)]
struct Shelf {
    rules: RuleSet,
    words: Vec<Box<[u8]>>,
}

/// The rules which may match.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sifted {
    /// All their literals are there.
    pub(crate) settled: RuleSet,
    /// Their literals may be there.
    pub(crate) open: RuleSet,
}

impl Sieve {
    pub(crate) fn new(specs: &[RuleSpec]) -> Self {
        let mut sieve = Self {
            marked: Vec::new(),
            digits: Vec::new(),
            worded: RuleSet::default(),
            excused: Vec::new(),
            settled: RuleSet::default(),
            shelves: vec![Shelf::default(); BITS],
            heads: Box::new([0; KINDS * KINDS]),
            tails: Box::new([0; KINDS * KINDS]),
        };
        for (at, spec) in specs.iter().enumerate() {
            sieve.add(at, spec);
        }
        sieve.digits.sort_by_key(|(least, _)| *least);
        sieve
    }

    fn add(&mut self, at: usize, spec: &RuleSpec) {
        if spec.digits > 0 {
            enter(&mut self.digits, spec.digits, at);
        }
        let mut words = None;
        let mut settled = true;
        for list in spec.lists().filter(|list| !list.is_empty()) {
            if let Some(marks) = Marks::of_each(list) {
                enter(&mut self.marked, marks, at);
                settled &= list.iter().all(|literal| literal.len() == 1 && !is_digit(literal));
            } else {
                settled &= words.is_none();
                words = words.or(Some(list));
            }
        }
        if let Some(words) = words {
            self.shelve(at, words);
        }
        if settled {
            self.settled.insert(at);
        }
    }

    fn shelve(&mut self, at: usize, words: &[String]) {
        let bit = self.worded.iter().count() % BITS;
        self.worded.insert(at);
        let (marked, plain): (Vec<_>, Vec<_>) =
            words.iter().cloned().partition(|word| Marks::of_rare(word).is_some());
        if let Some(marks) = Marks::of_each(&marked).filter(|_| !marked.is_empty()) {
            enter(&mut self.excused, marks, at);
        }
        for word in plain.iter().map(|word| word.to_ascii_lowercase().into_bytes()) {
            let kind = |at: usize| word.get(at).map(|byte| kind(*byte));
            set(&mut self.heads, [kind(0), kind(1)], bit);
            set(&mut self.tails, [kind(2), kind(3)], bit);
            self.shelves[bit].words.push(word.into_boxed_slice());
        }
        self.shelves[bit].rules.insert(at);
    }

    /// Of the rules `among`, those which may match in a text with these marks.
    pub(crate) fn sift(&self, text: &str, marks: Marks, among: RuleSet) -> Sifted {
        let mut left = self.with_enough_digits(text, marks, among);
        for (marked, rules) in &self.marked {
            if !marks.has_one_of(*marked) {
                left = left.without(*rules);
            }
        }
        let excused = self.excused.iter().filter(|(excuses, _)| marks.has_one_of(*excuses));
        let excused = excused.fold(RuleSet::default(), |all, (_, rules)| all | *rules & left);
        let worded = (left & self.worded).without(excused);
        let spoken =
            if worded.is_empty() { Some(worded) } else { self.spoken(text.as_bytes(), worded) };
        let settled = left.without(self.worded) | spoken.unwrap_or_default();
        let settled = settled & self.settled;
        let open = left.without(worded) | spoken.unwrap_or(worded);
        Sifted { settled, open: open.without(settled) }
    }

    fn with_enough_digits(&self, text: &str, marks: Marks, among: RuleSet) -> RuleSet {
        let count = || text.bytes().filter(u8::is_ascii_digit).count();
        let count = if marks.has_digit() { count() } else { 0 };
        let lacking = self.digits.iter().rev().take_while(|(least, _)| *least > count);
        lacking.fold(among, |left, (_, rules)| left.without(*rules))
    }

    /// Of the rules `among`, those of whose words at least one is in the text; none when that costs too much.
    fn spoken(&self, text: &[u8], among: RuleSet) -> Option<RuleSet> {
        let mut hunt = Hunt::new(self, text, self.bits(among));
        let (steps, rest) = text.get(3..).unwrap_or_default().as_chunks::<STEP>();
        let mut window = Window::of(text);
        for (nth, step) in steps.iter().enumerate() {
            let begun = window.slide(*step).map(|[head, tail]| self.heads[head] & self.tails[tail]);
            if begun.iter().fold(0, |all, bits| all | bits) & hunt.wanted != 0 {
                hunt.check(nth * STEP, begun)?;
            }
        }
        let mut ends = rest.iter().copied().chain([END; 3]);
        for nth in 0..2 {
            let step = array::from_fn(|_| ends.next().unwrap_or(END));
            let begun = window.slide(step).map(|[head, tail]| self.heads[head] & self.tails[tail]);
            hunt.check((steps.len() + nth) * STEP, begun)?;
        }
        Some(self.rules(hunt.spoken) & among)
    }

    /// Of the bits `begun`, those with a word that `rest` begins with.
    fn said(&self, rest: &[u8], begun: u64) -> u64 {
        let starts = |word: &[u8]| {
            rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
        };
        let has = |bit: &usize| self.shelves[*bit].words.iter().any(|word| starts(word));
        ones(begun).filter(has).fold(0, |said, bit| said | 1 << bit)
    }

    /// The bits behind which there is any of the rules.
    fn bits(&self, rules: RuleSet) -> u64 {
        let shelves = self.shelves.iter().enumerate();
        shelves.fold(0, |bits, (bit, shelf)| {
            bits | u64::from(!(shelf.rules & rules).is_empty()) << bit
        })
    }

    fn rules(&self, bits: u64) -> RuleSet {
        ones(bits).fold(RuleSet::default(), |rules, bit| rules | self.shelves[bit].rules)
    }
}

/// A place in a text, as the kinds of the three bytes from there on.
struct Window([usize; 3]);

impl Window {
    fn of(text: &[u8]) -> Self {
        Self(array::from_fn(|at| kind(text.get(at).copied().unwrap_or(END))))
    }

    /// Goes on by as many places as there are further bytes; gives the two pairs at each place left behind.
    fn slide(&mut self, further: [u8; STEP]) -> [[usize; 2]; STEP] {
        let mut kinds = [0; 3 + STEP];
        kinds[..3].copy_from_slice(&self.0);
        kinds[3..].copy_from_slice(&further.map(kind));
        self.0.copy_from_slice(&kinds[STEP..]);
        array::from_fn(|at| [pair(kinds[at], kinds[at + 1]), pair(kinds[at + 2], kinds[at + 3])])
    }
}

fn kind(byte: u8) -> usize {
    usize::from(KIND[usize::from(byte)])
}

const fn pair(first: usize, second: usize) -> usize {
    (first << 5 | second) & (KINDS * KINDS - 1)
}

/// The search for words in one text.
struct Hunt<'h> {
    sieve: &'h Sieve,
    text: &'h [u8],
    /// Bits without a word so far.
    wanted: u64,
    /// Bits with a word.
    spoken: u64,
    /// So many words more may begin and go on otherwise.
    patience: usize,
}

impl<'h> Hunt<'h> {
    const fn new(sieve: &'h Sieve, text: &'h [u8], wanted: u64) -> Self {
        Self { sieve, text, wanted, spoken: 0, patience: 32 + text.len() / 32 }
    }

    /// Looks at the places from `at` on, for words of the bits `begun` at each; none when patience is at its end.
    #[cold]
    fn check(&mut self, at: usize, begun: [u64; STEP]) -> Option<()> {
        for (begun, at) in begun.into_iter().zip(at..) {
            let begun = begun & self.wanted;
            let said = self.sieve.said(self.text.get(at..).unwrap_or_default(), begun);
            self.spoken |= said;
            self.wanted &= !said;
            self.patience = self.patience.checked_sub((begun & !said).count_ones() as usize)?;
        }
        Some(())
    }
}

fn is_digit(literal: &str) -> bool {
    literal.bytes().all(|byte| byte.is_ascii_digit())
}

fn enter<K: PartialEq>(list: &mut Vec<(K, RuleSet)>, key: K, rule: usize) {
    match list.iter_mut().find(|(known, _)| *known == key) {
        Some((_, rules)) => rules.insert(rule),
        None => list.push((key, [rule].into_iter().collect())),
    }
}

/// Sets a bit for a pair; what is behind a word's end may be anything.
fn set(pairs: &mut Pairs, [first, second]: [Option<usize>; 2], bit: usize) {
    for (at, bits) in pairs.iter_mut().enumerate() {
        let like = |wanted: Option<usize>, kind| wanted.is_none_or(|wanted| wanted == kind);
        if like(first, at / KINDS) && like(second, at % KINDS) {
            *bits |= 1 << bit;
        }
    }
}

/// The bits that are set, ascending.
fn ones(bits: u64) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(bits), |rest| Some(rest & rest.wrapping_sub(1)))
        .take_while(|rest| *rest != 0)
        .map(|rest| rest.trailing_zeros() as usize)
}
