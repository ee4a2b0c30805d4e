//! Normalised variants of a text, to find obfuscated matches.
//!
//! The original is always scanned too, so a rule about the obfuscation itself still matches. Case
//! is not folded: patterns ignore it unless their rule says `exact`. A text in which nothing is
//! encoded has no variants and costs one pass over its bytes.
//!
//! A variant is made in these steps: up to three rounds of decoding percent, HTML and backslash
//! escapes; NFKC, without zero-width characters and stray marks, and with Cyrillic and Greek
//! confusables replaced by Latin letters; SQL comments replaced by a space; runs of white space
//! collapsed. If a comment is inside a word, a second variant joins the parts of the word.
//! [`words`] is a further variant, for prose only.

mod comments;
mod confusables;
mod escapes;
mod fold;
mod offset_map;
mod words;

pub(crate) use fold::fold_character;
use offset_map::MappedText;

/// The maximum nesting of escapes that is decoded. No server behind the gateway would decode more.
const ROUNDS: usize = 3;

/// The variants of a text.
#[derive(Debug, Default)]
pub(crate) struct Variants {
    /// With comments replaced by a space; None if that does not change the text.
    pub(crate) spaced: Option<MappedText>,
    /// With comments removed; None if no comment is inside a word.
    pub(crate) joined: Option<MappedText>,
}

impl Variants {
    /// All variants.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &MappedText> {
        self.spaced.iter().chain(&self.joined)
    }
}

/// The text, or its normalised variant, with identifiers split into their words; None if it has no
/// identifier of several words.
pub(crate) fn words(text: &str, variants: &Variants) -> Option<MappedText> {
    match &variants.spaced {
        Some(spaced) => words::split(spaced),
        None => words::is_joined(text).then(|| words::split(&MappedText::new(text))).flatten(),
    }
}

/// The variants of a text.
pub(crate) fn variants(text: &str) -> Variants {
    if !is_encoded(text) {
        return Variants::default();
    }
    let mut decoded = MappedText::new(text);
    for _ in 0..ROUNDS {
        let Some(next) = escapes::decode(&decoded) else { break };
        decoded = next;
    }
    let folded = fold::fold(&decoded);
    let joined =
        comments::is_inside_word(&folded).then(|| fold::collapse(&comments::strip(&folded, "")));
    let spaced = fold::collapse(&comments::strip(&folded, " "));
    // Most suspicious bytes are typographic quotes and umlauts. A variant that equals the original
    // needs no second scan.
    let spaced = (spaced.text() != text).then_some(spaced);
    Variants { spaced, joined }
}

/// Whether any step could change the text.
fn is_encoded(text: &str) -> bool {
    !text.is_ascii()
        || text.bytes().any(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace())
        || text.contains("/*")
        || escapes::has_escapes(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spaced(text: &str) -> String {
        variants(text).spaced.map_or_else(|| text.to_owned(), |mapped| mapped.text().to_owned())
    }

    #[test]
    fn obfuscated_texts_are_normalised() {
        let rows = [
            ("percent escapes", "a%27%20OR%201", "a' OR 1"),
            ("twice encoded", "a%2527", "a'"),
            ("percent and four digits", "%u0027x", "'x"),
            ("HTML by name and number", "&lt;b&gt; &#39;x&#x27;", "<b> 'x'"),
            ("backslash escapes", r"\x27 \u0041\u{42}", "' AB"),
            ("full width", "ＵＮＩＯＮ select", "UNION select"),
            ("zero width", "un\u{200b}ion", "union"),
            ("small capitals", "\u{26a}\u{262}\u{274}\u{1d0f}\u{280}\u{1d07}", "ignore"),
            ("letters in squares", "\u{1f178}\u{1f176}\u{1f17d}", "IGN"),
            ("letters of flags", "\u{1f1ee}\u{1f1ec}\u{1f1f3}", "IGN"),
            ("letters in filled circles", "\u{1f158}\u{1f156}\u{1f15d}", "IGN"),
            ("letters in circles", "\u{24d8}\u{24d6}\u{24dd}", "ign"),
            ("strokes", "ign\u{f8}re", "ignore"),
            ("mathematical letters", "\u{1d422}\u{1d420}\u{1d427}", "ign"),
            ("tags", "\u{e0069}\u{e0067}\u{e006e}", "ign"),
            ("Cyrillic confusables", "D\u{420}\u{41e}P", "DPOP"),
            ("combining strokes", "d\u{336}rop", "drop"),
            ("a comment is a space", "union/**/select", "union select"),
            ("a versioned comment keeps its text", "/*!50000union*/ select", " union select"),
            ("white space collapses", "é  \u{a0}x", "é x"),
            ("plus is a space where there is none", "union+select", "union select"),
            ("an accent stays", "cafe\u{301}", "café"),
        ];
        for (case, text, expected) in rows {
            assert_eq!(spaced(text), expected, "{case}");
        }
    }

    #[test]
    fn a_comment_inside_a_word_is_also_removed() {
        let joined = variants("UN/**/ION SELECT").joined.unwrap();
        assert_eq!(joined.text(), "UNION SELECT");
        assert!(variants("UNION /**/ SELECT").joined.is_none());
    }

    #[test]
    fn plain_texts_have_no_variants() {
        for text in ["", "100 % sure & happy", "a * b + c", "tab\there\r\n", "R&D; yes", "C:\\dir"]
        {
            assert!(variants(text).spaced.is_none(), "{text}");
        }
    }

    #[test]
    fn ranges_lead_back_to_the_original() {
        let text = "é d\u{200b}rop%20x";
        let mapped = variants(text).spaced.unwrap();
        assert_eq!(mapped.text(), "é drop x");
        let at = mapped.text().find("drop").unwrap();
        assert_eq!(&text[mapped.origin(&(at..at + 4))], "d\u{200b}rop");
        assert_eq!(&text[mapped.origin(&(at + 4..at + 5))], "%20");
    }
}
