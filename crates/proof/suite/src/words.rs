//! Numbers as tables and sentences have them.

/// What is not known.
pub(crate) const DASH: &str = "-";

/// A whole number with thousands separators.
pub(crate) fn whole(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A rate: whole from 100 on.
pub(crate) fn rate(value: Option<f64>) -> String {
    value.map_or_else(dash, |value| match value {
        value if value.abs() >= 100.0 => {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a rate is no negative number, and far below the limit"
            )]
            let rounded = value.abs().round() as u64;
            format!("{}{}", if value < 0.0 { "-" } else { "" }, whole(rounded))
        }
        value => format!("{value:.1}"),
    })
}

/// A time in milliseconds, with its unit and three digits that matter.
pub(crate) fn millis(value: Option<f64>) -> String {
    value.map_or_else(dash, |value| match value.abs() {
        size if size >= 100.0 => format!("{value:.0} ms"),
        size if size >= 10.0 => format!("{value:.1} ms"),
        size if size >= 1.0 => format!("{value:.2} ms"),
        _ => format!("{value:.3} ms"),
    })
}

/// A time in microseconds.
pub(crate) fn micros(value: Option<f64>) -> String {
    value.map_or_else(dash, |value| {
        if value.abs() >= 100.0 { format!("{value:.0} us") } else { format!("{value:.1} us") }
    })
}

/// A share of a whole.
pub(crate) fn percent(share: Option<f64>) -> String {
    share.map_or_else(dash, |share| match (share * 100.0).abs() {
        0.0 => "0 %".to_owned(),
        size if size >= 99.95 => format!("{:.0} %", share * 100.0),
        size if size < 0.1 => format!("{:.3} %", share * 100.0),
        _ => format!("{:.1} %", share * 100.0),
    })
}

/// A number with two decimals.
pub(crate) fn plain(value: Option<f64>) -> String {
    value.map_or_else(dash, |value| format!("{value:.2}"))
}

/// A size in bytes.
pub(crate) fn bytes(value: Option<u64>) -> String {
    value.map_or_else(dash, |value| match value as f64 / 1_048_576.0 {
        size if size >= 10_240.0 => format!("{:.1} GiB", size / 1_024.0),
        size => format!("{size:.1} MiB"),
    })
}

pub(crate) fn dash() -> String {
    DASH.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_have_units() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(whole(number), text);
        }
        for (value, text) in [(Some(21_989.4), "21,989"), (Some(12.34), "12.3"), (None, "-")] {
            assert_eq!(rate(value), text);
        }
        for (value, text) in
            [(0.4567, "0.457 ms"), (4.594, "4.59 ms"), (41.64, "41.6 ms"), (917.3, "917 ms")]
        {
            assert_eq!(millis(Some(value)), text);
        }
        for (share, text) in [
            (0.0, "0 %"),
            (0.0004, "0.040 %"),
            (0.0836, "8.4 %"),
            (1.0, "100 %"),
            (-0.02, "-2.0 %"),
        ] {
            assert_eq!(percent(Some(share)), text);
        }
    }
}
