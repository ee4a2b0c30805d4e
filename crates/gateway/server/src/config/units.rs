//! Human-readable durations and sizes.
//!
//! `humantime` parses the durations. Sizes are parsed here, because `bytesize` reads `16KB` as
//! 16,000 bytes; this parser rejects `KB`, which is easily mistaken for `KiB`.

use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

/// A duration, written with its unit: `250us`, `1.5s`, `10m`; zero needs none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct HumanDuration(pub Duration);

/// A number of bytes, written as a number or with a unit: `16KiB`, `1MiB`, `2GiB`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

const SIZES: [(&str, f64); 4] =
    [("B", 1.0), ("KiB", 1_024.0), ("MiB", 1_048_576.0), ("GiB", 1_073_741_824.0)];

impl HumanDuration {
    /// From seconds.
    pub const fn secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// A number of seconds, as the default of a setting.
    pub const fn default_secs<const SECONDS: u64>() -> Self {
        Self::secs(SECONDS)
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

/// The number times its unit.
fn parse_size(text: &str) -> Option<f64> {
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    let plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let (_, size) = SIZES.iter().find(|(name, _)| *name == unit.trim())?;
    Some(number.trim().parse::<f64>().ok().filter(|_| plain)? * size)
}

#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Number(u64),
    Text(String),
}

impl<'de> Deserialize<'de> for HumanDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const INVALID: &str =
            "not a duration: write a number and a unit (ns, us, ms, s, m, h, d), like `250us`";
        match NumberOrText::deserialize(deserializer)? {
            NumberOrText::Number(0) => Ok(Self::default()),
            NumberOrText::Number(_) => Err(D::Error::custom(INVALID)),
            NumberOrText::Text(text) => {
                humantime::parse_duration(&text).map(Self).map_err(|_| D::Error::custom(INVALID))
            }
        }
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the number is not negative, and its size is checked"
    )]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match NumberOrText::deserialize(deserializer)? {
            NumberOrText::Number(number) => Ok(Self(number)),
            NumberOrText::Text(text) => text
                .parse()
                .ok()
                .or_else(|| {
                    parse_size(&text).filter(|size| *size < 1e18).map(|size| size as u64)
                })
                .map(Self)
                .ok_or_else(|| {
                    D::Error::custom(
                        "not a size: write a number of bytes, or one with KiB, MiB or GiB, like `16KiB`",
                    )
                }),
        }
    }
}

/// Writing, for the defaults in the reference page.
#[cfg(test)]
mod reference {
    use std::borrow::Cow;

    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
    use serde::{Serialize, Serializer};

    use super::{ByteSize, HumanDuration, SIZES};

    impl Serialize for HumanDuration {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let text = humantime::format_duration(self.0).to_string();
            serializer.serialize_str(if self.0.is_zero() { "0" } else { &text })
        }
    }

    impl Serialize for ByteSize {
        /// In the largest unit that gives a whole number.
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let size = self.0 as f64;
            let text = SIZES
                .iter()
                .rev()
                .find(|(_, unit): &&(&str, f64)| size >= *unit && size % unit == 0.0)
                .map(|(name, unit)| format!("{}{name}", size / unit));
            serializer.serialize_str(text.as_deref().unwrap_or("0"))
        }
    }

    impl JsonSchema for HumanDuration {
        fn schema_name() -> Cow<'static, str> {
            "duration".into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({"type": "duration"})
        }

        fn inline_schema() -> bool {
            true
        }
    }

    impl JsonSchema for ByteSize {
        fn schema_name() -> Cow<'static, str> {
            "size".into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({"type": "size"})
        }

        fn inline_schema() -> bool {
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_are_read_with_their_unit() {
        let duration =
            |text: &str| serde_json::from_str::<HumanDuration>(text).ok().map(HumanDuration::nanos);
        for (text, nanos) in [
            ("\"250us\"", Some(250_000)),
            ("\"1.5s\"", Some(1_500_000_000)),
            ("\"1h 30m\"", Some(5_400_000_000_000)),
            ("\"0\"", Some(0)),
            ("\"10m\"", Some(600_000_000_000)),
            ("0", Some(0)),
            ("5", None),
            ("\"5\"", None),
            ("\"-5s\"", None),
            ("\"1e9s\"", None),
            ("\"5 fortnights\"", None),
        ] {
            assert_eq!(duration(text), nanos, "{text}");
        }
        let size = |text: &str| serde_json::from_str::<ByteSize>(text).ok().map(|size| size.0);
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
