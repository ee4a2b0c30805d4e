//! Generates `docs/reference/mock.md` from the code, and compares it with the stored page.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;

use hyper::header::{HeaderName, HeaderValue};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema, schema_for};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::a2a::{A2aSpec, AgentAnswer, AgentSpec};
use crate::dialect::Dialect;
use crate::distribution::Distribution;
use crate::duration::HumanDuration;
use crate::endpoint::{ENDPOINTS, Endpoint};
use crate::fault::Fault;
use crate::log::{LogRecord, RequestEnd, RpcOutcome, WebSocketEvent};
use crate::mcp::{AnswerMode, McpSpec, ToolSpec};
use crate::overrides::RequestOverrides;
use crate::spec::{DrawBy, LogTarget, MockConfig, ModelSpec, OutputLength};
use crate::timed_plan::StreamEnd;
use crate::tool_loop::{ToolArguments, ToolLoop};

/// Implements [`JsonSchema`] for types with their own notation; the title is the type's name on the
/// page.
macro_rules! named {
    ($($type:ty => $name:expr),+ $(,)?) => {$(
        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "title": $name, "type": "string" })
            }
        }
    )+};
}

named! {
    HumanDuration => "duration",
    Distribution<HumanDuration> => "duration or distribution",
    OutputLength => "`from_request`, number or distribution",
    Fault => "fault",
    LogTarget => "`none`, `memory` or `{file: PATH}`",
    Dialect => one_of(ENDPOINTS.iter().filter_map(|(_, endpoint, _)| endpoint.dialect())),
    RequestEnd => one_of(RequestEnd::ALL),
    DrawBy => one_of(DrawBy::ALL),
    AnswerMode => one_of(AnswerMode::ALL),
    AgentAnswer => one_of(AgentAnswer::ALL),
    RpcOutcome => one_of(RpcOutcome::ALL),
    WebSocketEvent => one_of(WebSocketEvent::ALL),
    Distribution<u32> => "number or distribution",
    ToolArguments => "number or object",
}

fn one_of(values: impl IntoIterator<Item = impl Serialize>) -> String {
    let values = values.into_iter().map(|value| code(&serde_json::to_value(value).unwrap()));
    values.collect::<Vec<_>>().join(", ")
}

/// The forms of a distribution.
const DISTRIBUTIONS: [(&str, &str); 8] = [
    ("20ms", "always the same"),
    ("{constant: 20ms}", "the same, in long form"),
    ("{uniform: {min: 10ms, max: 20ms}}", "uniform between two values"),
    ("{normal: {mean: 20ms, std: 5ms}}", "normal; values below zero become zero"),
    ("{lognormal: {median: 20ms, p95: 80ms}}", "lognormal, by its median and its 95th percentile"),
    ("{exponential: {mean: 20ms}}", "exponential"),
    (
        "{bimodal: {low: 10ms, high: 1s, high_share: 0.01}}",
        "one of two values; `high_share` is the share of `high`, 0 to 1",
    ),
    (
        "{quantiles: [[0.5, 10ms], [0.99, 80ms]]}",
        "measured quantiles: linear between the points, constant beyond the first and the last",
    ),
];

/// The headers that override a value: the name after the prefix, an example, and the meaning.
const HEADERS: [(&str, &str, &str); 6] = [
    ("ttft", "120ms", "time to the first content event; of a page: to the response"),
    ("gap", "2ms", "time between content events"),
    ("output-tokens", "10", "output tokens"),
    ("tool-call", "true", "whether the output is a tool call in place of text"),
    ("status", "503", "this error status; `200` for none of the model's faults"),
    ("fault", "cut@5", "a fault, as in the table above; `none` for none of the model's faults"),
];

/// The forms of a fault.
const FAULTS: [(&str, &str); 9] = [
    ("503", "an error status from 400 to 599, at once and in the shape of the dialect"),
    ("429:2s", "the same with `Retry-After`; a 429 without a time says 1 s"),
    (
        "error@5",
        "an error event in place of the event after token 5, then the end; not streamed: status 500",
    ),
    ("cut@5", "the connection closes after token 5, in the middle of the body"),
    ("reset@5", "the same with a TCP reset"),
    ("truncate@5", "the body ends properly after token 5, without the dialect's final events"),
    ("stall@5:500ms", "the event after token 5 and all later ones are delayed"),
    ("reset", "a TCP reset in place of a response"),
    ("hang", "no response until the client disconnects"),
];

const INTRODUCTION: &str = "\
# The mock provider

Generated from the code of `crates/mock`; do not edit. A test keeps this page equal to it:
`UPDATE_EXPECT=1 cargo test -p plimsoll-mock reference`.

`plimsoll mock --config FILE` reads the configuration, in YAML or JSON. Every key has a default; unknown keys are errors.
A duration is a number with a unit (`ns`, `us`, `ms`, `s`, `m`, `h`), like `350us` or `1.5s`, or `0`.
";

const HEADERS_INTRODUCTION: &str = "
## Request headers

A request can override the configuration for itself. The values are exact: neither prefill nor slowdown is added. An
unknown `x-mock-` header gets status 400. Pages, `/mcp` and `/a2a` heed `x-mock-ttft`, `x-mock-status` and
`x-mock-fault`.

| header | example | meaning |
|---|---|---|
";

const FAULTS_INTRODUCTION: &str = "
## Faults

Of a model in `faults`, or of one request in `x-mock-fault`. If the output has fewer tokens, the fault comes at its end.

| fault | meaning |
|---|---|
";

const DISTRIBUTIONS_INTRODUCTION: &str = "
## Distributions

Of durations, and of numbers of tokens (without units).

| example | meaning |
|---|---|
";

const ENDPOINTS_INTRODUCTION: &str = "
## Endpoints

API endpoints accept `POST` only; pages accept any method. With `api_key`, paths below `/v1/` and
`/mcp` and `/a2a` need the key, but for cards. Other paths get status 404. `x-request-id` is echoed. Bodies over 64 MiB
get status 413, malformed ones 400.

`/mcp` speaks MCP 2025-06-18 and 2025-11-25 with sessions (`initialize`, `Mcp-Session-Id`, `DELETE`) and 2026-07-28
without; other versions are refused with the list of these. Its errors are JSON-RPC errors.

`/a2a` speaks A2A 1.0 (header `A2A-Version: 1.0`, methods `SendMessage`, `SendStreamingMessage`, `GetTask` and
`CancelTask`) and 0.3 (no header or `0.3`, methods `message/send`, `message/stream`, `tasks/get` and `tasks/cancel`). Its errors are JSON-RPC errors with status 200, also for what is no message.

| path | kind | content |
|---|---|---|
";

/// The whole page.
fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    let config = schema_for!(MockConfig);
    let order = serde_json::to_string(&MockConfig::default()).unwrap();
    page.push_str("\n## Configuration\n\n| key | type | default | meaning |\n|---|---|---|---|\n");
    for row in rows(config.as_value(), &order) {
        let Row { path, kind, default, meaning } = row;
        writeln!(page, "| `{path}` | {kind} | {default} | {meaning} |").unwrap();
    }
    write_keys::<ModelSpec>(
        &mut page,
        "A model",
        "The keys of `other_models`, and of each entry of `models`.",
    );
    write_keys::<ToolLoop>(
        &mut page,
        "A tool loop",
        "The keys of `tool_loop` of a model. Calls are sent whole, whatever limit of tokens a \
         request sets.",
    );
    write_keys::<McpSpec>(&mut page, "The MCP server", "The keys of `mcp`.");
    write_keys::<ToolSpec>(&mut page, "A tool", "The keys of each entry of `mcp.tools`.");
    write_keys::<A2aSpec>(&mut page, "The A2A agents", "The keys of `a2a`.");
    write_keys::<AgentSpec>(&mut page, "An agent", "The keys of each entry of `a2a.agents`.");
    page.push_str(DISTRIBUTIONS_INTRODUCTION);
    for (example, meaning) in DISTRIBUTIONS {
        writeln!(page, "| `{example}` | {meaning} |").unwrap();
    }
    page.push_str(FAULTS_INTRODUCTION);
    for (example, meaning) in FAULTS {
        writeln!(page, "| `{example}` | {meaning} |").unwrap();
    }
    page.push_str(HEADERS_INTRODUCTION);
    for (key, example, meaning) in HEADERS {
        writeln!(page, "| `x-mock-{key}` | `{example}` | {meaning} |").unwrap();
    }
    page.push_str(ENDPOINTS_INTRODUCTION);
    write_endpoints(&mut page);
    write_log(&mut page);
    page
}

fn write_endpoints(page: &mut String) {
    for (path, endpoint, meaning) in ENDPOINTS {
        let kind = match endpoint {
            Endpoint::Api(_) => "API",
            Endpoint::Mcp => "MCP",
            Endpoint::A2a => "A2A",
            Endpoint::WebSocket => "WebSocket",
            Endpoint::Page(_) => "page",
        };
        writeln!(page, "| `{path}` | {kind} | {meaning} |").unwrap();
    }
}

#[test]
fn every_header_accepts_its_example() {
    for (key, example, _) in HEADERS {
        let name = HeaderName::try_from(format!("x-mock-{key}")).unwrap();
        let headers = [(name, HeaderValue::from_static(example))].into_iter().collect();
        let overrides = RequestOverrides::from_headers(&headers).unwrap();
        assert_ne!(overrides, RequestOverrides::default(), "{key}");
    }
}

/// A section with the keys of a type.
fn write_keys<T: JsonSchema + Serialize + Default>(page: &mut String, title: &str, about: &str) {
    let order = serde_json::to_string(&T::default()).unwrap();
    write!(page, "\n## {title}\n\n{about}\n\n").unwrap();
    page.push_str("| key | type | default | meaning |\n|---|---|---|---|\n");
    for row in rows(schema_for!(T).as_value(), &order) {
        let Row { path, kind, default, meaning } = row;
        writeln!(page, "| `{path}` | {kind} | {default} | {meaning} |").unwrap();
    }
}

fn write_log(page: &mut String) {
    let order = serde_json::to_string(&LogRecord::default()).unwrap();
    let record = schema_for!(LogRecord);
    let meaning = text_of(record.as_value(), "description");
    page.push_str("\n## The log\n\n`log: {file: PATH}` writes a JSON line for each request.\n");
    writeln!(page, "{meaning}\n\n| key | type | meaning |\n|---|---|---|").unwrap();
    for row in rows(record.as_value(), &order) {
        writeln!(page, "| `{}` | {} | {} |", row.path, row.kind, row.meaning).unwrap();
    }
}

/// A row of a table of keys.
struct Row {
    path: String,
    kind: String,
    default: String,
    meaning: String,
}

/// The rows of a schema, in the order in which `order` has the keys.
fn rows(schema: &Value, order: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    collect_rows(schema, schema, "", &mut rows);
    rows.sort_by_key(|row| {
        let key = row.path.split(['.', '[']).next().unwrap_or_default();
        order.find(&format!("\"{key}\":"))
    });
    rows
}

fn collect_rows(root: &Value, object: &Value, prefix: &str, rows: &mut Vec<Row>) {
    let none = Map::new();
    for (key, property) in object["properties"].as_object().unwrap_or(&none) {
        let path = format!("{prefix}{key}");
        let item = definition(root, &property["items"]);
        let child = definition(root, property).or(item);
        rows.push(Row {
            kind: kind_of(property),
            default: default_of(property),
            meaning: text_of(property, "description"),
            path: path.clone(),
        });
        if let Some(child) = child {
            let separator = if item.is_some() { "[]." } else { "." };
            collect_rows(root, child, &format!("{path}{separator}"), rows);
        }
    }
}

/// Objects that have their own table, and what they are called.
const WITH_TABLE: [(&str, &str); 6] = [
    ("ModelSpec", "model"),
    ("ToolLoop", "tool loop"),
    ("McpSpec", "MCP server"),
    ("ToolSpec", "tool"),
    ("A2aSpec", "A2A agents"),
    ("AgentSpec", "agent"),
];

/// The name of the object that a schema refers to.
fn referred(schema: &Value) -> Option<&str> {
    let reference = schema["$ref"].as_str().or_else(|| schema["anyOf"][0]["$ref"].as_str());
    reference?.strip_prefix("#/$defs/")
}

fn with_table(name: &str) -> Option<&'static str> {
    WITH_TABLE.iter().find(|(known, _)| *known == name).map(|(_, called)| *called)
}

/// The object that a schema refers to, if it has no table of its own.
fn definition<'a>(root: &'a Value, schema: &Value) -> Option<&'a Value> {
    let name = referred(schema).filter(|name| with_table(name).is_none())?;
    Some(&root["$defs"][name])
}

fn kind_of(property: &Value) -> String {
    if let Some(name) = referred(property) {
        let or_null = if property.get("anyOf").is_some() { " or null" } else { "" };
        return format!("{}{or_null}", with_table(name).unwrap_or("object"));
    }
    if let Some(title) = property["title"].as_str() {
        let is_optional = property["type"].is_array();
        return if is_optional { format!("{title} or null") } else { title.to_owned() };
    }
    if let Some(item) = property.get("items") {
        return format!("list of {}s", kind_of(item));
    }
    if let Some(value) = property.get("additionalProperties") {
        return format!("{}s by name", kind_of(value));
    }
    match &property["type"] {
        Value::Array(kinds) => kinds.iter().map(type_name).collect::<Vec<_>>().join(" or "),
        kind => type_name(kind),
    }
}

fn type_name(kind: &Value) -> String {
    match kind.as_str() {
        Some("string") => "text".to_owned(),
        Some("integer" | "number") => "number".to_owned(),
        other => other.unwrap_or_default().to_owned(),
    }
}

fn default_of(property: &Value) -> String {
    let has_table = referred(property).and_then(with_table).is_some();
    match &property["default"] {
        Value::Null if property.get("default").is_none() => "required".to_owned(),
        Value::Null => "none".to_owned(),
        Value::Object(_) if has_table => "see below".to_owned(),
        Value::Object(object) if by_name(property) && !object.is_empty() => {
            object.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        }
        Value::Object(object) if object.contains_key("constant") => code(&object["constant"]),
        Value::String(text) if text.is_empty() => "empty".to_owned(),
        value => code(value),
    }
}

/// Whether a schema is one of objects by name.
fn by_name(property: &Value) -> bool {
    property.get("additionalProperties").is_some_and(|value| referred(value).is_some())
}

fn code(value: &Value) -> String {
    value.as_str().map_or_else(|| format!("`{value}`"), |text| format!("`{text}`"))
}

fn text_of(schema: &Value, key: &str) -> String {
    schema[key].as_str().unwrap_or_default().replace('\n', " ")
}

#[test]
fn the_reference_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/mock.md");
    expect_test::expect_file![path].assert_eq(&page());
}

#[test]
fn every_form_of_a_distribution_is_on_the_page_and_is_read() {
    let mut found: Vec<usize> = DISTRIBUTIONS
        .iter()
        .map(|(example, _)| {
            match serde_saphyr::from_str::<Distribution<HumanDuration>>(example).unwrap() {
                Distribution::Constant(_) => 0,
                Distribution::Uniform { .. } => 1,
                Distribution::Normal { .. } => 2,
                Distribution::Lognormal { .. } => 3,
                Distribution::Exponential { .. } => 4,
                Distribution::Bimodal { .. } => 5,
                Distribution::Quantiles(_) => 6,
            }
        })
        .collect();
    found.dedup();
    assert_eq!(found, [0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn every_form_of_a_fault_is_on_the_page_and_is_read() {
    let found: Vec<usize> = FAULTS
        .iter()
        .map(|(example, _)| match example.parse().unwrap() {
            Fault::Status { .. } => 0,
            Fault::Break { end: StreamEnd::Error, .. } => 1,
            Fault::Break { end: StreamEnd::Disconnected { reset: false }, .. } => 2,
            Fault::Break { end: StreamEnd::Disconnected { reset: true }, .. } | Fault::Reset => 3,
            Fault::Break { end: StreamEnd::Truncated, .. } => 4,
            Fault::Break { end: StreamEnd::Complete, .. } => unreachable!(),
            Fault::Stall { .. } => 5,
            Fault::Hang => 6,
        })
        .collect();
    assert_eq!(found, [0, 0, 1, 2, 3, 4, 5, 3, 6]);
}
