//! Compares a text with a stored ("golden") file. For tests only.
//!
//! `UPDATE_GOLDEN=1 cargo test` stores what the tests produce instead; read the difference before
//! you commit it.

pub mod schema_page;
mod screens;

pub use screens::check_screens;

use std::fs;
use std::path::Path;

/// The variable that asks for the stored files to be written again.
pub const UPDATE: &str = "UPDATE_GOLDEN";

/// Compares `actual` with the file at `path`, or stores it there if [`UPDATE`] is set.
///
/// # Panics
/// If the two differ, or the file cannot be read or written.
#[track_caller]
#[expect(clippy::panic, reason = "a failed comparison must fail the test that asked for it")]
pub fn check(path: impl AsRef<Path>, actual: &str) {
    let path = path.as_ref();
    if std::env::var_os(UPDATE).is_some() {
        let stored =
            path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, actual));
        return stored.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    let stored = fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("{}: {error}; store it with {UPDATE}=1", path.display()));
    if let Some(difference) = difference(&stored, actual) {
        panic!("{}:{difference}\nIf it is intended: {UPDATE}=1", path.display());
    }
}

/// The first line in which the texts differ.
fn difference(stored: &str, actual: &str) -> Option<String> {
    if stored == actual {
        return None;
    }
    let (mut old, mut new) = (stored.split('\n'), actual.split('\n'));
    let mut number = 1;
    loop {
        let lines = (old.next(), new.next());
        if lines.0 != lines.1 {
            let [old, new] = [lines.0, lines.1].map(|line| line.unwrap_or("(no line)"));
            return Some(format!("{number} differs\n  stored: {old}\n  actual: {new}"));
        }
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn the_first_line_that_differs_is_named() {
        let at = |stored, actual| difference(stored, actual);
        assert_eq!(at("a\nb\n", "a\nb\n"), None);
        assert!(at("a\nb\n", "a\nc\n").is_some_and(|text| text.starts_with("2 differs")));
        assert!(at("a\nb\n", "a\n").is_some_and(|text| text.starts_with("2 differs")));
        assert!(
            at("a", "a\n")
                .is_some_and(|text| text.contains("actual: \n") || text.ends_with("actual: "))
        );
        assert!(at("", "x").is_some_and(|text| text.starts_with("1 differs")));
    }
}
