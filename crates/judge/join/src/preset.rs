//! The maps of known gateways, by the columns of their logs.
//!
//! Each is recognised by columns that no other has together. The maps of others than ours are from
//! their documentation; they are printed like every map. A time that ends at the head of the
//! upstream's response (Envoy's `x-envoy-upstream-service-time`) is not an upstream time here: the
//! rest of a stream would count as the gateway's.

use crate::error::{JoinError, quoted};
use crate::map::{Entry, Field, LogOf, Map, Mapping};
use crate::time::Unit;

/// The map of one kind of log.
#[derive(Debug)]
pub(crate) struct Preset {
    pub(crate) name: &'static str,
    /// Columns that it is recognised by.
    signature: &'static [&'static str],
    /// Field, columns in the order in which they are preferred, unit.
    columns: &'static [(Field, &'static [&'static str], Option<Unit>)],
    log_of: LogOf,
}

/// Every preset.
pub(crate) const PRESETS: [Preset; 6] = [
    Preset {
        name: "plimsoll",
        signature: &["timestamp", "latency_us", "request_bytes", "response_bytes"],
        columns: &[
            (Field::Id, &["request_id"], None),
            (Field::At, &["timestamp"], Some(Unit::Ms)),
            (Field::Total, &["latency_us"], Some(Unit::Us)),
            (Field::Upstream, &["upstream_us"], Some(Unit::Us)),
            (Field::Status, &["status"], None),
            (Field::Prompt, &["input_tokens"], None),
            (Field::Completion, &["output_tokens"], None),
            (Field::Decision, &["policy_decision"], None),
            (Field::Cache, &["cache"], None),
        ],
        log_of: LogOf::Gateway,
    },
    Preset {
        name: "mock",
        signature: &["sequence", "arrived", "body_complete", "finished", "prompt_hash"],
        columns: &[
            (Field::Id, &["request_id"], None),
            (Field::At, &["arrived"], Some(Unit::Ns)),
            (Field::Ended, &["finished"], Some(Unit::Ns)),
            (Field::Status, &["status"], None),
            (Field::Stream, &["stream"], None),
            (Field::Prompt, &["prompt_tokens"], None),
            (Field::Completion, &["planned_tokens"], None),
            (Field::Text, &["prompt_head"], None),
            (Field::Messages, &["messages"], None),
        ],
        log_of: LogOf::Upstream,
    },
    Preset {
        name: "envoy",
        signature: &["start_time", "duration", "response_code", "response_flags"],
        columns: &[
            (Field::Id, &["request_id", "x_request_id"], None),
            (Field::At, &["start_time"], Some(Unit::Iso)),
            (Field::Total, &["duration"], Some(Unit::Ms)),
            (Field::Status, &["response_code"], None),
        ],
        log_of: LogOf::Gateway,
    },
    Preset {
        name: "nginx",
        signature: &["request_time", "status"],
        columns: &[
            (Field::Id, &["http_x_request_id", "request_id"], None),
            (Field::Ended, &["msec"], Some(Unit::S)),
            (Field::Total, &["request_time"], Some(Unit::S)),
            (Field::Upstream, &["upstream_response_time"], Some(Unit::S)),
            (Field::Status, &["status"], None),
            (Field::Cache, &["upstream_cache_status"], None),
        ],
        log_of: LogOf::Gateway,
    },
    Preset {
        name: "litellm",
        signature: &["request_id", "startTime", "endTime", "spend"],
        columns: &[
            (Field::Id, &["request_id"], None),
            (Field::At, &["startTime"], Some(Unit::Iso)),
            (Field::Ended, &["endTime"], Some(Unit::Iso)),
            (Field::Prompt, &["prompt_tokens"], None),
            (Field::Completion, &["completion_tokens"], None),
            (Field::Cache, &["cache_hit"], None),
        ],
        log_of: LogOf::Gateway,
    },
    Preset {
        name: "portkey",
        signature: &["trace_id", "response_time", "response_status_code"],
        columns: &[
            (Field::Id, &["trace_id"], None),
            (Field::Total, &["response_time"], Some(Unit::Ms)),
            (Field::Status, &["response_status_code"], None),
            (Field::Prompt, &["req_units"], None),
            (Field::Completion, &["res_units"], None),
        ],
        log_of: LogOf::Gateway,
    },
];

impl Preset {
    fn fits(&self, columns: &[String]) -> bool {
        self.signature.iter().all(|wanted| find(columns, wanted).is_some())
    }

    fn entries(&self, columns: &[String]) -> Vec<Entry> {
        let found = self.columns.iter().filter_map(|(field, names, unit)| {
            let column = names.iter().find_map(|name| find(columns, name))?;
            Some(Entry { field: *field, column: column.clone(), unit: *unit })
        });
        found.collect()
    }
}

/// The column of this name, or of one that means the same.
fn find<'c>(columns: &'c [String], name: &str) -> Option<&'c String> {
    let exact = columns.iter().find(|column| *column == name);
    exact.or_else(|| columns.iter().find(|column| folded(column) == folded(name)))
}

/// A name without what differs between spellings of it. Who writes a format by hand names columns
/// after headers: Envoy Gateway's log has `x-request-id`, others have `X-Request-ID`.
fn folded(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}

fn has(columns: &[String], name: &str) -> bool {
    columns.iter().any(|column| column == name)
}

/// The names of all presets.
pub fn preset_names() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|preset| preset.name)
}

/// What the user said of the map.
#[derive(Clone, Debug, Default)]
pub struct MapChoice {
    /// Name of a preset.
    pub preset: Option<String>,
    /// Entries that replace those of the preset.
    pub entries: Vec<Mapping>,
    /// Whose log it is, where it is not as the preset says.
    pub log_of: Option<LogOf>,
}

/// The map of a log with these columns.
///
/// # Errors
/// [`JoinError::Usage`] if a named column is not there, or if nothing says which column has the id.
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
            "nothing says which column has the request id: write --map id=COLUMN; the log has {}",
            listed(columns)
        )));
    }
    Ok(map)
}

type Basis = (Vec<Entry>, LogOf, String);

/// The map before the user's own entries.
fn basis(choice: &MapChoice, columns: &[String]) -> Result<Basis, JoinError> {
    if let Some(name) = &choice.preset {
        let preset = PRESETS.iter().find(|preset| preset.name == name).ok_or_else(|| {
            let known: Vec<_> = preset_names().collect();
            JoinError::usage(format!("`{name}` is no preset; there are {}", known.join(", ")))
        })?;
        return Ok((preset.entries(columns), preset.log_of, format!("preset {name}")));
    }
    let mut fitting = PRESETS.iter().filter(|preset| preset.fits(columns));
    match (fitting.next(), fitting.next()) {
        (Some(preset), None) => {
            let origin = format!("preset {}, by its columns", preset.name);
            Ok((preset.entries(columns), preset.log_of, origin))
        }
        (Some(one), Some(other)) => Err(JoinError::usage(format!(
            "the columns are those of {} and of {}: say which it is with --preset",
            one.name, other.name
        ))),
        (None, _) if choice.entries.is_empty() => proposed(columns),
        // Who writes a map writes it whole: nothing is added to it.
        (None, _) => Ok((Vec::new(), LogOf::Gateway, String::new())),
    }
}

/// Names that mean the same wherever they occur.
const KNOWN: [(Field, &[&str]); 7] = [
    (Field::Id, &["request_id", "x_request_id", "requestid", "req_id"]),
    (Field::Status, &["status", "status_code", "response_code", "http_status"]),
    (Field::Total, &["latency", "duration", "latency_ms", "duration_ms", "total_ms", "took_ms"]),
    (Field::Prompt, &["prompt_tokens", "input_tokens"]),
    (Field::Completion, &["completion_tokens", "output_tokens"]),
    (Field::Upstream, &["upstream_ms", "upstream_us", "upstream_latency_ms"]),
    (Field::Cache, &["cache_status", "cache_state", "cache_hit"]),
];

/// A map by well-known names: only where each is unambiguous and its unit is in its name.
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
                    "{} may each be the {}: say which with --map; the log has {}",
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

/// The first columns, for a message.
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
        // The default log of Envoy Gateway.
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
        // An exact name goes first.
        let both = "msec request_time request-id request_id status";
        assert!(chosen(both, &[]).unwrap().contains("id=request_id "));
        assert_eq!(chosen("a b", &["id=b"]).unwrap(), "--map: id=b");
        for (columns, entries, part) in [
            ("request_id x_request_id", &[][..], "request_id, x_request_id may each be the id"),
            ("request_id latency", &[], "the unit of latency is not known"),
            ("a b", &[], "write --map id=COLUMN; the log has a, b"),
            ("a b", &["id=c"], "no column `c`; it has a, b"),
            ("a b", &["status=b"], "nothing says which column has the request id"),
        ] {
            let error = chosen(columns, entries).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn no_log_fits_two_presets() {
        for preset in &PRESETS {
            let columns: Vec<String> = preset
                .columns
                .iter()
                .flat_map(|(_, names, _)| *names)
                .chain(preset.signature)
                .map(|name| (*name).to_owned())
                .collect();
            let fitting = PRESETS.iter().filter(|other| other.fits(&columns)).count();
            assert_eq!(fitting, 1, "{}", preset.name);
        }
    }
}
