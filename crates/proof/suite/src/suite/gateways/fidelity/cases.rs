//! The cases of the matrix, from `cases.yaml`, where every key is described.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

pub(super) use super::super::spec::DIALECTS;

const FILE: &str = include_str!("cases.yaml");

/// A row of the matrix: one exchange, in the form of each dialect.
pub(super) struct Case {
    pub(super) group: String,
    pub(super) name: String,
    /// In the order of [`DIALECTS`].
    pub(super) exchanges: Vec<Exchange>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Exchange {
    pub(super) path: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) request: Value,
    pub(super) reply: Reply,
    pub(super) before: Option<Reply>,
    pub(super) leave_ms: Option<u64>,
    pub(super) tries: u32,
    pub(super) status: bool,
    pub(super) keeps: Vec<String>,
    pub(super) translated: Vec<String>,
    pub(super) passes: Vec<String>,
    pub(super) returns: Vec<String>,
    pub(super) forwards: Vec<String>,
    pub(super) requests: Option<usize>,
    pub(super) alone: Vec<String>,
    pub(super) visible_end: bool,
    pub(super) told: bool,
}

/// An answer of the scripted upstream.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) json: Value,
    pub(super) events: Vec<Value>,
    pub(super) wait_ms: u64,
    pub(super) gap_ms: u64,
    pub(super) cut: Option<usize>,
    pub(super) close: Close,
}

/// When the upstream closes the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Close {
    #[default]
    Never,
    /// Instead of an answer.
    Unanswered,
    /// Instead of an answer, if the connection had a request before.
    UnansweredIfReused,
    /// After the answer, without announcing it.
    Idle,
}

/// Reads the cases for a gateway that knows `model`.
///
/// # Errors
/// A mistake in the file.
pub(super) fn read(model: &str) -> Result<Vec<Case>, String> {
    let file = serde_saphyr::from_str::<Value>(&FILE.replace("$MODEL", model));
    let file = file.map_err(|error| error.to_string())?;
    let (mut cases, once) = (Vec::new(), [Value::Null]);
    for case in file["cases"].as_array().into_iter().flatten() {
        for each in case["each"].as_array().map_or(&once[..], Vec::as_slice) {
            let case = expanded(case, each).map_err(|error| error.to_string())?;
            let exchanges = DIALECTS.map(|dialect| {
                exchange(&file["dialects"][dialect], &patched(&case, &case[dialect]))
            });
            let exchanges = exchanges.into_iter().collect::<Result<_, _>>();
            let exchanges = exchanges.map_err(|error| format!("{}: {error}", case["name"]))?;
            let [group, name] = ["group", "name"].map(|key| case[key].as_str().unwrap_or_default());
            cases.push(Case { group: group.to_owned(), name: name.to_owned(), exchanges });
        }
    }
    Ok(cases)
}

/// A case for one of its values.
fn expanded(case: &Value, each: &Value) -> serde_json::Result<Value> {
    let fill = each.as_u64().zip(case["fill"].as_u64()).map_or(0, |(each, fill)| each * fill);
    // Words, because some gateways count tokens. A header's value must not end with a space.
    let fill = "-word".repeat(usize::try_from(fill).unwrap_or_default() / "-word".len());
    let text = case.to_string().replace("\"$EACH\"", &each.to_string());
    serde_json::from_str(&text.replace("$EACH", &each.to_string()).replace("$FILL", &fill))
}

/// Completes an exchange with what all exchanges of its dialect share.
fn exchange(dialect: &Value, spec: &Value) -> serde_json::Result<Exchange> {
    let mut shared = dialect.clone();
    shared["reply"] = dialect["answers"][spec["answer"].as_str().unwrap_or("whole")].clone();
    let mut exchange = patched(&shared, spec);
    exchange["before"] = dialect["answers"][spec["before"].as_str().unwrap_or_default()].clone();
    serde_json::from_value(exchange)
}

/// A JSON merge patch (RFC 7386), but a patch of `null` changes nothing.
fn patched(target: &Value, patch: &Value) -> Value {
    let Value::Object(members) = patch else {
        return if patch.is_null() { target } else { patch }.clone();
    };
    let mut result = target.as_object().cloned().unwrap_or_default();
    for (key, value) in members {
        let new = patched(result.get(key).unwrap_or(&Value::Null), value);
        result.insert(key.clone(), new);
    }
    Value::Object(result)
}

impl Exchange {
    /// The body of a request with this mark.
    pub(super) fn body(&self, mark: &str) -> String {
        self.request.to_string().replace("$MARK", mark)
    }
}

impl Reply {
    /// The parts of the body that are written one by one.
    pub(super) fn pieces(&self) -> Vec<String> {
        if self.events.is_empty() {
            return vec![self.json.to_string()];
        }
        self.events.iter().map(event_text).collect()
    }

    /// Whether the upstream means to answer to the end.
    pub(super) fn is_whole(&self) -> bool {
        self.cut.is_none() && matches!(self.close, Close::Never | Close::Idle)
    }
}

/// The text of an event. A text such as `[DONE]` is its data.
fn event_text(event: &Value) -> String {
    let name = event["type"].as_str().map(|name| format!("event: {name}\n")).unwrap_or_default();
    let data = event.as_str().map_or_else(|| event.to_string(), str::to_owned);
    format!("{name}data: {data}\n\n")
}
