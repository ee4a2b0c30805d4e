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

// Writes JSON strings directly into the request's buffer.

/// Appends `text` as the content of a JSON string, without quotes, so that pieces can be joined.
/// Text that needs no escape is copied in long runs.
pub(crate) fn push_escaped(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    loop {
        let (clean, tail) = rest.split_at(unescaped_len(rest));
        out.extend_from_slice(clean);
        let Some((&byte, after)) = tail.split_first() else { return };
        push_escape(out, byte);
        rest = after;
    }
}

/// The same for text that needs no escapes.
pub(crate) fn push_plain(out: &mut Vec<u8>, text: &str) {
    debug_assert_eq!(unescaped_len(text.as_bytes()), text.len(), "{text}");
    out.extend_from_slice(text.as_bytes());
}

/// Appends `text` as a JSON string.
pub(crate) fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    push_escaped(out, text);
    out.push(b'"');
}

fn push_escape(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => {
            let [high, low] = [byte >> 4, byte & 0xF].map(|nibble| HEX[usize::from(nibble)]);
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
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

#[cfg(test)]
mod json_writer_tests {
    use super::*;
    use proptest::prelude::*;

    fn string(text: &str) -> String {
        let mut out = Vec::new();
        push_string(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_required_characters_are_escaped() {
        for (text, json) in [
            ("", r#""""#),
            ("plain", r#""plain""#),
            ("say \"hi\"", r#""say \"hi\"""#),
            ("C:\\dir", r#""C:\\dir""#),
            ("a\nb\r\tc", r#""a\nb\r\tc""#),
            ("\u{0}\u{1f}\u{8}", r#""\u0000\u001f\u0008""#),
            ("naïve 漢字 🚢 \u{7f}\u{2028}/", "\"naïve 漢字 🚢 \u{7f}\u{2028}/\""),
        ] {
            assert_eq!(string(text), json, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_round_trips(text in any::<String>()) {
            prop_assert_eq!(serde_json::from_str::<String>(&string(&text)).unwrap(), text);
        }
    }
}
