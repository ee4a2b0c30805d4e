//! `tools/call`: checks the arguments and plans result, errors and times.

use serde_json::{Value, json};

use super::methods::{Reply, text_param};
use super::spec::ToolSpec;
use crate::log::RpcOutcome;
use crate::model_output::{result_bytes, word_text};
use crate::response_plan::sample_fault;
use crate::rng::{Purpose, RequestRng};
use crate::rpc::{Object, Request, RpcError};
use crate::state::MockState;

/// A tool as `tools/list` describes it.
pub(super) fn description(name: &str, tool: &ToolSpec) -> Value {
    let mut described =
        json!({"name": name, "description": tool.description, "inputSchema": tool.input});
    if tool.destructive {
        described["annotations"] = json!({"destructiveHint": true});
    }
    described
}

/// The reply to `tools/call`.
pub(super) fn reply(state: &MockState, request: &Request, rng: RequestRng) -> Reply {
    let nothing = Object::new();
    let params = &request.params;
    let found = text_param(params, "name").and_then(|name| {
        let tool = state.config.mcp.tools.get(name);
        let tool = tool.ok_or_else(|| RpcError::invalid_params(format!("Unknown tool: {name}")))?;
        let arguments = match params.get("arguments") {
            None | Some(Value::Null) => &nothing,
            Some(Value::Object(arguments)) => arguments,
            Some(_) => return Err(RpcError::invalid_params("`arguments` must be an object")),
        };
        Ok((tool, arguments))
    });
    match found {
        Ok((tool, arguments)) => run(tool, arguments, rng),
        Err(error) => Reply::new(Err(error)),
    }
}

fn run(tool: &ToolSpec, arguments: &Object, rng: RequestRng) -> Reply {
    if let Some(problem) = problem(&tool.input, arguments) {
        return tool_error(&problem);
    }
    let drawn = rng.fork(Purpose::Outcome).uniform();
    let reply = if drawn < tool.rpc_error_share {
        let problem = "The mock was asked to answer with this error";
        Reply::new(Err(RpcError::new(tool.rpc_error_code.into(), problem)))
    } else if drawn < tool.rpc_error_share + tool.tool_error_share {
        tool_error("The mock was asked to let this call fail")
    } else {
        Reply::new(Ok(content(&result(tool, arguments, rng), false)))
    };
    Reply {
        latency: tool.latency.draw(rng, Purpose::Ttft),
        progress: tool.progress,
        fault: sample_fault(&tool.faults, rng),
        ..reply
    }
}

/// A result with `isError`.
fn tool_error(problem: &str) -> Reply {
    Reply { outcome: RpcOutcome::ToolError, ..Reply::new(Ok(content(problem, true))) }
}

fn content(text: &str, is_error: bool) -> Value {
    json!({"content": [{"type": "text", "text": text}], "isError": is_error})
}

fn result(tool: &ToolSpec, arguments: &Object, rng: RequestRng) -> String {
    if !tool.echo {
        return word_text(rng, result_bytes(&tool.result_bytes, rng));
    }
    match arguments.get("text") {
        Some(Value::String(text)) => text.clone(),
        _ => Value::Object(arguments.clone()).to_string(),
    }
}

/// The problem with a call's arguments: a missing one, or a wrong type.
fn problem(schema: &Value, arguments: &Object) -> Option<String> {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    if let Some(missing) = required.into_iter().find(|name| !arguments.contains_key(*name)) {
        return Some(format!("Invalid arguments: `{missing}` is required"));
    }
    let wrong = arguments.iter().find(|(name, value)| {
        let kind = &schema["properties"][name.as_str()]["type"];
        kind.as_str().is_some_and(|kind| !has_type(value, kind))
    });
    wrong.map(|(name, _)| {
        let kind = schema["properties"][name.as_str()]["type"].as_str().unwrap_or_default();
        format!("Invalid arguments: `{name}` must have the type {kind}")
    })
}

fn has_type(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        // Not a type of JSON Schema, so it is not checked.
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_arguments_and_types_are_checked() {
        let schema = json!({
            "type": "object", "required": ["a"],
            "properties": {"a": {"type": "string"}, "n": {"type": "integer"}, "x": {}},
        });
        for (arguments, expected) in [
            (json!({"a": "", "n": 2, "x": [], "other": null}), None),
            (json!({"a": "", "n": 2.0}), None),
            (json!({}), Some("Invalid arguments: `a` is required")),
            (json!({"a": 1}), Some("Invalid arguments: `a` must have the type string")),
            (json!({"a": "", "n": 1.5}), Some("Invalid arguments: `n` must have the type integer")),
        ] {
            let found = problem(&schema, arguments.as_object().unwrap());
            assert_eq!(found.as_deref(), expected, "{arguments}");
        }
    }

    #[test]
    fn shares_of_both_errors_are_kept_and_the_length_of_results() {
        let tool = ToolSpec { tool_error_share: 0.3, rpc_error_share: 0.1, ..ToolSpec::default() };
        let replies: Vec<Reply> =
            (0..20_000).map(|n| run(&tool, &Object::new(), RequestRng::new(3, None, n))).collect();
        let share = |outcome| {
            replies.iter().filter(|reply| reply.outcome == outcome).count() as f64 / 20_000.0
        };
        assert!((share(RpcOutcome::ToolError) - 0.3).abs() < 0.015);
        assert!((share(RpcOutcome::Error) - 0.1).abs() < 0.01);
        let good = replies.iter().find(|reply| reply.outcome == RpcOutcome::Result).unwrap();
        let text = good.answer.as_ref().unwrap()["content"][0]["text"].as_str().unwrap();
        assert_eq!(text.len(), 64);
    }
}
