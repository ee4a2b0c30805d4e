//! The normal form of a path.

use std::fmt::Write as _;
use std::str;

use percent_encoding::percent_decode_str;

use super::Refusal;

const EMPTY_SEGMENT: Refusal = Refusal::path("the path has an empty segment (`//`)");
const DOT_SEGMENT: Refusal = Refusal::path("the path has a segment `.` or `..`");
const NOT_ABSOLUTE: Refusal = Refusal::path("the path does not start with a slash");
const SEPARATOR: Refusal = Refusal::path("the path has an encoded slash, a backslash or a `;`");
const CONTROL: Refusal = Refusal::path("the path has a control character or a space");
const ENCODING: Refusal = Refusal::path("the path has a `%` without two hexadecimal digits");
const TWICE: Refusal = Refusal::path("the path is percent-encoded twice");
const NOT_UTF8: Refusal = Refusal::path("the path is not UTF-8, percent-encoded");

/// The class of a byte of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// A literal byte.
    Plain,
    Slash,
    /// The start of an encoded byte.
    Percent,
    /// A byte that must be percent-encoded.
    Encoded,
    /// Servers interpret it differently.
    Separator,
    Control,
    High,
}

/// Unreserved characters, `:`, `@` and the sub-delimiters are literal, except for `;`, which starts
/// a parameter that some servers remove.
const fn class_of(byte: u8) -> Class {
    match byte {
        b'/' => Class::Slash,
        b'%' => Class::Percent,
        b';' | b'\\' => Class::Separator,
        b'"' | b'#' | b'<' | b'>' | b'?' | b'[' | b']' | b'^' | b'`' | b'{' | b'|' | b'}' => {
            Class::Encoded
        }
        0..=0x20 | 0x7f => Class::Control,
        0x80.. => Class::High,
        _ => Class::Plain,
    }
}

/// The spelling of the next character in the normal form.
enum Spelling {
    /// Unchanged.
    Same,
    /// This byte, without encoding.
    Plain(u8),
    /// This byte, percent-encoded.
    Encoded(u8),
    /// Unchanged, except for upper-case digits of the encoding.
    Upper,
}

/// The normal form of a path, without query; `None` if it is normal already, which costs one scan.
///
/// Unnecessary percent-encoding is removed and missing encoding is added, with upper-case digits.
/// `+` and `%2B` stay distinct: some servers read the first one as a space.
///
/// # Errors
/// The path has no normal form: it has `.` or `..` or empty segments, backslashes, encoded slashes,
/// parameters (`;`), control characters, malformed or double encoding, or is not UTF-8.
pub fn path(path: &str) -> Result<Option<String>, Refusal> {
    let bytes = path.as_bytes();
    if bytes.first() != Some(&b'/') {
        return Err(NOT_ABSOLUTE);
    }
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match class_of(byte) {
            Class::Plain => at += 1,
            Class::Slash => {
                check_segment(&bytes[at + 1..])?;
                at += 1;
            }
            _ => match spelling(bytes, at)? {
                (Spelling::Same, length) => at += length,
                _ => return rewrite(path).map(Some),
            },
        }
    }
    Ok(None)
}

/// Rejects an empty segment and the two dot segments at the start of `rest`. The last segment may
/// be empty.
fn check_segment(rest: &[u8]) -> Result<(), Refusal> {
    match rest {
        [b'/', ..] => Err(EMPTY_SEGMENT),
        [b'.'] | [b'.', b'/', ..] | [b'.', b'.'] | [b'.', b'.', b'/', ..] => Err(DOT_SEGMENT),
        _ => Ok(()),
    }
}

/// Writes the normal form of another spelling.
fn rewrite(path: &str) -> Result<String, Refusal> {
    let bytes = path.as_bytes();
    let mut normal = String::with_capacity(bytes.len() + 16);
    let mut at = 0;
    while at < bytes.len() {
        let (spelling, length) = spelling(bytes, at)?;
        match spelling {
            Spelling::Same => normal.push_str(path.get(at..at + length).ok_or(NOT_UTF8)?),
            Spelling::Plain(byte) => normal.push(char::from(byte)),
            Spelling::Encoded(byte) => {
                // Writing to a string does not fail.
                let _ = write!(normal, "%{byte:02X}");
            }
            Spelling::Upper => {
                let encoded = path.get(at..at + length).ok_or(NOT_UTF8)?;
                normal.extend(encoded.chars().map(|digit| digit.to_ascii_uppercase()));
            }
        }
        at += length;
    }
    // Encoded dots may have been decoded.
    let slashes = normal.bytes().enumerate().filter(|(_, byte)| *byte == b'/');
    for (slash, _) in slashes {
        check_segment(&normal.as_bytes()[slash + 1..])?;
    }
    Ok(normal)
}

/// The spelling of the character at a position of a path, and its length there.
fn spelling(bytes: &[u8], at: usize) -> Result<(Spelling, usize), Refusal> {
    let byte = bytes[at];
    match class_of(byte) {
        Class::Plain | Class::Slash => Ok((Spelling::Same, 1)),
        Class::Percent => encoded(bytes, at),
        Class::Encoded => Ok((Spelling::Encoded(byte), 1)),
        Class::Separator => Err(SEPARATOR),
        Class::Control => Err(CONTROL),
        Class::High => Err(NOT_UTF8),
    }
}

/// The spelling of an encoded byte, or of an encoded character of several bytes.
fn encoded(bytes: &[u8], at: usize) -> Result<(Spelling, usize), Refusal> {
    let byte = escape(bytes, at).ok_or(ENCODING)?;
    match class_of(byte) {
        // A server that reads it as a space would see another path.
        Class::Plain if byte == b'+' => Ok(kept(bytes, at, 3)),
        Class::Plain => Ok((Spelling::Plain(byte), 3)),
        Class::Percent => {
            let (first, length) = decoded_at(bytes, at + 3);
            let (second, _) = decoded_at(bytes, at + 3 + length);
            let is_escape = matches!([first, second], [Some(first), Some(second)]
                if first.is_ascii_hexdigit() && second.is_ascii_hexdigit());
            if is_escape { Err(TWICE) } else { Ok((Spelling::Same, 3)) }
        }
        Class::Encoded => Ok(kept(bytes, at, 3)),
        Class::Control if byte == b' ' => Ok((Spelling::Same, 3)),
        Class::Control => Err(CONTROL),
        Class::Slash | Class::Separator => Err(SEPARATOR),
        Class::High => check_character(bytes, at, byte).map(|count| kept(bytes, at, 3 * count)),
    }
}

/// An encoded character that stays encoded.
fn kept(bytes: &[u8], at: usize, length: usize) -> (Spelling, usize) {
    let is_upper = !bytes[at..at + length].iter().any(u8::is_ascii_lowercase);
    (if is_upper { Spelling::Same } else { Spelling::Upper }, length)
}

/// The number of bytes of an encoded character that is not ASCII.
fn check_character(bytes: &[u8], at: usize, first: u8) -> Result<usize, Refusal> {
    let length = match first {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return Err(NOT_UTF8),
    };
    let mut character = [0; 4];
    for (number, byte) in character[..length].iter_mut().enumerate() {
        *byte = escape(bytes, at + 3 * number).ok_or(NOT_UTF8)?;
    }
    let text = str::from_utf8(&character[..length]).map_err(|_| NOT_UTF8)?;
    if text.chars().any(char::is_control) { Err(CONTROL) } else { Ok(length) }
}

/// The byte that is percent-encoded at a place.
fn escape(bytes: &[u8], at: usize) -> Option<u8> {
    let [b'%', high, low] = bytes.get(at..at + 3)? else { return None };
    Some(hex_digit(*high)? << 4 | hex_digit(*low)?)
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// The byte at a place, decoded once, and the length of its spelling.
fn decoded_at(bytes: &[u8], at: usize) -> (Option<u8>, usize) {
    match (bytes.get(at), escape(bytes, at)) {
        (_, Some(byte)) => (Some(byte), 3),
        (byte, None) => (byte.copied(), 1),
    }
}

/// The text of a part of a path in normal form, for comparison with names.
pub(crate) fn decoded(part: &str) -> String {
    percent_decode_str(part).decode_utf8().unwrap_or_default().into_owned()
}

/// Whether a route's path, with its parameters in braces, can be compared with normal paths.
pub fn is_normal_template(template: &str) -> bool {
    let text = template.strip_suffix("/*").unwrap_or(template);
    let mut plain = String::with_capacity(text.len());
    let mut inside = false;
    for letter in text.chars() {
        match letter {
            '{' => inside = true,
            // A parameter matches any text, such as `x`.
            '}' => {
                inside = false;
                plain.push('x');
            }
            _ if inside => {}
            _ => plain.push(letter),
        }
    }
    let is_root = plain.is_empty() && template == "/*";
    // A `+` would not cover `%2B`, which other servers treat as equal.
    is_root || (path(&plain) == Ok(None) && !plain.contains('+') && !plain.contains("%2B"))
}
