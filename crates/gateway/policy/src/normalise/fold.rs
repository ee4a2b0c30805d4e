//! Folds Unicode: NFKC, without invisible characters, with confusables as Latin letters.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::canonical_combining_class;

use super::{MappedText, latin};

/// Folds a text: NFKC, without invisible characters and with Latin letters for confusables.
///
/// NFKC is applied to each character and the marks that follow it. That is enough for the rules:
/// only jamo, which compose over several base characters, stay separate.
pub(super) fn fold(from: &MappedText) -> MappedText {
    let text = from.text();
    let mut folded = MappedText::with_capacity(text.len());
    let mut at = 0;
    while let Some(cluster) = cluster(text, at) {
        let origin = from.span(&cluster);
        let part = text.get(cluster.clone()).unwrap_or_default();
        match part.as_bytes() {
            [byte] => folded.push(visible_ascii(*byte), origin),
            _ => fold_cluster(part, origin, &mut folded),
        }
        at = cluster.end;
    }
    folded
}

/// Calls `each` with the folded form of a character, which later marks do not change.
pub(crate) fn fold_character(character: char, mut each: impl FnMut(char)) {
    if character.is_ascii() {
        each(character);
    } else if !invisible(character) {
        for character in std::iter::once(character).nfkc() {
            if canonical_combining_class(character) == 0 {
                each(latin(character).unwrap_or(character));
            }
        }
    }
}

fn fold_cluster(part: &str, origin: (usize, usize), folded: &mut MappedText) {
    for character in part.chars().filter(|character| !invisible(*character)).nfkc() {
        if canonical_combining_class(character) == 0 {
            folded.push(latin(character).unwrap_or(character), origin);
        }
    }
}

/// A character with the marks and invisible characters that follow it.
fn cluster(text: &str, at: usize) -> Option<Range<usize>> {
    let mut characters = text.get(at..)?.chars();
    let first = characters.next()?;
    let attached = characters
        .take_while(|next| {
            !next.is_ascii() && (invisible(*next) || canonical_combining_class(*next) != 0)
        })
        .map(char::len_utf8)
        .sum::<usize>();
    Some(at..at + first.len_utf8() + attached)
}

/// Control characters become spaces: some parsers treat them as white space.
const fn visible_ascii(byte: u8) -> char {
    match byte {
        b'\t' | b'\n' | b'\r' | 0x20..=0x7e => byte as char,
        _ => ' ',
    }
}

/// Characters without width: joiners, direction marks, soft hyphen, variation selectors.
const fn invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{e0100}'..='\u{e01ef}'
    )
}

/// Collapses each run of white space to one line break, if it contains one, or one space.
pub(super) fn collapse(from: &MappedText) -> MappedText {
    let text = from.text();
    let mut collapsed = MappedText::with_capacity(text.len());
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let word = rest.find(char::is_whitespace).unwrap_or(rest.len());
        collapsed.copy(from, at..at + word);
        let tail = rest.get(word..).unwrap_or_default();
        let length = tail.len() - tail.trim_start().len();
        let gap = at + word..at + word + length;
        if length > 0 {
            let line = text.get(gap.clone()).is_some_and(|gap| gap.contains('\n'));
            collapsed.push(if line { '\n' } else { ' ' }, from.span(&gap));
        }
        at = gap.end;
    }
    collapsed
}
