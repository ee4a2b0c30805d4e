//! Formats values and changes for readers.

use plimsoll_metrics::{Judgement, Margin};
use plimsoll_report::format::{DASH, digits};

/// An amount without a sign: `3%`, `0.1pp`.
pub(crate) fn amount(kind: Margin, amount: f64) -> String {
    match kind {
        Margin::Relative(_) => short_percent(amount),
        Margin::Points(_) => format!("{}pp", trimmed(&format!("{:.3}", amount * 100.0))),
    }
}

fn short_percent(share: f64) -> String {
    format!("{}%", trimmed(&digits(share * 100.0)))
}

/// `3.00` as `3`, `2.50` as `2.5`.
fn trimmed(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

/// A change with its sign and its interval: `+16.8% [+9.0, +25.1]`. The width of the interval
/// determines the number of decimals of all three.
pub(crate) fn change(kind: Margin, change: Option<f64>, interval: Option<(f64, f64)>) -> String {
    let Some(change) = change else { return DASH.to_owned() };
    let unit = match kind {
        Margin::Relative(_) => "%",
        Margin::Points(_) => "pp",
    };
    let width = interval.map(|(low, high)| (high - low) * 100.0);
    // Without an interval the margin is the measure: 0.09 points keep one of 0.1.
    let usual = if unit == "pp" { 0.1 } else { 1.0 };
    let decimals = match width.unwrap_or(usual) {
        width if width < 0.02 => 3,
        width if width < 0.2 => 2,
        width if width < 20.0 => 1,
        _ => 0,
    };
    let change = signed_percent(change, decimals);
    match interval {
        None => format!("{change}{unit}"),
        Some((low, high)) => {
            let (low, high) = (signed_percent(low, decimals), signed_percent(high, decimals));
            format!("{change}{unit} [{low}, {high}]")
        }
    }
}

/// A number that rounds to zero has no sign.
fn signed_percent(share: f64, decimals: usize) -> String {
    let text = format!("{:+.decimals$}", share * 100.0);
    if text.trim_start_matches(['+', '-']).trim_matches(['0', '.']).is_empty() {
        text[1..].to_owned()
    } else {
        text
    }
}

/// The verdict in one word.
pub(crate) const fn word(judgement: &Judgement) -> &'static str {
    match judgement {
        Judgement::Pass => "pass",
        Judgement::Fail => "FAIL",
        Judgement::Inconclusive(_) => "inconclusive",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_have_a_sign_and_sensible_decimals() {
        let (share, points) = (Margin::Relative(0.03), Margin::Points(0.001));
        for (kind, value, interval, shown) in [
            (share, Some(0.168), Some((0.09, 0.251)), "+16.8% [+9.0, +25.1]"),
            (share, Some(-0.001), Some((-0.006, 0.004)), "-0.1% [-0.6, +0.4]"),
            (share, Some(0.0), Some((-0.000_4, 0.000_4)), "0.00% [-0.04, +0.04]"),
            (share, Some(0.5), Some((0.2, 0.9)), "+50% [+20, +90]"),
            (points, Some(0.0), Some((-0.000_04, 0.000_04)), "0.000pp [-0.004, +0.004]"),
            (share, Some(-0.5), None, "-50.0%"),
            (points, Some(0.000_86), None, "+0.09pp"),
            (share, None, None, "-"),
        ] {
            assert_eq!(change(kind, value, interval), shown);
        }
    }

    #[test]
    fn amounts_have_no_needless_zeros() {
        let share = Margin::Relative(1.0);
        for (value, shown) in [(0.03, "3%"), (0.025, "2.5%"), (0.1, "10%"), (0.007_1, "0.71%")] {
            assert_eq!(amount(share, value), shown);
        }
        assert_eq!(amount(Margin::Points(1.0), 0.001), "0.1pp");
    }
}
