//! Suspicious parts of SQL statements.

use std::ops::Range;

use super::digits::slice;

/// A comparison of two constants, of a value with itself, or with a wildcard: always true, and not
/// needed in a legitimate statement.
pub(super) fn always_true(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let (left, right) = sides(slice(text, &range))?;
    let wildcard = matches!(right.trim_matches(['\'', '"']), "%" | "%%");
    let both = is_constant(left) && is_constant(right);
    let same = !left.is_empty() && left.eq_ignore_ascii_case(right);
    (both || same || wildcard && !is_constant(left)).then_some(range)
}

/// The two operands of the first operator outside quotes.
fn sides(comparison: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    let start = comparison.char_indices().find_map(|(at, character)| {
        let operator = match (quote, character) {
            (Some(open), close) => {
                quote = (open != close).then_some(open);
                false
            }
            (None, '\'' | '"') => {
                quote = Some(character);
                false
            }
            (None, '=' | '<' | '>' | '!') => true,
            (None, ' ') => word_operator(&comparison[at..]),
            _ => false,
        };
        operator.then_some(at)
    })?;
    let (left, rest) = comparison.split_at_checked(start)?;
    let right = rest.trim_start();
    let right = right.strip_prefix(|first: char| first.is_ascii_alphabetic()).map_or_else(
        || right.trim_start_matches(['=', '<', '>', '!']),
        |word| word.trim_start_matches(|letter: char| letter.is_ascii_alphabetic()),
    );
    Some((left.trim(), right.trim()))
}

fn word_operator(rest: &str) -> bool {
    rest.trim_start().get(..4).is_some_and(|word| word.eq_ignore_ascii_case("like"))
}

/// A comment after an open quote: the number of quotes before the comment is odd, or the comment
/// hides the end of the statement that the text was pasted into.
pub(super) fn open_quote(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let before = text.get(..range.end)?;
    let rest = text.get(range.end..)?;
    let odd = before.matches('\'').count() % 2 == 1;
    let hidden = rest.lines().next().unwrap_or_default().trim().to_ascii_lowercase();
    let tail = hidden.starts_with('\'') || hidden.ends_with('\'') && hidden.contains("='");
    let tail = tail || hidden.contains("' and ") || hidden.contains("' or ");
    (odd || tail).then_some(range)
}

/// A statement without `where` and `limit`.
pub(super) fn no_where(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let statement = text.get(range.start..)?.split(';').next()?.to_ascii_lowercase();
    let mut words = statement.split(|letter: char| !letter.is_ascii_alphanumeric());
    (!words.any(|word| matches!(word, "where" | "limit"))).then_some(range)
}

/// A hexadecimal constant that encodes text: at least four printable characters.
pub(super) fn hex_text(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let written = slice(text, &range);
    let digits = written.strip_prefix("0x").or_else(|| written.strip_prefix("0X"))?;
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let text = pairs.len() >= 4 && rest.is_empty() && pairs.iter().all(|pair| is_printable(pair));
    text.then_some(range)
}

/// Whether an operand is a text or a number.
fn is_constant(side: &str) -> bool {
    side.starts_with(['\'', '"']) || side.starts_with(|first: char| first.is_ascii_digit())
}

/// Whether two hexadecimal digits encode a printable character.
fn is_printable(pair: &[u8]) -> bool {
    let pair = str::from_utf8(pair).ok();
    let byte = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok());
    byte.is_some_and(|byte| matches!(byte, 0x20..=0x7e | b'\n' | b'\r' | b'\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_that_are_always_true() {
        let rows = [
            ("1=1", true),
            ("'a' = 'a'", true),
            ("'a' = 'b'", true),
            ("name = NAME", true),
            ("name like '%'", true),
            ("name = 'ann'", false),
            ("price < 5", false),
            ("name like 'a%'", false),
        ];
        for (text, expected) in rows {
            assert_eq!(always_true(text, 0..text.len()).is_some(), expected, "{text}");
        }
    }

    #[test]
    fn comments_after_an_open_quote() {
        let rows = [
            ("admin' --", true),
            ("'admin' --", false),
            ("admin -- ' and active = 1", true),
            ("select 1 -- a remark", false),
        ];
        for (text, expected) in rows {
            let comment = text.find("--").unwrap();
            assert_eq!(open_quote(text, comment..comment + 2).is_some(), expected, "{text}");
        }
    }

    #[test]
    fn statements_without_a_condition() {
        let rows = [
            ("delete from users", true),
            ("delete from users; select 1 where 2", true),
            ("delete from users WHERE id = 1", false),
            ("delete from users limit 1", false),
            ("delete from somewhere", true),
        ];
        for (text, expected) in rows {
            assert_eq!(no_where(text, 0..6).is_some(), expected, "{text}");
        }
    }

    #[test]
    fn hexadecimal_constants_that_encode_text() {
        let rows = [
            ("0x61646d696e", true),
            ("0x6164", false),
            ("0x0001020304", false),
            ("61646d69", false),
        ];
        for (text, expected) in rows {
            assert_eq!(hex_text(text, 0..text.len()).is_some(), expected, "{text}");
        }
    }
}
