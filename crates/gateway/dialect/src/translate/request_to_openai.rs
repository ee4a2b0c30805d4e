//! Translates messages requests to chat completion requests.

use std::borrow::Cow;

use serde_json::json;
use serde_json::value::to_raw_value;

use super::LimitName;
use crate::error::DialectError;
use crate::wire::openai::{
    Function, FunctionCall, ImageUrl, Message, Part, Request, StreamOptions, Tool, ToolCall,
};
use crate::wire::{Content, CowStr, RawJson, anthropic, parse_request, write_json};

pub(super) fn translate(body: &[u8], limit: LimitName) -> Result<Vec<u8>, DialectError> {
    let request: anthropic::Request<'_> = parse_request(body)?;
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    messages.extend(request.system.map(system).transpose()?);
    for (index, message) in request.messages.into_iter().enumerate() {
        translate_message(message, &format!("messages[{index}]"), &mut messages)?;
    }
    let is_stream = request.stream == Some(true);
    let parallel = request.tool_choice.as_ref().and_then(|it| it.disable_parallel_tool_use);
    let (older, newer) = match limit {
        LimitName::MaxTokens => (Some(request.max_tokens), None),
        LimitName::MaxCompletionTokens => (None, Some(request.max_tokens)),
    };
    let translated = Request {
        model: request.model,
        messages,
        max_tokens: older,
        max_completion_tokens: newer,
        temperature: request.temperature,
        top_p: request.top_p,
        stop: request.stop_sequences.map(Content::Parts),
        stream: request.stream,
        stream_options: is_stream.then_some(StreamOptions { include_usage: Some(true) }),
        tools: request.tools.map(tools).transpose()?,
        tool_choice: request.tool_choice.map(tool_choice).transpose()?,
        parallel_tool_calls: parallel.map(|disabled| !disabled),
        user: request.metadata.and_then(|metadata| metadata.user_id),
        ..Request::default()
    };
    let mut out = Vec::with_capacity(body.len() + 64);
    write_json(&mut out, &translated);
    Ok(out)
}

fn system<'a>(
    system: Content<'a, anthropic::ContentBlock<'a>>,
) -> Result<Message<'a>, DialectError> {
    let content = match system {
        Content::Text(text) => Content::Text(text),
        Content::Parts(blocks) => Content::Parts(
            blocks
                .into_iter()
                .enumerate()
                .map(|(index, block)| part(block, || format!("system[{index}]")))
                .collect::<Result<_, _>>()?,
        ),
    };
    Ok(Message { role: "system".into(), content: Some(content), ..Message::default() })
}

fn translate_message<'a>(
    message: anthropic::Message<'a>,
    path: &str,
    out: &mut Vec<Message<'a>>,
) -> Result<(), DialectError> {
    let is_user = match &*message.role {
        "user" => true,
        "assistant" => false,
        role => {
            let problem = format!("must be \"user\" or \"assistant\", not {role:?}");
            return Err(DialectError::invalid(format!("{path}.role"), problem));
        }
    };
    match message.content {
        Content::Text(text) => {
            let content = Some(Content::Text(text));
            out.push(Message { role: message.role, content, ..Message::default() });
            Ok(())
        }
        Content::Parts(blocks) if is_user => user(blocks, path, out),
        Content::Parts(blocks) => {
            out.push(assistant(blocks, path)?);
            Ok(())
        }
    }
}

/// Each tool result becomes a separate message, before the rest of the user's message.
fn user<'a>(
    blocks: Vec<anthropic::ContentBlock<'a>>,
    path: &str,
    out: &mut Vec<Message<'a>>,
) -> Result<(), DialectError> {
    let mut parts = Vec::new();
    for (index, block) in blocks.into_iter().enumerate() {
        let path = || format!("{path}.content[{index}]");
        if &*block.kind == "tool_result" {
            out.push(tool_result(block, path)?);
        } else {
            parts.push(part(block, path)?);
        }
    }
    if !parts.is_empty() {
        let content = Some(Content::Parts(parts));
        out.push(Message { role: "user".into(), content, ..Message::default() });
    }
    Ok(())
}

fn tool_result(
    block: anthropic::ContentBlock<'_>,
    path: impl Fn() -> String,
) -> Result<Message<'_>, DialectError> {
    let id = block
        .tool_use_id
        .ok_or_else(|| DialectError::missing(format!("{}.tool_use_id", path())))?;
    let content = match block.content {
        None => Content::Text(CowStr::default()),
        Some(Content::Text(text)) => Content::Text(text),
        Some(Content::Parts(inner)) => Content::Parts(
            inner
                .into_iter()
                .enumerate()
                .map(|(index, inner): (usize, anthropic::ToolResultBlock<'_>)| match &*inner.kind {
                    "text" => Ok(Part::text(inner.text.unwrap_or_default().0.into_owned().into())),
                    kind => Err(unsupported_block(&format!("{}.content[{index}]", path()), kind)),
                })
                .collect::<Result<_, _>>()?,
        ),
    };
    let role = "tool".into();
    Ok(Message { role, content: Some(content), tool_call_id: Some(id), ..Message::default() })
}

fn assistant<'a>(
    blocks: Vec<anthropic::ContentBlock<'a>>,
    path: &str,
) -> Result<Message<'a>, DialectError> {
    let mut parts = Vec::new();
    let mut calls = Vec::new();
    for (index, block) in blocks.into_iter().enumerate() {
        let path = || format!("{path}.content[{index}]");
        match &*block.kind {
            "tool_use" => calls.push(tool_call(block, path)?),
            // Only the provider that produced it can use it.
            "thinking" | "redacted_thinking" => {}
            _ => parts.push(part(block, path)?),
        }
    }
    let content = match parts.as_mut_slice() {
        [] => None,
        [Part { text: Some(text), .. }] => Some(Content::Text(std::mem::take(text))),
        _ => Some(Content::Parts(parts)),
    };
    let tool_calls = (!calls.is_empty()).then_some(calls);
    Ok(Message { role: "assistant".into(), content, tool_calls, ..Message::default() })
}

/// Translates a tool call.
pub(super) fn tool_call(
    block: anthropic::ContentBlock<'_>,
    path: impl Fn() -> String,
) -> Result<ToolCall<'_>, DialectError> {
    let missing = |name| DialectError::missing(format!("{}.{name}", path()));
    let arguments = match block.input {
        Some(RawJson(input)) => CowStr(input.into_owned().get().to_owned().into()),
        None => "{}".into(),
    };
    Ok(ToolCall {
        id: block.id.ok_or_else(|| missing("id"))?,
        kind: "function".into(),
        function: FunctionCall { name: block.name.ok_or_else(|| missing("name"))?, arguments },
    })
}

fn part(
    block: anthropic::ContentBlock<'_>,
    path: impl Fn() -> String,
) -> Result<Part<'_>, DialectError> {
    let missing = |name| DialectError::missing(format!("{}.{name}", path()));
    match &*block.kind {
        "text" => block.text.map(Part::text).ok_or_else(|| missing("text")),
        "image" => {
            let source = block.source.ok_or_else(|| missing("source"))?;
            let image_url = Some(ImageUrl { url: url(source, path)? });
            Ok(Part { kind: "image_url".into(), image_url, ..Part::default() })
        }
        kind => Err(unsupported_block(&path(), kind)),
    }
}

fn unsupported_block(path: &str, kind: &str) -> DialectError {
    DialectError::unsupported(format!("{path}.type"), format!("content of the type {kind:?}"))
}

fn url(
    source: anthropic::ImageSource<'_>,
    path: impl Fn() -> String,
) -> Result<CowStr<'_>, DialectError> {
    match (&*source.kind, source.url, source.media_type, source.data) {
        ("url", Some(url), _, _) => Ok(url),
        ("base64", _, Some(media_type), Some(data)) => {
            Ok(format!("data:{};base64,{}", &*media_type, &*data).into())
        }
        ("url", None, ..) => Err(DialectError::missing(format!("{}.source.url", path()))),
        ("base64", ..) => {
            let field = format!("{}.source", path());
            Err(DialectError::invalid(field, "must have media_type and data"))
        }
        (kind, ..) => {
            let what = format!("an image whose source is of the type {kind:?}");
            Err(DialectError::unsupported(format!("{}.source.type", path()), what))
        }
    }
}

fn tools(tools: Vec<anthropic::Tool<'_>>) -> Result<Vec<Tool<'_>>, DialectError> {
    tools.into_iter().enumerate().map(|(index, one)| tool(one, index)).collect()
}

fn tool(tool: anthropic::Tool<'_>, index: usize) -> Result<Tool<'_>, DialectError> {
    if let Some(kind) = tool.kind.as_deref().filter(|kind| *kind != "custom") {
        let what = format!("a tool of the type {kind:?}, which runs at the provider,");
        return Err(DialectError::unsupported(format!("tools[{index}].type"), what));
    }
    let function =
        Function { name: tool.name, description: tool.description, parameters: tool.input_schema };
    Ok(Tool { kind: "function".into(), function: Some(function) })
}

fn tool_choice(choice: anthropic::ToolChoice<'_>) -> Result<RawJson<'_>, DialectError> {
    let choice = match (&*choice.kind, choice.name) {
        ("auto", _) => json!("auto"),
        ("any", _) => json!("required"),
        ("none", _) => json!("none"),
        ("tool", Some(name)) => json!({"type": "function", "function": {"name": name}}),
        ("tool", None) => return Err(DialectError::missing("tool_choice.name")),
        _ => {
            let problem = "must be auto, any, none or tool";
            return Err(DialectError::invalid("tool_choice.type", problem));
        }
    };
    let raw = to_raw_value(&choice).map_err(|error| DialectError::invalid("tool_choice", error))?;
    Ok(RawJson(Cow::Owned(raw)))
}
