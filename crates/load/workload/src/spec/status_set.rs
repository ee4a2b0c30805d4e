//! Sets of HTTP statuses.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_with::SerializeDisplay;

/// Statuses of final responses. HTTP ends at 599, but some servers send higher codes.
const LEAST: u16 = 200;
const MOST: u16 = 999;

/// A set of statuses. In files and flags: `200, 304, 404`, `2xx`, `200-299`, `any`, or a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, SerializeDisplay)]
pub struct StatusSet(Vec<(u16, u16)>);

/// A text without a valid status.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no status; write statuses from 200 to 999, like `200,304,404`, `2xx`, `200-299` or `any`"
)]
pub struct StatusSetError(String);

impl StatusSet {
    /// Whether it contains a status.
    pub fn has(&self, status: u16) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&status))
    }

    /// Whether it is empty.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add(&mut self, text: &str) -> Result<(), StatusSetError> {
        for word in text.split(',').map(str::trim) {
            self.0.push(range(word).ok_or_else(|| StatusSetError(text.to_owned()))?);
        }
        Ok(())
    }
}

fn status(text: &str) -> Option<u16> {
    text.trim().parse().ok().filter(|status| (LEAST..=MOST).contains(status))
}

/// The first and the last status of `404`, `4xx`, `400-404` or `any`.
fn range(word: &str) -> Option<(u16, u16)> {
    if matches!(word.to_ascii_lowercase().as_str(), "any" | "all" | "*") {
        return Some((LEAST, MOST));
    }
    if let Some(class) = word.strip_suffix("xx").or_else(|| word.strip_suffix("XX")) {
        let class = class.parse().ok().filter(|class: &u16| (2..=9).contains(class))?;
        return Some((class * 100, class * 100 + 99));
    }
    if let Some((first, last)) = word.split_once('-') {
        let (first, last) = (status(first)?, status(last)?);
        return (first <= last).then_some((first, last));
    }
    status(word).map(|status| (status, status))
}

impl FromStr for StatusSet {
    type Err = StatusSetError;

    fn from_str(text: &str) -> Result<Self, StatusSetError> {
        let mut set = Self::default();
        set.add(text)?;
        Ok(set)
    }
}

impl fmt::Display for StatusSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (first, last)) in self.0.iter().enumerate() {
            f.write_str(if index > 0 { ", " } else { "" })?;
            match (*first, *last) {
                (LEAST, MOST) => f.write_str("any")?,
                (first, last) if first == last => write!(f, "{first}")?,
                (first, last) if first % 100 == 0 && last == first + 99 => {
                    write!(f, "{}xx", first / 100)?;
                }
                (first, last) => write!(f, "{first}-{last}")?,
            }
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for StatusSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Statuses)
    }
}

struct Statuses;

impl<'de> Visitor<'de> for Statuses {
    type Value = StatusSet;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("statuses, like `200, 304, 404`, `2xx` or `any`")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<StatusSet, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: serde::de::Error>(self, status: u64) -> Result<StatusSet, E> {
        status.to_string().parse().map_err(E::custom)
    }

    fn visit_i64<E: serde::de::Error>(self, status: i64) -> Result<StatusSet, E> {
        status.to_string().parse().map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<StatusSet, A::Error> {
        let mut set = StatusSet::default();
        while let Some(item) = items.next_element::<serde_json::Value>()? {
            let text = item.as_str().map_or_else(|| item.to_string(), str::to_owned);
            set.add(&text).map_err(A::Error::custom)?;
        }
        Ok(set)
    }
}

impl JsonSchema for StatusSet {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "StatusSet".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Statuses: `200, 304, 404`, `2xx`, `200-299`, `any`, or a list of them.",
            "type": ["string", "integer", "array"],
            "format": "statuses",
            "minimum": LEAST,
            "maximum": MOST,
            "items": {
                "type": ["string", "integer"],
                "format": "statuses",
                "minimum": LEAST,
                "maximum": MOST,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_numbers_classes_ranges_or_any() {
        for (text, inside, outside, shown) in [
            ("200", vec![200], vec![201, 199], "200"),
            ("200,304, 404", vec![200, 304, 404], vec![302], "200, 304, 404"),
            ("2xx,4XX", vec![200, 299, 400, 499], vec![300, 500], "2xx, 4xx"),
            ("500-503", vec![500, 503], vec![504], "500-503"),
            ("any", vec![200, 304, 404, 600, 999], vec![101], "any"),
        ] {
            let set: StatusSet = text.parse().unwrap();
            assert!(inside.iter().all(|status| set.has(*status)), "{text}");
            assert!(!outside.iter().any(|status| set.has(*status)), "{text}");
            assert_eq!(set.to_string(), shown);
            assert_eq!(shown.parse(), Ok(set));
        }
        for text in ["", "ok", "20", "1000", "1xx", "0xx", "404-200", "200,,404", "-404"] {
            assert!(text.parse::<StatusSet>().is_err(), "{text}");
        }
    }

    #[test]
    fn files_may_have_a_text_a_number_or_a_list() {
        for (json, shown) in
            [("\"2xx\"", "2xx"), ("404", "404"), ("[200, \"3xx\", 404]", "200, 3xx, 404")]
        {
            let set: StatusSet = serde_json::from_str(json).unwrap();
            assert_eq!(set.to_string(), shown);
        }
        assert!(serde_json::from_str::<StatusSet>("[true]").is_err());
    }
}
