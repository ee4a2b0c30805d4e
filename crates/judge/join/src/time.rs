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

    pub(crate) fn nanos_of_int(self, value: i64) -> Option<i64> {
        if self == Self::Iso {
            return None;
        }
        value.checked_mul(10_i64.checked_pow(self.digits())?)
    }

    #[expect(clippy::cast_possible_truncation, reason = "checked to be within the range")]
    pub(crate) fn nanos_of_float(self, value: f64) -> Option<i64> {
        let nanos = value * 10_f64.powi(i32::try_from(self.digits()).unwrap_or(0));
        let fits = self != Self::Iso && nanos.is_finite() && nanos.abs() < 9.2e18;
        fits.then(|| nanos.round() as i64)
    }
}

/// Parses a text to nanoseconds.
pub(crate) fn parse(text: &str, unit: Unit) -> Option<i64> {
    if unit == Unit::Iso { date(text) } else { decimal(text, unit.digits()) }
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
fn decimal(text: &str, digits: u32) -> Option<i64> {
    let (negative, number) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        // Numbers with an exponent.
        let value: f64 = text.parse().ok()?;
        let scaled = value * 10_f64.powi(i32::try_from(digits).ok()?);
        return Unit::Ns.nanos_of_float(scaled);
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

/// Parses a date with time: RFC 3339, optionally with a space instead of `T` and without a zone.
fn date(text: &str) -> Option<i64> {
    let (day, rest) = text.split_at_checked(10)?;
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let zone_at = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at_checked(zone_at)?;
    let mut parts = day.split('-');
    let year: i64 = parts.next()?.parse().ok()?;
    let month: i64 = parts.next()?.parse().ok()?;
    let day: i64 = parts.next()?.parse().ok()?;
    let (hour, rest) = clock.split_once(':')?;
    let (minute, second) = rest.split_once(':').unwrap_or((rest, "0"));
    let (hour, minute) = (hour.parse::<i64>().ok()?, minute.parse::<i64>().ok()?);
    let second = decimal(second.trim(), 9)?;
    let valid = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..61_000_000_000).contains(&second);
    let minutes = days(year, month, day)? * 1_440 + hour * 60 + minute - offset(zone)?;
    let nanos = minutes.checked_mul(60_000_000_000)?.checked_add(second)?;
    valid.then_some(nanos)
}

/// Offset of a zone from UTC in minutes.
fn offset(zone: &str) -> Option<i64> {
    if matches!(zone, "" | "Z" | "z") {
        return Some(0);
    }
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let digits: String = zone.chars().filter(char::is_ascii_digit).collect();
    let hours: i64 = digits.get(..2)?.parse().ok()?;
    let minutes: i64 = digits.get(2..4).map_or(Some(0), |minutes| minutes.parse().ok())?;
    Some(sign * (hours * 60 + minutes))
}

const fn leap_years(before: i64) -> i64 {
    (before - 1) / 4 - (before - 1) / 100 + (before - 1) / 400
}

/// Days from 1970-01-01 to a date of the Gregorian calendar: days of whole years including leap
/// days, plus days of the preceding months.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    const BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    if !(1900..=2200).contains(&year) {
        return None;
    }
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let months = BEFORE.get(usize::try_from(month - 1).ok()?)?;
    let leap_day = i64::from(is_leap && month > 2);
    Some((year - 1970) * 365 + leap_years(year) - leap_years(1970) + months + leap_day + day - 1)
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
            assert_eq!(date(text), Some(seconds * 1_000_000_000), "{text}");
        }
        assert_eq!(date("2026-11-22T10:50:44.123456789Z"), Some(1_795_344_644_123_456_789));
        for text in
            ["", "2026-11-22", "2026-13-01T00:00:00Z", "2026-01-01T25:00:00Z", "Sunday 2026"]
        {
            assert_eq!(date(text), None, "{text}");
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
