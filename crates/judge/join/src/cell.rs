//! A raw value of a log, and its conversions.

use std::borrow::Cow;

use plimsoll_measure::CacheState;
use serde_json::{Map as Object, Value};

use crate::map::{FIELDS, Map};
use crate::time::{self, Unit};

/// A value of a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Cell<'a> {
    /// The column is missing, or the value is empty.
    #[default]
    Missing,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A string.
    Text(Cow<'a, str>),
}

/// A value of the wrong type for its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bad;

/// A field's value; `None` if the log has none.
pub(crate) type Read<T> = Result<Option<T>, Bad>;

impl<'a> Cell<'a> {
    /// Converts a text; an empty text, `-` and `null` count as missing.
    pub(crate) fn of_text(text: impl Into<Cow<'a, str>>) -> Self {
        let text = text.into();
        match text.trim() {
            "" | "-" | "null" | "NULL" | "\\N" => Self::Missing,
            _ => Self::Text(text),
        }
    }

    /// The value as an id.
    pub(crate) fn text(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Missing => None,
            Self::Bool(value) => Some(value.to_string().into()),
            Self::Int(value) => Some(value.to_string().into()),
            Self::Float(value) => Some(value.to_string().into()),
            Self::Text(text) => Some(text.trim().into()),
        }
    }

    /// The value as a count.
    pub(crate) fn count(&self) -> Read<u32> {
        let found = match self {
            Self::Missing => return Ok(None),
            Self::Bool(_) => None,
            Self::Int(value) => u32::try_from(*value).ok(),
            Self::Float(value) => whole(*value),
            Self::Text(text) => {
                let text = text.trim();
                text.parse().ok().or_else(|| whole(text.parse().ok()?))
            }
        };
        found.map(Some).ok_or(Bad)
    }

    /// The value as the state of a cache.
    pub(crate) fn cache(&self) -> Read<CacheState> {
        match self {
            Self::Missing => Ok(None),
            Self::Bool(true) | Self::Int(1) => Ok(Some(CacheState::Hit)),
            Self::Bool(false) | Self::Int(0) => Ok(Some(CacheState::Miss)),
            Self::Int(_) | Self::Float(_) => Err(Bad),
            Self::Text(text) => CacheState::from_words(text.as_bytes()).map(Some).ok_or(Bad),
        }
    }

    /// The value as a boolean.
    pub(crate) fn flag(&self) -> Read<bool> {
        let found = match self {
            Self::Missing => return Ok(None),
            Self::Bool(value) => Some(*value),
            Self::Int(0) => Some(false),
            Self::Int(1) => Some(true),
            Self::Int(_) | Self::Float(_) => None,
            Self::Text(text) => match text.trim().to_ascii_lowercase().as_str() {
                "true" | "t" | "1" | "yes" => Some(true),
                "false" | "f" | "0" | "no" => Some(false),
                _ => None,
            },
        };
        found.map(Some).ok_or(Bad)
    }

    /// The value as a time or duration in nanoseconds.
    pub(crate) fn nanos(&self, unit: Unit) -> Read<i64> {
        let found = match self {
            Self::Missing => return Ok(None),
            Self::Bool(_) => None,
            Self::Int(value) => unit.nanos_of_int(*value),
            Self::Float(value) => unit.nanos_of_float(*value),
            Self::Text(text) => time::parse(text.trim(), unit),
        };
        found.map(Some).ok_or(Bad)
    }

    /// The sum of durations: a proxy that tried several servers lists them, such as `0.010, 0.020`.
    pub(crate) fn sum_of_nanos(&self, unit: Unit) -> Read<i64> {
        let Self::Text(text) = self else { return self.nanos(unit) };
        let parts = text.split([',', ':']).map(str::trim).filter(|part| !matches!(*part, "" | "-"));
        let mut sum = None;
        for part in parts {
            let length = time::parse(part, unit).ok_or(Bad)?;
            sum = Some(sum.unwrap_or(0_i64).checked_add(length).ok_or(Bad)?);
        }
        Ok(sum)
    }

    /// The resolution of a time as written; smaller differences are unknown.
    pub(crate) fn step(&self, unit: Unit) -> Option<i64> {
        match self {
            Self::Missing | Self::Bool(_) => None,
            Self::Int(_) => unit.nanos_of_int(1),
            // Trailing zeros are lost, but other rows of the log show the full resolution.
            Self::Float(value) => Some(time::step(&value.to_string(), unit)),
            Self::Text(text) => Some(time::step(text.trim(), unit)),
        }
    }

    /// The value for messages.
    pub(crate) fn shown(&self) -> String {
        crate::error::quoted(&self.text().unwrap_or_default())
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::float_cmp,
    reason = "checked to be a whole number within the range"
)]
fn whole(value: f64) -> Option<u32> {
    let fits = value >= 0.0 && value <= f64::from(u32::MAX) && value.trunc() == value;
    fits.then_some(value as u32)
}

// Extracts the mapped columns of a line of JSON.

/// The values of a row, by field.
pub(crate) type Cells<'a> = [Cell<'a>; FIELDS];

/// Parses a line; `None` if it is not an object. Invalid UTF-8 is replaced, because a log may
/// truncate a prompt within a character.
pub(crate) fn read_row(line: &[u8], map: &Map) -> Option<Cells<'static>> {
    let row: Object<String, Value> = serde_json::from_str(&String::from_utf8_lossy(line)).ok()?;
    let mut cells = Cells::default();
    for entry in &map.entries {
        if let Some(value) = member(&row, &entry.column) {
            cells[entry.field as usize] = cell(value);
        }
    }
    Some(cells)
}

/// Resolves `a.b` to the member `b` of the object `a`, unless there is a member named `a.b`.
fn member<'r>(row: &'r Object<String, Value>, column: &str) -> Option<&'r Value> {
    row.get(column).or_else(|| {
        let (first, rest) = column.split_once('.')?;
        rest.split('.').try_fold(row.get(first)?, |value, part| value.get(part))
    })
}

/// Lists and objects count as missing.
fn cell(value: &Value) -> Cell<'static> {
    match value {
        Value::Null | Value::Array(_) | Value::Object(_) => Cell::Missing,
        Value::Bool(value) => Cell::Bool(*value),
        Value::Number(number) => match number.as_i64() {
            Some(value) => Cell::Int(value),
            None => number.as_f64().map_or(Cell::Missing, Cell::Float),
        },
        Value::String(text) => Cell::of_text(text.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_logs_write_them() {
        let text = |text: &'static str| Cell::of_text(text);
        assert_eq!(text(" - "), Cell::Missing);
        assert_eq!(text("12").count(), Ok(Some(12)));
        assert_eq!(text("12.0").count(), Ok(Some(12)));
        // Like nginx without quotes, in milliseconds; and a float with all its digits.
        for (value, step) in [(0.012, 1_000_000), (0.5, 100_000_000), (0.012_345_678, 1_i64)] {
            assert_eq!(Cell::Float(value).step(Unit::S), Some(step), "{value}");
        }
        assert_eq!((Cell::Float(2.5).count(), text("many").count()), (Err(Bad), Err(Bad)));
        assert_eq!((text("T").flag(), Cell::Int(0).flag()), (Ok(Some(true)), Ok(Some(false))));
        assert_eq!(Cell::Int(1500).nanos(Unit::Us), Ok(Some(1_500_000)));
        assert_eq!(text("0.010, 0.020 : -").sum_of_nanos(Unit::S), Ok(Some(30_000_000)));
        assert_eq!(text("-").sum_of_nanos(Unit::S), Ok(None));
        assert_eq!(text("0.01, x").sum_of_nanos(Unit::S), Err(Bad));
    }

    #[test]
    fn the_step_of_a_time_is_its_last_digit() {
        assert_eq!(Cell::Int(5).step(Unit::Ms), Some(1_000_000));
        assert_eq!(Cell::of_text("1763700000.123").step(Unit::S), Some(1_000_000));
        assert_eq!(Cell::of_text("2026-01-02T03:04:05Z").step(Unit::Iso), Some(1_000_000_000));
        assert_eq!(Cell::of_text("2026-01-02 03:04:05.123456").step(Unit::Iso), Some(1_000));
    }
}

#[cfg(test)]
mod json_row_tests {
    use super::*;
    use crate::map::{Entry, Field, LogOf};

    #[test]
    fn only_mapped_columns_are_taken_at_any_depth() {
        let entry = |field, column: &str| Entry { field, column: column.to_owned(), unit: None };
        let entries = vec![
            entry(Field::Id, "meta.id"),
            entry(Field::Status, "status"),
            entry(Field::Total, "a.b"),
        ];
        let map = Map { entries, log_of: LogOf::Gateway, origin: String::new() };
        let read = |line: &'static str| {
            let cells = read_row(line.as_bytes(), &map)?;
            Some(
                [Field::Id, Field::Status, Field::Total].map(|field| cells[field as usize].shown()),
            )
        };
        let row = r#"{"x":[1,{"status":5}],"meta":{"y":{},"id":"a\"b"},"status":200,"a.b":1.5}"#;
        assert_eq!(read(row).unwrap(), ["a\"b", "200", "1.5"]);
        assert_eq!(read(r#"{"meta":"x","status":null}"#).unwrap(), ["", "", ""]);
        assert_eq!(read(r#"{"meta":[{"id":1}],"status":{"id":2}}"#).unwrap(), ["", "", ""]);
        for line in ["", "[]", "{", r#"{"status":1} x"#, "status=200"] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
