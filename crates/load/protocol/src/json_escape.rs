//! Finds the prefix of a text that needs no escape in a JSON string. Most of every prompt and
//! response needs none, so the search uses vector instructions.

use memchr::memchr2;

/// Bytes searched at once. Limited, because the search restarts after each escape, and a text can
/// have many short lines.
const CHUNK: usize = 512;
const WORD: usize = size_of::<u64>();
/// A word of eight bytes `0x01`.
const ONES: u64 = u64::MAX / 0xFF;

/// Length of the longest prefix of `bytes` that needs no escape in a JSON string (RFC 8259, section
/// 7).
#[inline]
pub(crate) fn unescaped_len(bytes: &[u8]) -> usize {
    // Short strings, such as names and numbers, end before a long search would have started.
    let mut at = 0;
    for word in bytes.as_chunks::<WORD>().0.iter().take(2) {
        let specials = specials(u64::from_le_bytes(*word));
        if specials != 0 {
            return at + specials.trailing_zeros() as usize / 8;
        }
        at += WORD;
    }
    at + unescaped_len_of_long(&bytes[at..])
}

fn unescaped_len_of_long(bytes: &[u8]) -> usize {
    let mut at = 0;
    for chunk in bytes.chunks(CHUNK) {
        let clean = &chunk[..memchr2(b'"', b'\\', chunk).unwrap_or(chunk.len())];
        let length = len_without_controls(clean);
        at += length;
        if length < chunk.len() {
            break;
        }
    }
    at
}

/// Length of the longest prefix without a control character.
fn len_without_controls(bytes: &[u8]) -> usize {
    // A minimum without an early exit compiles to vector instructions. Control characters are rare.
    if bytes.iter().fold(u8::MAX, |lowest, &byte| lowest.min(byte)) >= b' ' {
        return bytes.len();
    }
    bytes.iter().position(|&byte| byte < b' ').unwrap_or(bytes.len())
}

/// The lowest set bit marks the first special byte of a word: it is bit 7 of that byte. Later bytes
/// can be marked wrongly, because the subtractions borrow from one byte to the next (Mycroft's test
/// for a zero byte).
const fn specials(word: u64) -> u64 {
    let quote = word ^ (ONES * b'"' as u64);
    let backslash = word ^ (ONES * b'\\' as u64);
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    let quote = quote.wrapping_sub(ONES) & !quote;
    let backslash = backslash.wrapping_sub(ONES) & !backslash;
    (control | quote | backslash) & (ONES << 7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_byte_is_classified_at_every_position() {
        let special = |byte| byte < 0x20 || byte == 0x22 || byte == 0x5C;
        let places =
            (0..80).chain(520..540).flat_map(|before| [0, 1, 7, 40].map(|after| (before, after)));
        for (byte, (before, after)) in
            (0..=u8::MAX).flat_map(|byte| places.clone().map(move |at| (byte, at)))
        {
            let text = [vec![b'x'; before], vec![byte], vec![b'y'; after]].concat();
            let expected = [text.len(), before][usize::from(special(byte))];
            assert_eq!(unescaped_len(&text), expected, "{byte:#x} after {before}");
        }
    }

    proptest! {
        #[test]
        fn the_first_special_byte_is_found(bytes in prop::collection::vec(any::<u8>(), 0..200), spaces in 0usize..2_000) {
            let bytes = [vec![b' '; spaces], bytes].concat();
            let first = bytes.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\');
            prop_assert_eq!(unescaped_len(&bytes), first.unwrap_or(bytes.len()));
        }
    }
}
