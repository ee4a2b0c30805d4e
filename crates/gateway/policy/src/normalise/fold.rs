//! Unicode: compatibility forms, what cannot be seen, and look-alikes.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::canonical_combining_class;

use super::look_alikes::latin;
use super::mapped::Mapped;

/// The text in NFKC, without what cannot be seen and with look-alikes read as Latin.
///
/// NFKC is applied to each character with the marks that follow it, which is all that the rules
/// need: only jamo, which compose over several base characters, stay apart.
pub(super) fn fold(from: &Mapped) -> Mapped {
    let text = from.text();
    let mut folded = Mapped::with_capacity(text.len());
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

fn fold_cluster(part: &str, origin: (usize, usize), folded: &mut Mapped) {
    for character in part.chars().filter(|character| !invisible(*character)).nfkc() {
        if canonical_combining_class(character) == 0 {
            folded.push(latin(character).unwrap_or(character), origin);
        }
    }
}

/// A character with the marks and invisible characters behind it.
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

/// A control character is white space to some parsers and nothing to others.
const fn visible_ascii(byte: u8) -> char {
    match byte {
        b'\t' | b'\n' | b'\r' | 0x20..=0x7e => byte as char,
        _ => ' ',
    }
}

/// Characters without width: joiners, marks of direction, soft hyphen, selectors of variants.
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

/// The text with each run of white space as one line's end, if it has one, or one space.
pub(super) fn collapse(from: &Mapped) -> Mapped {
    let text = from.text();
    let mut collapsed = Mapped::with_capacity(text.len());
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
