//! The limit on JSON nesting, checked before parsing, in one pass without recursion.

use crate::error::DialectError;
use crate::json_string::find_quote_or_backslash;

/// The maximum nesting of objects and arrays in a request, or in a message to or from a tool.
/// Tool schemas rarely exceed 15 levels.
pub const MAX_DEPTH: usize = 64;

/// Rejects text that is nested deeper than [`MAX_DEPTH`]. The text need not be valid JSON.
pub(crate) fn check(text: &[u8]) -> Result<(), DialectError> {
    if is_too_deep(text) {
        let problem = format!("the body is nested deeper than {MAX_DEPTH} levels; flatten it");
        return Err(DialectError::Request(problem));
    }
    Ok(())
}

/// Whether text is nested deeper than [`MAX_DEPTH`]. It need not be valid JSON.
pub fn is_too_deep(text: &[u8]) -> bool {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'"' => at = skip_string(text, at),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return true;
        }
    }
    false
}

/// The position after the closing quote of the string whose content starts at `at`.
pub(crate) fn skip_string(text: &[u8], mut at: usize) -> usize {
    while let Some(found) = text.get(at..).and_then(find_quote_or_backslash) {
        if text[at + found] == b'"' {
            return at + found + 1;
        }
        at += found + 2;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> Vec<u8> {
        [vec![b'['; levels], vec![b']'; levels]].concat()
    }

    #[test]
    fn the_limit_is_allowed_and_one_more_is_rejected() {
        assert_eq!(check(&nested(MAX_DEPTH)), Ok(()));
        let error = check(&nested(MAX_DEPTH + 1)).unwrap_err();
        assert_eq!(error.to_string(), "the body is nested deeper than 64 levels; flatten it");
    }

    #[test]
    fn a_million_levels_are_rejected_without_recursion() {
        assert!(check(&vec![b'['; 1_000_000]).is_err());
    }

    #[test]
    fn brackets_inside_strings_do_not_count() {
        let text = format!("[\"{}\\\"{}\\\\\", []]", "[".repeat(100), "{".repeat(100));
        assert_eq!(check(text.as_bytes()), Ok(()));
    }

    #[test]
    fn siblings_do_not_add_up() {
        assert_eq!(check(format!("[{}1]", "[],".repeat(500)).as_bytes()), Ok(()));
    }
}
