//! Payment cards and bank accounts.

use std::ops::Range;

use super::digits::{digits, luhn, slice};

/// The first part of a run of digits that is a card number: one to five groups, a brand's prefix
/// and length, and the Luhn check.
pub(super) fn card(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let groups = groups(text, &range);
    (0..groups.len()).find_map(|first| {
        let longest = groups.len().min(first + 5);
        (first + 1..=longest).rev().find_map(|end| {
            let chosen = groups.get(first..end)?;
            let span = chosen.first()?.start..chosen.last()?.end;
            (well_grouped(text, chosen) && is_card(&digits(text, &span)) && alone(text, &span))
                .then_some(span)
        })
    })
}

/// The groups of digits in a range, between separators.
fn groups(text: &str, range: &Range<usize>) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    for at in range.clone().filter(|at| text.as_bytes().get(*at).is_some_and(u8::is_ascii_digit)) {
        match groups.last_mut() {
            Some(last) if last.end == at => last.end = at + 1,
            _ => groups.push(at..at + 1),
        }
    }
    groups
}

/// Card numbers are written in groups of four to six digits (the last may be shorter) with the same
/// separator.
fn well_grouped(text: &str, groups: &[Range<usize>]) -> bool {
    let [before @ .., _] = groups else { return false };
    let mut separators =
        groups.windows(2).map(|pair| text.get(pair.first()?.end..pair.get(1)?.start));
    let first = separators.next();
    before.iter().all(|group: &Range<usize>| groups.len() == 1 || (4..=6).contains(&group.len()))
        && separators.all(|separator| Some(separator) == first)
}

/// Whether no letter and no decimal point is next to the number.
fn alone(text: &str, span: &Range<usize>) -> bool {
    let bytes = text.as_bytes();
    let before = span.start.checked_sub(1).and_then(|at| bytes.get(at));
    let after = bytes.get(span.end);
    let fraction = before == Some(&b'.')
        || after == Some(&b'.') && bytes.get(span.end + 1).is_some_and(u8::is_ascii_digit);
    let touches = [before, after].into_iter().flatten().any(u8::is_ascii_alphanumeric);
    !touches && !fraction
}

/// The number that the first digits form.
fn prefix(digits: &[u32], length: usize) -> u32 {
    digits.iter().take(length).fold(0, |sum, digit| sum * 10 + digit)
}

/// Prefixes and lengths of the card brands (ISO/IEC 7812 issuer ranges, as published by the
/// brands).
fn is_card(digits: &[u32]) -> bool {
    let brand = matches!(
        (digits.len(), prefix(digits, 1), prefix(digits, 2), prefix(digits, 4)),
        (13 | 16 | 19, 4, ..)
            | (16, _, 51..=55, _)
            | (16, _, _, 2221..=2720)
            | (15, _, 34 | 37, _)
            | (16..=19, _, 35 | 62 | 64 | 65, _)
            | (16..=19, _, _, 6011)
            | (14, _, 30 | 36 | 38 | 39, _)
            | (13..=19, _, 50 | 56..=58 | 63 | 67, _)
    );
    brand && digits.iter().any(|digit| Some(digit) != digits.first()) && luhn(digits)
}

/// Lengths from the register of ISO 13616, behind the codes of the countries with most accounts.
const IBAN_LENGTHS: &str = "\
    AD24 AE23 AL28 AT20 BA20 BE16 BG22 BR29 CH21 CY28 CZ24 DE22 DK18 EE20 ES24 FI18 FR27 GB22 \
    GE22 GI23 GR27 HR21 HU28 IE22 IL23 IS26 IT27 KZ20 LI21 LT20 LU20 LV21 MC27 MT31 NL18 NO15 \
    PL28 PT25 RO24 RS22 SA24 SE24 SI19 SK24 TR26 UA29";

/// The length of the country's accounts, and remainder 1 modulo 97.
pub(super) fn iban(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let found = slice(text, &range);
    let country = found.get(..2)?;
    let mut lengths = IBAN_LENGTHS.split(' ').map(|entry| entry.split_at(2));
    let (_, length) = lengths.find(|(code, _)| country.eq_ignore_ascii_case(code))?;
    let length: usize = length.parse().ok()?;
    let signs = || found.char_indices().filter(|(_, sign)| sign.is_ascii_alphanumeric());
    let (last, _) = signs().nth(length - 1)?;
    let end = range.start + last + 1;
    if text.as_bytes().get(end).is_some_and(u8::is_ascii_alphanumeric) {
        return None;
    }
    let body = signs().take(length).skip(4);
    let remainder = body.chain(signs().take(4)).fold(0, |sum, (_, sign)| {
        let value = sign.to_digit(36).unwrap_or_default();
        (sum * if value < 10 { 10 } else { 100 } + value) % 97
    });
    (remainder == 1).then_some(range.start..end)
}

/// Any number that satisfies the Luhn check.
pub(super) fn luhn_number(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    luhn(&digits(text, &range)).then_some(range)
}
