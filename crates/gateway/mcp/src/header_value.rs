//! Values of headers that repeat a text of the body: texts other than plain ASCII are encoded as
//! `=?base64?...?=`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const START: &str = "=?base64?";
const END: &str = "?=";

/// The value for a text.
pub(crate) fn encode(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let is_marked = text.starts_with(START) && text.ends_with(END);
    if is_plain && text.trim() == text && !is_marked {
        return text.to_owned();
    }
    format!("{START}{}{END}", STANDARD.encode(text))
}

/// The text of a value; `None` if it is malformed, or in another form than the output of
/// [`encode`].
pub(crate) fn decode(value: &str) -> Option<String> {
    match value.strip_prefix(START).and_then(|rest| rest.strip_suffix(END)) {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_in_base64_are_decoded_and_only_in_their_one_form() {
        // Encoded with coreutils' base64.
        for (value, text) in [
            ("plain", Some("plain")),
            ("=?base64?SGVsbG8sIOS4lueVjA==?=", Some("Hello, 世界")),
            ("=?base64?IHBhZGRlZCA=?=", Some(" padded ")),
            ("=?base64??=", Some("")),
            ("=?base64?IHBhZGRlZCB=?=", None),
            ("=?base64?SGVsbG8?=", None),
            ("=?base64?*abc?=", None),
            ("=?base64?/w==?=", None),
        ] {
            assert_eq!(decode(value).as_deref(), text, "{value}");
        }
        assert_eq!(encode("Hello, 世界"), "=?base64?SGVsbG8sIOS4lueVjA==?=");
        assert_eq!(encode("a b"), "a b");
    }

    proptest! {
        #[test]
        fn every_text_comes_back(text in any::<String>()) {
            let value = encode(&text);
            prop_assert!(value.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{}", value);
            prop_assert_eq!(decode(&value), Some(text));
        }
    }
}
