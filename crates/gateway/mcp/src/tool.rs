//! Tools as servers list them, and the results of their calls.

use std::sync::Arc;

use plimsoll_gateway_dialect::is_too_deep;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::name::is_tool_name;
use crate::object::{is_object, quoted, read_object};
use crate::param_headers::ParamHeaders;

/// Most tools of one server.
const MAX_TOOLS: usize = 1_000;

/// Most bytes of all lists of one server.
const MAX_LIST_BYTES: usize = 4 << 20;

/// A tool as its server lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Its name.
    pub name: Arc<str>,
    /// Its description, for people and models.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// The members that clients see.
    members: Map<String, Value>,
    params: ParamHeaders,
}

impl Tool {
    /// Reads a tool from its members in the server's list.
    pub(crate) fn read(mut members: Map<String, Value>) -> Result<Self, String> {
        let name = members.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !is_tool_name(&name) {
            return Err(NAMELESS.to_owned());
        }
        let schema = members.get_mut("inputSchema").filter(|schema| schema.is_object());
        let schema = schema.ok_or_else(|| format!("its tool `{name}` has no `inputSchema`"))?;
        let params = ParamHeaders::take_from(schema);
        let input_schema = schema.clone();
        let description = members.get("description").and_then(Value::as_str).unwrap_or_default();
        let description = description.to_owned();
        Ok(Self { name: Arc::from(name), description, input_schema, members, params })
    }

    /// The tool as MCP lists it.
    pub const fn members(&self) -> &Map<String, Value> {
        &self.members
    }

    /// The headers that repeat arguments of a call, in versions without sessions.
    pub fn param_headers(&self, arguments: &str) -> Vec<(String, String)> {
        if self.params.is_empty() {
            return Vec::new();
        }
        let arguments = serde_json::from_str::<Map<String, Value>>(arguments);
        arguments.map(|arguments| self.params.values(&arguments)).unwrap_or_default()
    }
}

const UNREADABLE: &str = "its list of tools cannot be read";
const NAMELESS: &str =
    "the name of one of its tools is not 1 to 128 letters, digits, `_`, `-`, `.` and `/`";
const TOO_MANY: &str = "it has more than 1,000 tools, or more than 4 MiB of them";
const ENDLESS: &str = "its list of tools repeats a page";

#[derive(Deserialize)]
struct Page {
    tools: Vec<Map<String, Value>>,
    #[serde(rename = "nextCursor", default)]
    next_cursor: Option<String>,
}

/// All tools of a server, from the pages of its list.
#[derive(Debug, Default)]
pub struct ToolTable {
    tools: Vec<Tool>,
    bytes: usize,
    cursors: Vec<String>,
}

impl ToolTable {
    /// Adds a page, the result of `tools/list`. Returns the cursor of the next one.
    ///
    /// # Errors
    /// The list cannot be used.
    pub fn add(&mut self, result: &str) -> Result<Option<String>, String> {
        self.bytes += result.len();
        if self.bytes > MAX_LIST_BYTES {
            return Err(TOO_MANY.to_owned());
        }
        let page: Page = read_object(result).map_err(|_| UNREADABLE.to_owned())?;
        if self.tools.len() + page.tools.len() > MAX_TOOLS {
            return Err(TOO_MANY.to_owned());
        }
        for members in page.tools {
            let tool = Tool::read(members)?;
            if self.tools.iter().any(|known| known.name == tool.name) {
                return Err(format!("it has two tools with the name `{}`", tool.name));
            }
            self.tools.push(tool);
        }
        let Some(cursor) = page.next_cursor else { return Ok(None) };
        if self.cursors.contains(&cursor) || self.cursors.len() > MAX_TOOLS {
            return Err(ENDLESS.to_owned());
        }
        self.cursors.push(cursor.clone());
        Ok(Some(cursor))
    }

    /// The tools of all pages.
    pub fn into_tools(self) -> Vec<Tool> {
        self.tools
    }
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// An object with `content`, `isError` and, if present, `structuredContent` and `_meta`; JSON.
    pub json: String,
    /// Whether the tool reported a failure.
    pub is_error: bool,
}

#[derive(Deserialize)]
struct RawResult<'a> {
    #[serde(borrow, default)]
    content: Option<Vec<&'a RawValue>>,
    #[serde(rename = "isError", default)]
    is_error: bool,
    #[serde(borrow, rename = "structuredContent", default)]
    structured: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta", default)]
    meta: Option<&'a RawValue>,
    #[serde(rename = "resultType", default)]
    kind: Option<String>,
}

impl ToolResult {
    /// A result of one text.
    pub fn text(text: &str, structured: Option<&Value>) -> Self {
        let structured = structured.map(Value::to_string);
        Self::write(&text_content(text), false, structured.as_deref(), None)
    }

    /// A result that reports an error.
    pub fn error(problem: &str) -> Self {
        Self::write(&text_content(problem), true, None, None)
    }

    /// A result of content, structured content and `_meta`, which are JSON.
    fn write(content: &str, is_error: bool, structured: Option<&str>, meta: Option<&str>) -> Self {
        let mut json = format!("{{\"content\":[{content}],\"isError\":{is_error}");
        for (name, value) in [("structuredContent", structured), ("_meta", meta)] {
            if let Some(value) = value {
                json.extend([",\"", name, "\":", value]);
            }
        }
        json.push('}');
        Self { json, is_error }
    }

    /// Reads a server's result. Members that clients do not use are omitted.
    ///
    /// # Errors
    /// The problem with it.
    pub fn read(result: &str) -> Result<Self, &'static str> {
        if is_too_deep(result.as_bytes()) {
            return Err("its result is nested deeper than 64 levels");
        }
        let raw: RawResult<'_> =
            read_object(result).map_err(|_| "its result is not a valid tool result")?;
        if raw.kind.is_some_and(|kind| kind != "complete") {
            return Err("it asks for user input, which the gateway does not support");
        }
        let content = raw.content.unwrap_or_default();
        if !content.iter().all(|part| is_object(part.get())) {
            return Err("the content of its result is not a list of objects");
        }
        let content: Vec<&str> = content.into_iter().map(RawValue::get).collect();
        let structured = raw.structured.map(RawValue::get);
        let meta = raw.meta.map(RawValue::get).filter(|meta| is_object(meta));
        Ok(Self::write(&content.join(","), raw.is_error, structured, meta))
    }
}

/// A part of content that is a text, as JSON.
fn text_content(text: &str) -> String {
    format!("{{\"type\":\"text\",\"text\":{}}}", quoted(text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_keeps_what_clients_need() {
        let result = r#"{"resultType":"complete","ttlMs":0,"content":[{"type":"text","text":"a"}],
            "structuredContent":{"x":1e400},"_meta":{"v/k":[1]}}"#;
        let expected = r#"{"content":[{"type":"text","text":"a"}],"isError":false,"structuredContent":{"x":1e400},"_meta":{"v/k":[1]}}"#;
        let read = ToolResult::read(result).unwrap();
        assert_eq!((read.json.as_str(), read.is_error), (expected, false));
        let read = ToolResult::read(r#"{"isError":true}"#).unwrap();
        assert_eq!((read.json.as_str(), read.is_error), (r#"{"content":[],"isError":true}"#, true));
    }

    #[test]
    fn a_result_that_is_none_is_refused() {
        let deep = format!(r#"{{"content":[{}]}}"#, r#"{"a":"#.repeat(100));
        for (result, problem) in [
            ("[]", "not a valid tool result"),
            (r#"{"content":"text"}"#, "not a valid tool result"),
            (r#"{"content":[],"content":[]}"#, "not a valid tool result"),
            (r#"{"content":["text"]}"#, "list of objects"),
            (r#"{"content":[],"isError":"yes"}"#, "not a valid tool result"),
            (r#"{"content":[],"resultType":"input_required"}"#, "asks for user input"),
            (deep.as_str(), "nested"),
        ] {
            let found = ToolResult::read(result).unwrap_err();
            assert!(found.contains(problem), "{result}: {found}");
        }
    }

    #[test]
    fn a_list_is_read_page_by_page() {
        let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}, "title": "T", "_meta": {"v/k": 1}});
        let mut table = ToolTable::default();
        let page = json!({"tools": [tool("a"), tool("b")], "nextCursor": "2"});
        assert_eq!(table.add(&page.to_string()), Ok(Some("2".to_owned())));
        assert_eq!(table.add(&json!({"tools": [tool("c")]}).to_string()), Ok(None));
        let tools = table.into_tools();
        assert_eq!(tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["a", "b", "c"]);
        let listed = json!({"name": "a", "inputSchema": {"type": "object"}, "title": "T", "_meta": {"v/k": 1}});
        assert_eq!(Value::Object(tools[0].members().clone()), listed);
    }

    #[test]
    fn a_list_that_cannot_be_used_says_why() {
        let tool = |name: &str| json!({"name": name, "inputSchema": {}});
        let many: Vec<Value> = (0..1_001).map(|n| tool(&format!("t{n}"))).collect();
        let wide = json!({"name": "a", "inputSchema": {"x": "x".repeat(5 << 20)}});
        for (pages, error) in [
            (vec![json!([])], UNREADABLE),
            (vec![json!({"tools": {}})], UNREADABLE),
            (vec![json!({"tools": [{"inputSchema": {}}]})], NAMELESS),
            (vec![json!({"tools": [tool("a b")]})], NAMELESS),
            (vec![json!({"tools": [{"name": "a"}]})], "its tool `a` has no `inputSchema`"),
            (vec![json!({"tools": [tool("a"), tool("a")]})], "it has two tools with the name `a`"),
            (vec![json!({"tools": many})], TOO_MANY),
            (vec![json!({"tools": [wide]})], TOO_MANY),
            (vec![json!({"tools": [], "nextCursor": "x"}); 2], ENDLESS),
        ] {
            let mut table = ToolTable::default();
            let last = pages.iter().map(|page| table.add(&page.to_string())).last();
            assert_eq!(last, Some(Err(error.to_owned())));
        }
    }
}
