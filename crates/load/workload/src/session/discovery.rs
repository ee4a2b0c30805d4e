//! Asks a tool server for its tools before the load, to create the steps of sessions.

use std::sync::Arc;

use plimsoll_protocol::rpc::mcp::{Ask, Call, List, Revision};
use plimsoll_protocol::rpc::{self, Request};
use serde_json::{Map, Number, Value, json};

use crate::spec::{ByteRange, McpMethod, McpSpec, McpStep};

/// Maximum number of pages; a longer list may be endless.
const MOST_PAGES: u64 = 100;

/// The length of drawn texts in arguments.
const TEXTS: ByteRange = ByteRange { min: 16, max: 64 };

/// Share of list requests in the steps of a session: one in ten.
const SHARE_OF_LISTS: f64 = 0.1;

/// Maximum number of characters of a message to show.
const SHOWN: usize = 200;

/// A raw response.
#[derive(Clone, Copy, Debug)]
pub struct DiscoveryAnswer<'a> {
    /// HTTP status.
    pub status: u16,
    /// The session in the head.
    pub session: Option<&'a str>,
    /// Its body: one document, or a stream of events.
    pub body: &'a [u8],
}

/// A session that lists the tools.
#[derive(Debug)]
pub struct ToolDiscovery {
    revision: Revision,
    path: Arc<str>,
    phase: Phase,
    id: u64,
    session: Option<Arc<str>>,
    version: Option<Arc<str>>,
    cursor: Option<String>,
    tools: Vec<Value>,
    deletes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Initialize,
    Initialized,
    List,
    End,
    Over,
}

impl ToolDiscovery {
    /// Starts a session in this revision, at this path.
    pub fn new(revision: Revision, path: &str) -> Self {
        Self {
            revision,
            path: path.into(),
            phase: if revision.has_sessions() { Phase::Initialize } else { Phase::List },
            id: 1,
            session: None,
            version: None,
            cursor: None,
            tools: Vec::new(),
            deletes: true,
        }
    }

    /// The next message; `None` after the last one.
    pub fn request(&self) -> Option<Request> {
        let ask = match self.phase {
            Phase::Initialize => Ask::Initialize,
            Phase::Initialized => Ask::Initialized,
            Phase::List => Ask::List { list: List::Tools, cursor: self.cursor.clone() },
            Phase::End => Ask::EndSession,
            Phase::Over => return None,
        };
        let call = Call {
            revision: self.revision,
            version: self.version.clone(),
            session: self.session.clone(),
            ask,
        };
        Some(Request { path: Arc::clone(&self.path), id: self.id, call: rpc::Call::Mcp(call) })
    }

    /// Handles the response to the message.
    ///
    /// # Errors
    /// The server rejects the request, or its response violates MCP.
    pub fn note(&mut self, answer: DiscoveryAnswer<'_>) -> Result<(), String> {
        let phase = self.phase;
        if phase == Phase::End {
            // Servers may reject the end of a session.
            self.deletes = (200..300).contains(&answer.status);
            self.phase = Phase::Over;
            return Ok(());
        }
        if !(200..300).contains(&answer.status) {
            return Err(format!("it answers with {}{}", answer.status, shown(answer.body)));
        }
        self.id += 1;
        match phase {
            Phase::Initialize => {
                let result = result(answer.body)?;
                let version = result.get("protocolVersion").and_then(Value::as_str);
                self.version = version.map(Arc::from);
                self.session = answer.session.map(Arc::from);
                self.phase = Phase::Initialized;
            }
            Phase::Initialized => self.phase = Phase::List,
            _ => {
                let mut result = result(answer.body)?;
                let Some(Value::Array(tools)) = result.get_mut("tools").map(Value::take) else {
                    return Err("its list of tools has no `tools`".to_owned());
                };
                self.tools.extend(tools);
                self.cursor = result.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
                self.phase = match (&self.cursor, &self.session) {
                    (Some(_), _) if self.id < MOST_PAGES => Phase::List,
                    (_, Some(_)) => Phase::End,
                    _ => Phase::Over,
                };
            }
        }
        Ok(())
    }

    /// Whether the server ends sessions on request.
    pub const fn deletes(&self) -> bool {
        self.deletes
    }

    /// The steps of sessions: a call of each tool, with arguments that match its schema, and a list
    /// request. Tools marked as destructive are skipped, unless they are named.
    ///
    /// # Errors
    /// The server has no tools, or lacks a named tool.
    pub fn steps(&self, spec: &McpSpec) -> Result<Vec<McpStep>, String> {
        let known: Vec<_> = self.tools.iter().filter_map(name_of).collect();
        if let Some(missing) = spec.tools.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(format!("it has no tool `{missing}`, but {}", known.join(", ")));
        }
        let wanted = self.tools.iter().filter(|tool| {
            let destroys = tool.pointer("/annotations/destructiveHint") == Some(&Value::Bool(true));
            let named = name_of(tool).is_some_and(|name| spec.tools.iter().any(|own| own == name));
            named || (spec.tools.is_empty() && !destroys)
        });
        let mut steps: Vec<_> = wanted.filter_map(step).collect();
        if steps.is_empty() {
            return Err(match known.as_slice() {
                [] => "it has no tools; write `mcp.steps`, like `- {method: resources/list}`"
                    .to_owned(),
                known => format!(
                    "all of its tools are marked as destructive ({}); name those to call in `mcp.tools`",
                    known.join(", ")
                ),
            });
        }
        let weight = steps.len() as f64 * SHARE_OF_LISTS;
        steps.push(McpStep { weight, ..plain(McpMethod::ListTools) });
        Ok(steps)
    }

    /// The tools in the form that a model expects.
    pub fn offered(&self) -> &[Value] {
        &self.tools
    }
}

fn name_of(tool: &Value) -> Option<&str> {
    tool.get("name").and_then(Value::as_str).filter(|name| !name.is_empty())
}

fn step(tool: &Value) -> Option<McpStep> {
    let generated = arguments(tool.get("inputSchema").unwrap_or(&Value::Null));
    let mut step = plain(McpMethod::CallTool);
    step.name = Some(name_of(tool)?.to_owned());
    step.arguments = generated.fixed;
    if let Some(text) = generated.text {
        step.arguments.remove(&text);
        step.argument = text;
        step.argument_bytes = Some(TEXTS);
    }
    Some(step)
}

fn plain(method: McpMethod) -> McpStep {
    McpStep {
        method,
        weight: 1.0,
        name: None,
        arguments: Map::new(),
        argument_bytes: None,
        argument: "text".to_owned(),
        progress: false,
        cancel_after: None,
    }
}

/// The result in a JSON-RPC response: a document, or an event of a stream.
fn result(body: &[u8]) -> Result<Value, String> {
    let text = String::from_utf8_lossy(body);
    let documents = std::iter::once(text.as_ref().trim());
    let events = text.lines().filter_map(|line| line.strip_prefix("data:").map(str::trim));
    for message in documents.chain(events) {
        let Ok(Value::Object(mut message)) = serde_json::from_str(message) else { continue };
        if let Some(error) = message.get("error") {
            let text = error.get("message").and_then(Value::as_str).unwrap_or("an error");
            let code = error.get("code").cloned().unwrap_or(Value::Null);
            return Err(format!("it answers with the error {code}: {text}"));
        }
        if let Some(result) = message.remove("result") {
            return Ok(result);
        }
    }
    Err(format!("its response is not JSON-RPC{}", shown(body)))
}

fn shown(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(4 * SHOWN)]);
    let error: Option<Value> = serde_json::from_slice(body).ok();
    let message = error.as_ref().and_then(|error| {
        let inner = error.pointer("/error/message").or_else(|| error.get("message"));
        inner.and_then(Value::as_str)
    });
    let line = message.unwrap_or(&text).split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().filter(|c| !c.is_control()).take(SHOWN).collect();
    if line.is_empty() { String::new() } else { format!(": {line}") }
}

/// The tools of a server, in the form of a protocol's requests to a model.
pub fn offered_to_model(tools: &[Value], dialect: plimsoll_protocol::Dialect) -> Value {
    use plimsoll_protocol::Dialect;
    let offered = tools.iter().filter_map(|tool| {
        let name = name_of(tool)?;
        let description = tool.get("description").cloned().unwrap_or_else(|| "".into());
        let schema = tool.get("inputSchema").cloned().unwrap_or_else(|| json!({"type": "object"}));
        Some(match dialect {
            Dialect::AnthropicMessages => {
                json!({"name": name, "description": description, "input_schema": schema})
            }
            Dialect::OpenaiResponses => json!({
                "type": "function", "name": name, "description": description, "parameters": schema
            }),
            _ => json!({"type": "function", "function": {
                "name": name, "description": description, "parameters": schema
            }}),
        })
    });
    Value::Array(offered.collect())
}

// Arguments that match the input schema of a tool.

/// Maximum depth, because schemas may be recursive.
const DEEPEST: usize = 8;

/// Arguments of a tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct GeneratedArguments {
    /// The arguments that are the same in every call.
    pub(crate) fixed: Map<String, Value>,
    /// The first argument that accepts any text. A random text makes each call different.
    pub(crate) text: Option<String>,
}

/// The required arguments of a schema. Optional ones are omitted.
pub(crate) fn arguments(schema: &Value) -> GeneratedArguments {
    let generator = Generator { root: schema };
    let mut text = None;
    let fixed = generator.object(schema, 0, &mut |name: &str, member: &Value| {
        if text.is_none() && is_any_text(member) {
            text = Some(name.to_owned());
        }
    });
    GeneratedArguments { fixed, text }
}

/// Whether a schema allows any text of 16 to 64 bytes.
fn is_any_text(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("string")
        && ["enum", "const", "format", "pattern", "default", "examples"]
            .iter()
            .all(|name| schema.get(name).is_none())
        && length_bound(schema, "minLength").is_none_or(|least| least <= 16)
        && length_bound(schema, "maxLength").is_none_or(|most| most >= 64)
}

fn length_bound(schema: &Value, name: &str) -> Option<usize> {
    let bound = schema.get(name).and_then(Value::as_u64)?;
    usize::try_from(bound).ok()
}

struct Generator<'a> {
    root: &'a Value,
}

impl Generator<'_> {
    fn object(
        &self,
        schema: &Value,
        depth: usize,
        on_member: &mut dyn FnMut(&str, &Value),
    ) -> Map<String, Value> {
        let mut object = Map::new();
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            let member = schema.get("properties").and_then(|known| known.get(name));
            let member = member.map_or(&Value::Null, |member| self.resolved(member, 0));
            on_member(name, member);
            object.insert(name.to_owned(), self.value(member, depth + 1));
        }
        // `allOf` adds members.
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            if depth < DEEPEST {
                object.extend(self.object(self.resolved(part, 0), depth + 1, on_member));
            }
        }
        object
    }

    /// Resolves a reference.
    fn resolved<'s>(&'s self, schema: &'s Value, depth: usize) -> &'s Value {
        let target = schema.get("$ref").and_then(Value::as_str);
        let target = target.and_then(|target| self.root.pointer(target.strip_prefix('#')?));
        match target {
            Some(target) if depth < DEEPEST => self.resolved(target, depth + 1),
            _ => schema,
        }
    }

    fn value(&self, schema: &Value, depth: usize) -> Value {
        let schema = self.resolved(schema, 0);
        let lists = ["enum", "examples"].into_iter();
        let first = lists.filter_map(|name| schema.get(name)?.as_array()?.first());
        let given = ["const", "default"].into_iter().filter_map(|name| schema.get(name));
        if let Some(given) = given.chain(first).next() {
            return given.clone();
        }
        if depth > DEEPEST {
            return Value::Null;
        }
        for choice in ["anyOf", "oneOf"] {
            let forms = schema.get(choice).and_then(Value::as_array);
            let form = forms.and_then(|forms| {
                let mut others =
                    forms.iter().filter(|form| form.get("type") != Some(&json!("null")));
                others.next().or_else(|| forms.first())
            });
            if let Some(form) = form {
                return self.value(form, depth + 1);
            }
        }
        match kind(schema) {
            "string" => text(schema).into(),
            "integer" => number(schema, true),
            "number" => number(schema, false),
            "boolean" => Value::Bool(true),
            "null" => Value::Null,
            "array" => {
                let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(1).min(64);
                let item = schema.get("items").unwrap_or(&Value::Null);
                Value::Array((0..least).map(|_| self.value(item, depth + 1)).collect())
            }
            _ => Value::Object(self.object(schema, depth, &mut |_, _| {})),
        }
    }
}

/// The type of a schema, inferred if the schema does not name it.
fn kind(schema: &Value) -> &str {
    let name = match schema.get("type") {
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).find(|name| *name != "null")
        }
        name => name.and_then(Value::as_str),
    };
    let kinds = [
        ("properties", "object"),
        ("allOf", "object"),
        ("items", "array"),
        ("minimum", "number"),
        ("maximum", "number"),
    ];
    name.or_else(|| {
        kinds.into_iter().find(|(member, _)| schema.get(member).is_some()).map(|(_, kind)| kind)
    })
    .unwrap_or("string")
}

fn text(schema: &Value) -> String {
    let known = match schema.get("format").and_then(Value::as_str).unwrap_or_default() {
        "date-time" => "2026-01-02T03:04:05Z",
        "date" => "2026-01-02",
        "time" => "03:04:05Z",
        "duration" => "PT5S",
        "email" => "ada@example.com",
        "hostname" => "example.com",
        "ipv4" => "127.0.0.1",
        "ipv6" => "::1",
        "uri" | "url" | "iri" | "uri-reference" => "https://example.com/",
        "uuid" => "123e4567-e89b-42d3-a456-426614174000",
        _ => "plimsoll",
    };
    let mut text = known.to_owned();
    let least = length_bound(schema, "minLength").unwrap_or(0).min(1 << 16);
    text.extend(std::iter::repeat_n('x', least.saturating_sub(text.len())));
    if let Some(most) = length_bound(schema, "maxLength") {
        text.truncate(most);
    }
    text
}

fn number(schema: &Value, whole: bool) -> Value {
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let step = bound("multipleOf").filter(|step| *step > 0.0).unwrap_or(1.0);
    let least = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|least| least + step));
    let most = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|most| most - step));
    let wanted = match (least, most) {
        (Some(least), Some(most)) => 1.0_f64.clamp(least.min(most), most),
        (Some(least), None) => least.max(1.0),
        (None, Some(most)) => most.min(1.0),
        (None, None) => 1.0,
    };
    // Rounding down respects the maximum, rounding up the minimum.
    let mut found = (wanted / step).round() * step;
    if least.is_some_and(|least| found < least) {
        found += step;
    }
    if whole || found.fract() == 0.0 {
        #[expect(clippy::cast_possible_truncation, reason = "a whole number in range")]
        let whole = found.ceil() as i64;
        return whole.into();
    }
    Number::from_f64(found).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    use plimsoll_measure::Operation;

    use super::*;

    fn spec(tools: &[&str]) -> McpSpec {
        McpSpec {
            revision: Revision::default(),
            path: String::new(),
            delete: true,
            tools: tools.iter().map(|name| (*name).to_owned()).collect(),
            steps: Vec::new(),
        }
    }

    fn answer<'a>(status: u16, body: &'a str, session: Option<&'a str>) -> DiscoveryAnswer<'a> {
        DiscoveryAnswer { status, session, body: body.as_bytes() }
    }

    const FIRST: &str = r#"{"jsonrpc":"2.0","id":3,"result":{"nextCursor":"b","tools":[
        {"name":"search","inputSchema":{"type":"object","properties":{"q":{"type":"string"},
            "top":{"type":"integer","minimum":3}},"required":["q","top"]}},
        {"name":"wipe","annotations":{"destructiveHint":true},"inputSchema":{"type":"object"}}]}}"#;
    const SECOND: &str = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{\"tools\":[{\"name\":\"now\"}]}}\n\n";

    fn asked() -> ToolDiscovery {
        let mut discovery = ToolDiscovery::new(Revision::V20251125, "/mcp");
        let mut operations = Vec::new();
        for (status, body, session) in [
            (
                200,
                r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}"#,
                Some("s-1"),
            ),
            (202, "", None),
            (200, FIRST, None),
            (200, SECOND, None),
            (405, "", None),
        ] {
            operations.push(discovery.request().unwrap().operation());
            discovery.note(answer(status, body, session)).unwrap();
        }
        assert_eq!(discovery.request(), None);
        assert_eq!(
            operations,
            [
                Operation::Initialize,
                Operation::Initialized,
                Operation::ListTools,
                Operation::ListTools,
                Operation::EndSession
            ]
        );
        assert!(!discovery.deletes(), "the server refuses to end sessions");
        discovery
    }

    #[test]
    fn every_tool_becomes_a_call_with_arguments_of_its_schema() {
        let steps = asked().steps(&spec(&[])).unwrap();
        let names: Vec<_> = steps.iter().map(|step| step.name.as_deref()).collect();
        assert_eq!(names, [Some("search"), Some("now"), None], "nothing is destroyed");
        assert_eq!(Value::Object(steps[0].arguments.clone()), json!({"top": 3}));
        assert_eq!((steps[0].argument.as_str(), steps[0].argument_bytes), ("q", Some(TEXTS)));
        assert_eq!((steps[1].argument_bytes, steps[2].method), (None, McpMethod::ListTools));
        let named = asked().steps(&spec(&["wipe"])).unwrap();
        assert_eq!(named[0].name.as_deref(), Some("wipe"));
        let missing = asked().steps(&spec(&["gone"])).unwrap_err();
        assert_eq!(missing, "it has no tool `gone`, but search, wipe, now");
    }

    #[test]
    fn what_goes_wrong_is_said_in_the_words_of_the_server() {
        let new = || ToolDiscovery::new(Revision::V20260728, "");
        for (status, body, sentence) in [
            (
                400,
                r#"{"error":{"code":-32000,"message":"no session"}}"#,
                "it answers with 400: no session",
            ),
            (
                200,
                r#"{"jsonrpc":"2.0","error":{"code":-32601,"message":"what?"}}"#,
                "it answers with the error -32601: what?",
            ),
            (200, "<html>", "its response is not JSON-RPC: <html>"),
            (200, r#"{"result":{}}"#, "its list of tools has no `tools`"),
        ] {
            assert_eq!(new().note(answer(status, body, None)).unwrap_err(), sentence);
        }
        let mut empty = new();
        empty.note(answer(200, r#"{"result":{"tools":[]}}"#, None)).unwrap();
        assert!(empty.steps(&spec(&[])).unwrap_err().contains("it has no tools"));
    }

    #[test]
    fn models_are_offered_the_tools_in_the_shape_of_their_protocol() {
        use plimsoll_protocol::Dialect;
        let tools = [json!({"name": "a", "description": "d", "inputSchema": {"type": "object"}})];
        let of = |dialect| offered_to_model(&tools, dialect)[0].clone();
        assert_eq!(of(Dialect::OpenaiChat)["function"]["name"], "a");
        assert_eq!(of(Dialect::OpenaiResponses)["parameters"]["type"], "object");
        assert_eq!(of(Dialect::AnthropicMessages)["input_schema"]["type"], "object");
    }
}

#[cfg(test)]
mod schema_arguments_tests {
    use super::*;

    /// Checked by the same rules that a server checks with.
    #[test]
    fn required_arguments_fit_their_schemas() {
        for (schema, fixed) in [
            (json!({}), json!({})),
            (
                json!({"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "string"}},
                    "required": ["a"]}),
                json!({"a": 1}),
            ),
            (
                json!({"properties": {"n": {"type": "integer", "minimum": 5, "multipleOf": 3},
                    "f": {"type": "number", "exclusiveMaximum": 0.5, "multipleOf": 0.25},
                    "e": {"enum": ["x", "y"]}, "d": {"type": "string", "default": "given"},
                    "t": {"type": "string", "format": "date"}, "m": {"type": "string", "maxLength": 3},
                    "l": {"type": "array", "items": {"type": "boolean"}, "minItems": 2},
                    "o": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/point"}]}},
                    "$defs": {"point": {"type": "object", "properties": {"x": {"type": ["null", "integer"]}},
                        "required": ["x"]}},
                    "required": ["n", "f", "e", "d", "t", "m", "l", "o"]}),
                json!({"n": 6, "f": 0.25, "e": "x", "d": "given", "t": "2026-01-02", "m": "pli",
                    "l": [true, true], "o": {"x": 1}}),
            ),
            // A schema that needs itself has no end.
            (json!({"properties": {"next": {"$ref": "#"}}, "required": []}), json!({})),
        ] {
            assert_eq!(Value::Object(arguments(&schema).fixed), fixed, "{schema}");
        }
        let endless = json!({"properties": {"next": {"$ref": "#"}}, "required": ["next"]});
        assert!(arguments(&endless).fixed.contains_key("next"));
    }

    #[test]
    fn the_first_argument_of_any_text_is_named() {
        let schema = json!({"properties": {"kind": {"type": "string", "enum": ["a"]},
            "text": {"type": "string"}, "more": {"type": "string"}},
            "required": ["kind", "text", "more"]});
        assert_eq!(arguments(&schema).text.as_deref(), Some("text"));
        let none = json!({"properties": {"url": {"type": "string", "format": "uri"}},
            "required": ["url"]});
        assert_eq!(arguments(&none).text, None);
    }
}
