//! Comments of SQL.

use std::ops::Range;

use super::mapped::Mapped;

/// A comment that is closed, and what of it a database would run.
struct Comment {
    all: Range<usize>,
    /// `/*!50000 ... */` is no comment to the database it is meant for.
    live: Option<Range<usize>>,
}

/// The text with each comment replaced; what is live in a comment stays, set apart by spaces.
pub(super) fn strip(from: &Mapped, by: &str) -> Mapped {
    let mut stripped = Mapped::with_capacity(from.text().len());
    let mut at = 0;
    while let Some(comment) = next(from.text(), at) {
        stripped.copy(from, at..comment.all.start);
        let origin = from.span(&comment.all);
        match comment.live {
            Some(live) => {
                stripped.push(' ', from.span(&(comment.all.start..live.start)));
                stripped.copy(from, live.clone());
                stripped.push(' ', from.span(&(live.end..comment.all.end)));
            }
            None => by.chars().for_each(|character| stripped.push(character, origin)),
        }
        at = comment.all.end;
    }
    stripped.copy(from, at..from.text().len());
    stripped
}

/// Whether a comment stands between two letters, so that reading it as nothing makes a word.
pub(super) fn inside_a_word(from: &Mapped) -> bool {
    let letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphabetic);
    let bytes = from.text().as_bytes();
    let mut at = 0;
    while let Some(comment) = next(from.text(), at) {
        let before = comment.all.start.checked_sub(1).and_then(|at| bytes.get(at));
        if comment.live.is_none() && letter(before) && letter(bytes.get(comment.all.end)) {
            return true;
        }
        at = comment.all.end;
    }
    false
}

/// The first closed comment from `from` on.
fn next(text: &str, from: usize) -> Option<Comment> {
    let start = from + text.get(from..)?.find("/*")?;
    let inside = start + 2;
    let length = text.get(inside..)?.find("*/")?;
    let all = start..inside + length + 2;
    let inner = text.get(inside..inside + length)?;
    let live = inner.strip_prefix('!').map(|live| {
        let code = live.trim_start_matches(|character: char| character.is_ascii_digit());
        inside + length - code.len()..inside + length
    });
    Some(Comment { all, live })
}
