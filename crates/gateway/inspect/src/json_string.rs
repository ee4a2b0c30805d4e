//! The escapes of JSON strings.

use std::borrow::Cow;

/// The text of a JSON string, given the bytes between its quotes. Invalid escapes are passed on
/// literally, and half a surrogate pair becomes U+FFFD, so that an error hides nothing.
pub(crate) fn decode(inside: &str) -> Cow<'_, str> {
    let Some(first) = memchr::memchr(b'\\', inside.as_bytes()) else {
        return Cow::Borrowed(inside);
    };
    let mut text = String::with_capacity(inside.len());
    let (before, mut rest) = inside.split_at(first);
    text.push_str(before);
    while let Some(escape) = rest.strip_prefix('\\') {
        rest = unescape(escape, &mut text);
        let end = memchr::memchr(b'\\', rest.as_bytes()).unwrap_or(rest.len());
        let (plain, after) = rest.split_at(end);
        text.push_str(plain);
        rest = after;
    }
    Cow::Owned(text)
}

/// Appends the character of the escape whose backslash is before `escape`; returns the rest.
fn unescape<'a>(escape: &'a str, text: &mut String) -> &'a str {
    let mut rest = escape.chars();
    match rest.next() {
        Some('n') => text.push('\n'),
        Some('t') => text.push('\t'),
        Some('r') => text.push('\r'),
        Some('b') => text.push('\u{8}'),
        Some('f') => text.push('\u{c}'),
        Some('u') => return unescape_unicode(rest.as_str(), text),
        Some(other) => text.push(other),
        None => {}
    }
    rest.as_str()
}

/// Like [`unescape`], after `\u`.
fn unescape_unicode<'a>(digits: &'a str, text: &mut String) -> &'a str {
    let Some((first, rest)) = unit(digits) else {
        text.push('u');
        return digits;
    };
    if let Some(character) = char::from_u32(first) {
        text.push(character);
        return rest;
    }
    let second = rest.strip_prefix("\\u").and_then(unit);
    let pair = second.and_then(|(second, rest)| {
        let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
        let high = first.checked_sub(0xd800).filter(|high| *high < 0x400)?;
        Some((char::from_u32(0x1_0000 + (high << 10 | low))?, rest))
    });
    let (character, rest) = pair.unwrap_or((char::REPLACEMENT_CHARACTER, rest));
    text.push(character);
    rest
}

/// The number of four hexadecimal digits, and the rest.
fn unit(text: &str) -> Option<(u32, &str)> {
    let (digits, rest) = text.split_at_checked(4)?;
    let valid = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    Some((u32::from_str_radix(digits, 16).ok().filter(|_| valid)?, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escapes_are_decoded_and_errors_stand_for_themselves() {
        let rows = [
            ("plain", "plain"),
            (r#"a\n\t\"\\\/\u0041"#, "a\n\t\"\\/A"),
            (r"\ud83d\ude00!", "\u{1f600}!"),
            (r"\ud83d!", "\u{fffd}!"),
            (r"\ud83d\u0041", "\u{fffd}A"),
            (r"\u12", "u12"),
            (r"\u+041", "u+041"),
            (r"\q", "q"),
        ];
        for (inside, expected) in rows {
            assert_eq!(decode(inside), expected, "{inside}");
        }
    }

    proptest! {
        #[test]
        fn what_serde_decodes_is_decoded_to_the_same(json in "\"([a-z\"]|\\\\[nrtbf/\"\\\\]|\\\\u[0-9a-f]{4}|\\\\ud83d\\\\ude0[0-9]){0,12}\"") {
            if let Ok(text) = serde_json::from_str::<String>(&json) {
                prop_assert_eq!(decode(&json[1..json.len() - 1]), text);
            }
        }
    }
}
