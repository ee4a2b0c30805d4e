//! Finds the end of a JSON string, or the next escape in it.

/// The position of the first quote or backslash.
pub fn find_quote_or_backslash(bytes: &[u8]) -> Option<usize> {
    memchr::memchr2(b'"', b'\\', bytes)
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
