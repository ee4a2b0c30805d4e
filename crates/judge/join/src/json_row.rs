//! Extracts the mapped columns of a line of JSON.

use serde_json::{Map as Object, Value};

use crate::cell::Cell;
use crate::map::{FIELDS, Map};

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
