//! The meaning of a log's columns.

use plimsoll_measure::named_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{JoinError, quoted};
use crate::time::Unit;

named_enum! {
    /// The meaning of a column.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Field {
        Id => "id",
        At => "at",
        Ended => "ended",
        Total => "total",
        Upstream => "upstream",
        Status => "status",
        Stream => "stream",
        Prompt => "prompt",
        Completion => "completion",
        Decision => "decision",
        Cache => "cache",
        Attempt => "attempt",
        Text => "text",
        Messages => "messages",
    }
}

/// Number of fields.
pub(crate) const FIELDS: usize = Field::ALL.len();

impl Field {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.name() == name)
    }

    /// Whether it is a duration, which needs a unit.
    pub(crate) const fn is_length(self) -> bool {
        matches!(self, Self::Total | Self::Upstream)
    }

    /// Whether it is a time, which may also be a date.
    pub(crate) const fn is_time(self) -> bool {
        matches!(self, Self::At | Self::Ended)
    }
}

/// A column of a log and its meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) field: Field,
    pub(crate) column: String,
    /// Unit of a time or duration.
    pub(crate) unit: Option<Unit>,
}

impl Entry {
    /// Formats the entry in the syntax of `--map`.
    pub(crate) fn shown(&self) -> String {
        let unit = self.unit.map(|unit| format!(":{}", unit.name())).unwrap_or_default();
        format!("{}={}{unit}", self.field.name(), quoted(&self.column))
    }
}

/// The process that wrote the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogOf {
    /// The target itself, which logs every request of the run.
    #[default]
    Gateway,
    /// The upstream, which does not see requests that the target answers itself.
    Upstream,
}

/// The columns of a log and their meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    pub(crate) entries: Vec<Entry>,
    pub(crate) log_of: LogOf,
    /// Origin of the map, for the report.
    pub(crate) origin: String,
}

impl Map {
    /// Column and unit of a field.
    pub(crate) fn entry(&self, field: Field) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.field == field)
    }

    pub(crate) fn unit(&self, field: Field) -> Option<Unit> {
        self.entry(field)?.unit
    }

    /// Formats the map in the syntax of `--map`.
    pub fn shown(&self) -> String {
        let entries: Vec<String> = self.entries.iter().map(Entry::shown).collect();
        entries.join(" ")
    }

    /// Origin of the map.
    pub fn origin(&self) -> &str {
        &self.origin
    }
}

/// One entry by the user: `field=column` or `field=column:unit`; `field=` removes the field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub(crate) field: Field,
    pub(crate) column: Option<String>,
    pub(crate) unit: Option<Unit>,
}

impl Mapping {
    /// Parses `id=request_id` or `total=latency:ms`.
    ///
    /// # Errors
    /// [`JoinError::Usage`] for an unknown field or a missing unit.
    pub fn parse(text: &str) -> Result<Self, JoinError> {
        let (name, column) = text.split_once('=').ok_or_else(|| {
            JoinError::usage(format!(
                "invalid mapping `{text}`: expected field=column, such as id=request_id"
            ))
        })?;
        let field = Field::parse(name.trim()).ok_or_else(|| {
            let known: Vec<_> = Field::ALL.iter().map(|field| field.name()).collect();
            JoinError::usage(format!("unknown field `{name}`; fields: {}", known.join(", ")))
        })?;
        let column = column.trim();
        if column.is_empty() {
            return Ok(Self { field, column: None, unit: None });
        }
        if !field.is_length() && !field.is_time() {
            return Ok(Self { field, column: Some(column.to_owned()), unit: None });
        }
        let named = column.rsplit_once(':').and_then(|(column, unit)| {
            Some((column, Unit::parse(unit)?)).filter(|(column, _)| !column.is_empty())
        });
        let (column, unit) = match named {
            Some((column, unit)) => (column, Some(unit)),
            None => (column, unit_of_name(column)),
        };
        let unit = unit.filter(|unit| field.is_time() || *unit != Unit::Iso).ok_or_else(|| {
            let units = if field.is_time() { "ns, us, ms, s or iso" } else { "ns, us, ms or s" };
            JoinError::usage(format!(
                "the unit of {} is unknown: write {}={column}:UNIT with {units}",
                quoted(column),
                field.name()
            ))
        })?;
        Ok(Self { field, column: Some(column.to_owned()), unit: Some(unit) })
    }
}

/// The unit in the suffix of a column's name.
pub(crate) fn unit_of_name(column: &str) -> Option<Unit> {
    let lower = column.to_ascii_lowercase();
    let ends = [
        ("_ns", Unit::Ns),
        ("_nanos", Unit::Ns),
        ("_us", Unit::Us),
        ("_micros", Unit::Us),
        ("_ms", Unit::Ms),
        ("_millis", Unit::Ms),
        ("_s", Unit::S),
        ("_sec", Unit::S),
        ("_secs", Unit::S),
        ("_seconds", Unit::S),
        ("_iso", Unit::Iso),
        ("_iso8601", Unit::Iso),
    ];
    ends.into_iter().find(|(end, _)| lower.ends_with(end)).map(|(_, unit)| unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_names_a_field_a_column_and_a_unit() {
        let parse = |text| Mapping::parse(text).map_err(|error| error.to_string());
        let of =
            |field, column: &str, unit| Mapping { field, column: Some(column.to_owned()), unit };
        assert_eq!(parse("id=a.b:c"), Ok(of(Field::Id, "a.b:c", None)));
        assert_eq!(parse("total=took:ms"), Ok(of(Field::Total, "took", Some(Unit::Ms))));
        assert_eq!(parse("total=latency_us"), Ok(of(Field::Total, "latency_us", Some(Unit::Us))));
        assert_eq!(parse("at=when:iso"), Ok(of(Field::At, "when", Some(Unit::Iso))));
        let none = Mapping { field: Field::Upstream, column: None, unit: None };
        assert_eq!(parse("upstream="), Ok(none));
        for (text, part) in [
            ("id", "field=column"),
            ("ids=x", "fields: id, at"),
            ("total=latency", "total=latency:UNIT with ns, us, ms or s"),
            ("total=latency:iso", "total=latency:UNIT"),
            ("at=when:days", "ns, us, ms, s or iso"),
        ] {
            assert!(parse(text).unwrap_err().contains(part), "{text}: {:?}", parse(text));
        }
    }
}
