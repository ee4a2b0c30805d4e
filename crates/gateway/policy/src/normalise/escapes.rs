//! Decodes percent, HTML and backslash escapes.

use std::iter;
use std::sync::LazyLock;

use super::MappedText;

/// The entities that occur in attacks; HTML has 2,231 in total.
static ENTITIES: LazyLock<Vec<(&str, char)>> = LazyLock::new(|| {
    let rows = include_str!("entities.tsv").lines().filter_map(|row| row.split_once('\t'));
    rows.filter_map(|(name, code)| Some((name, hex(code)?))).collect()
});

/// Whether one round of decoding would change the text.
pub(super) fn has_escapes(text: &str) -> bool {
    let mut marks = memchr::memchr3_iter(b'%', b'&', b'\\', text.as_bytes());
    plus_is_space(text) || marks.any(|at| escape(text, at, false).is_some())
}

/// Decodes one layer of escapes; `None` without escapes.
pub(super) fn decode(from: &MappedText) -> Option<MappedText> {
    let text = from.text();
    if !has_escapes(text) {
        return None;
    }
    let plus_escapes = plus_is_space(text);
    let mut decoded = MappedText::with_capacity(text.len());
    let (mut at, mut copied) = (0, 0);
    while let Some(character) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let Some((characters, length)) = escape(text, at, plus_escapes) else {
            at += character.len_utf8();
            continue;
        };
        decoded.copy(from, copied..at);
        let origin = from.span(&(at..at + length));
        characters.chars().for_each(|character| decoded.push(character, origin));
        at += length;
        copied = at;
    }
    decoded.copy(from, copied..text.len());
    Some(decoded)
}

/// In form encoding a plus is a space. A text without any space may be form-encoded.
fn plus_is_space(text: &str) -> bool {
    text.contains('+') && !text.contains(' ')
}

/// The decoded text of the escape at `at`, and the length of the escape.
fn escape(text: &str, at: usize, plus_escapes: bool) -> Option<(String, usize)> {
    let rest = text.get(at..)?;
    match rest.as_bytes().first()? {
        b'%' => percent(rest),
        b'&' => entity(rest).map(|(character, length)| (character.to_string(), length)),
        b'\\' => backslash(rest).map(|(character, length)| (character.to_string(), length)),
        b'+' if plus_escapes => Some((" ".to_owned(), 1)),
        _ => None,
    }
}

/// `%uXXXX`, or a character of one to four `%XX`. A byte that is not part of a character stays,
/// except the no-break space of Latin-1, which databases treat as white space.
fn percent(rest: &str) -> Option<(String, usize)> {
    if let Some(digits) = rest.get(2..6).filter(|_| rest.as_bytes().get(1) == Some(&b'u')) {
        return hex(digits).map(|character| (character.to_string(), 6));
    }
    let mut at = 0;
    let bytes: Vec<u8> = iter::from_fn(|| {
        let byte = percent_byte(rest.get(at..)?)?;
        at += 3;
        Some(byte)
    })
    .take(4)
    .collect();
    let first = *bytes.first()?;
    (1..=bytes.len())
        .find_map(|length| {
            let text = str::from_utf8(bytes.get(..length)?).ok()?;
            Some((text.to_owned(), length * 3))
        })
        .or_else(|| (first == 0xa0).then(|| (" ".to_owned(), 3)))
}

fn percent_byte(rest: &str) -> Option<u8> {
    let digits = rest.strip_prefix('%')?.get(..2)?;
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}

fn hex(digits: &str) -> Option<char> {
    let valid = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    valid.then(|| u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)).flatten()
}

/// `&#39;`, `&#x27;` or a name in [`ENTITIES`].
fn entity(rest: &str) -> Option<(char, usize)> {
    if let Some(number) = rest.strip_prefix("&#") {
        let length = number.bytes().take(8).position(|byte| byte == b';')?;
        let digits = number.get(..length)?;
        let character = match digits.strip_prefix(['x', 'X']) {
            Some(digits) => hex(digits),
            None => digits.parse().ok().and_then(char::from_u32),
        };
        return character.map(|character| (character, length + 3));
    }
    let (name, character) = ENTITIES.iter().find(|(name, _)| {
        rest.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name))
    })?;
    Some((*character, name.len()))
}

/// `\xXX`, `\uXXXX`, `\u{X}`, and escaped quotes and white space.
fn backslash(rest: &str) -> Option<(char, usize)> {
    match rest.as_bytes().get(1)? {
        b'x' => hex(rest.get(2..4)?).map(|character| (character, 4)),
        b'u' => match rest.get(2..)?.strip_prefix('{') {
            Some(braced) => {
                let length = braced.bytes().take(7).position(|byte| byte == b'}')?;
                hex(braced.get(..length)?).map(|character| (character, length + 4))
            }
            None => hex(rest.get(2..6)?).map(|character| (character, 6)),
        },
        b'\'' => Some(('\'', 2)),
        b'"' => Some(('"', 2)),
        b'n' if !word_follows(rest) => Some(('\n', 2)),
        b't' if !word_follows(rest) => Some(('\t', 2)),
        _ => None,
    }
}

/// Whether the letter after the backslash begins a word: `\new` is more often part of a Windows
/// path than a line break before `ew`.
fn word_follows(rest: &str) -> bool {
    rest.as_bytes().get(2).is_some_and(u8::is_ascii_lowercase)
}
