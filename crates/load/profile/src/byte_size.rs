//! Sizes in bytes, written with a unit.
//!
//! Used instead of the `bytesize` crate, because stored plans show the exact size in its original
//! unit, units in the wrong case are rejected, and the error message lists the units.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use serde_with::SerializeDisplay;

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, SerializeDisplay)]
pub struct ByteSize(u64);

/// Unit names and their size in bytes: IEC (powers of 1024) and SI (powers of 1000).
const UNITS: [(&str, u64); 8] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("KB", 1_000),
    ("B", 1),
];

impl ByteSize {
    /// Creates a size from bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The size in bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

/// Formats the size in the largest unit that needs no decimals.
impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, size) = UNITS
            .iter()
            .find(|&&(_, size)| self.0 >= size && self.0.is_multiple_of(size))
            .copied()
            .unwrap_or(("B", 1));
        write!(f, "{}{unit}", self.0 / size)
    }
}

/// The error for a text that is not a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not a size: write a number and a unit (B, kB, MB, GB, KiB, MiB, GiB), like `16MiB`")]
pub struct ParseSizeError;

/// Parses `16MiB`, `1.5 GB` or a bare number of bytes.
impl FromStr for ByteSize {
    type Err = ParseSizeError;

    #[expect(clippy::cast_possible_truncation, reason = "the range is checked just before")]
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = (&text[..digits], text[digits..].trim_start());
        let known = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, size)| *size);
        let size = if unit.is_empty() { 1 } else { known.ok_or(ParseSizeError)? };
        let bytes = number.parse::<f64>().map_err(|_| ParseSizeError)? * size as f64;
        if (0.0..u64::MAX as f64).contains(&bytes) {
            Ok(Self(bytes.round() as u64))
        } else {
            Err(ParseSizeError)
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Bytes(u64),
    Text(String),
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match NumberOrText::deserialize(deserializer)? {
            NumberOrText::Bytes(bytes) => Ok(Self(bytes)),
            NumberOrText::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}

impl JsonSchema for ByteSize {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ByteSize".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "integer"], "format": "size", "minimum": 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written_with_their_unit() {
        for (text, bytes, written) in [
            ("16MiB", 16_777_216, "16MiB"),
            ("1.5 GB", 1_500_000_000, "1500MB"),
            ("64KiB", 65_536, "64KiB"),
            ("10kB", 10_000, "10kB"),
            ("4097", 4_097, "4097B"),
            ("0", 0, "0B"),
        ] {
            let size: ByteSize = text.parse().unwrap();
            assert_eq!((size.bytes(), size.to_string().as_str()), (bytes, written), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "MiB", "-1MiB", "1 mib", "1e3", "1..2MB", "99999999999GiB", "1MiB2"] {
            assert_eq!(text.parse::<ByteSize>(), Err(ParseSizeError), "{text}");
        }
    }
}
