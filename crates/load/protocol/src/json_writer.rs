//! Writes JSON strings directly into the request's buffer.

use crate::json_escape::unescaped_len;

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
