//! Readings of a text with its disguises taken off, beside the original and never instead of it.
//!
//! The original is always scanned as it stands, so that no rule depends on a stage before it:
//! case is not folded anywhere (patterns ignore it themselves unless their rule says `exact`), and
//! a rule about the disguise itself still sees it. A text in which nothing is encoded has no
//! further reading and costs one pass over its bytes.
//!
//! A further reading is made by, in this order: up to three rounds of decoding percent, HTML and
//! backslash escapes; NFKC, with zero-width characters and stray marks removed and Cyrillic and
//! Greek look-alikes read as Latin; SQL comments replaced by a space; runs of white space
//! collapsed. Where a comment stands inside a word, one more reading joins the parts.

mod comments;
mod escapes;
mod fold;
mod look_alikes;
mod mapped;

pub(crate) use mapped::Mapped;

/// Escapes inside escapes are taken off this often; deeper nesting is not something that a server
/// behind the gateway would undo.
const ROUNDS: usize = 3;

/// The readings of a text beside the original.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    /// Comments read as white space; none when the original has no disguise.
    pub(crate) spaced: Option<Mapped>,
    /// Comments inside of words read as nothing; none when there is no such comment.
    pub(crate) joined: Option<Mapped>,
}

impl Readings {
    /// All readings, the simplest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Mapped> {
        self.spaced.iter().chain(&self.joined)
    }
}

/// The readings of `text` beside itself, of which some byte is [`suspicious`]; of others there are none.
pub(crate) fn readings(text: &str) -> Readings {
    if !disguised(text) {
        return Readings::default();
    }
    let mut decoded = Mapped::of(text);
    for _ in 0..ROUNDS {
        let Some(next) = escapes::decode(&decoded) else { break };
        decoded = next;
    }
    let folded = fold::fold(&decoded);
    let joined =
        comments::inside_a_word(&folded).then(|| fold::collapse(&comments::strip(&folded, "")));
    let spaced = fold::collapse(&comments::strip(&folded, " "));
    // Most of what looks disguised is a typographic quote or an umlaut: nothing that a second scan
    // could find unless something changed.
    let spaced = (spaced.text() != text).then_some(spaced);
    Readings { spaced, joined }
}

/// Whether a byte may belong to a disguise.
pub(crate) const fn suspicious(byte: u8) -> bool {
    !matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e)
        || matches!(byte, b'%' | b'&' | b'\\' | b'*' | b'+')
}

/// Whether any stage could change the text.
fn disguised(text: &str) -> bool {
    !text.is_ascii()
        || text.bytes().any(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace())
        || text.contains("/*")
        || escapes::present(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spaced(text: &str) -> String {
        readings(text).spaced.map_or_else(|| text.to_owned(), |mapped| mapped.text().to_owned())
    }

    #[test]
    fn disguises_come_off() {
        let rows = [
            ("percent escapes", "a%27%20OR%201", "a' OR 1"),
            ("twice over", "a%2527", "a'"),
            ("percent and four digits", "%u0027x", "'x"),
            ("HTML by name and number", "&lt;b&gt; &#39;x&#x27;", "<b> 'x'"),
            ("backslash escapes", r"\x27 \u0041\u{42}", "' AB"),
            ("full width", "ＵＮＩＯＮ select", "UNION select"),
            ("zero width", "un\u{200b}ion", "union"),
            ("Cyrillic look-alikes", "D\u{420}\u{41e}P", "DPOP"),
            ("combining strokes", "d\u{336}rop", "drop"),
            ("a comment is a space", "union/**/select", "union select"),
            ("a versioned comment is its text", "/*!50000union*/ select", " union select"),
            ("white space collapses", "é  \u{a0}x", "é x"),
            ("plus is a space where there is none", "union+select", "union select"),
            ("an accent stays", "cafe\u{301}", "café"),
        ];
        for (what, text, expected) in rows {
            assert_eq!(spaced(text), expected, "{what}");
        }
    }

    #[test]
    fn a_comment_inside_a_word_is_also_read_as_nothing() {
        let joined = readings("UN/**/ION SELECT").joined.unwrap();
        assert_eq!(joined.text(), "UNION SELECT");
        assert!(readings("UNION /**/ SELECT").joined.is_none());
    }

    #[test]
    fn plain_texts_have_no_further_reading() {
        for text in ["", "100 % sure & happy", "a * b + c", "tab\there\r\n", "R&D; yes", "C:\\dir"]
        {
            assert!(readings(text).spaced.is_none(), "{text}");
        }
    }

    #[test]
    fn ranges_lead_back_to_the_original() {
        let text = "é d\u{200b}rop%20x";
        let mapped = readings(text).spaced.unwrap();
        assert_eq!(mapped.text(), "é drop x");
        let at = mapped.text().find("drop").unwrap();
        assert_eq!(&text[mapped.origin(&(at..at + 4))], "d\u{200b}rop");
        assert_eq!(&text[mapped.origin(&(at + 4..at + 5))], "%20");
    }
}
