//! A one-pass JSON scanner: the fast path for chat requests.
//!
//! It returns None for names with escapes, duplicate members, nesting beyond [`MAX_DEPTH`] and
//! invalid JSON. The serde path then parses the body; it takes twice as long but reports precise
//! errors. Whatever the scanner accepts, serde accepts with the same result.
//!
//! Measured with `cargo bench -p plimsoll-gateway-dialect` on a chat request of 128 tokens:
//! 0.60 µs with the scanner, 1.38 µs with serde alone. A gateway spends 21 to 33 µs per chat, so
//! the scanner saves 2 to 4 % of it. For whole responses serde alone is faster (usage: 0.55 µs
//! against 0.69 µs with the scanner), so they have no fast path.

use crate::depth::MAX_DEPTH;
use crate::json_string::find_quote_or_backslash;

/// A position in JSON text. Every method returns None if the scanner cannot handle the input.
#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) const fn new(text: &'a str) -> Self {
        Self { text, at: 0, depth: 0 }
    }

    /// Skips white space and returns the next byte without consuming it.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        loop {
            match self.text.as_bytes().get(self.at)? {
                b' ' | b'\n' | b'\r' | b'\t' => self.at += 1,
                byte => return Some(*byte),
            }
        }
    }

    /// Consumes a byte that must come next.
    fn expect(&mut self, wanted: u8) -> Option<()> {
        self.take(wanted).then_some(())
    }

    fn take(&mut self, wanted: u8) -> bool {
        let is_next = self.peek() == Some(wanted);
        self.at += usize::from(is_next);
        is_next
    }

    /// Succeeds at the end of the text.
    pub(crate) fn end(mut self) -> Option<()> {
        self.peek().is_none().then_some(())
    }

    /// Reads an object: `member` gets each name and must consume its value.
    pub(crate) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, &'a str) -> Option<()>,
    ) -> Option<()> {
        self.list(*b"{}", |scanner| {
            let (name, escapes) = scanner.quoted()?;
            let name = name.get(1..name.len() - 1).filter(|_| !escapes)?;
            scanner.expect(b':')?;
            member(scanner, name)
        })
    }

    /// Reads an array: `item` must consume each item. Returns their number.
    pub(crate) fn array(&mut self, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<usize> {
        let mut count = 0;
        self.list(*b"[]", |scanner| {
            count += 1;
            item(scanner)
        })?;
        Some(count)
    }

    fn list(
        &mut self,
        [open, close]: [u8; 2],
        mut each: impl FnMut(&mut Self) -> Option<()>,
    ) -> Option<()> {
        self.expect(open)?;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        if !self.take(close) {
            each(self)?;
            while self.take(b',') {
                each(self)?;
            }
            self.expect(close)?;
        }
        self.depth -= 1;
        Some(())
    }

    /// Consumes a value and returns its JSON text.
    pub(crate) fn value(&mut self) -> Option<&'a str> {
        let first = self.peek()?;
        let start = self.at;
        match first {
            b'"' => return self.string(),
            b'{' => self.object(|scanner, _| scanner.value().map(|_| ()))?,
            b'[' => self.array(|scanner| scanner.value().map(|_| ())).map(|_| ())?,
            b't' => self.word("true")?,
            b'f' => self.word("false")?,
            b'n' => self.word("null")?,
            _ => self.number()?,
        }
        self.text.get(start..self.at)
    }

    fn word(&mut self, word: &str) -> Option<()> {
        let found = self.text.as_bytes().get(self.at..)?.starts_with(word.as_bytes());
        self.at += word.len();
        found.then_some(())
    }

    fn number(&mut self) -> Option<()> {
        let byte = |scanner: &Self| scanner.text.as_bytes().get(scanner.at).copied();
        self.at += usize::from(byte(self) == Some(b'-'));
        if byte(self) == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if byte(self) == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(byte(self), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(byte(self), Some(b'+' | b'-')));
            self.digits()?;
        }
        Some(())
    }

    /// At least one digit.
    fn digits(&mut self) -> Option<()> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        (count > 0).then_some(())
    }

    /// Consumes a string and returns its JSON text, quotes included.
    pub(crate) fn string(&mut self) -> Option<&'a str> {
        self.quoted().map(|(text, _)| text)
    }

    /// The same, and whether it has escapes.
    fn quoted(&mut self) -> Option<(&'a str, bool)> {
        self.expect(b'"')?;
        let bytes = self.text.as_bytes();
        let start = self.at - 1;
        let mut escapes = false;
        loop {
            let rest = bytes.get(self.at..)?;
            let found = find_quote_or_backslash(rest)?;
            // Without an early exit the compiler vectorises this loop.
            let inside = rest.get(..found)?.iter();
            if inside.fold(0, |any, byte| any | u8::from(*byte < 0x20)) != 0 {
                return None;
            }
            self.at += found + 1;
            if rest.get(found) == Some(&b'"') {
                return Some((self.text.get(start..self.at)?, escapes));
            }
            escapes = true;
            self.escape()?;
        }
    }

    /// Consumes the rest of an escape. Surrogate pairs are checked only when the text is decoded.
    fn escape(&mut self) -> Option<()> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let length = match rest.first()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 1,
            b'u' => rest.get(1..5)?.iter().all(u8::is_ascii_hexdigit).then_some(5)?,
            _ => return None,
        };
        self.at += length;
        Some(())
    }
}

/// Sets a value that must not be set already.
pub(crate) fn set_once<T>(slot: &mut Option<T>, value: T) -> Option<()> {
    slot.replace(value).is_none().then_some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::de::IgnoredAny;

    use super::*;

    fn scan(text: &str) -> Option<&str> {
        let mut scanner = Scanner::new(text);
        let value = scanner.value();
        scanner.end().and(value)
    }

    #[test]
    fn valid_json_is_accepted() {
        for text in [
            "0",
            "-0.5e+7",
            "12",
            "true",
            "false",
            "null",
            "\"\"",
            r#""a\"\\\/\b\f\n\r\té\ud83d""#,
            "[]",
            "[ ]",
            "{}",
            "{ }",
            r#"{"a":[1,{"b":null}],"":2}"#,
            "[1 , 2\t,\r\n3]",
            "1e5",
        ] {
            assert_eq!(scan(text), Some(text));
            assert!(serde_json::from_str::<IgnoredAny>(text).is_ok(), "{text}");
        }
        assert_eq!(scan(" [1] \n"), Some("[1]"));
    }

    #[test]
    fn invalid_json_is_rejected() {
        for text in [
            "",
            " ",
            "01",
            "-",
            "1.",
            ".5",
            "1e",
            "+1",
            "tru",
            "nul",
            "True",
            "\"",
            "\"\\",
            r#""\x""#,
            r#""\u12g4""#,
            r#""\u12""#,
            "\"\n\"",
            "\"\u{1}\"",
            "[",
            "[1",
            "[1,]",
            "[,1]",
            "[1 2]",
            "{",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            "{a:1}",
            "{1:1}",
            "1 2",
            "]",
            "[}",
            "nullx",
        ] {
            assert_eq!(scan(text), None, "{text}");
            assert!(serde_json::from_str::<IgnoredAny>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn nesting_is_limited() {
        let nested = |levels: usize| ["[".repeat(levels), "]".repeat(levels)].concat();
        assert!(scan(&nested(MAX_DEPTH)).is_some());
        assert!(scan(&nested(MAX_DEPTH + 1)).is_none());
        assert!(scan(&"[".repeat(1_000_000)).is_none());
    }

    fn nearly_json() -> impl Strategy<Value = String> {
        let pieces = prop::sample::select(vec![
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"",
            "\\",
            "\"a\"",
            "\"a\":",
            "1",
            "-",
            "0",
            ".",
            "e",
            "true",
            "null",
            " ",
            "\\u",
            "00e9",
            "\n",
            "é",
            "\\n",
            "[1,2]",
            "{\"b\":false}",
            "\u{1}",
        ]);
        prop::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn what_is_accepted_is_valid_json(text in nearly_json()) {
            let accepted = scan(&text).is_some();
            let valid = serde_json::from_str::<IgnoredAny>(&text).is_ok();
            // The scanner rejects valid JSON whose names have escapes.
            prop_assert!(accepted == valid || valid && text.contains('\\'), "{text}");
        }
    }
}
