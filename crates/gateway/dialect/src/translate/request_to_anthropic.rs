//! Translates chat completion requests to messages requests.

use crate::error::DialectError;
use crate::wire::anthropic::{
    ContentBlock, ImageSource, Message, Metadata, Request, Tool, ToolChoice, ToolResultBlock,
};
use crate::wire::{Content, CowStr, RawJson, openai, parse_request, write_json};

/// `max_tokens` if the caller sets no limit. Anthropic requires one.
pub const DEFAULT_MAX_TOKENS: u64 = 4_096;

pub(super) fn translate(body: &[u8]) -> Result<Vec<u8>, DialectError> {
    let request: openai::Request<'_> = parse_request(body)?;
    if request.n.is_some_and(|n| n > 1) {
        return Err(DialectError::unsupported("n", "more than one choice"));
    }
    let max_tokens = request.max_completion_tokens.or(request.max_tokens);
    let tools = request.tools.map(tools).transpose()?;
    let choice = request.tool_choice.as_ref().map(|choice| choice.0.get());
    let tool_choice = tool_choice(choice, request.parallel_tool_calls, tools.is_some())?;
    let (system, messages) = messages(request.messages)?;
    let translated = Request {
        model: request.model,
        system,
        messages,
        max_tokens: max_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
        temperature: request.temperature.map(|value| value.min(1.0)),
        top_p: request.top_p,
        stop_sequences: request.stop.map(|stop| stop.into_parts(|one| one)),
        stream: request.stream,
        tools,
        tool_choice,
        metadata: request.user.map(|user| Metadata { user_id: Some(user) }),
    };
    let mut out = Vec::with_capacity(body.len() + 64);
    write_json(&mut out, &translated);
    Ok(out)
}

/// The system prompt and the other messages.
type SplitMessages<'a> = (Option<Content<'a, ContentBlock<'a>>>, Vec<Message<'a>>);

/// Separates system prompts, and merges consecutive tool results into one message.
fn messages(messages: Vec<openai::Message<'_>>) -> Result<SplitMessages<'_>, DialectError> {
    let mut system = Vec::new();
    let mut translated: Vec<Message<'_>> = Vec::with_capacity(messages.len());
    let mut after_tool = false;
    for (index, message) in messages.into_iter().enumerate() {
        let path = format!("messages[{index}]");
        let is_tool = &*message.role == "tool";
        match &*message.role {
            "system" | "developer" => system.extend(blocks(message.content, &path)?),
            "user" => translated.extend(user(message, &path)?),
            "assistant" => translated.extend(assistant(message, &path)?),
            "tool" => {
                let result = tool_result(message, &path)?;
                match translated.last_mut().map(|last| &mut last.content) {
                    Some(Content::Parts(results)) if after_tool => results.push(result),
                    _ => translated.push(Message {
                        role: "user".into(),
                        content: Content::Parts(vec![result]),
                    }),
                }
            }
            role => {
                let what = format!("the role {role:?}");
                return Err(DialectError::unsupported(format!("{path}.role"), what));
            }
        }
        after_tool = is_tool;
    }
    if translated.is_empty() {
        return Err(DialectError::invalid("messages", "must have a text that is not blank"));
    }
    let system = (!system.is_empty()).then(|| simplify(system));
    Ok((system, translated))
}

/// `None` for a message without content, which the provider would reject.
fn user<'a>(message: openai::Message<'a>, path: &str) -> Result<Option<Message<'a>>, DialectError> {
    let content = blocks(message.content, path)?;
    let role = "user".into();
    Ok((!content.is_empty()).then(|| Message { role, content: simplify(content) }))
}

/// Like [`user`].
fn assistant<'a>(
    message: openai::Message<'a>,
    path: &str,
) -> Result<Option<Message<'a>>, DialectError> {
    let mut content = blocks(message.content, path)?;
    content.extend(message.refusal.filter(|text| !text.trim().is_empty()).map(ContentBlock::text));
    for (index, call) in message.tool_calls.unwrap_or_default().into_iter().enumerate() {
        content.push(tool_use(call, || format!("{path}.tool_calls[{index}]"))?);
    }
    let role = "assistant".into();
    Ok((!content.is_empty()).then(|| Message { role, content: simplify(content) }))
}

/// Translates a tool call. Some models send an empty string for no arguments.
pub(super) fn tool_use(
    call: openai::ToolCall<'_>,
    path: impl FnOnce() -> String,
) -> Result<ContentBlock<'_>, DialectError> {
    let arguments =
        if call.function.arguments.trim().is_empty() { "{}" } else { &*call.function.arguments };
    let input = crate::depth::check(arguments.as_bytes())
        .map_err(|error| error.to_string())
        .and_then(|()| RawJson::object(arguments));
    Ok(ContentBlock {
        kind: "tool_use".into(),
        id: Some(call.id),
        name: Some(call.function.name),
        input: Some(input.map_err(|problem| {
            let path = format!("{}.function.arguments", path());
            DialectError::invalid(path, format!("must hold a JSON object: {problem}"))
        })?),
        ..ContentBlock::default()
    })
}

fn tool_result<'a>(
    message: openai::Message<'a>,
    path: &str,
) -> Result<ContentBlock<'a>, DialectError> {
    let id = message.tool_call_id;
    let id = id.ok_or_else(|| DialectError::missing(format!("{path}.tool_call_id")))?;
    let content = match message.content {
        None => None,
        Some(Content::Text(text)) => Some(Content::Text(text)).filter(has_text),
        Some(Content::Parts(parts)) => {
            let blocks = result_blocks(parts, path)?;
            (!blocks.is_empty()).then_some(Content::Parts(blocks))
        }
    };
    let kind = "tool_result".into();
    Ok(ContentBlock { kind, tool_use_id: Some(id), content, ..ContentBlock::default() })
}

/// Whether a text contains more than white space. The provider rejects blank texts.
fn has_text<P>(content: &Content<'_, P>) -> bool {
    !matches!(content, Content::Text(text) if text.trim().is_empty())
}

fn result_blocks<'a>(
    parts: Vec<openai::Part<'a>>,
    path: &str,
) -> Result<Vec<ToolResultBlock<'a>>, DialectError> {
    parts
        .into_iter()
        .enumerate()
        .map(|(index, part): (usize, openai::Part<'a>)| match &*part.kind {
            "text" => Ok(ToolResultBlock {
                kind: "text".into(),
                text: Some(part.text.unwrap_or_default()),
            }),
            kind => Err(unsupported_part(path, index, kind)),
        })
        .filter(|block| !block.as_ref().is_ok_and(|block| is_blank(block.text.as_deref())))
        .collect()
}

fn is_blank(text: Option<&str>) -> bool {
    text.is_some_and(|text| text.trim().is_empty())
}

fn blocks<'a>(
    content: Option<Content<'a, openai::Part<'a>>>,
    path: &str,
) -> Result<Vec<ContentBlock<'a>>, DialectError> {
    let Some(content) = content else { return Ok(Vec::new()) };
    let parts = content.into_parts(openai::Part::text).into_iter().enumerate();
    let blocks = parts.map(|(index, part)| block(part, index, path));
    // The provider rejects empty texts.
    let blocks =
        blocks.filter(|block| !block.as_ref().is_ok_and(|block| is_blank(block.text.as_deref())));
    blocks.collect()
}

fn block<'a>(
    part: openai::Part<'a>,
    index: usize,
    path: &str,
) -> Result<ContentBlock<'a>, DialectError> {
    let required = |name| DialectError::missing(format!("{path}.content[{index}].{name}"));
    match &*part.kind {
        "text" => part.text.map(ContentBlock::text).ok_or_else(|| required("text")),
        "refusal" => part.refusal.map(ContentBlock::text).ok_or_else(|| required("refusal")),
        "image_url" => {
            let image = part.image_url.ok_or_else(|| required("image_url"))?;
            let source = Some(source(image.url));
            Ok(ContentBlock { kind: "image".into(), source, ..ContentBlock::default() })
        }
        kind => Err(unsupported_part(path, index, kind)),
    }
}

fn unsupported_part(path: &str, index: usize, kind: &str) -> DialectError {
    let field = format!("{path}.content[{index}].type");
    DialectError::unsupported(field, format!("content of the type {kind:?}"))
}

fn source(url: CowStr<'_>) -> ImageSource<'_> {
    let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match data {
        Some((media_type, data)) => ImageSource {
            kind: "base64".into(),
            media_type: Some(media_type.to_owned().into()),
            data: Some(data.to_owned().into()),
            url: None,
        },
        None => ImageSource { kind: "url".into(), url: Some(url), ..ImageSource::default() },
    }
}

/// A single text becomes a plain string.
fn simplify(mut blocks: Vec<ContentBlock<'_>>) -> Content<'_, ContentBlock<'_>> {
    match blocks.as_mut_slice() {
        [ContentBlock { text: Some(text), .. }] => Content::Text(std::mem::take(text)),
        _ => Content::Parts(blocks),
    }
}

fn tools(tools: Vec<openai::Tool<'_>>) -> Result<Vec<Tool<'_>>, DialectError> {
    tools.into_iter().enumerate().map(|(index, one)| tool(one, index)).collect()
}

fn tool(tool: openai::Tool<'_>, index: usize) -> Result<Tool<'_>, DialectError> {
    if &*tool.kind != "function" {
        let what = format!("a tool of the type {:?}", &*tool.kind);
        return Err(DialectError::unsupported(format!("tools[{index}].type"), what));
    }
    let function =
        tool.function.ok_or_else(|| DialectError::missing(format!("tools[{index}].function")))?;
    let schema = function.parameters.map_or_else(any_object, Ok)?;
    Ok(Tool {
        kind: None,
        name: function.name,
        description: function.description,
        input_schema: Some(schema),
    })
}

fn any_object<'a>() -> Result<RawJson<'a>, DialectError> {
    let text = r#"{"type":"object","properties":{}}"#;
    RawJson::object(text).map_err(|error| DialectError::invalid("tools", error))
}

/// Anthropic rejects a tool choice in a request without tools.
fn tool_choice(
    choice: Option<&str>,
    parallel: Option<bool>,
    tools: bool,
) -> Result<Option<ToolChoice<'_>>, DialectError> {
    let serial = (parallel == Some(false)).then_some(true);
    let chosen = match choice {
        _ if !tools => return Ok(None),
        None => serial.map(|_| ("auto", None)),
        Some("\"auto\"") => Some(("auto", None)),
        Some("\"required\"") => Some(("any", None)),
        Some("\"none\"") => Some(("none", None)),
        Some(object) => {
            let named: openai::NamedToolChoice<'_> = serde_json::from_str(object)
                .map_err(|error| DialectError::invalid("tool_choice", error))?;
            Some(("tool", Some(named.function.name)))
        }
    };
    Ok(chosen.map(|(kind, name)| ToolChoice {
        kind: kind.into(),
        name,
        disable_parallel_tool_use: serial.filter(|_| kind != "none"),
    }))
}
