//! Checks of screens: the final output of a command, at several widths.

use std::collections::BTreeSet;
use std::path::Path;

use expect_test::expect_file;

/// Lines and columns of the terminal that a screen must fit.
const TERMINAL_LINES: usize = 24;
/// The widths that are stored.
const STORED: [usize; 3] = [60, 80, 120];
/// The mark of words that were left out.
const CUT: &str = "…";

/// Compares a screen with `NAME-60.txt`, `NAME-80.txt` and `NAME-120.txt` in `folder`, and checks
/// it at every width from 60 to 200: it has at most 24 lines, all lines fit the terminal, words are
/// not broken, and the last line is the verdict. `whole` is the same screen with unlimited space.
///
/// # Panics
/// If it does not hold, or a stored file differs.
#[track_caller]
pub fn check_screens(
    folder: impl AsRef<Path>,
    name: &str,
    whole: &str,
    screen: impl Fn(usize) -> String,
) {
    for width in STORED {
        expect_file![folder.as_ref().join(format!("{name}-{width}.txt"))].assert_eq(&screen(width));
    }
    let words: BTreeSet<&str> = whole.lines().flat_map(str::split_whitespace).collect();
    for width in 60..=200 {
        check_one(&screen(width), width, &words, whole);
    }
}

#[track_caller]
fn check_one(text: &str, width: usize, words: &BTreeSet<&str>, whole: &str) {
    let lines: Vec<_> = text.lines().collect();
    assert!(lines.len() <= TERMINAL_LINES, "{} lines at {width}:\n{text}", lines.len());
    for (place, line) in lines.iter().enumerate() {
        let columns = line.chars().count();
        // The verdict is one line, however long.
        let fits = columns <= width || Some(line) == lines.last();
        assert!(fits, "{columns} columns at {width}: {line}\n{text}");
        // How many are left out depends on the room.
        let near = lines[place.saturating_sub(1)..lines.len().min(place + 2)].join(" ");
        let counts = near.contains(" in report.txt") || near.contains(" with --full");
        let mut broken = line.split_whitespace().filter(|word| !is_whole(word, words));
        assert!(counts || broken.next().is_none(), "a word is broken at {width}: {line}\n{text}");
    }
    assert_eq!(first_of_last(text), first_of_last(whole), "the verdict at {width}:\n{text}");
}

/// The word of the verdict.
fn first_of_last(text: &str) -> Option<&str> {
    text.lines().last()?.split_whitespace().next()
}

/// Before the mark of a cut, a word has lost its comma.
fn is_whole(word: &str, words: &BTreeSet<&str>) -> bool {
    word == CUT
        || words.contains(word)
        || [",", ";", ":", "."].iter().any(|mark| words.contains(&*format!("{word}{mark}")))
}
