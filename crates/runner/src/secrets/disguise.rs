//! Credentials in the spellings in which servers quote them: in part, in other letters, with
//! escapes of URLs, JSON and HTML, in base64 and in hexadecimal.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Number of consecutive characters that reveal a credential. Servers show fewer to say which key
/// it was.
const TELLING: usize = 8;
/// Number of times that escapes are undone, for escaped text within escaped text.
const LAYERS: usize = 3;

/// Parts of credentials, in any spelling that a text may use.
#[derive(Clone, Debug, Default)]
pub(super) struct Disguises(HashSet<[char; TELLING]>);

impl Disguises {
    /// Those of credentials of at least [`TELLING`] characters.
    pub(super) fn new<'a>(secrets: impl Iterator<Item = &'a str>) -> Self {
        let mut parts = HashSet::new();
        for secret in secrets.filter(|secret| secret.chars().count() >= TELLING) {
            for spelling in spellings(secret) {
                let letters: Vec<char> = spelling.chars().map(folded).collect();
                let windows = letters.windows(TELLING);
                parts.extend(windows.filter_map(|part| <[char; TELLING]>::try_from(part).ok()));
            }
        }
        Self(parts)
    }

    /// Ranges of the text that contain parts of a credential, in order and without overlap.
    pub(super) fn find(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut layer = Some(Layer::new(text));
        for _ in 0..=LAYERS {
            let Some(present) = layer else { break };
            found.extend(self.find_in(&present));
            layer = present.undone();
        }
        found.sort_by_key(|range| range.start);
        found.into_iter().fold(Vec::new(), |mut joined: Vec<Range<usize>>, next| {
            match joined.last_mut() {
                Some(last) if next.start <= last.end => last.end = last.end.max(next.end),
                _ => joined.push(next),
            }
            joined
        })
    }

    fn find_in<'l>(&'l self, layer: &'l Layer) -> impl Iterator<Item = Range<usize>> + 'l {
        layer.0.windows(TELLING).filter_map(|part| {
            let letters: [char; TELLING] = std::array::from_fn(|at| folded(part[at].letter));
            let (first, last) = (part.first()?, part.last()?);
            self.0.contains(&letters).then_some(first.from.start..last.from.end)
        })
    }
}

/// The credential itself, backwards, in hexadecimal, and in base64 wherever it stands between other
/// bytes.
fn spellings(secret: &str) -> Vec<String> {
    let mut all = vec![secret.to_owned(), secret.chars().rev().collect()];
    all.push(secret.bytes().fold(String::new(), |mut hex, byte| {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    }));
    for before in 0..3 {
        let bytes = [vec![0; before], secret.as_bytes().to_vec()].concat();
        for text in [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)] {
            // Characters that share bits with bytes outside are left out at both ends.
            let first = (before * 8).div_ceil(6);
            let end = bytes.len() * 8 / 6;
            all.extend(text.get(first..end).map(str::to_owned));
        }
    }
    all
}

const fn folded(letter: char) -> char {
    letter.to_ascii_lowercase()
}

/// A letter, and the bytes of the text that encode it.
#[derive(Clone, Debug)]
struct Letter {
    letter: char,
    from: Range<usize>,
}

/// The text after so many rounds of undoing escapes.
#[derive(Debug)]
struct Layer(Vec<Letter>);

impl Layer {
    fn new(text: &str) -> Self {
        let letters = text.char_indices();
        Self(
            letters
                .map(|(at, letter)| Letter { letter, from: at..at + letter.len_utf8() })
                .collect(),
        )
    }

    /// With one layer of escapes undone; `None` without any.
    fn undone(&self) -> Option<Self> {
        let mut letters = Vec::with_capacity(self.0.len());
        let mut at = 0;
        while let Some(rest) = self.0.get(at..).filter(|rest| !rest.is_empty()) {
            let (letter, length) = escape(rest).unwrap_or((rest[0].letter, 1));
            letters.push(Letter { letter, from: rest[0].from.start..rest[length - 1].from.end });
            at += length;
        }
        (letters.len() < self.0.len()).then_some(Self(letters))
    }
}

/// Entities of HTML for characters of keys, without `&` and `;`.
const ENTITIES: [(&str, char); 9] = [
    ("amp", '&'),
    ("apos", '\''),
    ("colon", ':'),
    ("equals", '='),
    ("gt", '>'),
    ("lt", '<'),
    ("plus", '+'),
    ("quot", '"'),
    ("sol", '/'),
];

/// The letter encoded by an escape at the start, and the length of the escape.
fn escape(text: &[Letter]) -> Option<(char, usize)> {
    let letter = |at: usize| text.get(at).map(|letter| letter.letter);
    match text.first()?.letter {
        '%' => Some((number(text, 1, 2, 16)?, 3)),
        '\\' => match letter(1)? {
            'u' => Some((number(text, 2, 4, 16)?, 6)),
            'x' => Some((number(text, 2, 2, 16)?, 4)),
            escaped if escaped.is_ascii_punctuation() => Some((escaped, 2)),
            _ => None,
        },
        '&' => {
            let end = text.iter().take(10).position(|letter| letter.letter == ';')?;
            match (letter(1)?, letter(2)?) {
                ('#', 'x' | 'X') => Some((number(text, 3, end - 3, 16)?, end + 1)),
                ('#', _) => Some((number(text, 2, end - 2, 10)?, end + 1)),
                _ => {
                    let name: String = text[1..end].iter().map(|letter| letter.letter).collect();
                    let known = ENTITIES.iter().find(|(known, _)| *known == name)?;
                    Some((known.1, end + 1))
                }
            }
        }
        _ => None,
    }
}

/// The character of this number.
fn number(text: &[Letter], start: usize, digits: usize, radix: u32) -> Option<char> {
    let digits = text.get(start..start + digits)?;
    let digits: String = digits.iter().map(|letter| letter.letter).collect();
    char::from_u32(u32::from_str_radix(&digits, radix).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk/Ab+cd12=zz/9Q";

    fn shown(text: &str) -> String {
        let disguises = Disguises::new([KEY].into_iter());
        let mut shown = text.to_owned();
        for range in disguises.find(text).into_iter().rev() {
            shown.replace_range(range, "_");
        }
        shown
    }

    /// Each spelling is another program's encoding of the key: `printf`, `jq -R @uri`, `base64`,
    /// `xxd -p`, `jq -R @html`, `json_encode` of PHP.
    #[test]
    fn no_spelling_of_a_key_is_shown() {
        for (text, expected) in [
            ("key sk/Ab+cd12=zz/9Q!", "key _!"),
            ("key SK/AB+CD12=ZZ/9Q!", "key _!"),
            ("first sk/Ab+cd12=z...", "first _..."),
            ("last ***+cd12=zz/9Q", "last ***_"),
            ("uri sk%2FAb%2Bcd12%3Dzz%2F9Q&x", "uri _&x"),
            ("uri sk%2fAb+cd12=zz%2f9Q", "uri _"),
            ("twice sk%252FAb%252Bcd12%253Dzz%252F9Q", "twice _"),
            ("php sk\\/Ab+cd12=zz\\/9Q", "php _"),
            ("json sk\\u002fAb\\u002Bcd12=zz/9Q", "json _"),
            ("html sk&#47;Ab&#x2B;cd12&equals;zz&sol;9Q", "html _"),
            // A character that shares its bits with the surrounding text stays.
            ("base64 c2svQWIrY2QxMj16ei85UQ== ", "base64 _Q== "),
            ("base64 of :KEY OnNrL0FiK2NkMTI9enovOVE=", "base64 of :KEY On_E="),
            ("base64 of me:KEY bWU6c2svQWIrY2QxMj16ei85UQ==", "base64 of me:KEY bWU6_Q=="),
            ("backwards Q9/zz=21dc+bA/ks", "backwards _"),
            ("hex 736b2f41622b636431323d7a7a2f3951", "hex _"),
            ("keys begin with sk/Ab", "keys begin with sk/Ab"),
            ("100 % of &amp; \\n \\u12 %zz &#; &", "100 % of &amp; \\n \\u12 %zz &#; &"),
        ] {
            assert_eq!(shown(text), expected);
        }
    }
}
