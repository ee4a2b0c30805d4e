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
    match lower.rsplit_once('_')?.1 {
        "ns" | "nanos" => Some(Unit::Ns),
        "us" | "micros" => Some(Unit::Us),
        "ms" | "millis" => Some(Unit::Ms),
        "s" | "sec" | "secs" | "seconds" => Some(Unit::S),
        "iso" | "iso8601" => Some(Unit::Iso),
        _ => None,
    }
}

// Maps of known gateways, identified by the columns of their logs: the table `presets.tsv`.

/// The map of one log format: a row of the table.
#[derive(Clone, Copy, Debug)]
struct Preset {
    name: &'static str,
    log_of: LogOf,
    /// Columns that identify it, separated by spaces.
    signature: &'static str,
    /// Entries in the syntax of `--map`; alternatives for a field in order of preference.
    map: &'static str,
}

fn presets() -> impl Iterator<Item = Preset> {
    include_str!("presets.tsv").lines().filter_map(|line| {
        let mut cells = line.split('\t');
        let (name, log_of) = (cells.next()?, cells.next()?);
        let log_of = if log_of == "upstream" { LogOf::Upstream } else { LogOf::Gateway };
        Some(Preset { name, log_of, signature: cells.next()?, map: cells.next()? })
    })
}

impl Preset {
    fn fits(&self, columns: &[String]) -> bool {
        self.signature.split(' ').all(|wanted| find(columns, wanted).is_some())
    }

    fn entries(&self, columns: &[String]) -> Result<Vec<Entry>, JoinError> {
        let mut entries: Vec<Entry> = Vec::new();
        for entry in self.map.split(' ') {
            let Mapping { field, column, unit } = Mapping::parse(entry)?;
            let found = column.and_then(|name| find(columns, &name).cloned());
            let known = entries.iter().any(|entry| entry.field == field);
            let new = found.filter(|_| !known).map(|column| Entry { field, column, unit });
            entries.extend(new);
        }
        Ok(entries)
    }
}

/// The column with this name or an equivalent one.
fn find<'c>(columns: &'c [String], name: &str) -> Option<&'c String> {
    let exact = columns.iter().find(|column| *column == name);
    exact.or_else(|| columns.iter().find(|column| folded(column) == folded(name)))
}

/// Normalizes the spelling of a name. Handwritten formats name columns after headers: Envoy
/// Gateway's log has `x-request-id`, others have `X-Request-ID`.
fn folded(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}

fn has(columns: &[String], name: &str) -> bool {
    columns.iter().any(|column| column == name)
}

/// Names of all presets.
pub fn preset_names() -> impl Iterator<Item = &'static str> {
    presets().map(|preset| preset.name)
}

/// The user's choice of a map.
#[derive(Clone, Debug, Default)]
pub struct MapChoice {
    /// Name of a preset.
    pub preset: Option<String>,
    /// Entries that replace the preset's.
    pub entries: Vec<Mapping>,
    /// Process that wrote the log, if it differs from the preset.
    pub log_of: Option<LogOf>,
}

/// Chooses the map of a log with these columns.
///
/// # Errors
/// [`JoinError::Usage`] if a named column is missing, or if the id column is unknown.
pub(crate) fn choose(choice: &MapChoice, columns: &[String]) -> Result<Map, JoinError> {
    let (mut entries, log_of, mut origin) = basis(choice, columns)?;
    for mapping in &choice.entries {
        entries.retain(|entry| entry.field != mapping.field);
        let Some(column) = &mapping.column else { continue };
        let first = column.split('.').next().unwrap_or(column);
        if !has(columns, column) && !has(columns, first) {
            return Err(JoinError::usage(format!(
                "the log has no column `{}`; it has {}",
                quoted(column),
                listed(columns)
            )));
        }
        let entry = Entry { field: mapping.field, column: column.clone(), unit: mapping.unit };
        entries.push(entry);
    }
    if !choice.entries.is_empty() {
        let and = if origin.is_empty() { "--map".to_owned() } else { format!("{origin}, --map") };
        origin = and;
    }
    let map = Map { entries, log_of: choice.log_of.unwrap_or(log_of), origin };
    if map.entry(Field::Id).is_none() && map.entry(Field::Text).is_none() {
        return Err(JoinError::usage(format!(
            "the request id's column is unknown: write --map id=COLUMN; the log has {}",
            listed(columns)
        )));
    }
    Ok(map)
}

type Basis = (Vec<Entry>, LogOf, String);

/// The map before the user's own entries apply.
fn basis(choice: &MapChoice, columns: &[String]) -> Result<Basis, JoinError> {
    if let Some(name) = &choice.preset {
        let preset = presets().find(|preset| preset.name == name).ok_or_else(|| {
            let known: Vec<_> = preset_names().collect();
            JoinError::usage(format!("unknown preset `{name}`; presets: {}", known.join(", ")))
        })?;
        return Ok((preset.entries(columns)?, preset.log_of, format!("preset {name}")));
    }
    let mut fitting = presets().filter(|preset| preset.fits(columns));
    match (fitting.next(), fitting.next()) {
        (Some(preset), None) => {
            let origin = format!("preset {}, by its columns", preset.name);
            Ok((preset.entries(columns)?, preset.log_of, origin))
        }
        (Some(one), Some(other)) => Err(JoinError::usage(format!(
            "the columns match both {} and {}: choose one with --preset",
            one.name, other.name
        ))),
        (None, _) if choice.entries.is_empty() => proposed(columns),
        // A map by the user is complete, so no entries are added.
        (None, _) => Ok((Vec::new(), LogOf::Gateway, String::new())),
    }
}

/// Column names with the same meaning in all logs.
const KNOWN: [(Field, &[&str]); 7] = [
    (Field::Id, &["request_id", "x_request_id", "requestid", "req_id"]),
    (Field::Status, &["status", "status_code", "response_code", "http_status"]),
    (Field::Total, &["latency", "duration", "latency_ms", "duration_ms", "total_ms", "took_ms"]),
    (Field::Prompt, &["prompt_tokens", "input_tokens"]),
    (Field::Completion, &["completion_tokens", "output_tokens"]),
    (Field::Upstream, &["upstream_ms", "upstream_us", "upstream_latency_ms"]),
    (Field::Cache, &["cache_status", "cache_state", "cache_hit"]),
];

/// Proposes a map from well-known names, but only if each is unambiguous and includes its unit.
fn proposed(columns: &[String]) -> Result<Basis, JoinError> {
    let mut entries = Vec::new();
    for (field, names) in KNOWN {
        let found: Vec<_> = columns
            .iter()
            .filter(|column: &&String| names.contains(&folded(column).as_str()))
            .collect();
        let [column] = found.as_slice() else {
            if found.len() > 1 {
                return Err(JoinError::usage(format!(
                    "{} may each be the {}: choose one with --map; the log has {}",
                    listed_of(&found),
                    field.name(),
                    listed(columns)
                )));
            }
            continue;
        };
        let Mapping { unit, .. } = Mapping::parse(&format!("{}={column}", field.name()))?;
        entries.push(Entry { field, column: (*column).clone(), unit });
    }
    Ok((entries, LogOf::Gateway, "proposed by known names; --map replaces it".to_owned()))
}

fn listed(columns: &[String]) -> String {
    listed_of(&columns.iter().collect::<Vec<_>>())
}

/// The first columns, for messages.
fn listed_of(columns: &[&String]) -> String {
    const MOST: usize = 24;
    if columns.is_empty() {
        return "no columns".to_owned();
    }
    let mut names: Vec<_> = columns.iter().take(MOST).map(|column| quoted(column)).collect();
    if columns.len() > MOST {
        names.push(format!("and {} more", columns.len() - MOST));
    }
    names.join(", ")
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

#[cfg(test)]
mod preset_tests {
    use super::*;

    fn chosen(columns: &str, entries: &[&str]) -> Result<String, String> {
        let columns: Vec<String> = columns.split(' ').map(str::to_owned).collect();
        let entries = entries.iter().map(|entry| Mapping::parse(entry).unwrap()).collect();
        let choice = MapChoice { entries, ..MapChoice::default() };
        let map = choose(&choice, &columns).map_err(|error| error.to_string())?;
        Ok(format!("{}: {}", map.origin(), map.shown()))
    }

    #[test]
    fn maps_are_known_given_or_proposed_and_never_guessed() {
        assert_eq!(
            chosen("msec request_time request_id http_x_request_id status", &[]).unwrap(),
            "preset nginx, by its columns: id=http_x_request_id ended=msec:s \
             total=request_time:s status=status"
        );
        assert_eq!(
            chosen("request_time request_id status rt", &["total=rt:ms", "status="]).unwrap(),
            "preset nginx, by its columns, --map: id=request_id total=rt:ms"
        );
        assert_eq!(
            chosen("request_id latency_ms other", &[]).unwrap(),
            "proposed by known names; --map replaces it: id=request_id total=latency_ms:ms"
        );
        // Envoy Gateway's default log.
        let columns = "start_time method response_code response_flags duration x-request-id \
                       x-envoy-upstream-service-time :authority";
        assert_eq!(
            chosen(columns, &[]).unwrap(),
            "preset envoy, by its columns: id=x-request-id at=start_time:iso total=duration:ms \
             status=response_code"
        );
        let columns = "Start-Time METHOD Response_Code response-flags Duration X-Request-ID";
        assert_eq!(
            chosen(columns, &[]).unwrap(),
            "preset envoy, by its columns: id=X-Request-ID at=Start-Time:iso total=Duration:ms \
             status=Response_Code"
        );
        // An exact name wins.
        let both = "msec request_time request-id request_id status";
        assert!(chosen(both, &[]).unwrap().contains("id=request_id "));
        assert_eq!(chosen("a b", &["id=b"]).unwrap(), "--map: id=b");
        for (columns, entries, part) in [
            ("request_id x_request_id", &[][..], "request_id, x_request_id may each be the id"),
            ("request_id latency", &[], "the unit of latency is unknown"),
            ("a b", &[], "write --map id=COLUMN; the log has a, b"),
            ("a b", &["id=c"], "no column `c`; it has a, b"),
            ("a b", &["status=b"], "the request id's column is unknown"),
        ] {
            let error = chosen(columns, entries).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn no_log_fits_two_presets() {
        for preset in presets() {
            let entries = preset.map.split(' ').map(|entry| Mapping::parse(entry).unwrap());
            let mapped = entries.map(|entry| entry.column.unwrap());
            let signature = preset.signature.split(' ').map(str::to_owned);
            let columns: Vec<String> = mapped.chain(signature).collect();
            let fitting = presets().filter(|other| other.fits(&columns)).count();
            assert_eq!(fitting, 1, "{}", preset.name);
        }
        assert_eq!(presets().count(), 7);
    }
}
