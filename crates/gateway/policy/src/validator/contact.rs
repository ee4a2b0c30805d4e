//! E-mail addresses and telephone numbers.

use std::ops::Range;

use super::{digits, slice};

/// Endings of files that look like domains: `logo@2x.png`, `page@next.js`.
const FILES: [&str; 14] = [
    "png", "jpg", "jpeg", "gif", "svg", "webp", "css", "js", "ts", "json", "py", "rs", "md", "html",
];

/// An address for mail, not a remote of git, a package with its version or a file.
pub(super) fn email(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let (local, domain) = slice(text, &range).split_once('@')?;
    let (_, ending) = domain.rsplit_once('.')?;
    // `git@host:path`, of which a stream shows the path too late.
    let remote = local == "git";
    let file = FILES.iter().any(|known| ending.eq_ignore_ascii_case(known));
    let malformed = local.contains("..") || local.ends_with('.') || domain.contains("-.");
    (!remote && !file && !malformed).then_some(range)
}

/// Seven to fifteen digits (ITU-T E.164 allows fifteen), neither a date nor part of a longer
/// number.
pub(super) fn phone(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let digits = digits(text, &range);
    let longer = digit(range.start.checked_sub(1))
        || digit(Some(range.end))
        || matches!(bytes.get(range.end), Some(b'-' | b'.' | b'/')) && digit(Some(range.end + 1));
    let same = digits.iter().all(|own| Some(own) == digits.first());
    let usual = (7..=15).contains(&digits.len()) && !same;
    (usual && !longer && !is_date(slice(text, &range))).then_some(range)
}

/// `2024-01-31` and the like.
fn is_date(written: &str) -> bool {
    let lengths: Vec<usize> = written.split(['-', '.', '/', ' ']).map(str::len).collect();
    matches!(lengths.as_slice(), [4, 2, 2, ..] | [2, 2, 4]) && !written.starts_with('+')
}
