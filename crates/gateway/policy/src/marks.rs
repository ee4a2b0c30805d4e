//! Which kinds of rare bytes a text has: one pass of table lookups that do not wait for each other.

use crate::normalise::suspicious;

/// A set of kinds of bytes: each punctuation mark of ASCII, digits, and whatever may be a disguise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks(u64);

const DIGIT: u64 = 1 << 62;
const DISGUISE: u64 = 1 << 63;

/// Marks that prose has in every other sentence: a rule's literal with another mark is known by that one.
const COMMON: &[u8] = b".,-'";

static TABLE: [u64; 256] = table();

const fn table() -> [u64; 256] {
    let mut table = [0; 256];
    let (mut byte, mut bit) = (0_u8, 0);
    loop {
        let at = byte as usize;
        if byte.is_ascii_punctuation() {
            table[at] |= 1 << bit;
            bit += 1;
        }
        if byte.is_ascii_digit() {
            table[at] |= DIGIT;
        }
        if suspicious(byte) {
            table[at] |= DISGUISE;
        }
        if byte == u8::MAX {
            return table;
        }
        byte += 1;
    }
}

impl Marks {
    /// All marks of a text.
    pub(crate) fn of(text: &str) -> Self {
        let of = |byte: u8| TABLE[usize::from(byte)];
        let (chunks, rest) = text.as_bytes().as_chunks::<4>();
        // Four sums side by side, as each waits for its last step only.
        let sums = chunks.iter().fold([0; 4], |sums, chunk| {
            [
                sums[0] | of(chunk[0]),
                sums[1] | of(chunk[1]),
                sums[2] | of(chunk[2]),
                sums[3] | of(chunk[3]),
            ]
        });
        let all = rest.iter().fold(0, |sum, byte| sum | of(*byte));
        Self(sums.iter().fold(all, |all, sum| all | sum))
    }

    /// One mark of each literal; none when one of them has no mark.
    pub(crate) fn of_each(literals: &[String]) -> Option<Self> {
        literals.iter().try_fold(Self::default(), |marks, literal| {
            let one = Self::of_rare(literal).or_else(|| literal.bytes().find_map(Self::of_byte))?;
            Some(Self(marks.0 | one.0))
        })
    }

    /// A mark of a literal that prose has seldom.
    pub(crate) fn of_rare(literal: &str) -> Option<Self> {
        literal.bytes().filter(|byte| !COMMON.contains(byte)).find_map(Self::of_byte)
    }

    /// A punctuation mark or digit.
    fn of_byte(byte: u8) -> Option<Self> {
        Some(Self(TABLE[usize::from(byte)] & !DISGUISE)).filter(|marks| marks.0 != 0)
    }

    pub(crate) const fn has_digit(self) -> bool {
        self.0 & DIGIT != 0
    }

    /// Whether any byte may belong to a disguise.
    pub(crate) const fn is_suspicious(self) -> bool {
        self.0 & DISGUISE != 0
    }

    /// Whether there is one of `these`.
    pub(crate) const fn has_one_of(self, these: Self) -> bool {
        self.0 & these.0 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(literals: &[&str]) -> Option<Marks> {
        Marks::of_each(&literals.iter().map(|literal| (*literal).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_text_has_the_marks_of_all_its_bytes() {
        let rows = [
            ("", "@", false),
            ("abcde@", "@", true),
            ("@bcde", "@", true),
            ("a#b", "@", false),
            ("abc 7", "0x", true),
        ];
        for (text, literal, expected) in rows {
            assert_eq!(Marks::of(text).has_one_of(each(&[literal]).unwrap()), expected, "{text}");
        }
        assert!(Marks::of("a 1").has_digit() && !Marks::of("a,").has_digit());
        assert!(
            Marks::of("caf\u{e9}").is_suspicious()
                && !Marks::of("it's 5 (five).\n").is_suspicious()
        );
    }

    #[test]
    fn lists_with_a_plain_word_have_no_marks() {
        assert!(each(&["@", "at"]).is_none());
        assert_eq!(each(&["'@"]), each(&["@"]));
        assert!(Marks::of("x=1").has_one_of(each(&["<", "="]).unwrap()));
    }
}
