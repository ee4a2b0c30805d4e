//! The letters of a text as rules read them, while it arrives: without escapes of JSON, in ASCII
//! where a character stands for ASCII, and without what is invisible.

use std::ops::Range;

use crate::normalise::fold_character;

/// The longest escape of a JSON string: two halves of one character.
const LONGEST_ESCAPE: usize = 12;

/// Turns parts of a text into plain letters.
#[derive(Clone, Debug)]
pub(super) struct Plain {
    json: bool,
    /// The start of an escape whose end has not come.
    escape: String,
    /// The bytes of all parts so far.
    fed: u64,
}

impl Plain {
    /// `json` tells whether the text has escapes of JSON.
    pub(super) const fn new(json: bool) -> Self {
        Self { json, escape: String::new(), fed: 0 }
    }

    /// The length of the text so far.
    pub(super) const fn fed(&self) -> u64 {
        self.fed
    }

    /// The length of the text of which all letters have been given out.
    pub(super) const fn given(&self) -> u64 {
        self.fed - self.escape.len() as u64
    }

    /// Takes a part. Calls `each` with every letter, and the bytes of the text behind it.
    pub(super) fn feed(&mut self, part: &str, mut each: impl FnMut(char, Range<u64>)) {
        for letter in part.chars() {
            let start = self.fed;
            self.fed += letter.len_utf8() as u64;
            if letter.is_ascii() && letter != '\\' && self.escape.is_empty() {
                each(letter, start..self.fed);
                continue;
            }
            self.letter(letter, start, &mut each);
        }
    }

    /// Ends the text: an escape that is not complete stands for itself.
    pub(super) fn finish(&mut self, mut each: impl FnMut(char, Range<u64>)) {
        self.give_escape(&mut each);
    }

    fn letter(&mut self, letter: char, start: u64, each: &mut impl FnMut(char, Range<u64>)) {
        if self.escape.is_empty() && (letter != '\\' || !self.json) {
            fold_character(letter, |plain| each(plain, start..self.fed));
            return;
        }
        self.escape.push(letter);
        match decode(&self.escape) {
            Escape::Open if self.escape.len() < LONGEST_ESCAPE => {}
            Escape::Letter(decoded) => {
                let from = self.given();
                self.escape.clear();
                fold_character(decoded, |plain| each(plain, from..self.fed));
            }
            Escape::Open | Escape::None => self.give_escape(each),
        }
    }

    /// Gives out what looked like an escape.
    fn give_escape(&mut self, each: &mut impl FnMut(char, Range<u64>)) {
        let mut at = self.given();
        for letter in std::mem::take(&mut self.escape).chars() {
            let next = at + letter.len_utf8() as u64;
            fold_character(letter, |plain| each(plain, at..next));
            at = next;
        }
    }
}

/// What a text that begins with a backslash is.
enum Escape {
    /// The start of one.
    Open,
    Letter(char),
    None,
}

fn decode(escape: &str) -> Escape {
    let Some(kind) = escape.chars().nth(1) else { return Escape::Open };
    match kind {
        'n' => Escape::Letter('\n'),
        'r' => Escape::Letter('\r'),
        't' => Escape::Letter('\t'),
        'b' | 'f' => Escape::Letter(' '),
        '"' | '\\' | '/' => Escape::Letter(kind),
        'u' => decode_number(&escape[2..]),
        _ => Escape::None,
    }
}

/// `XXXX`, or `XXXX\uXXXX` for two halves of one character.
fn decode_number(digits: &str) -> Escape {
    let unit = |digits: Option<&str>| {
        let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        digits.and_then(|digits| u16::from_str_radix(digits, 16).ok())
    };
    if digits.len() < 4 {
        let is_number = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        return if is_number { Escape::Open } else { Escape::None };
    }
    let Some(first) = unit(digits.get(..4)) else { return Escape::None };
    if let Some(letter) = char::from_u32(first.into()) {
        return Escape::Letter(letter);
    }
    let second = &digits[4..];
    if second.len() < 6 {
        let open = "\\u".starts_with(second) || second.starts_with("\\u");
        return if open { Escape::Open } else { Escape::None };
    }
    let units = [Some(first), unit(second.get(2..6))].into_iter().flatten();
    match char::decode_utf16(units).next() {
        Some(Ok(letter)) => Escape::Letter(letter),
        _ => Escape::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(parts: &[&str], json: bool) -> (String, Vec<Range<u64>>) {
        let mut plain = Plain::new(json);
        let (mut text, mut from) = (String::new(), Vec::new());
        let mut each = |letter: char, range: Range<u64>| {
            text.push(letter);
            from.push(range);
        };
        for part in parts {
            plain.feed(part, &mut each);
        }
        plain.finish(&mut each);
        (text, from)
    }

    #[test]
    fn letters_are_those_that_rules_know() {
        for (text, json, expected) in [
            ("ann@b.de", false, "ann@b.de"),
            ("ann\u{ff20}b.de \u{ff14}\u{ff11}", false, "ann@b.de 41"),
            ("41\u{200b}11\u{a0}12\u{2011}3", false, "4111 12-3"),
            ("m\u{fc}ller", false, "m\u{fc}ller"),
            (r#"ann\u0040b.de\n\"x\""#, false, r#"ann\u0040b.de\n\"x\""#),
            (r#"ann\u0040b.de\n\"x\"\/"#, true, "ann@b.de\n\"x\"/"),
            (
                r"\ud83d\ude00 \ud83dx \ud83d\u0041 \q \u00zz",
                true,
                "\u{1f600} \\ud83dx \\ud83d\\u0041 \\q \\u00zz",
            ),
            (r"open \u00", true, r"open \u00"),
            ("\u{e9} \\", true, "\u{e9} \\"),
        ] {
            assert_eq!(plain(&[text], json).0, expected, "{text}");
            let letters: Vec<String> = text.chars().map(String::from).collect();
            let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
            assert_eq!(plain(&letters, json), plain(&[text], json), "{text}, letter by letter");
        }
    }

    #[test]
    fn a_letter_knows_the_bytes_behind_it() {
        let (text, from) = plain(&["a\\u0040\u{200b}b"], true);
        assert_eq!((text.as_str(), from), ("a@b", vec![0..1, 1..7, 10..11]));
    }
}
