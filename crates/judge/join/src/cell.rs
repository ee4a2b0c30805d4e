//! A value of a log, and its conversions.

use plimsoll_measure::CacheState;
use serde_json::Value;

use crate::map::{FIELDS, Map};
use crate::time::{self, Unit};

/// The text of a value, trimmed; `None` if the column is missing, or the value is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cell(pub(crate) Option<String>);

/// A value of the wrong type for its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bad;

/// A field's value; `None` if the log has none.
pub(crate) type Read<T> = Result<Option<T>, Bad>;

impl Cell {
    /// An empty text, `-` and `null` count as missing, and so do lists and objects.
    pub(crate) fn of(value: &Value) -> Self {
        let text = match value {
            Value::Null | Value::Array(_) | Value::Object(_) => None,
            Value::String(text) => Some(text.trim().to_owned()),
            // All digits, never an exponent: trailing zeros are lost, but other rows of the log
            // show the full resolution of a time.
            Value::Number(number) if number.is_f64() => number.as_f64().map(|n| n.to_string()),
            Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        };
        let missing = ["", "-", "null", "NULL", "\\N"];
        Self(text.filter(|text| !missing.contains(&text.as_str())))
    }

    pub(crate) fn text(&self) -> Option<&str> {
        self.0.as_deref()
    }

    fn parse<T>(&self, parse: impl FnOnce(&str) -> Option<T>) -> Read<T> {
        self.text().map(|text| parse(text).ok_or(Bad)).transpose()
    }

    /// The value as a count.
    pub(crate) fn count(&self) -> Read<u32> {
        self.parse(|text| text.parse().ok().or_else(|| whole(text.parse().ok()?)))
    }

    /// The value as the state of a cache.
    pub(crate) fn cache(&self) -> Read<CacheState> {
        self.parse(|text| CacheState::from_words(text.as_bytes()))
    }

    /// The value as a boolean.
    pub(crate) fn flag(&self) -> Read<bool> {
        self.parse(|text| match text.to_ascii_lowercase().as_str() {
            "true" | "t" | "1" | "yes" => Some(true),
            "false" | "f" | "0" | "no" => Some(false),
            _ => None,
        })
    }

    /// The value as a time or duration in nanoseconds.
    pub(crate) fn nanos(&self, unit: Unit) -> Read<i64> {
        self.parse(|text| time::parse(text, unit))
    }

    /// The sum of durations: a proxy that tried several servers lists them, such as `0.010, 0.020`.
    pub(crate) fn sum_of_nanos(&self, unit: Unit) -> Read<i64> {
        let parts = self.text().into_iter().flat_map(|text| text.split([',', ':']).map(str::trim));
        let mut sum = None;
        for part in parts.filter(|part| !matches!(*part, "" | "-")) {
            let length = time::parse(part, unit).ok_or(Bad)?;
            sum = Some(sum.unwrap_or(0_i64).checked_add(length).ok_or(Bad)?);
        }
        Ok(sum)
    }

    /// The resolution of a time as written; smaller differences are unknown.
    pub(crate) fn step(&self, unit: Unit) -> Option<i64> {
        self.text().map(|text| time::step(text, unit))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::float_cmp,
    reason = "checked to be a whole number within the range"
)]
fn whole(value: f64) -> Option<u32> {
    let fits = value >= 0.0 && value <= f64::from(u32::MAX) && value.trunc() == value;
    fits.then_some(value as u32)
}

// Extracts the mapped columns of a row.

/// The values of a row, by field.
pub(crate) type Cells = [Cell; FIELDS];

pub(crate) fn cells(row: &Value, map: &Map) -> Cells {
    let mut cells = Cells::default();
    for entry in &map.entries {
        if let Some(value) = member(row, &entry.column) {
            cells[entry.field as usize] = Cell::of(value);
        }
    }
    cells
}

/// Resolves `a.b` to the member `b` of the object `a`, unless there is a member named `a.b`.
fn member<'r>(row: &'r Value, column: &str) -> Option<&'r Value> {
    let nested = || column.split('.').try_fold(row, |value, part| value.get(part));
    row.get(column).or_else(nested)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_read_as_logs_write_them() {
        let text = |text: &str| Cell::of(&json!(text));
        let number = |number: f64| Cell::of(&json!(number));
        assert_eq!(text(" - "), Cell::default());
        assert_eq!(Cell::of(&json!(true)).cache(), Ok(Some(CacheState::Hit)));
        assert_eq!(Cell::of(&json!(0)).cache(), Ok(Some(CacheState::Miss)));
        assert_eq!(Cell::of(&json!(2)).cache(), Err(Bad));
        assert_eq!(text("12").count(), Ok(Some(12)));
        assert_eq!(text("12.0").count(), Ok(Some(12)));
        // Like nginx without quotes, in milliseconds; and a float with all its digits.
        for (value, step) in [(0.012, 1_000_000), (0.5, 100_000_000), (0.012_345_678, 1_i64)] {
            assert_eq!(number(value).step(Unit::S), Some(step), "{value}");
        }
        assert_eq!((number(2.5).count(), text("many").count()), (Err(Bad), Err(Bad)));
        assert_eq!(
            (text("T").flag(), Cell::of(&json!(0)).flag()),
            (Ok(Some(true)), Ok(Some(false)))
        );
        assert_eq!(Cell::of(&json!(1500)).nanos(Unit::Us), Ok(Some(1_500_000)));
        assert_eq!(text("0.010, 0.020 : -").sum_of_nanos(Unit::S), Ok(Some(30_000_000)));
        assert_eq!(text("-").sum_of_nanos(Unit::S), Ok(None));
        assert_eq!(text("0.01, x").sum_of_nanos(Unit::S), Err(Bad));
    }

    #[test]
    fn the_step_of_a_time_is_its_last_digit() {
        assert_eq!(Cell::of(&json!(5)).step(Unit::Ms), Some(1_000_000));
        assert_eq!(Cell::of(&json!("1763700000.123")).step(Unit::S), Some(1_000_000));
        assert_eq!(Cell::of(&json!("2026-01-02T03:04:05Z")).step(Unit::Iso), Some(1_000_000_000));
        assert_eq!(Cell::of(&json!("2026-01-02 03:04:05.123456")).step(Unit::Iso), Some(1_000));
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
            let cells = cells(&serde_json::from_str(line).unwrap(), &map);
            let text = |field| cells[field as usize].text().unwrap_or_default().to_owned();
            [Field::Id, Field::Status, Field::Total].map(text)
        };
        let row = r#"{"x":[1,{"status":5}],"meta":{"y":{},"id":"a\"b"},"status":200,"a.b":1.5}"#;
        assert_eq!(read(row), ["a\"b", "200", "1.5"]);
        assert_eq!(read(r#"{"meta":"x","status":null}"#), ["", "", ""]);
        assert_eq!(read(r#"{"meta":[{"id":1}],"status":{"id":2}}"#), ["", "", ""]);
    }
}
