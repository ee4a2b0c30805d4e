//! Numbers as a person reads them: three significant digits, and the unit that suits them.

/// A time in the unit that leaves at most three digits before the point: `850us`, `12.3ms`, `1.20s`.
pub(super) fn time(millis: f64) -> String {
    let (unit, size) = unit(millis);
    format!("{}{unit}", digits(millis / size))
}

/// Two times, in the unit that suits `millis`: `5.70, 6.20`.
pub(super) fn range(millis: f64, low: f64, high: f64) -> String {
    let (_, size) = unit(millis);
    format!("{}, {}", digits(low / size), digits(high / size))
}

/// A unit of time, and its length in milliseconds.
fn unit(millis: f64) -> (&'static str, f64) {
    // What would round up to 1000 of a unit is shown as 1.00 of the next.
    let fits = |&&(_, size): &&(&str, f64)| millis < size * 999.5;
    let units = [("ns", 1e-6), ("us", 1e-3), ("ms", 1.0)];
    units.iter().find(fits).copied().unwrap_or(("s", 1e3))
}

/// [`time`], or `-` where there is none.
pub(super) fn time_or_dash(millis: Option<f64>) -> String {
    millis.map_or_else(|| "-".to_owned(), time)
}

/// A number with three significant digits, or all digits before the point, in groups.
pub(super) fn digits(number: f64) -> String {
    match number {
        n if n < 0.0005 => "0".to_owned(),
        n if n < 9.995 => format!("{n:.2}"),
        n if n < 99.95 => format!("{n:.1}"),
        n => groups(&format!("{n:.0}")),
    }
}

/// A rate, or `n/a` where there is no time to divide by.
pub(super) fn rate(per_second: Option<f64>) -> String {
    per_second.map_or_else(|| "n/a".to_owned(), digits)
}

/// A count, in groups of three digits.
pub(super) fn count(count: u64) -> String {
    groups(&count.to_string())
}

/// A share in percent. Only none is `0%`, and only all is `100%`.
pub(super) fn share(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        p if p <= 0.0 => "0%".to_owned(),
        p if p >= 100.0 => "100%".to_owned(),
        p if p < 0.01 => "<0.01%".to_owned(),
        p if p > 99.99 => ">99.99%".to_owned(),
        p => format!("{p:.2}%"),
    }
}

/// [`share`], or `n/a` of nothing.
pub(super) fn share_of(value: Option<f64>) -> String {
    value.map_or_else(|| "n/a".to_owned(), share)
}

/// Bytes in decimal multiples: `950 B`, `1.20 MB`.
pub(super) fn bytes(bytes: f64) -> String {
    for (unit, size) in [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)] {
        if bytes >= size * 0.9995 {
            return format!("{} {unit}", digits(bytes / size));
        }
    }
    format!("{bytes:.0} B")
}

/// Seconds as they were planned: without needless decimals.
pub(super) fn seconds(seconds: f64) -> String {
    format!("{}s", (seconds * 10.0).round() / 10.0)
}

/// Lines of at most `width` characters, broken at spaces.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A moment in nanoseconds since 1970, to the second: `2026-11-21 01:23:45 UTC`.
///
/// The date is found by counting days in 400-year cycles that start on the 1st of March, so that the
/// leap day is the last of its year.
pub(super) fn utc(unix_ns: u64) -> String {
    let seconds = unix_ns / 1_000_000_000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let (cycle, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = cycle * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year}-{month:02}-{day_of_month:02} {hour:02}:{minute:02}:{second:02} UTC")
}

fn groups(digits: &str) -> String {
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_the_unit_that_suits_them() {
        for (millis, shown) in [
            (0.0, "0ns"),
            (0.000_512, "512ns"),
            (0.017_4, "17.4us"),
            (0.999_7, "1.00ms"),
            (1.0, "1.00ms"),
            (12.345, "12.3ms"),
            (999.4, "999ms"),
            (999.6, "1.00s"),
            (60_000.0, "60.0s"),
            (3_600_000.0, "3,600s"),
        ] {
            assert_eq!(time(millis), shown, "{millis} ms");
        }
    }

    #[test]
    fn only_none_is_zero_percent_and_only_all_is_a_hundred() {
        for (value, shown) in [
            (0.0, "0%"),
            (0.000_001, "<0.01%"),
            (0.0123, "1.23%"),
            (0.999_99, ">99.99%"),
            (1.0, "100%"),
        ] {
            assert_eq!(share(value), shown);
        }
    }

    #[test]
    fn counts_and_bytes_are_grouped() {
        assert_eq!((count(7).as_str(), count(1_234_567).as_str()), ("7", "1,234,567"));
        assert_eq!((bytes(950.0).as_str(), bytes(1_234_567.0).as_str()), ("950 B", "1.23 MB"));
        assert_eq!((bytes(999_900.0).as_str(), digits(999.6).as_str()), ("1.00 MB", "1,000"));
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        // From `date -u -d @N`.
        for (unix, shown) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_763_688_225, "2025-11-21 01:23:45 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(utc(unix * 1_000_000_000), shown);
        }
    }

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrap("a bb ccc dddd", 6), ["a bb", "ccc", "dddd"]);
        assert_eq!(wrap("unbreakable", 4), ["unbreakable"]);
    }
}
