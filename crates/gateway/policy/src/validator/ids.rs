//! National identification numbers outside continental Europe.

use std::ops::Range;

use super::date::plausible;
use super::digits::{digits, luhn, slice, weighted};

/// Area not 000, 666 or from 900, group not 00, serial not 0000 (Social Security Administration,
/// since 2011), and not the number of the sample cards.
pub(super) fn us_ssn(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let digits = digits(text, &range);
    let number = digits.iter().fold(0, |sum, digit| sum * 10 + digit);
    let (area, group, serial) = (number / 1_000_000, number / 10_000 % 100, number % 10_000);
    let issued = !matches!(area, 0 | 666 | 900..) && group != 0 && serial != 0;
    (digits.len() == 9 && issued && number != 78_051_120).then_some(range)
}

/// Not one of the prefixes that are never issued (HM Revenue and Customs, NIM39110).
pub(super) fn uk_nino(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let prefix = slice(text, &range).get(..2)?;
    (!matches!(prefix, "BG" | "GB" | "NK" | "KN" | "TN" | "NT" | "ZZ")).then_some(range)
}

/// Ten digits; the last is 11 minus the weighted sum modulo 11.
pub(super) fn uk_nhs(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let digits = digits(text, &range);
    let check = (11 - weighted(&digits, &[10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11) % 11;
    (digits.len() == 10 && digits.last() == Some(&check)).then_some(range)
}

/// Nine digits that satisfy the Luhn check; the first is not 0 or 8.
pub(super) fn ca_sin(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let digits = digits(text, &range);
    (digits.len() == 9 && !matches!(digits.first(), Some(0 | 8)) && luhn(&digits)).then_some(range)
}

/// Eleven digits, two check digits modulo 11, not all the same.
pub(super) fn br_cpf(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let digits = digits(text, &range);
    let first = weighted(&digits, &[10, 9, 8, 7, 6, 5, 4, 3, 2]) * 10 % 11 % 10;
    let second = weighted(&digits, &[11, 10, 9, 8, 7, 6, 5, 4, 3, 2]) * 10 % 11 % 10;
    let same = digits.iter().all(|digit| Some(digit) == digits.first());
    (digits.get(9..) == Some(&[first, second]) && !same).then_some(range)
}

/// Twelve digits that satisfy the Verhoeff check; the first is not 0 or 1.
pub(super) fn in_aadhaar(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let digits = digits(text, &range);
    (digits.len() == 12 && digits.first() > Some(&1) && verhoeff(&digits)).then_some(range)
}

/// The Verhoeff check (1969): digits are permuted by their position and multiplied in the dihedral
/// group of order ten, where 0 to 4 are rotations and 5 to 9 reflections.
pub(super) fn verhoeff(digits: &[u32]) -> bool {
    let sum = digits
        .iter()
        .rev()
        .enumerate()
        .fold(0, |sum, (at, digit)| product(sum, permuted(*digit, at % 8)));
    sum == 0
}

/// Seventeen digits and a check character modulo 11 (GB 11643), with a plausible date of birth.
pub(super) fn cn_resident(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let number = slice(text, &range);
    let body = digits(number, &(0..17));
    let weights = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2];
    let check = "10X98765432".chars().nth(weighted(&body, &weights) as usize % 11)?;
    let part = |range: Range<usize>| number.get(range).and_then(|part| part.parse().ok());
    let born = plausible(part(6..10)?, part(10..12)?, part(12..14)?);
    (born && number.chars().next_back()?.to_ascii_uppercase() == check).then_some(range)
}

/// A date of birth and seven digits; the last is a check digit modulo 11.
pub(super) fn kr_rrn(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let digits = digits(text, &range);
    let sum = weighted(&digits, &[2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5]);
    let check = (11 - sum % 11) % 10;
    (digits.len() == 13 && digits.last() == Some(&check)).then_some(range)
}

/// Nine digits whose weighted sum is a multiple of 11.
pub(super) fn au_tfn(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let digits = digits(text, &range);
    let sum = weighted(&digits, &[1, 4, 3, 7, 5, 8, 6, 9, 10]);
    (digits.len() == 9 && sum != 0 && sum.is_multiple_of(11)).then_some(range)
}

/// The permutation of Verhoeff's check, done this often.
fn permuted(digit: u32, times: usize) -> u32 {
    const STEP: [u32; 10] = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4];
    (0..times).fold(digit, |digit, _| STEP.get(digit as usize).copied().unwrap_or_default())
}

/// The product in the dihedral group of order ten.
const fn product(left: u32, right: u32) -> u32 {
    match (left < 5, right < 5) {
        (true, true) => (left + right) % 5,
        (true, false) => (left + right) % 5 + 5,
        (false, true) => (left + 5 - right) % 5 + 5,
        (false, false) => (left + 5 - right) % 5,
    }
}
