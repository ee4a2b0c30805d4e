//! Dates of birth of living people.

use std::ops::Range;

use super::digits::slice;

/// Whether the day exists and is a possible date of birth of a living person.
pub(super) const fn plausible(year: u32, month: u32, day: u32) -> bool {
    let leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 0,
    };
    matches!(year, 1900..=2029) && matches!(day, 1..) && day <= days
}

/// A date in numbers, in any usual order. For a date with the month in letters only day and year
/// are checked.
pub(super) fn date_of_birth(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let written = slice(text, &range);
    let numbers: Vec<u32> = written
        .split(|character: char| !character.is_ascii_digit())
        .filter_map(|part| part.parse().ok())
        .collect();
    let valid = match *numbers.as_slice() {
        [year, month, day] if year > 31 => plausible(with_century(year), month, day),
        [first, second, year] => {
            plausible(with_century(year), first, second)
                || plausible(with_century(year), second, first)
        }
        [day, year] => plausible(year, 1, day),
        [compact] => plausible(compact / 10_000, compact / 100 % 100, compact % 100),
        _ => false,
    };
    valid.then_some(range)
}

const fn with_century(year: u32) -> u32 {
    if year < 100 { 1900 + year } else { year }
}
