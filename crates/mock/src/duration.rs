//! Human-readable durations.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use serde_with::SerializeDisplay;

/// A duration in nanoseconds, written with its unit: `350us`, `1.5s`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, SerializeDisplay,
)]
#[serde(try_from = "Written")]
pub struct HumanDuration(u64);

/// Unit names and their lengths in nanoseconds, the longest first.
const UNITS: [(&str, u64); 6] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

impl HumanDuration {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// From milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// In nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
}

/// The text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a duration: write a number and a unit (ns, us, ms, s, m, h), like `350us` or `1.5s`"
)]
pub struct ParseDurationError(String);

impl FromStr for HumanDuration {
    type Err = ParseDurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text.trim()).ok_or_else(|| ParseDurationError(text.to_owned()))
    }
}

/// Nanoseconds as a float are exact up to 104 days, far beyond any delay here.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the number has no sign, and its size is checked"
)]
fn parse(text: &str) -> Option<HumanDuration> {
    if text == "0" {
        return Some(HumanDuration::ZERO);
    }
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    let plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let size = UNITS.iter().find(|(name, _)| *name == unit)?.1;
    let nanos = number.parse::<f64>().ok().filter(|_| plain)? * size as f64;
    (nanos < u64::MAX as f64).then(|| HumanDuration(nanos.round() as u64))
}

/// Writes the duration in the largest unit that gives a whole number, so that it reads back
/// exactly.
impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS.iter().find(|&&(_, size)| self.0 >= size && self.0.is_multiple_of(size)) {
            Some((unit, size)) => write!(f, "{}{unit}", self.0 / size),
            None => f.write_str("0s"),
        }
    }
}

/// A duration in a file.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a duration with its unit, like `350us` or `1.5s`")]
enum Written {
    Text(String),
    /// Zero is the only duration without a unit.
    Number(i64),
}

impl TryFrom<Written> for HumanDuration {
    type Error = ParseDurationError;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        match written {
            Written::Text(text) => text.parse(),
            Written::Number(number) => number.to_string().parse(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_so_that_they_read_back() {
        for (text, nanos, written) in [
            ("20ms", 20_000_000, "20ms"),
            ("350us", 350_000, "350us"),
            ("1.5s", 1_500_000_000, "1500ms"),
            ("0.25ms", 250_000, "250us"),
            ("2h", 7_200_000_000_000, "2h"),
            ("7ns", 7, "7ns"),
            ("0", 0, "0s"),
        ] {
            let duration: HumanDuration = text.parse().unwrap();
            assert_eq!(
                (duration.as_nanos(), duration.to_string().as_str()),
                (nanos, written),
                "{text}"
            );
        }
    }

    #[test]
    fn text_that_is_not_a_duration_is_refused() {
        for text in ["", "10", "ms", "-5ms", "1e3s", "5 ms x", "1..5s", "5parsec", "infs", "nans"] {
            assert!(text.parse::<HumanDuration>().is_err(), "{text}");
        }
    }

    #[test]
    fn only_zero_may_omit_its_unit() {
        assert_eq!(serde_json::from_str::<HumanDuration>("0").unwrap(), HumanDuration::ZERO);
        assert_eq!(
            serde_json::from_str::<HumanDuration>("\"3ms\"").unwrap(),
            HumanDuration::from_millis(3)
        );
        let error = serde_json::from_str::<HumanDuration>("3").unwrap_err().to_string();
        assert!(error.contains("write a number and a unit"), "{error}");
    }
}
