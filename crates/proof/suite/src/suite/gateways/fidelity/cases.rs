//! The cases of the matrix, from `cases.yaml`, where every key is described.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

const FILE: &str = include_str!("cases.yaml");

/// The dialects of clients, in the order of the matrix.
pub(super) const DIALECTS: [&str; 2] = ["openai", "anthropic"];

/// The dialects, and the cases in their order.
pub(super) struct Cases {
    pub(super) dialects: BTreeMap<String, Dialect>,
    pub(super) cases: Vec<Case>,
}

#[derive(Deserialize)]
struct CasesFile {
    dialects: BTreeMap<String, Dialect>,
    cases: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Dialect {
    pub(super) path: String,
    pub(super) headers: BTreeMap<String, String>,
    request: Value,
    answers: BTreeMap<String, Value>,
}

/// A row of the matrix: one exchange, in the form of each dialect.
pub(super) struct Case {
    pub(super) group: String,
    pub(super) name: String,
    pub(super) exchanges: BTreeMap<String, Exchange>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "independent checks of the file")]
pub(super) struct Exchange {
    pub(super) request: Value,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) reply: Reply,
    pub(super) before: Option<Reply>,
    pub(super) leave_ms: Option<u64>,
    pub(super) tries: u32,
    pub(super) status: bool,
    pub(super) keeps: Vec<String>,
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
#[serde(default, deny_unknown_fields)]
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

impl Cases {
    /// Reads the file for a gateway that knows `model`.
    ///
    /// # Errors
    /// A mistake in the file.
    pub(super) fn read(model: &str) -> Result<Self, String> {
        let text = FILE.replace("$MODEL", model);
        let file: CasesFile = serde_saphyr::from_str(&text).map_err(|error| error.to_string())?;
        let mut cases = Vec::new();
        for case in &file.cases {
            let once = [Value::Null];
            for each in case["each"].as_array().map_or(&once[..], Vec::as_slice) {
                cases.push(read_case(case, each, &file.dialects)?);
            }
        }
        Ok(Self { dialects: file.dialects, cases })
    }

    /// The answers to requests of no case, by dialect.
    pub(super) fn usual_answers(&self) -> Result<BTreeMap<String, Reply>, String> {
        let dialects = self.dialects.iter();
        let answers = dialects.map(|(name, dialect)| {
            Ok((name.clone(), parse(dialect.answer("whole", &Value::Null)?)?))
        });
        answers.collect()
    }
}

impl Exchange {
    /// The body of a request with this mark.
    pub(super) fn body(&self, mark: &str) -> String {
        self.request.to_string().replace("$MARK", mark)
    }
}

impl Dialect {
    fn answer(&self, name: &str, patch: &Value) -> Result<Value, String> {
        let answer = self.answers.get(name).ok_or_else(|| format!("no answer `{name}`"))?;
        Ok(patched(answer, patch))
    }

    /// Completes an exchange of this dialect.
    fn exchange(&self, mut spec: Value) -> Result<Exchange, String> {
        let stream = take(&mut spec, "stream") == true;
        let usual = if stream { "stream" } else { "whole" };
        let answer = take(&mut spec, "answer");
        spec["reply"] = self.answer(answer.as_str().unwrap_or(usual), &spec["reply"])?;
        if !spec["before"].is_null() {
            spec["before"] = self.answer("whole", &spec["before"])?;
        }
        let flags = if stream { json!({"stream": true}) } else { Value::Null };
        spec["request"] = patched(&patched(&self.request, &flags), &spec["request"]);
        parse(spec)
    }
}

fn read_case(
    case: &Value,
    each: &Value,
    dialects: &BTreeMap<String, Dialect>,
) -> Result<Case, String> {
    let text = case.to_string().replace("\"$EACH\"", &each.to_string());
    let text = fill(&text.replace("$EACH", &each.to_string()));
    let mut common: Value = parse_text(&text)?;
    take(&mut common, "each");
    let [group, name] = ["group", "name"].map(|key| take(&mut common, key));
    let own = DIALECTS.map(|dialect| (dialect, take(&mut common, dialect)));
    let exchanges = own.into_iter().map(|(name, own)| {
        let dialect = dialects.get(name).ok_or_else(|| format!("no dialect `{name}`"))?;
        Ok((name.to_owned(), dialect.exchange(patched(&common, &own))?))
    });
    let exchanges = exchanges.collect::<Result<_, String>>()?;
    Ok(Case { group: parse(group)?, name: parse(name)?, exchanges })
}

fn parse<T: for<'de> Deserialize<'de>>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}

fn parse_text(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn take(value: &mut Value, key: &str) -> Value {
    value.as_object_mut().and_then(|members| members.remove(key)).unwrap_or_default()
}

/// Replaces each `$FILL(N)` by N letters.
fn fill(text: &str) -> String {
    let mut parts = text.split("$FILL(");
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (count, rest) = part.split_once(')').unwrap_or((part, ""));
        filled.push_str(&"x".repeat(count.parse().unwrap_or(0)));
        filled.push_str(rest);
    }
    filled
}

/// A JSON merge patch (RFC 7386), but a patch of `null` changes nothing.
fn patched(target: &Value, patch: &Value) -> Value {
    let Value::Object(members) = patch else {
        return if patch.is_null() { target } else { patch }.clone();
    };
    let mut result = target.as_object().cloned().unwrap_or_default();
    for (key, value) in members {
        if value.is_null() {
            result.remove(key);
        } else {
            let old = result.get(key).unwrap_or(&Value::Null);
            let new = patched(old, value);
            result.insert(key.clone(), new);
        }
    }
    Value::Object(result)
}
