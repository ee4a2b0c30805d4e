//! The classes of rare bytes in a text, found in one pass of independent table lookups.

use crate::normalise::is_suspicious;

/// A set of byte classes: one for each ASCII punctuation mark, one for digits, and one for bytes
/// that may be part of an obfuscation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ByteClasses(u64);

const DIGIT: u64 = 1 << 62;
const SUSPICIOUS: u64 = 1 << 63;

/// Marks that are common in prose. A literal with another mark is recognised by that one.
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
        if is_suspicious(byte) {
            table[at] |= SUSPICIOUS;
        }
        if byte == u8::MAX {
            return table;
        }
        byte += 1;
    }
}

impl ByteClasses {
    /// The classes of all bytes of a text.
    pub(crate) fn from_text(text: &str) -> Self {
        let (chunks, rest) = text.as_bytes().as_chunks::<4>();
        // Four independent accumulators, so that the steps can overlap.
        let sums = chunks.iter().fold([0; 4], |sums, chunk| {
            [
                sums[0] | class_of(chunk[0]),
                sums[1] | class_of(chunk[1]),
                sums[2] | class_of(chunk[2]),
                sums[3] | class_of(chunk[3]),
            ]
        });
        let all = rest.iter().fold(0, |sum, byte| sum | class_of(*byte));
        Self(sums.iter().fold(all, |all, sum| all | sum))
    }

    /// One class for each literal; None if a literal has only letters.
    pub(crate) fn of_each(literals: &[String]) -> Option<Self> {
        literals.iter().try_fold(Self::default(), |classes, literal| {
            let one = Self::of_rare(literal).or_else(|| literal.bytes().find_map(Self::of_byte))?;
            Some(Self(classes.0 | one.0))
        })
    }

    /// The class of the first byte of a literal that is rare in prose.
    pub(crate) fn of_rare(literal: &str) -> Option<Self> {
        literal.bytes().filter(|byte| !COMMON.contains(byte)).find_map(Self::of_byte)
    }

    /// The class of a punctuation mark or digit.
    fn of_byte(byte: u8) -> Option<Self> {
        Some(Self(TABLE[usize::from(byte)] & !SUSPICIOUS)).filter(|classes| classes.0 != 0)
    }

    pub(crate) const fn has_digit(self) -> bool {
        self.0 & DIGIT != 0
    }

    /// Whether any byte may be part of an obfuscation.
    pub(crate) const fn is_suspicious(self) -> bool {
        self.0 & SUSPICIOUS != 0
    }

    /// Whether the two sets have a class in common.
    pub(crate) const fn has_one_of(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }
}

/// The classes of a byte.
const fn class_of(byte: u8) -> u64 {
    TABLE[byte as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(literals: &[&str]) -> Option<ByteClasses> {
        ByteClasses::of_each(
            &literals.iter().map(|literal| (*literal).to_owned()).collect::<Vec<_>>(),
        )
    }

    #[test]
    fn a_text_has_the_classes_of_all_its_bytes() {
        let rows = [
            ("", "@", false),
            ("abcde@", "@", true),
            ("@bcde", "@", true),
            ("a#b", "@", false),
            ("abc 7", "0x", true),
        ];
        for (text, literal, expected) in rows {
            assert_eq!(
                ByteClasses::from_text(text).has_one_of(each(&[literal]).unwrap()),
                expected,
                "{text}"
            );
        }
        assert!(
            ByteClasses::from_text("a 1").has_digit() && !ByteClasses::from_text("a,").has_digit()
        );
        assert!(
            ByteClasses::from_text("caf\u{e9}").is_suspicious()
                && !ByteClasses::from_text("it's 5 (five).\n").is_suspicious()
        );
    }

    #[test]
    fn a_list_with_a_plain_word_has_no_classes() {
        assert!(each(&["@", "at"]).is_none());
        assert_eq!(each(&["'@"]), each(&["@"]));
        assert!(ByteClasses::from_text("x=1").has_one_of(each(&["<", "="]).unwrap()));
    }
}
