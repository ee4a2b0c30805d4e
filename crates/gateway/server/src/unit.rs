//! Lengths of time and sizes as people write them.

use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

/// A length of time, written with its unit: `250us`, `1.5s`, `10m`; zero needs none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

/// A number of bytes, written as a number or with a unit: `16KiB`, `1MiB`, `2GiB`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

const TIMES: [(&str, f64); 7] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3_600.0),
    ("d", 86_400.0),
];

const SIZES: [(&str, f64); 4] =
    [("B", 1.0), ("KiB", 1_024.0), ("MiB", 1_048_576.0), ("GiB", 1_073_741_824.0)];

impl Span {
    /// From seconds.
    pub const fn secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// From milliseconds.
    pub const fn millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    /// In nanoseconds, at most 584 years of them.
    pub fn nanos(self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX)
    }
}

/// The number before the unit, in the unit's own size.
fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    let plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let (_, size) = units.iter().find(|(name, _)| *name == unit.trim())?;
    Some(number.trim().parse::<f64>().ok().filter(|_| plain)? * size)
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Number(u64),
    Text(String),
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let refused = |written: &str| {
            D::Error::custom(format!(
                "`{written}` is no length of time: write a number and a unit (ns, us, ms, s, m, h, d), like `250us`"
            ))
        };
        match Written::deserialize(deserializer)? {
            Written::Number(0) => Ok(Self::default()),
            Written::Number(number) => Err(refused(&number.to_string())),
            Written::Text(text) if text == "0" => Ok(Self::default()),
            Written::Text(text) => scaled(&text, &TIMES)
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .map(Self)
                .ok_or_else(|| refused(&text)),
        }
    }
}

impl<'de> Deserialize<'de> for Size {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the number has no sign, and its size is checked"
    )]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Written::deserialize(deserializer)? {
            Written::Number(number) => Ok(Self(number)),
            Written::Text(text) => text
                .parse()
                .ok()
                .or_else(|| {
                    scaled(&text, &SIZES).filter(|size| *size < 1e18).map(|size| size as u64)
                })
                .map(Self)
                .ok_or_else(|| {
                    D::Error::custom(format!(
                        "`{text}` is no size: write a number of bytes, or one with KiB, MiB or GiB, like `16KiB`"
                    ))
                }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_sizes_are_read_with_their_unit() {
        let span = |text: &str| serde_json::from_str::<Span>(text).ok().map(Span::nanos);
        for (text, nanos) in [
            ("\"250us\"", Some(250_000)),
            ("\"1.5s\"", Some(1_500_000_000)),
            ("\"10m\"", Some(600_000_000_000)),
            ("0", Some(0)),
            ("5", None),
            ("\"5\"", None),
            ("\"-5s\"", None),
            ("\"1e9s\"", None),
            ("\"5 fortnights\"", None),
        ] {
            assert_eq!(span(text), nanos, "{text}");
        }
        let size = |text: &str| serde_json::from_str::<Size>(text).ok().map(|size| size.0);
        for (text, bytes) in [
            ("1024", Some(1_024)),
            ("\"16KiB\"", Some(16_384)),
            ("\"1MiB\"", Some(1_048_576)),
            ("\"16KB\"", None),
            ("\"many\"", None),
        ] {
            assert_eq!(size(text), bytes, "{text}");
        }
    }
}
