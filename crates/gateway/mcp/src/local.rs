//! Tools that the gateway runs itself, without I/O: load tests can measure the gateway's own cost
//! per call, and agents get a few tools for tasks that models do badly.

use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use serde_json::{Map, Number, Value, json};

use crate::tool::{Tool, ToolResult};

/// The tools as they are listed.
static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| {
    let listed = serde_json::from_str::<Vec<_>>(include_str!("local_tools.json"));
    let listed = listed.unwrap_or_default().into_iter();
    listed.filter_map(|members| Tool::read(members).ok()).collect()
});

/// A tool of the gateway.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum LocalTool {
    /// Returns its text.
    Echo,
    /// The time.
    Time,
    /// The sum of two numbers.
    Add,
    /// A value inside a JSON document.
    JsonGet,
}

impl LocalTool {
    /// All of them.
    pub const ALL: &[Self] = <Self as strum::VariantArray>::VARIANTS;

    /// The tool as it is listed.
    pub fn tool(self) -> Option<&'static Tool> {
        TOOLS.iter().find(|tool| *tool.name == *<&str>::from(self))
    }

    /// Runs it. `arguments` is an object as JSON; `unix_ms` the time, in milliseconds since 1970
    /// UTC. Wrong arguments produce an error result.
    pub fn call(self, arguments: &str, unix_ms: u64) -> ToolResult {
        let Ok(arguments) = serde_json::from_str::<Map<String, Value>>(arguments) else {
            return ToolResult::error("Invalid arguments: they cannot be read");
        };
        let known = self.tool().map(|tool| &tool.input_schema["properties"]);
        let is_known = |name: &&String| known.is_some_and(|known| known.get(name).is_some());
        if let Some(other) = arguments.keys().find(|name| !is_known(name)) {
            let problem = format!("Invalid arguments: this tool has no argument `{other}`");
            return ToolResult::error(&problem);
        }
        let result = match self {
            Self::Echo => text(&arguments, "text").map(|text| ToolResult::text(text, None)),
            Self::Time => Ok(time(unix_ms)),
            Self::Add => add(&arguments),
            Self::JsonGet => json_get(&arguments),
        };
        result.unwrap_or_else(|problem| ToolResult::error(&format!("Invalid arguments: {problem}")))
    }
}

/// The error describes the invalid arguments.
type Outcome<T> = Result<T, String>;

fn required<'a>(arguments: &'a Map<String, Value>, name: &str) -> Outcome<&'a Value> {
    arguments.get(name).ok_or_else(|| format!("`{name}` is required"))
}

fn text<'a>(arguments: &'a Map<String, Value>, name: &str) -> Outcome<&'a str> {
    let text = required(arguments, name)?.as_str();
    text.ok_or_else(|| format!("`{name}` must have the type string"))
}

fn number<'a>(arguments: &'a Map<String, Value>, name: &str) -> Outcome<&'a Number> {
    match required(arguments, name)? {
        Value::Number(number) => Ok(number),
        _ => Err(format!("`{name}` must have the type number")),
    }
}

fn time(unix_ms: u64) -> ToolResult {
    let now = SystemTime::UNIX_EPOCH + Duration::from_millis(unix_ms);
    let text = humantime::format_rfc3339_millis(now).to_string();
    ToolResult::text(&text, Some(&json!({"time": text, "unix_ms": unix_ms})))
}

/// The sum is exact if both are whole numbers and it fits into 64 bits.
fn add(arguments: &Map<String, Value>) -> Outcome<ToolResult> {
    let (a, b) = (number(arguments, "a")?, number(arguments, "b")?);
    let exact = a.as_i64().zip(b.as_i64()).and_then(|(a, b)| a.checked_add(b)).map(Number::from);
    let sum = exact
        .or_else(|| Number::from_f64(a.as_f64()? + b.as_f64()?))
        .ok_or("the sum is not a finite number")?;
    Ok(ToolResult::text(&sum.to_string(), Some(&json!({"sum": sum}))))
}

fn json_get(arguments: &Map<String, Value>) -> Outcome<ToolResult> {
    let (document, pointer) = (required(arguments, "document")?, text(arguments, "pointer")?);
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return Err("`pointer` is empty or begins with `/`".to_owned());
    }
    let parsed: Value;
    let document = match document {
        Value::String(text) => {
            parsed = serde_json::from_str(text)
                .map_err(|error| format!("`document` is not JSON: {error}"))?;
            &parsed
        }
        document => document,
    };
    Ok(match document.pointer(pointer) {
        None => ToolResult::error("The document has no value at this pointer"),
        Some(value) => {
            let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            ToolResult::text(&shown, Some(&json!({"value": value})))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(tool: LocalTool, arguments: &str) -> Value {
        let result = tool.call(arguments, 1_795_368_600_123);
        let json: Value = serde_json::from_str(&result.json).unwrap();
        assert_eq!(json["isError"], result.is_error);
        json
    }

    #[test]
    fn each_tool_does_what_it_says() {
        for (tool, arguments, expected) in [
            (LocalTool::Echo, r#"{"text":"a \"b\"\u00e9"}"#, "a \"b\"é"),
            (LocalTool::Time, "{}", "2026-11-22T17:30:00.123Z"),
            (LocalTool::Add, r#"{"a":2,"b":40}"#, "42"),
            (LocalTool::Add, r#"{"a":0.5,"b":1}"#, "1.5"),
            (LocalTool::Add, r#"{"a":9007199254740993,"b":1}"#, "9007199254740994"),
            (LocalTool::Add, r#"{"a":9223372036854775807,"b":1}"#, "9.223372036854775808e18"),
            (LocalTool::JsonGet, r#"{"document":{"a":[1,{"b":"x"}]},"pointer":"/a/1/b"}"#, "x"),
            (LocalTool::JsonGet, r#"{"document":"{\"a\":[1,2]}","pointer":"/a"}"#, "[1,2]"),
            (LocalTool::JsonGet, r#"{"document":7,"pointer":""}"#, "7"),
        ] {
            let result = call(tool, arguments);
            let text = result["content"][0]["text"].as_str().unwrap();
            if expected.contains('e') && tool == LocalTool::Add {
                assert_eq!(text.parse::<f64>(), expected.parse::<f64>(), "{arguments}");
            } else {
                assert_eq!(text, expected, "{arguments}");
            }
            assert_eq!(result["isError"], false);
        }
        let sum = call(LocalTool::Add, r#"{"a":2,"b":40}"#);
        assert_eq!(sum["structuredContent"], json!({"sum": 42}));
    }

    #[test]
    fn wrong_arguments_give_a_result_that_says_so() {
        let deep = format!("{{\"text\":{}", "[".repeat(1_000));
        for (tool, arguments, problem) in [
            (LocalTool::Echo, "{}", "`text` is required"),
            (LocalTool::Echo, r#"{"text":7}"#, "type string"),
            (LocalTool::Echo, r#"{"text":"a","more":1}"#, "`more`"),
            (LocalTool::Echo, &deep, "cannot be read"),
            (LocalTool::Time, r#"{"zone":"x"}"#, "`zone`"),
            (LocalTool::Add, r#"{"a":"1","b":2}"#, "type number"),
            (LocalTool::Add, r#"{"a":1e308,"b":1e308}"#, "not a finite number"),
            (LocalTool::JsonGet, r#"{"document":{},"pointer":"a"}"#, "begins with"),
            (LocalTool::JsonGet, r#"{"document":{},"pointer":"/a"}"#, "no value"),
            (LocalTool::JsonGet, r#"{"document":"{","pointer":""}"#, "not JSON"),
        ] {
            let result = call(tool, arguments);
            let text = result["content"][0]["text"].as_str().unwrap();
            assert!(text.contains(problem) && result["isError"] == true, "{arguments}: {text}");
        }
    }

    #[test]
    fn the_schemas_name_the_arguments_that_are_read() {
        for (tool, arguments) in LocalTool::ALL.iter().copied().zip([
            &["text"][..],
            &[],
            &["a", "b"],
            &["document", "pointer"],
        ]) {
            assert_eq!(<&str>::from(tool).parse(), Ok(tool));
            let schema = &tool.tool().unwrap().input_schema;
            let mut names: Vec<_> =
                schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
            names.sort_unstable();
            assert_eq!(names, arguments, "{}", <&str>::from(tool));
        }
    }
}
