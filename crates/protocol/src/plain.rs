//! How much of a text needs no escape in JSON: looked for in blocks, for it is most of every prompt and answer.

/// Bytes examined at once: enough for the compiler to use vector instructions.
const BLOCK: usize = 32;
const WORD: usize = size_of::<u64>();
/// A word of eight bytes `0x01`.
const ONES: u64 = u64::MAX / 0xFF;
/// A word of eight bytes `0x80`.
const HIGHS: u64 = ONES << 7;

/// Length of the longest start of `bytes` that stands in a JSON string as it is (RFC 8259, section 7).
pub(crate) fn plain_len(bytes: &[u8]) -> usize {
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let start = BLOCK * blocks.iter().take_while(|&block| is_plain(block)).count();
    let (words, rest) = bytes[start..].as_chunks::<WORD>();
    let mut at = start;
    for word in words {
        let specials = specials(u64::from_le_bytes(*word));
        if specials != 0 {
            return at + specials.trailing_zeros() as usize / 8;
        }
        at += WORD;
    }
    at + rest.iter().position(|&byte| is_special(byte)).unwrap_or(rest.len())
}

const fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Without an early exit: this is what lets it become a few vector comparisons.
fn is_plain(block: &[u8; BLOCK]) -> bool {
    block.iter().fold(0, |any, &byte| any | u8::from(is_special(byte))) == 0
}

/// The lowest bit set marks the first special byte of a word: bit 7 of the byte at that place. (Bytes after it may be
/// marked wrongly, as the subtractions borrow from one byte to the next. Mycroft's test for a zero byte.)
const fn specials(word: u64) -> u64 {
    let quote = word ^ (ONES * b'"' as u64);
    let backslash = word ^ (ONES * b'\\' as u64);
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    let quote = quote.wrapping_sub(ONES) & !quote;
    let backslash = backslash.wrapping_sub(ONES) & !backslash;
    (control | quote | backslash) & HIGHS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_byte_is_told_at_every_place() {
        let special = |byte| byte < 0x20 || byte == 0x22 || byte == 0x5C;
        let places = (0..80).flat_map(|before| [0, 1, 7, 40].map(|after| (before, after)));
        for (byte, (before, after)) in
            (0..=u8::MAX).flat_map(|byte| places.clone().map(move |at| (byte, at)))
        {
            let text = [vec![b'x'; before], vec![byte], vec![b'y'; after]].concat();
            let expected = [text.len(), before][usize::from(special(byte))];
            assert_eq!(plain_len(&text), expected, "{byte:#x} after {before}");
        }
    }

    proptest! {
        #[test]
        fn the_first_special_byte_is_found(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let first = bytes.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\');
            prop_assert_eq!(plain_len(&bytes), first.unwrap_or(bytes.len()));
        }
    }
}
