//! A printed number, as the interval of all values that its digits allow.
//!
//! `4.59ms` may be rounded, cut off or rounded up: it stands for anything within one unit of its
//! last digit, 4.58 to 4.60 ms.

use crate::unit::{self, Unit};

/// How a table writes numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Locale {
    /// `1,234.5`
    #[default]
    Point,
    /// `1.234,5`
    Comma,
}

/// What stands before or behind a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// Nothing.
    Is,
    /// `~5`: nobody knows how near.
    About,
    /// `<5`, `up to 5`
    Below,
    /// `>5`, `5+`
    Above,
}

/// A printed number in the unit beside it, or in that of its header.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Number {
    /// The least that the digits allow.
    pub(crate) low: f64,
    /// As printed.
    pub(crate) value: f64,
    /// The most that the digits allow.
    pub(crate) high: f64,
    pub(crate) unit: Option<Unit>,
    pub(crate) bound: Bound,
    /// The cell's text.
    pub(crate) text: String,
    /// The text behind number and unit.
    pub(crate) rest: String,
    /// A whole number without suffix, and not a round one.
    pub(crate) whole: bool,
}

impl Number {
    /// Reads the number at the start of a cell, if there is one.
    pub(crate) fn parse(text: &str, locale: Locale) -> Option<Self> {
        let text = text.trim();
        let (bound, body) = leading_bound(text);
        let (negative, body) = match body.strip_prefix(['-', '\u{2212}']) {
            Some(body) => (true, body),
            None => (false, body.strip_prefix('+').unwrap_or(body)),
        };
        let (digits, mut rest) = split_digits(body.trim_start())?;
        let (mut value, mut step, whole) = read_digits(digits, locale)?;
        let (times, after) = multiplier(rest);
        (value, step, rest) = (value * times, step * times, after);
        let (unit, after) = unit::leading(rest);
        rest = after;
        let (mut low, mut high) = (value - step, value + step);
        if let Some(unit) = unit {
            (low, value, high, rest) = compound(rest, unit, (low, value, high));
        }
        let (mut bound, mut rest) = trailing_bound(bound, rest);
        if let Some((end, after)) = range_end(rest, locale, unit) {
            (high, bound, rest) = (high.max(end), Bound::About, after);
        }
        if negative {
            (low, value, high) = (-high, -value, -low);
        } else {
            low = low.max(0.0);
        }
        let whole = whole && step <= 1.0 && unit.is_none();
        let finite = low.is_finite() && high.is_finite();
        let (text, rest) = (short(text), rest.trim().to_owned());
        finite.then_some(Self { low, value, high, unit, bound, text, rest, whole })
    }

    /// The same in other units.
    pub(crate) fn scaled(&self, factor: f64) -> Self {
        let (low, value, high) = (self.low * factor, self.value * factor, self.high * factor);
        Self { low, value, high, ..self.clone() }
    }

    /// The same as an exact number, like a count.
    pub(crate) fn exact(&self) -> Self {
        Self { low: self.value, high: self.value, ..self.clone() }
    }

    /// Neither a bound nor an estimate.
    pub(crate) fn is_plain(&self) -> bool {
        self.bound == Bound::Is
    }
}

/// A cell is quoted with at most 60 characters.
pub(crate) fn short(text: &str) -> String {
    if text.chars().count() <= 60 {
        return text.to_owned();
    }
    text.chars().take(59).chain(['\u{2026}']).collect()
}

fn leading_bound(text: &str) -> (Bound, &str) {
    const WORDS: [(&str, Bound); 13] = [
        ("<=", Bound::Below),
        (">=", Bound::Above),
        ("~", Bound::About),
        ("\u{2248}", Bound::About),
        ("<", Bound::Below),
        ("\u{2264}", Bound::Below),
        (">", Bound::Above),
        ("\u{2265}", Bound::Above),
        ("up to ", Bound::Below),
        ("under ", Bound::Below),
        ("over ", Bound::Above),
        ("about ", Bound::About),
        ("around ", Bound::About),
    ];
    for (word, bound) in WORDS {
        let head = text.get(..word.len());
        if let Some((_, rest)) =
            head.filter(|head| head.eq_ignore_ascii_case(word)).zip(text.get(word.len()..))
        {
            return (bound, rest.trim_start());
        }
    }
    (Bound::Is, text)
}

fn trailing_bound(bound: Bound, rest: &str) -> (Bound, &str) {
    match rest.trim_start().strip_prefix('+') {
        Some(after) if bound == Bound::Is => (Bound::Above, after),
        _ => (bound, rest),
    }
}

/// Digits with their separators; a separator at the end is none.
fn split_digits(text: &str) -> Option<(&str, &str)> {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',' | '_' | '\'')))
        .unwrap_or(text.len());
    let digits = text.get(..end)?.trim_end_matches(|c: char| !c.is_ascii_digit());
    let known = digits.starts_with(|c: char| c.is_ascii_digit()) && digits.len() <= 24;
    known.then(|| (digits, text.get(digits.len()..).unwrap_or_default()))
}

/// The value, one unit of its last digit, and whether it is whole and not round.
fn read_digits(digits: &str, locale: Locale) -> Option<(f64, f64, bool)> {
    let (group, point) = match locale {
        Locale::Point => (',', '.'),
        Locale::Comma => ('.', ','),
    };
    let mut parts = digits.splitn(2, point);
    let (before, after) = (parts.next()?, parts.next().unwrap_or_default());
    let groups: Vec<&str> = before.split([group, '_', '\'']).collect();
    let grouped = groups.iter().skip(1).all(|part| part.len() == 3);
    let fraction_ok = after.bytes().all(|byte| byte.is_ascii_digit());
    if !(grouped && fraction_ok) {
        return None;
    }
    let integer = groups.concat();
    let value: f64 = format!("{integer}.{after}0").parse().ok()?;
    if !after.is_empty() {
        let decimals = i32::try_from(after.len()).ok()?;
        return Some((value, 10f64.powi(-decimals), false));
    }
    // 21,000 may be a rounded 20,600; that 1,000 stands for 600 is not assumed.
    let zeros = integer.len() - integer.trim_end_matches('0').len();
    let round = zeros >= 3 && value > 0.0;
    let power = if round { zeros.min(integer.len().saturating_sub(2)) } else { 0 };
    Some((value, 10f64.powi(i32::try_from(power).ok()?), !round))
}

/// `20K`, `1.2M`: the factor and the rest, unless the letter begins a unit like `MB`.
fn multiplier(rest: &str) -> (f64, &str) {
    let factor = match rest.chars().next() {
        Some('k' | 'K') => 1e3,
        Some('M') => 1e6,
        Some('G') => 1e9,
        _ => return (1.0, rest),
    };
    let after = rest.get(1..).unwrap_or_default();
    if after.starts_with(|c: char| c.is_ascii_alphabetic()) { (1.0, rest) } else { (factor, after) }
}

/// `1m30s`: further parts of the same dimension are added.
fn compound(rest: &str, unit: Unit, interval: (f64, f64, f64)) -> (f64, f64, f64, &str) {
    let (low, value, high) = interval;
    let next = split_digits(rest).and_then(|(digits, after)| {
        let (more, step, _) = read_digits(digits, Locale::Point)?;
        let (other, after) = unit::leading(after);
        let other = other.filter(|other| other.dimension == unit.dimension)?;
        let factor = other.scale / unit.scale;
        Some(((more - step) * factor, more * factor, (more + step) * factor, after))
    });
    match next {
        Some((less, more, most, after)) if value > 0.0 => {
            (value + less, value + more, value + most, after)
        }
        _ => (low, value, high, rest),
    }
}

/// The end of a range like `3-5ms`.
fn range_end(text: &str, locale: Locale, unit: Option<Unit>) -> Option<(f64, &str)> {
    let body = text.trim_start().strip_prefix(['-', '\u{2013}'])?;
    let (digits, after) = split_digits(body)?;
    let (end, step, _) = read_digits(digits, locale)?;
    let (other, after) = unit::leading(after);
    let factor = match (unit, other) {
        (Some(unit), Some(other)) => other.scale / unit.scale,
        _ => 1.0,
    };
    Some(((end + step) * factor, after))
}

/// A decimal comma is certain where a comma is followed by other than three digits.
pub(crate) fn locale_of<'text>(cells: impl Iterator<Item = &'text str>) -> Locale {
    let mut comma = false;
    for cell in cells {
        let Some((digits, _)) = split_digits(cell.trim()) else { continue };
        let Some((before, after)) = digits.rsplit_once(',') else { continue };
        if after.contains('.') {
            return Locale::Point;
        }
        comma |= after.len() != 3 || before == "0";
    }
    if comma { Locale::Comma } else { Locale::Point }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::Dimension;

    fn number(text: &str) -> Number {
        Number::parse(text, Locale::Point).unwrap()
    }

    #[test]
    fn the_digits_give_the_interval() {
        for (text, low, high) in [
            ("4.59ms", 4.58, 4.60),
            ("41 ms", 40.0, 42.0),
            ("46,665 req/s", 46_664.0, 46_666.0),
            ("21,000", 20_000.0, 22_000.0),
            ("1000", 900.0, 1100.0),
            ("20K", 19_000.0, 21_000.0),
            ("0", 0.0, 1.0),
            ("1m30s", 89.0, 91.0),
            ("3-5ms", 2.0, 6.0),
            ("-6.5%", -6.6, -6.4),
        ] {
            let number = number(text);
            let scale = if text.starts_with("1m") { 60.0 } else { 1.0 };
            let near =
                |one: f64, other: f64| (one * scale - other).abs() < 1e-9 * other.abs().max(1.0);
            assert!(near(number.low, low) && near(number.high, high), "{text}: {number:?}");
        }
    }

    #[test]
    fn units_bounds_and_the_rest_are_kept() {
        let count = number("660,057 in 30s");
        assert_eq!((count.value, count.unit, count.rest.as_str()), (660_057.0, None, "in 30s"));
        assert_eq!(number("71.88MB/s").unit.unwrap().dimension, Dimension::DataRate);
        assert_eq!(number("9.2\u{d7}").unit.unwrap().dimension, Dimension::Factor);
        assert_eq!(number("<8%").bound, Bound::Below);
        assert_eq!(number("2,000+ req/s").bound, Bound::Above);
        assert_eq!(number("~15ms").bound, Bound::About);
        for text in ["", "-", "PASS", "n/a", "p99", "1,23.4,5"] {
            assert_eq!(Number::parse(text, Locale::Point), None, "{text}");
        }
    }

    #[test]
    fn a_decimal_comma_is_recognised_by_its_table() {
        assert_eq!(locale_of(["1.234", "0,45"].into_iter()), Locale::Comma);
        assert_eq!(locale_of(["1,234", "0.45"].into_iter()), Locale::Point);
        let comma = Number::parse("1.234,5", Locale::Comma).unwrap();
        assert!((comma.value - 1234.5).abs() < 1e-9);
    }
}
