//! Takes the mapped columns out of a line of JSON, and skips all else.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::cell::Cell;
use crate::map::{FIELDS, Map};

/// The values of a row, by field.
pub(crate) type Cells<'a> = [Cell<'a>; FIELDS];

/// The columns to take, as paths: `a.b` is the member `b` of the object `a`, unless there is a
/// member `a.b`.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    paths: Vec<(Vec<String>, usize)>,
}

impl Columns {
    pub(crate) fn new(map: &Map) -> Self {
        let mut paths = Vec::new();
        for entry in &map.entries {
            paths.push((vec![entry.column.clone()], entry.field as usize));
            if entry.column.contains('.') {
                let parts = entry.column.split('.').map(str::to_owned).collect();
                paths.push((parts, entry.field as usize));
            }
        }
        Self { paths }
    }

    /// The cells of a line; `None` if it is no object of JSON.
    pub(crate) fn read<'a>(&self, line: &'a [u8]) -> Option<Cells<'a>> {
        let mut cells = Cells::default();
        let mut reader = serde_json::Deserializer::from_slice(line);
        let object = Object { columns: self, depth: 0, within: u64::MAX, cells: &mut cells };
        object.deserialize(&mut reader).ok()?;
        reader.end().ok()?;
        Some(cells)
    }
}

/// An object some levels below the top. The bits of `within` are the paths that lead here.
struct Object<'c, 'a> {
    columns: &'c Columns,
    depth: usize,
    within: u64,
    cells: &'c mut Cells<'a>,
}

impl<'a> DeserializeSeed<'a> for Object<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.depth == 0 {
            deserializer.deserialize_map(self)
        } else {
            deserializer.deserialize_any(self)
        }
    }
}

impl<'a> Visitor<'a> for Object<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<(), M::Error> {
        let Self { columns, depth, within, cells } = self;
        while let Some(found) = map.next_key_seed(Key { columns, depth, within })? {
            if found.ends != 0 {
                let cell = map.next_value_seed(CellSeed)?;
                for (index, (_, field)) in columns.paths.iter().enumerate() {
                    // A member of the full name comes before one that is looked for by its path.
                    if found.ends & (1 << index) != 0 && cells[*field] == Cell::Missing {
                        cells[*field] = cell.clone();
                    }
                }
            } else if found.leads != 0 {
                let (within, depth) = (found.leads, depth + 1);
                map.next_value_seed(Object { columns, depth, within, cells: &mut *cells })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<S: SeqAccess<'a>>(self, mut list: S) -> Result<(), S::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    // What is expected to be an object may be anything.
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Which paths a key ends, and which it continues.
struct Found {
    ends: u64,
    leads: u64,
}

struct Key<'c> {
    columns: &'c Columns,
    depth: usize,
    within: u64,
}

impl<'a> DeserializeSeed<'a> for Key<'_> {
    type Value = Found;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Found, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Found, E> {
        let mut found = Found { ends: 0, leads: 0 };
        for (index, (path, _)) in self.columns.paths.iter().enumerate() {
            let bit = 1 << index;
            if self.within & bit != 0 && path.get(self.depth).is_some_and(|part| part == key) {
                let side =
                    if path.len() == self.depth + 1 { &mut found.ends } else { &mut found.leads };
                *side |= bit;
            }
        }
        Ok(found)
    }
}

struct CellSeed;

impl<'a> DeserializeSeed<'a> for CellSeed {
    type Value = Cell<'a>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Cell<'a>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for CellSeed {
    type Value = Cell<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Cell<'a>, E> {
        Ok(Cell::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Cell<'a>, E> {
        Ok(Cell::Int(value))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Cell<'a>, E> {
        Ok(i64::try_from(value).map_or(Cell::Float(value as f64), Cell::Int))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Cell<'a>, E> {
        Ok(Cell::Float(value))
    }
    fn visit_borrowed_str<E>(self, value: &'a str) -> Result<Cell<'a>, E> {
        Ok(Cell::of_text(value))
    }
    fn visit_str<E>(self, value: &str) -> Result<Cell<'a>, E> {
        Ok(Cell::of_text(Cow::Owned(value.to_owned())))
    }
    fn visit_unit<E>(self) -> Result<Cell<'a>, E> {
        Ok(Cell::Missing)
    }
    fn visit_seq<S: SeqAccess<'a>>(self, mut list: S) -> Result<Cell<'a>, S::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Cell::Missing)
    }
    fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<Cell<'a>, M::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Cell::Missing)
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
        let columns = Columns::new(&Map { entries, log_of: LogOf::Gateway, origin: String::new() });
        let read = |line: &'static str| {
            let cells = columns.read(line.as_bytes())?;
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
