//! `POST /api/chat`: the gateway's agent loop. It asks the model, makes its tool calls and returns
//! their results, until the model answers without tool calls or a limit is reached.

use std::sync::Arc;

use bytes::Bytes;
use hyper::{HeaderMap, StatusCode};
use plimsoll_gateway_inspect::Source;
use plimsoll_gateway_mcp::read_object;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::api_request::{ApiRequest, layer, object};
use super::counted;
use crate::exchange::document;
use crate::exchange::request_context::RequestContext;
use crate::exchange::respond::{HandlerResult, json as json_response};
use crate::http::error_response::{ErrorResponse, no_such};
use crate::layers::Reading;
use crate::layers::owners::{Work, owner_of, value_bytes};
use crate::layers::tool_server::Trace;
use crate::routes::llm;
use crate::routes::tools::{self, CallError};

/// The longest name and id of a tool call that is returned to the model.
const MAX_NAME: usize = 256;

/// The body of the request.
#[derive(Debug, Deserialize)]
struct ChatRequest {
    message: String,
    #[serde(default)]
    context: Vec<Value>,
}

/// The result of the loop.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    pub(super) response: String,
    /// Answers of the model.
    pub(super) steps: u32,
    /// Tool calls, including failed ones.
    pub(super) tool_calls: u32,
    pub(super) model: String,
}

/// A tool call requested by a model.
#[derive(Debug)]
struct ToolCall {
    id: String,
    name: String,
    arguments: String,
}

/// Serves a request.
pub(super) async fn serve(request: &mut ApiRequest) -> HandlerResult {
    let outcome = answer(request).await;
    let Outcome { response, steps, tool_calls, model } =
        counted(&request.context, "chat", outcome)?;
    let body =
        json!({"response": response, "steps": steps, "tool_calls": tool_calls, "model": model});
    let body = scrubbed(&request.context, body.to_string()).await?;
    Ok(json_response(StatusCode::OK, body))
}

async fn answer(request: &mut ApiRequest) -> Result<Outcome, ErrorResponse> {
    let messages = messages(&request.post().await?)?;
    let context = &mut request.context;
    let owner = owner_of(&context.identity, context.client);
    let mut work = context.worker.state.owners.begin(owner);
    Box::pin(run(context, &request.head.headers, messages, &mut work)).await
}

/// The messages of a request's body, which is dropped.
fn messages(body: &[u8]) -> Result<Vec<Value>, ErrorResponse> {
    let ChatRequest { message, context } = object(body)?;
    let mut messages: Vec<Value> = context.into_iter().map(turn).collect::<Result<_, _>>()?;
    messages.push(json!({"role": "user", "content": message}));
    Ok(messages)
}

/// A turn of the context: a message with role and content, or a user's text.
fn turn(turn: Value) -> Result<Value, ErrorResponse> {
    if let Value::String(text) = turn {
        return Ok(json!({"role": "user", "content": text}));
    }
    let role = turn["role"].as_str().filter(|role| ["user", "assistant", "system"].contains(role));
    match (role, turn["content"].as_str()) {
        (Some(role), Some(content)) => Ok(json!({"role": role, "content": content})),
        _ => Err(ErrorResponse::bad_request(
            "`context` has texts, or objects with `role` (user, assistant, system) and `content`",
        )),
    }
}

/// Runs the loop.
///
/// # Errors
/// Those of the policy, of the budget and of the model's upstream; `step_limit` and
/// `tool_call_limit`.
pub(super) async fn run(
    context: &mut RequestContext,
    headers: &HeaderMap,
    messages: Vec<Value>,
    work: &mut Work,
) -> Result<Outcome, ErrorResponse> {
    let layer = layer(context)?;
    let chat = layer.chat.as_ref().ok_or_else(|| ErrorResponse::not_found(no_such("route")))?;
    let model = chat.spec.model.as_str();
    context.llm_info().model = Some(Arc::from(model));
    let (tools, trace) = (tools_for(context), tools::trace(context, headers));
    let (mut conversation, mut tool_calls) = (Conversation::new(work), 0);
    conversation.add(context, Texts { messages, tools }).await?;
    for step in 1..=chat.spec.steps {
        let body = conversation.body(context, model)?;
        let completion = llm::complete(context, &chat.proxy, body, model, headers);
        let completion = Box::pin(completion).await;
        let message = message_of(counted(context, "chat_step", completion)?)?;
        let calls = calls_of(&message)?;
        // The message and its calls stay in memory until its tools have run.
        conversation.hold_beside(2 * value_bytes(&message))?;
        if calls.is_empty() {
            let response = message["content"].as_str().unwrap_or_default().to_owned();
            return Ok(Outcome { response, steps: step, tool_calls, model: model.to_owned() });
        }
        if step == chat.spec.steps {
            break;
        }
        let mut messages = vec![asked(&message, &calls)];
        for call in calls {
            if tool_calls >= layer.sessions.calls {
                let most = layer.sessions.calls;
                let message = format!("a chat makes at most {most} tool calls");
                return Err(ErrorResponse::tool_call_limit(message));
            }
            tool_calls += 1;
            let text = make(context, &call, &trace).await?;
            conversation.hold_beside(value_bytes(&message) + text.len())?;
            messages.push(json!({"role": "tool", "tool_call_id": call.id, "content": text}));
        }
        conversation.add(context, Texts { messages, tools: Vec::new() }).await?;
    }
    let most = chat.spec.steps;
    Err(ErrorResponse::step_limit(format!("the model still calls tools after {most} steps")))
}

/// The tools that the caller may use, in the model's format.
fn tools_for(context: &RequestContext) -> Vec<Value> {
    let Some(layer) = &context.config.layers.tools else { return Vec::new() };
    let registry = tools::registry(context);
    let allowed = tools::allowed(layer, &registry, context.identity.tenant.as_deref());
    let described = allowed.map(|registered| {
        let tool = &registered.tool;
        let function = json!({
            "name": &*tool.name,
            "description": &tool.description,
            "parameters": &tool.input_schema,
        });
        json!({"type": "function", "function": function})
    });
    described.collect()
}

/// The texts for a model: messages of the conversation, and tools.
#[derive(Debug, Default, Deserialize, Serialize)]
struct Texts {
    messages: Vec<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
}

/// A request to the model.
#[derive(Debug, Serialize)]
struct ModelRequest<'a> {
    model: &'a str,
    #[serde(flatten)]
    texts: &'a Texts,
}

impl Texts {
    /// Applies the policy.
    async fn judged(self, context: &mut RequestContext) -> Result<Self, ErrorResponse> {
        if !context.config.layers.judge_requests() {
            return Ok(self);
        }
        let body = serde_json::to_string(&self);
        let body = body.map_err(|error| ErrorResponse::internal_error(error.to_string()))?;
        let body = context.made(bounded(context, body)?)?;
        drop(self);
        let judged = document::check(context, body, Source::Protocol).await?;
        serde_json::from_slice(&judged)
            .map_err(|_| ErrorResponse::internal_error("a judged conversation cannot be read"))
    }
}

/// The texts that passed the policy. Each is judged once, when it is added: the policy judges
/// messages and tools one by one, so earlier texts do not matter.
#[derive(Debug)]
struct Conversation<'w> {
    texts: Texts,
    work: &'w mut Work,
    /// Bytes of the texts.
    bytes: usize,
    /// Further bytes that are held until the next message.
    beside: usize,
}

impl<'w> Conversation<'w> {
    fn new(work: &'w mut Work) -> Self {
        Self { texts: Texts::default(), work, bytes: 0, beside: 0 }
    }

    /// Reserves bytes until the next message.
    fn hold_beside(&mut self, bytes: usize) -> Result<(), ErrorResponse> {
        self.beside += bytes;
        Ok(self.work.resize(self.bytes + self.beside)?)
    }

    async fn add(&mut self, context: &mut RequestContext, new: Texts) -> Result<(), ErrorResponse> {
        let bytes = new.messages.iter().chain(&new.tools).map(value_bytes).sum::<usize>();
        (self.bytes, self.beside) = (self.bytes + bytes, 0);
        self.work.resize(self.bytes)?;
        let Texts { messages, tools } = new.judged(context).await?;
        self.texts.messages.extend(messages);
        self.texts.tools.extend(tools);
        Ok(())
    }

    /// The request to the model.
    fn body(&mut self, context: &RequestContext, model: &str) -> Result<Bytes, ErrorResponse> {
        let request = ModelRequest { model, texts: &self.texts };
        let body = serde_json::to_string(&request);
        let body = body.map_err(|error| ErrorResponse::internal_error(error.to_string()))?;
        let body = bounded(context, body)?;
        self.hold_beside(body.len())?;
        Ok(body)
    }
}

/// Limits a conversation to the length of a client's body.
fn bounded(context: &RequestContext, body: String) -> Result<Bytes, ErrorResponse> {
    let most = context.config.server.body_bytes.0;
    if body.len() as u64 > most {
        let message = format!("the conversation grew beyond {most} bytes");
        return Err(ErrorResponse::request_too_large(message));
    }
    Ok(Bytes::from(body))
}

fn message_of(mut completion: Value) -> Result<Value, ErrorResponse> {
    let message = completion.pointer_mut("/choices/0/message").map(Value::take);
    message
        .filter(Value::is_object)
        .ok_or_else(|| ErrorResponse::bad_gateway("the provider's answer has no message"))
}

/// The tool calls of a message.
fn calls_of(message: &Value) -> Result<Vec<ToolCall>, ErrorResponse> {
    let Some(calls) = message["tool_calls"].as_array() else { return Ok(Vec::new()) };
    let calls: Option<Vec<ToolCall>> = calls.iter().map(read_call).collect();
    calls.ok_or_else(|| ErrorResponse::bad_gateway("the provider's tool call cannot be read"))
}

fn read_call(call: &Value) -> Option<ToolCall> {
    Some(ToolCall {
        id: short_text(&call["id"])?,
        name: short_text(&call["function"]["name"])?,
        arguments: call["function"]["arguments"].as_str()?.to_owned(),
    })
}

fn short_text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| text.len() <= MAX_NAME).map(str::to_owned)
}

/// The model's message in the next request.
fn asked(message: &Value, calls: &[ToolCall]) -> Value {
    let calls: Vec<Value> = calls
        .iter()
        .map(|ToolCall { id, name, arguments }| {
            let function = json!({"name": name, "arguments": arguments});
            json!({"id": id, "type": "function", "function": function})
        })
        .collect();
    json!({"role": "assistant", "content": message["content"], "tool_calls": calls})
}

/// Makes a tool call and returns the text for the model. Failures are reported to the model;
/// blocked content ends the chat.
async fn make(
    context: &mut RequestContext,
    call: &ToolCall,
    trace: &Trace,
) -> Result<String, ErrorResponse> {
    // Some models write an empty string for no arguments.
    let arguments = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
    let is_object = read_object::<IgnoredAny>(arguments).is_ok();
    let made = if is_object {
        let arguments = Bytes::copy_from_slice(arguments.as_bytes());
        let (name, session, running) = (&call.name, None, None);
        let call = tools::ToolCall { name, arguments, session, trace, running };
        tools::call(context, call).await
    } else {
        Err(ErrorResponse::bad_request("the arguments are not a JSON object").into())
    };
    let error = match made {
        Ok(called) => {
            counted(context, "tool_call", Ok(()))?;
            return Ok(text_of(&called.result));
        }
        Err(CallError::Refused(error)) if error.kind == "content_blocked" => return Err(error),
        Err(CallError::Refused(error)) => error,
        Err(CallError::Rpc { error, .. }) => ErrorResponse::bad_gateway(error.message),
    };
    let told = format!("error: {}: {}", error.kind, error.message);
    let _ = counted::<()>(context, "tool_call", Err(error));
    Ok(told)
}

/// The texts of a tool's result; the raw result if it has other content.
fn text_of(result: &[u8]) -> String {
    let parsed: Value = serde_json::from_slice(result).unwrap_or_default();
    let content = parsed["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let texts: Option<Vec<&str>> = content.iter().map(|part| part["text"].as_str()).collect();
    match texts.filter(|texts| !texts.is_empty()) {
        Some(texts) => texts.join("\n"),
        None => String::from_utf8_lossy(result).into_owned(),
    }
}

/// Removes personal data from a JSON document, if configured.
pub(super) async fn scrubbed(
    context: &RequestContext,
    body: String,
) -> Result<Bytes, ErrorResponse> {
    let body = context.made(body)?;
    document::scrub(context, body, Reading::Json, Source::Protocol).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_texts_or_messages() {
        assert_eq!(turn(json!("hi")).unwrap(), json!({"role": "user", "content": "hi"}));
        let message = json!({"role": "assistant", "content": "x", "tool_calls": [1]});
        let expected = json!({"role": "assistant", "content": "x"});
        assert_eq!(turn(message).unwrap(), expected, "nothing else is sent on");
        for wrong in [
            json!(1),
            json!(null),
            json!([]),
            json!({}),
            json!({"role": "tool", "content": "x"}),
            json!({"role": "user"}),
            json!({"role": "user", "content": [{"text": "x"}]}),
        ] {
            assert!(turn(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn tool_calls_are_read_or_refused_as_a_whole() {
        let call = |id: Value, name: Value, arguments: Value| json!({"id": id, "function": {"name": name, "arguments": arguments}});
        let good = call(json!("c1"), json!("echo"), json!("{}"));
        for (calls, number) in [
            (json!(null), Some(0)),
            (json!([]), Some(0)),
            (json!([good]), Some(1)),
            (json!([good, good]), Some(2)),
            (json!([good, 1]), None),
            (json!([call(json!(1), json!("echo"), json!("{}"))]), None),
            (json!([call(json!("c"), json!(null), json!("{}"))]), None),
            (json!([call(json!("c"), json!("echo"), json!({}))]), None),
            (json!([call(json!("c"), json!("e".repeat(257)), json!("{}"))]), None),
        ] {
            let found = calls_of(&json!({"tool_calls": calls})).ok().map(|calls| calls.len());
            assert_eq!(found, number, "{calls}");
        }
    }
}
