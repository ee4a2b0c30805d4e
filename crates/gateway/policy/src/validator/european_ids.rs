//! National identification numbers of continental Europe.

use std::ops::Range;

use super::date::plausible;
use super::digits::{digits, luhn, slice, weighted};

/// The number modulo 23 determines the letter; the prefixes X, Y and Z of foreigners count as 0, 1
/// and 2.
pub(super) fn es_dni(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let written = slice(text, &range);
    let foreign = match written.bytes().next()?.to_ascii_uppercase() {
        b'Y' => 10_000_000,
        b'Z' => 20_000_000,
        _ => 0,
    };
    let number = foreign + digits(text, &range).iter().fold(0, |sum, digit| sum * 10 + digit);
    let letter = "TRWAGMYFPDXBNJZSQVHLCKE".chars().nth(number as usize % 23)?;
    (written.chars().next_back()?.to_ascii_uppercase() == letter).then_some(range)
}

/// Sixteen characters. Odd positions count by a table of the ministry of finance (decree of 12
/// March 1974), even positions by value; the sum modulo 26 is the last letter.
pub(super) fn it_fiscal(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    const ODD: [u32; 26] = [
        1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24,
        23,
    ];
    let (last, body) = slice(text, &range).as_bytes().split_last()?;
    let sum: u32 = body
        .iter()
        .enumerate()
        .map(|(at, sign)| match at % 2 {
            0 => ODD.get(value_of(*sign) as usize).copied().unwrap_or_default(),
            _ => value_of(*sign),
        })
        .sum();
    (sum % 26 == value_of(*last)).then_some(range)
}

/// Thirteen digits, then 97 minus their remainder modulo 97. Corsica's letters are not supported.
pub(super) fn fr_nir(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let digits = digits(text, &range);
    let (body, key) = digits.split_at_checked(13)?;
    (key.len() == 2 && 97 - number(body) % 97 == number(key)).then_some(range)
}

/// Eleven digits, the last by ISO 7064 MOD 11,10; the first is not 0.
pub(super) fn de_tax(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let digits = digits(text, &range);
    let (last, body) = digits.split_last()?;
    let product = body.iter().fold(10, |product, digit| {
        let sum = (digit + product) % 10;
        (if sum == 0 { 10 } else { sum }) * 2 % 11
    });
    let check = (11 - product) % 10;
    (digits.len() == 11 && digits.first() != Some(&0) && *last == check).then_some(range)
}

/// Nine digits; the weighted sum, in which the last digit counts negative, is a multiple of 11.
pub(super) fn nl_bsn(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let digits = digits(text, &range);
    // -1 is 10 modulo 11.
    let sum = weighted(&digits, &[9, 8, 7, 6, 5, 4, 3, 2, 10]);
    (digits.len() == 9 && sum != 0 && sum.is_multiple_of(11)).then_some(range)
}

/// A date of birth and four digits; the ten digits satisfy the Luhn check.
pub(super) fn se_person(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let digits = digits(text, &range);
    let short = digits.get(digits.len().checked_sub(10)?..)?;
    let pair = |at: usize| short.get(at..at + 2).map_or(0, |pair| weighted(pair, &[10, 1]));
    // The year has no century; any will do.
    (plausible(1900 + pair(0), pair(2), pair(4)) && luhn(short)).then_some(range)
}

/// Eleven digits; the last completes the weighted sum to a multiple of ten.
pub(super) fn pl_pesel(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let digits = digits(text, &range);
    let sum = weighted(&digits, &[1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1]);
    (digits.len() == 11 && sum != 0 && sum.is_multiple_of(10)).then_some(range)
}

/// The value of a digit or letter, where A is 0.
fn value_of(sign: u8) -> u32 {
    match sign {
        b'0'..=b'9' => u32::from(sign - b'0'),
        _ => u32::from(sign.to_ascii_uppercase().wrapping_sub(b'A')),
    }
}

/// The number with these digits.
fn number(digits: &[u32]) -> u64 {
    digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(*digit))
}
