//! Normalised variants of a text, to find obfuscated matches.
//!
//! The original is always scanned too, so a rule about the obfuscation itself still matches. Case
//! is not folded: patterns ignore it unless their rule says `exact`. A text without encoded
//! characters has no variants and costs one pass over its bytes.
//!
//! A variant is made in these steps: up to three rounds of decoding percent, HTML and backslash
//! escapes; NFKC, without zero-width characters and stray marks, and with Cyrillic and Greek
//! confusables replaced by Latin letters; SQL comments replaced by a space; runs of white space
//! collapsed. If a comment is inside a word, a second variant joins the parts of the word.
//! [`words`] is a further variant, for prose only.

mod comments;
mod escapes;
mod fold;
mod words;

use std::ops::Range;

pub(crate) use fold::fold_character;

/// The maximum nesting of escapes to decode. Servers behind the gateway decode no more.
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

/// Whether any step could change the text. Most texts have no byte that is part of such a change.
fn is_encoded(text: &str) -> bool {
    text.bytes().fold(false, |any, byte| any | is_suspicious(byte))
        && (!text.is_ascii()
            || text.bytes().any(is_control)
            || text.contains("/*")
            || escapes::has_escapes(text))
}

/// Without a `match`, whose cases the compiler takes byte by byte.
const fn is_suspicious(byte: u8) -> bool {
    byte >= 128
        || is_control(byte)
        || byte == b'*'
        || byte == b'%'
        || byte == b'&'
        || byte == b'\\'
        || byte == b'+'
}

const fn is_control(byte: u8) -> bool {
    byte < 32 && !(9 <= byte && byte <= 13) || byte == 11 || byte == 127
}

/// The ASCII character that `character` looks like.
fn latin(character: char) -> Option<char> {
    match character as u32 {
        0x2010..=0x2015 | 0x2212 => Some('-'),
        0x2018..=0x201b | 0x2032 | 0x2b9 | 0x2bc => Some('\''),
        0x201c..=0x201f | 0x2033 => Some('"'),
        0x2044 | 0x2215 => Some('/'),
        // Tag characters, which are invisible, spell ASCII.
        0xe0020..=0xe007e => char::from_u32(character as u32 - 0xe_0000),
        0x370..=0x3ff => look_up(character, GREEK),
        0x400..=0x52f => look_up(character, CYRILLIC),
        // Letters in filled circles and squares, and regional indicators.
        code @ (0x1f150..=0x1f169 | 0x1f170..=0x1f189 | 0x1f1e6..=0x1f1ff) => {
            let first = [0x1f1e6, 0x1f170, 0x1f150].into_iter().find(|first| code >= *first)?;
            char::from_u32(code - first + u32::from('A'))
        }
        0xa0..=0x36f | 0x530..=0x58f | 0x13a0..=0x1dff | 0xa4d0..=0xab6f => {
            look_up(character, SHAPES)
        }
        _ => None,
    }
}

/// Letters, and below each the Latin letter that it resembles.
const GREEK: [&str; 2] = ["ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαεικνορτυχ", "ABEZHIKMNOPTYXaeikvoptux"];
const CYRILLIC: [&str; 2] =
    ["АВЕКМНОРСТУҮХІЈЅавекмопрстухіјѕһԁԛԝг", "ABEKMHOPCTYYXIJSabekmonpctyxijshdqwr"];

/// Small capitals; Latin letters with a stroke or of another alphabet; Armenian, Cherokee, Lisu.
const SHAPES: [&str; 2] = [
    "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢıɑɡøđłħŧɨɩսոօցհᎪᏴᏟᎠᎬᏀᎻᎢᎫᏦᏞᎷᏢᎡᏚᏙᏔꓮꓐꓚꓓꓰꓝꓖꓧꓲꓙꓗꓡꓟꓠꓳꓑꓣꓢꓔꓴꓦꓪꓫꓬꓜ",
    "abcdefghijklmnoprstuvwyziagodlhtiiunoghABCDEGHTJKLMPRSVWABCDEFGHIJKLMNOPRSTUVWXYZ",
];

fn look_up(character: char, [letters, latin]: [&str; 2]) -> Option<char> {
    latin.chars().nth(letters.chars().position(|letter| letter == character)?)
}

/// A transformed text and, for each byte, the range of original bytes behind it.
#[derive(Clone, Debug, Default)]
pub(crate) struct MappedText {
    text: String,
    /// For each byte of `text`: start and end in the original. Both are ascending.
    origins: Vec<(usize, usize)>,
}

impl MappedText {
    /// The original itself.
    pub(crate) fn new(text: &str) -> Self {
        let mut mapped = Self::with_capacity(text.len());
        for (at, character) in text.char_indices() {
            mapped.push(character, (at, at + character.len_utf8()));
        }
        mapped
    }

    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self { text: String::with_capacity(bytes), origins: Vec::with_capacity(bytes) }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Appends a character that replaces `origin`.
    pub(crate) fn push(&mut self, character: char, origin: (usize, usize)) {
        self.text.push(character);
        self.origins.resize(self.text.len(), origin);
    }

    /// Appends a part of another text unchanged. The range must be on character boundaries.
    pub(crate) fn copy(&mut self, from: &Self, range: Range<usize>) {
        self.text.push_str(from.text.get(range.clone()).unwrap_or_default());
        self.origins.extend_from_slice(from.origins.get(range).unwrap_or_default());
    }

    /// The range of the original behind a range of this text.
    pub(crate) fn origin(&self, range: &Range<usize>) -> Range<usize> {
        let span = self.origins.get(range.clone()).unwrap_or_default();
        match (span.first(), span.last()) {
            (Some(first), Some(last)) => first.0..last.1,
            _ => 0..0,
        }
    }

    /// Like [`Self::origin`], as [`Self::push`] takes it.
    pub(crate) fn span(&self, range: &Range<usize>) -> (usize, usize) {
        let origin = self.origin(range);
        (origin.start, origin.end)
    }
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

    #[test]
    fn confusables_become_the_ascii_character_that_they_look_like() {
        let rows = [
            ('\u{2212}', '-'),
            ('\u{2019}', '\''),
            ('\u{201d}', '"'),
            ('\u{2044}', '/'),
            ('\u{420}', 'P'),
            ('\u{455}', 's'),
            ('\u{3a1}', 'P'),
            ('\u{131}', 'i'),
            ('\u{e0041}', 'A'),
            ('\u{1f158}', 'I'),
            ('\u{1f170}', 'A'),
            ('\u{1f1ff}', 'Z'),
            ('\u{1d00}', 'a'),
            ('\u{26a}', 'i'),
            ('\u{f8}', 'o'),
            ('\u{570}', 'h'),
            ('\u{13aa}', 'A'),
            ('\u{a4ee}', 'A'),
        ];
        for (character, expected) in rows {
            assert_eq!(latin(character), Some(expected), "{character:?}");
        }
    }

    #[test]
    fn ascii_and_letters_of_other_shapes_stay() {
        for character in ['a', ' ', '\u{e9}', '\u{416}', '\u{3a9}', '\u{65e5}', '\u{e0001}'] {
            assert_eq!(latin(character), None, "{character:?}");
        }
    }

    #[test]
    fn ranges_map_back_to_the_original() {
        // "a%41b" with the escape decoded.
        let original = MappedText::new("a%41b");
        let mut decoded = MappedText::with_capacity(3);
        decoded.copy(&original, 0..1);
        decoded.push('A', original.span(&(1..4)));
        decoded.copy(&original, 4..5);
        assert_eq!(decoded.text(), "aAb");
        assert_eq!(decoded.origin(&(0..1)), 0..1);
        assert_eq!(decoded.origin(&(1..2)), 1..4);
        assert_eq!(decoded.origin(&(1..3)), 1..5);
        assert_eq!(decoded.origin(&(3..3)), 0..0, "an empty range has no origin");
        assert_eq!(decoded.origin(&(2..9)), 0..0, "neither has one beyond the end");
    }

    #[test]
    fn every_byte_of_a_character_maps_to_the_whole_character() {
        let text = MappedText::new("xé");
        assert_eq!(text.origin(&(1..2)), 1..3);
        assert_eq!(text.origin(&(2..3)), 1..3);
    }
}
