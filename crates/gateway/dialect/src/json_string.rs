//! Finds the end of a JSON string, or the next escape in it.

use memchr::memchr2;

/// The bytes at the beginning that are searched here. Most strings are shorter: names, identifiers
/// and the words of a protocol, for which [`memchr2`] takes longer to begin than to search.
const SHORT: usize = 2 * size_of::<u64>();

/// The position of the first quote or backslash.
pub fn find_quote_or_backslash(bytes: &[u8]) -> Option<usize> {
    let (words, _) = bytes.as_chunks();
    for (nth, word) in words.iter().take(SHORT / size_of::<u64>()).enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = zeros(word ^ each(b'"')) | zeros(word ^ each(b'\\'));
        if found != 0 {
            return Some(nth * size_of::<u64>() + found.trailing_zeros() as usize / 8);
        }
    }
    let searched = bytes.len().min(SHORT) / size_of::<u64>() * size_of::<u64>();
    memchr2(b'"', b'\\', bytes.get(searched..)?).map(|found| searched + found)
}

/// The byte eight times.
const fn each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// The highest bit of each byte that is zero. Bytes above the lowest one of these may have theirs
/// set, too.
const fn zeros(word: u64) -> u64 {
    word.wrapping_sub(each(1)) & !word & each(0x80)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_one_is_found_wherever_it_is(bytes in prop::collection::vec(prop::sample::select(b"\"\\!#[]a\x00\xa2\xdc\x80".to_vec()), 0..4), fill in 0..40_usize, byte in any::<u8>()) {
            let bytes = [vec![byte; fill], bytes, vec![byte; 40 - fill]].concat();
            let expected = bytes.iter().position(|byte| matches!(byte, b'"' | b'\\'));
            prop_assert_eq!(find_quote_or_backslash(&bytes), expected);
            prop_assert_eq!(find_quote_or_backslash(&bytes[..fill]), expected.filter(|at| *at < fill));
        }
    }
}
