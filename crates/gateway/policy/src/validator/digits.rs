//! Digits and check sums, for all validators.

use std::ops::Range;

/// The decimal digits in a range of a text.
pub(super) fn digits(text: &str, range: &Range<usize>) -> Vec<u32> {
    slice(text, range).chars().filter_map(|character| character.to_digit(10)).collect()
}

/// A range of a text.
pub(super) fn slice<'t>(text: &'t str, range: &Range<usize>) -> &'t str {
    text.get(range.clone()).unwrap_or_default()
}

/// The sum of the products of digits and weights.
pub(super) fn weighted(digits: &[u32], weights: &[u32]) -> u32 {
    digits.iter().zip(weights).map(|(digit, weight)| digit * weight).sum()
}

/// The Luhn check (ISO/IEC 7812-1, annex B): every second digit from the right is doubled, and the
/// sum of all resulting digits must end in 0.
pub(super) fn luhn(digits: &[u32]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| if at % 2 == 0 { *digit } else { digit * 2 / 10 + digit * 2 % 10 })
        .sum();
    sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_range() {
        assert_eq!(digits("1-2 34", &(1..5)), [2, 3]);
        assert_eq!(digits("12", &(1..9)), Vec::<u32>::new(), "beyond the end there is nothing");
    }

    #[test]
    fn the_luhn_check_detects_wrong_digits() {
        // The example of ISO/IEC 7812-1.
        assert!(luhn(&[7, 9, 9, 2, 7, 3, 9, 8, 7, 1, 3]));
        assert!(!luhn(&[7, 9, 9, 2, 7, 3, 9, 8, 7, 1, 4]));
        assert!(!luhn(&[9, 7, 9, 2, 7, 3, 9, 8, 7, 1, 3]));
    }

    #[test]
    fn weights_apply_in_order() {
        assert_eq!(weighted(&[1, 2, 3], &[10, 1]), 12);
    }
}
