//! Parses times and durations of logs to nanoseconds.

use plimsoll_measure::named_enum;

named_enum! {
    /// The unit of a time or duration.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Unit {
        /// Nanoseconds.
        Ns => "ns",
        /// Microseconds.
        Us => "us",
        /// Milliseconds.
        Ms => "ms",
        /// Seconds.
        S => "s",
        /// A date such as `2026-01-02T03:04:05.678Z`; UTC without a zone.
        Iso => "iso",
    }
}

impl Unit {
    /// All units of a number.
    pub(crate) const OF_NUMBERS: [Self; 4] = [Self::Ns, Self::Us, Self::Ms, Self::S];

    /// The unit with this name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|u| u.name() == name)
    }

    /// Number of decimal digits between the unit and the nanosecond.
    pub(crate) const fn digits(self) -> u32 {
        match self {
            Self::Ns => 0,
            Self::Us => 3,
            Self::Ms => 6,
            Self::S | Self::Iso => 9,
        }
    }
}

/// Parses a text to nanoseconds.
pub(crate) fn parse(text: &str, unit: Unit) -> Option<i64> {
    if unit == Unit::Iso { plimsoll_import::unix_nanos(text) } else { decimal(text, unit.digits()) }
}

/// Resolution of a time as written, in nanoseconds.
pub(crate) fn step(text: &str, unit: Unit) -> i64 {
    let fraction = text.rsplit_once('.').map_or("", |(_, fraction)| fraction);
    let written = fraction.bytes().take_while(u8::is_ascii_digit).count();
    let digits = unit.digits().saturating_sub(u32::try_from(written).unwrap_or(9));
    10_i64.pow(digits.min(9))
}

/// Parses a decimal number times ten to the power of `digits`, exactly; further digits are
/// truncated.
#[expect(clippy::cast_possible_truncation, reason = "checked to be within the range")]
fn decimal(text: &str, digits: u32) -> Option<i64> {
    let (negative, number) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        // Numbers with an exponent.
        let nanos = text.parse::<f64>().ok()? * 10_f64.powi(i32::try_from(digits).ok()?);
        let fits = nanos.is_finite() && nanos.abs() < 9.2e18;
        return fits.then(|| nanos.round() as i64);
    }
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let kept = fraction.get(..fraction.len().min(usize::try_from(digits).ok()?))?;
    let missing = digits - u32::try_from(kept.len()).ok()?;
    let part: i64 = if kept.is_empty() { 0 } else { kept.parse().ok()? };
    let part = part.checked_mul(10_i64.checked_pow(missing)?)?;
    let value = whole.checked_mul(10_i64.checked_pow(digits)?)?.checked_add(part)?;
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values are from `date -u -d ... +%s`.
    #[test]
    fn dates_are_nanoseconds_since_1970() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-11-22T10:50:44Z", 1_795_344_644),
            ("2024-02-29 23:59:59", 1_709_251_199),
            ("2024-03-01T00:00:00+00:00", 1_709_251_200),
            ("2000-12-31T23:00:00-0130", 978_309_000),
            ("2026-11-22T16:20:44+05:30", 1_795_344_644),
        ] {
            assert_eq!(parse(text, Unit::Iso), Some(seconds * 1_000_000_000), "{text}");
        }
        assert_eq!(
            parse("2026-11-22T10:50:44.123456789Z", Unit::Iso),
            Some(1_795_344_644_123_456_789)
        );
        for text in
            ["", "2026-11-22", "2026-13-01T00:00:00Z", "2026-01-01T25:00:00Z", "Sunday 2026"]
        {
            assert_eq!(parse(text, Unit::Iso), None, "{text}");
        }
    }

    #[test]
    fn decimals_are_exact() {
        for (text, unit, nanos) in [
            ("1763700000.123", Unit::S, Some(1_763_700_000_123_000_000)),
            ("0.0000000019", Unit::S, Some(1)),
            ("12", Unit::Ms, Some(12_000_000)),
            (".5", Unit::Us, Some(500)),
            ("-1.5", Unit::S, Some(-1_500_000_000)),
            ("1e-3", Unit::S, Some(1_000_000)),
            ("", Unit::S, None),
            (".", Unit::S, None),
            ("12ms", Unit::Ms, None),
            ("99999999999999999999", Unit::S, None),
        ] {
            assert_eq!(parse(text, unit), nanos, "{text}");
        }
    }
}
