//! Splits JSON into its tokens, in one pass without recursion.
//!
//! It checks only the syntax that delimits strings: quotes, escapes, brackets. So it finds the
//! strings of any JSON, of several documents in a row, and of the extensions that lenient parsers
//! accept.

use std::ops::Range;

use plimsoll_gateway_dialect::find_quote_or_backslash;

use crate::error::Unreadable;

/// The maximum nesting of objects and arrays.
pub(crate) const MAX_DEPTH: u32 = 127;

/// A token. Ranges are byte positions; strings include their quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// The start of an object or an array.
    Open { object: bool, at: usize },
    /// The end of an object or an array; the position after it.
    Close { end: usize },
    /// The name of a member: the text between its quotes, with its escapes.
    Key(&'a str, Range<usize>),
    /// A string: the text between its quotes, with its escapes.
    Text(&'a str, Range<usize>),
    /// A number, `true`, `false` or `null`.
    Scalar(&'a str, Range<usize>),
}

/// The tokens of a text.
#[derive(Clone, Debug)]
pub(crate) struct Tokens<'a> {
    text: &'a str,
    at: usize,
    /// A bit for each open object or array, the innermost last: whether it is an object.
    open: u128,
    depth: u32,
    /// Whether the next string is the name of a member.
    key: bool,
}

impl<'a> Tokens<'a> {
    pub(crate) const fn new(text: &'a str) -> Self {
        Self { text, at: 0, open: 0, depth: 0, key: false }
    }

    /// The number of objects and arrays that are open.
    pub(crate) const fn depth(&self) -> u32 {
        self.depth
    }

    /// Whether the innermost open object or array is an array; `outwards` counts from it.
    pub(crate) const fn is_array(&self, outwards: u32) -> bool {
        self.open >> outwards & 1 == 0
    }

    /// The next token; None at the end.
    ///
    /// # Errors
    /// A bracket or a quote is missing, the nesting is too deep, or there is text between tokens.
    pub(crate) fn next(&mut self) -> Result<Option<Token<'a>>, Unreadable> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            let at = self.at;
            self.at += 1;
            match byte {
                b' ' | b'\n' | b'\r' | b'\t' => {}
                b',' => self.key = self.in_object(),
                b':' => self.key = false,
                b'"' => return self.string(at).map(Some),
                b'{' | b'[' => return self.enter(*byte == b'{', at).map(Some),
                b'}' | b']' => return self.leave(*byte == b'}').map(Some),
                _ => return self.scalar(at).map(Some),
            }
        }
        if self.depth == 0 { Ok(None) } else { Err(Unreadable::Json) }
    }

    const fn in_object(&self) -> bool {
        self.depth > 0 && self.open & 1 == 1
    }

    fn enter(&mut self, object: bool, at: usize) -> Result<Token<'a>, Unreadable> {
        if self.depth == MAX_DEPTH {
            return Err(Unreadable::TooDeep);
        }
        self.depth += 1;
        self.open = self.open << 1 | u128::from(object);
        self.key = object;
        Ok(Token::Open { object, at })
    }

    fn leave(&mut self, object: bool) -> Result<Token<'a>, Unreadable> {
        if self.depth == 0 || self.in_object() != object {
            return Err(Unreadable::Json);
        }
        self.depth -= 1;
        self.open >>= 1;
        self.key = false;
        Ok(Token::Close { end: self.at })
    }

    fn string(&mut self, start: usize) -> Result<Token<'a>, Unreadable> {
        let bytes = self.text.as_bytes();
        loop {
            let rest = bytes.get(self.at..).unwrap_or_default();
            let found = find_quote_or_backslash(rest).ok_or(Unreadable::Json)?;
            self.at += found + 1;
            if rest.get(found) == Some(&b'"') {
                break;
            }
            // The escaped byte; a letter or digits that follow it belong to the string anyway.
            self.at += 1;
        }
        let inside = self.text.get(start + 1..self.at - 1).ok_or(Unreadable::Json)?;
        let range = start..self.at;
        Ok(if std::mem::take(&mut self.key) {
            Token::Key(inside, range)
        } else {
            Token::Text(inside, range)
        })
    }

    fn scalar(&mut self, start: usize) -> Result<Token<'a>, Unreadable> {
        let rest = self.text.as_bytes().get(start..).unwrap_or_default();
        let length = rest.iter().take_while(|byte| is_scalar_byte(**byte)).count();
        let scalar = self.text.get(start..start + length).filter(|scalar| !scalar.is_empty());
        let scalar = scalar.filter(|scalar| is_scalar(scalar)).ok_or(Unreadable::Json)?;
        self.at = start + length;
        Ok(Token::Scalar(scalar, start..self.at))
    }
}

/// Whether a number or a constant may contain a byte.
const fn is_scalar_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
}

/// Whether a word is a number or a constant for lenient parsers.
fn is_scalar(word: &str) -> bool {
    let number = word.strip_prefix(['-', '+']).unwrap_or(word);
    matches!(number, "true" | "false" | "null" | "NaN" | "Infinity")
        || number.starts_with(|first: char| first.is_ascii_digit() || first == '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Result<Vec<String>, Unreadable> {
        let mut tokens = Tokens::new(text);
        let mut found = Vec::new();
        while let Some(token) = tokens.next()? {
            found.push(match token {
                Token::Open { object, .. } => if object { "{" } else { "[" }.to_owned(),
                Token::Close { .. } => ")".to_owned(),
                Token::Key(key, _) => format!("{key}:"),
                Token::Text(inside, range) => {
                    assert_eq!(&text[range.start + 1..range.end - 1], inside);
                    inside.to_owned()
                }
                Token::Scalar(scalar, _) => format!("#{scalar}"),
            });
        }
        Ok(found)
    }

    #[test]
    fn names_and_strings_are_told_apart() {
        let rows: [(&str, &[&str]); 5] = [
            (
                r#"{"a":"b", "c" : ["d",{"e":-1.5e3}],"f":null}"#,
                &[
                    "{", "a:", "b", "c:", "[", "d", "{", "e:", "#-1.5e3", ")", ")", "f:", "#null",
                    ")",
                ],
            ),
            (r#""a\"b\\""#, &[r#"a\"b\\"#]),
            ("{}\n[\"x\"]", &["{", ")", "[", "x", ")"]),
            (r#"{"a":NaN}"#, &["{", "a:", "#NaN", ")"]),
            ("", &[]),
        ];
        for (text, expected) in rows {
            assert_eq!(all(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_hides_the_end_of_a_string_is_unreadable() {
        for text in [
            "{",
            "]",
            "[}",
            "\"a",
            "\"a\\\"",
            "\"\\",
            "{\"a\":ann@example.com}",
            "'a'",
            "\u{feff}{}",
            "no JSON",
        ] {
            assert_eq!(all(text), Err(Unreadable::Json), "{text}");
        }
        assert!(all(&["[".repeat(127), "]".repeat(127)].concat()).is_ok());
        assert_eq!(all(&"[".repeat(1_000_000)), Err(Unreadable::TooDeep));
    }
}
