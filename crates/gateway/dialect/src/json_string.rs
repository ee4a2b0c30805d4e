//! Finds the end of a JSON string, or the next escape in it.

use memchr::memchr2;

/// The position of the first quote or backslash. Most strings are names, which end within the first
/// word: there, a call of the library takes longer to begin than to search.
pub fn find_quote_or_backslash(bytes: &[u8]) -> Option<usize> {
    let Some((word, rest)) = bytes.split_first_chunk() else { return memchr2(b'"', b'\\', bytes) };
    let word = u128::from_le_bytes(*word);
    match zeros(word ^ each(b'"')) | zeros(word ^ each(b'\\')) {
        0 => memchr2(b'"', b'\\', rest).map(|at| at + size_of::<u128>()),
        found => Some(found.trailing_zeros() as usize / 8),
    }
}

/// A word of this byte.
const fn each(byte: u8) -> u128 {
    u128::from_ne_bytes([byte; 16])
}

/// The highest bit of each byte that is zero. Bytes above the lowest one may have theirs set, too.
const fn zeros(word: u128) -> u128 {
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
