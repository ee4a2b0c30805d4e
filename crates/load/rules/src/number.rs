//! Formats numbers and times for people: three significant digits, and a suitable unit.

/// Formats a time from milliseconds, in the unit that leaves at most three digits before the
/// decimal point: `850us`, `12.3ms`, `1.20s`.
pub fn time(millis: f64) -> String {
    let (unit, size) = unit(millis);
    format!("{}{unit}", digits(millis / size))
}

/// A unit of time, and its length in milliseconds.
pub fn unit(millis: f64) -> (&'static str, f64) {
    // A value that would round up to 1000 of a unit is shown as 1.00 of the next.
    let units = [("ns", 1e-6), ("us", 1e-3), ("ms", 1.0)];
    units
        .iter()
        .find(|&&(_, size): &&(&str, f64)| millis.abs() < size * 999.5)
        .copied()
        .unwrap_or(("s", 1e3))
}

/// Formats a number with three significant digits, or with all digits before the decimal point, in
/// groups: `0.25`, `41.6`, `21,989`.
pub fn digits(number: f64) -> String {
    match number {
        n if n.abs() < 0.0005 => "0".to_owned(),
        // Avoids `-0.00`.
        n if n.abs() < 0.005 => "0.00".to_owned(),
        n if n < 0.0 => format!("-{}", digits(-n)),
        n if n < 9.995 => format!("{n:.2}"),
        n if n < 99.95 => format!("{n:.1}"),
        n => groups(&format!("{n:.0}")),
    }
}

/// Formats a count in groups of three digits: `1,234,567`.
pub fn count(count: u64) -> String {
    groups(&count.to_string())
}

/// Formats a share from `0.0` to `1.0` in percent with two decimals: `1.23%`. Values are never
/// rounded to `0%` or `100%`: `<0.01%`, `>99.99%`.
pub fn share(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        p if p <= 0.0 => "0%".to_owned(),
        p if p >= 100.0 => "100%".to_owned(),
        p if p < 0.01 => "<0.01%".to_owned(),
        p if p > 99.99 => ">99.99%".to_owned(),
        p => format!("{p:.2}%"),
    }
}

/// Formats a share or a change in percent, with three significant digits: `0.04%`, `8.36%`,
/// `-50.0%`. Values are never rounded to `0%` or `100%` either.
pub fn percent(part: f64) -> String {
    match part * 100.0 {
        p if p > 0.0 && p < 0.005 || (99.95..100.0).contains(&p) => share(part),
        p => format!("{}%", digits(p)),
    }
}

/// Formats planned seconds without needless decimals: `30s`, `1.5s`.
pub fn seconds(seconds: f64) -> String {
    if seconds > 0.0 && seconds < 0.1 {
        return time(seconds * 1e3);
    }
    format!("{}s", (seconds * 10.0).round() / 10.0)
}

/// Splits digits into groups of three: `1,234`.
pub fn groups(digits: &str) -> String {
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
