//! How much of a text needs no escape in JSON: looked for with vector instructions, for it is most of every prompt and answer.

use memchr::memchr2;

/// Bytes looked through at once. A bound, because a text of many short lines is begun anew behind each of them.
const CHUNK: usize = 512;
const WORD: usize = size_of::<u64>();
/// A word of eight bytes `0x01`.
const ONES: u64 = u64::MAX / 0xFF;

/// Length of the longest start of `bytes` that stands in a JSON string as it is (RFC 8259, section 7).
#[inline]
pub(crate) fn plain_len(bytes: &[u8]) -> usize {
    // Names and numbers: over before a search has begun.
    let mut at = 0;
    for word in bytes.as_chunks::<WORD>().0.iter().take(2) {
        let specials = specials(u64::from_le_bytes(*word));
        if specials != 0 {
            return at + specials.trailing_zeros() as usize / 8;
        }
        at += WORD;
    }
    at + plain_len_of_long(&bytes[at..])
}

fn plain_len_of_long(bytes: &[u8]) -> usize {
    let mut at = 0;
    for chunk in bytes.chunks(CHUNK) {
        let plain = &chunk[..memchr2(b'"', b'\\', chunk).unwrap_or(chunk.len())];
        let length = controlless_len(plain);
        at += length;
        if length < chunk.len() {
            break;
        }
    }
    at
}

/// Length of the longest start without a control character.
fn controlless_len(bytes: &[u8]) -> usize {
    // A smallest byte, without an early exit, is what vector instructions are good at; hardly ever is there more to do.
    if bytes.iter().fold(u8::MAX, |lowest, &byte| lowest.min(byte)) >= b' ' {
        return bytes.len();
    }
    bytes.iter().position(|&byte| byte < b' ').unwrap_or(bytes.len())
}

/// The lowest bit set marks the first special byte of a word: bit 7 of the byte at that place. (Bytes after it may be
/// marked wrongly, as the subtractions borrow from one byte to the next. Mycroft's test for a zero byte.)
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
    fn every_byte_is_told_at_every_place() {
        let special = |byte| byte < 0x20 || byte == 0x22 || byte == 0x5C;
        let places =
            (0..80).chain(520..540).flat_map(|before| [0, 1, 7, 40].map(|after| (before, after)));
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
        fn the_first_special_byte_is_found(bytes in prop::collection::vec(any::<u8>(), 0..200), spaces in 0usize..2_000) {
            let bytes = [vec![b' '; spaces], bytes].concat();
            let first = bytes.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\');
            prop_assert_eq!(plain_len(&bytes), first.unwrap_or(bytes.len()));
        }
    }
}
