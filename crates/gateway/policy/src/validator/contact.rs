//! E-mail addresses and telephone numbers.

use std::ops::Range;

use super::digits::{digits, slice};

/// File extensions that look like top-level domains: `logo@2x.png`, `page@next.js`.
const FILES: [&str; 14] = [
    "png", "jpg", "jpeg", "gif", "svg", "webp", "css", "js", "ts", "json", "py", "rs", "md", "html",
];

/// An e-mail address, excluding Git remotes, package versions and file names.
pub(super) fn email(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let (local, domain) = slice(text, &range).split_once('@')?;
    let (_, ending) = domain.rsplit_once('.')?;
    // `git@host:path`: in a stream the path may arrive too late to see it.
    let remote = local == "git";
    let file = FILES.iter().any(|known| ending.eq_ignore_ascii_case(known));
    let malformed = local.contains("..") || local.ends_with('.') || domain.contains("-.");
    (!remote && !file && !malformed).then_some(range)
}

/// Seven to fifteen digits (the maximum of ITU-T E.164), not a date and not part of a longer
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

/// Dates such as `2024-01-31`.
fn is_date(written: &str) -> bool {
    let lengths: Vec<usize> = written.split(['-', '.', '/', ' ']).map(str::len).collect();
    matches!(lengths.as_slice(), [4, 2, 2, ..] | [2, 2, 4]) && !written.starts_with('+')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_not_files_remotes_or_versions() {
        let rows = [
            ("ann@example.com", true),
            ("a.b+c@d-e.org", true),
            ("git@github.com", false),
            ("logo@2x.png", false),
            ("page@next.JS", false),
            ("a..b@c.de", false),
            ("a.@c.de", false),
            ("a@b-.de", false),
        ];
        for (text, expected) in rows {
            assert_eq!(email(text, 0..text.len()).is_some(), expected, "{text}");
        }
    }

    #[test]
    fn phone_numbers_are_not_dates_or_parts_of_numbers() {
        let rows = [
            ("+49 30 901820", 0..13, true),
            ("2024-01-31", 0..10, false),
            ("31.01.2024", 0..10, false),
            ("123456", 0..6, false),
            ("1234567890123456", 0..16, false),
            ("5555555", 0..7, false),
            ("9 1234567", 2..9, true),
            ("91234567", 1..8, false),
            ("1234567-8", 0..7, false),
        ];
        for (text, range, expected) in rows {
            assert_eq!(phone(text, range).is_some(), expected, "{text}");
        }
    }
}
