//! Removes SQL comments.

use std::ops::Range;

use super::MappedText;

/// A closed comment.
struct Comment {
    range: Range<usize>,
    /// The code in `/*!50000 ... */`, which a database executes.
    executed: Option<Range<usize>>,
}

/// Replaces each comment. Executed code in a comment stays, between spaces.
pub(super) fn strip(from: &MappedText, by: &str) -> MappedText {
    let mut stripped = MappedText::with_capacity(from.text().len());
    let mut at = 0;
    while let Some(comment) = next(from.text(), at) {
        stripped.copy(from, at..comment.range.start);
        let origin = from.span(&comment.range);
        match comment.executed {
            Some(code) => {
                stripped.push(' ', from.span(&(comment.range.start..code.start)));
                stripped.copy(from, code.clone());
                stripped.push(' ', from.span(&(code.end..comment.range.end)));
            }
            None => by.chars().for_each(|character| stripped.push(character, origin)),
        }
        at = comment.range.end;
    }
    stripped.copy(from, at..from.text().len());
    stripped
}

/// Whether a comment is between two letters, so that removing it makes a word.
pub(super) fn is_inside_word(from: &MappedText) -> bool {
    let bytes = from.text().as_bytes();
    let mut at = 0;
    while let Some(comment) = next(from.text(), at) {
        let before = comment.range.start.checked_sub(1).and_then(|at| bytes.get(at));
        let after = bytes.get(comment.range.end);
        if comment.executed.is_none()
            && before.is_some_and(u8::is_ascii_alphabetic)
            && after.is_some_and(u8::is_ascii_alphabetic)
        {
            return true;
        }
        at = comment.range.end;
    }
    false
}

/// The first closed comment from `from` on.
fn next(text: &str, from: usize) -> Option<Comment> {
    let start = from + text.get(from..)?.find("/*")?;
    let inside = start + 2;
    let length = text.get(inside..)?.find("*/")?;
    let range = start..inside + length + 2;
    let inner = text.get(inside..inside + length)?;
    let executed = inner.strip_prefix('!').map(|rest| {
        let code = rest.trim_start_matches(|character: char| character.is_ascii_digit());
        inside + length - code.len()..inside + length
    });
    Some(Comment { range, executed })
}
