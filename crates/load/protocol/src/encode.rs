//! Encodes a [`Turn`] into the bytes of a request.

mod json_template;
mod path;
mod tool_use;

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::turn::{Message, RecordedRequest, RequestContent, Role, Text, Turn};
use crate::{Dialect, ProtocolError, json_writer};
use json_template::JsonTemplate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of Anthropic's API.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// Member that requests the usage at the end of a chat stream. Servers that do not support it
/// reject it, so parameters can replace it, and `null` removes it.
const STREAM_OPTIONS: &str = "stream_options";

/// The member of an `openai-chat` request that limits the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TokenLimit {
    /// `max_tokens`: understood by gateways and local servers.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`: required by OpenAI's reasoning models.
    MaxCompletionTokens,
}

/// Options shared by all requests of an [`Encoder`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EncoderOptions {
    /// The requested model; unused by WebSockets and plain HTTP.
    pub model: String,
    /// Further members of the JSON object, such as `temperature`. `stream_options` replaces the
    /// encoder's own, and `null` removes it. Members that the encoder [sets
    /// itself](Dialect::reserved) are rejected, so that a request always matches its turn.
    pub parameters: Map<String, Value>,
    /// Name of the output token limit in `openai-chat`.
    pub token_limit: TokenLimit,
}

/// Encodes turns in one dialect. The common parts are prepared once.
#[derive(Clone, Debug)]
pub struct Encoder {
    dialect: Dialect,
    token_limit: TokenLimit,
    /// For recorded requests, whose own members come first.
    options: EncoderOptions,
    /// The start of the JSON object, up to and including the parameters.
    opening: Vec<u8>,
    /// The end of a streamed request.
    stream: &'static str,
}

impl Encoder {
    /// Creates an encoder for one model.
    ///
    /// # Errors
    /// A parameter that the encoder sets itself, or any parameter of plain HTTP or JSON-RPC.
    pub fn new(dialect: Dialect, options: &EncoderOptions) -> Result<Self, ProtocolError> {
        if !options.parameters.is_empty() {
            match dialect {
                Dialect::Http => return Err(ProtocolError::ParametersOfHttp),
                _ if dialect.is_rpc() => return Err(ProtocolError::ParametersOfRpc),
                _ => {}
            }
        }
        if let Some(name) = options
            .parameters
            .keys()
            .find(|name: &&String| dialect.reserved().contains(&name.as_str()))
        {
            return Err(ProtocolError::ReservedParameter { name: name.clone(), dialect });
        }
        let opening = match dialect {
            Dialect::Websocket => message_opening(options),
            _ => opening(options),
        };
        let mut encoder = Self {
            dialect,
            token_limit: options.token_limit,
            options: options.clone(),
            opening,
            stream: "",
        };
        encoder.stream = match encoder.template() {
            Some(_) if options.parameters.contains_key(STREAM_OPTIONS) => JsonTemplate::STREAM_ONLY,
            Some(template) => template.stream,
            None => "",
        };
        Ok(encoder)
    }

    /// The dialect of the requests.
    pub const fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Headers of every request with the same `stream` flag, with lowercase names. Plain HTTP gets
    /// only the authorization, because its content type is up to the user. The same applies to
    /// handshakes of WebSockets, which have no content, and to JSON-RPC, whose requests [have their
    /// own headers](Turn::own_headers).
    pub fn static_headers(&self, stream: bool, key: Option<&str>) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        let mut add = |name: &str, value: &str| headers.push((name.to_owned(), value.to_owned()));
        if self.dialect.has_model() {
            let stream = stream && self.dialect.terminator().is_some();
            add("content-type", "application/json");
            add("accept", if stream { "text/event-stream" } else { "application/json" });
        }
        if self.dialect == Dialect::AnthropicMessages {
            add("anthropic-version", ANTHROPIC_VERSION);
        }
        match (self.dialect, key) {
            (_, None) => {}
            (Dialect::AnthropicMessages, Some(key)) => add("x-api-key", key),
            (_, Some(key)) => add("authorization", &format!("Bearer {key}")),
        }
        headers
    }

    /// The method: `POST`, `GET` for a WebSocket's handshake, or the method of the plain HTTP
    /// request (`GET` by default).
    pub fn method<'a>(&self, turn: &Turn<'a>) -> &'a str {
        match (self.dialect, turn.content) {
            (Dialect::Http, RequestContent::Http(http)) if !http.method.is_empty() => &http.method,
            (Dialect::Http | Dialect::Websocket, _) => "GET",
            (_, RequestContent::Rpc(request)) => request.method(),
            _ => "POST",
        }
    }

    /// Path and query of the request, from the path (and query) of the target's base URL.
    ///
    /// - An empty base or `/` becomes the dialect's default path.
    /// - The endpoint is appended to a base that ends in `/v1`.
    /// - A base that ends with the endpoint is unchanged.
    /// - Any other base is put before the default path.
    /// - For plain HTTP the request's own path is put below the base, except `/v1`; without one it
    ///   is the base, else `/`.
    /// - For JSON-RPC it is the request's own path, else the base, else `/mcp` or `/a2a`; a base of
    ///   `/v1` counts as empty.
    /// - The endpoint of WebSockets replaces `/v1`.
    ///
    /// The query of the base is always kept. Only the paths of plain HTTP and JSON-RPC depend on
    /// the turn; the others can be cached.
    pub fn path<'a>(&self, base_path: &'a str, turn: &Turn<'a>) -> Cow<'a, str> {
        if let Some(default) = self.dialect.rpc_path() {
            return rpc_path(base_path, default, turn);
        }
        match (self.dialect.endpoint(), turn.content) {
            (Some(endpoint), _) if self.dialect == Dialect::Websocket => {
                Cow::Owned(path::join_unversioned(base_path, endpoint))
            }
            (Some(endpoint), _) => Cow::Owned(path::join(base_path, endpoint)),
            (None, RequestContent::Http(http)) if !http.path.is_empty() => {
                path::below(base_path, &http.path)
            }
            (None, _) => path::with_leading_slash(base_path),
        }
    }

    /// Appends the body of the request to `out`; for a WebSocket, the text of the newest message of
    /// the dialogue. Nothing else is allocated.
    ///
    /// # Errors
    /// The dialect cannot express the turn's content; `out` is unchanged.
    pub fn encode_body(&self, turn: &Turn<'_>, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        match (turn.content, self.template()) {
            (RequestContent::Chat { messages, .. }, _) if self.dialect == Dialect::Websocket => {
                out.extend_from_slice(&self.opening);
                if let Some(message) = messages.last() {
                    push_text(out, &message.text);
                }
                push(out, "\"}");
            }
            (RequestContent::Chat { system, messages }, Some(template)) => {
                out.extend_from_slice(&self.opening);
                if self.dialect == Dialect::OpenaiCompletions {
                    push_prompt(out, template, system, messages);
                } else {
                    push_dialogue(out, template, system, messages);
                }
                push_limits(out, template, turn);
                if turn.stream {
                    push(out, self.stream);
                }
                out.push(b'}');
            }
            (RequestContent::Recorded { request, messages }, _) if self.dialect.has_model() => {
                self.push_recorded(out, turn, request, messages);
            }
            (RequestContent::Embed { inputs }, _) if self.dialect == Dialect::OpenaiEmbeddings => {
                out.extend_from_slice(&self.opening);
                push_inputs(out, inputs);
                out.push(b'}');
            }
            (RequestContent::Http(http), _) if self.dialect == Dialect::Http => {
                out.extend_from_slice(&http.body);
            }
            (RequestContent::Rpc(request), _) if request.dialect() == self.dialect => {
                request.write_body(out);
            }
            (content, _) => return Err(self.unsupported(content)),
        }
        Ok(())
    }

    /// A recorded request, with what it lacks.
    fn push_recorded(
        &self,
        out: &mut Vec<u8>,
        turn: &Turn<'_>,
        request: &RecordedRequest,
        messages: &[Message],
    ) {
        let EncoderOptions { model, parameters, .. } = &self.options;
        let recorded = request.model.as_ref().unwrap_or(model);
        let model = if model.is_empty() { recorded } else { model };
        let mut members = request.members.as_ref().clone();
        for (name, value) in parameters {
            members.entry(name).or_insert_with(|| value.clone());
        }
        members.insert("model".to_owned(), model.as_str().into());
        let members = Value::Object(members).to_string();
        // Further members follow in place of the brace.
        out.extend_from_slice(members.strip_suffix('}').unwrap_or(&members).as_bytes());
        if let Some(template) = self.template() {
            if !messages.is_empty() {
                push_dialogue(out, template, None, messages);
            }
            if request.limit().is_none() {
                push_limits(out, template, turn);
            }
            if turn.stream && request.streams().is_none() {
                push(out, self.stream);
            }
        }
        out.push(b'}');
    }

    const fn template(&self) -> Option<&'static JsonTemplate> {
        match (self.dialect, self.token_limit) {
            (Dialect::OpenaiChat, TokenLimit::MaxTokens) => Some(&json_template::OPENAI_CHAT),
            (Dialect::OpenaiChat, TokenLimit::MaxCompletionTokens) => {
                Some(&json_template::OPENAI_CHAT_COMPLETION_LIMIT)
            }
            (Dialect::OpenaiCompletions, _) => Some(&json_template::OPENAI_COMPLETIONS),
            (Dialect::OpenaiResponses, _) => Some(&json_template::OPENAI_RESPONSES),
            (Dialect::AnthropicMessages, _) => Some(&json_template::ANTHROPIC_MESSAGES),
            (
                Dialect::OpenaiEmbeddings
                | Dialect::Mcp
                | Dialect::A2a
                | Dialect::Websocket
                | Dialect::Http,
                _,
            ) => None,
        }
    }

    const fn unsupported(&self, content: RequestContent<'_>) -> ProtocolError {
        let content = match content {
            RequestContent::Chat { .. } | RequestContent::Recorded { .. } => "a dialogue",
            RequestContent::Embed { .. } => "a list of texts to embed",
            RequestContent::Http(_) => "a plain HTTP request",
            RequestContent::Rpc(_) => "a message to a tool server or an agent",
        };
        ProtocolError::UnsupportedContent { content, dialect: self.dialect }
    }
}

/// Path of a JSON-RPC message.
fn rpc_path<'a>(base: &'a str, default: &'static str, turn: &Turn<'a>) -> Cow<'a, str> {
    if let RequestContent::Rpc(request) = turn.content
        && let Some(own) = request.own_path()
    {
        return path::with_query_of(own, base);
    }
    let (path, _) = base.split_at(base.find('?').unwrap_or(base.len()));
    match path.trim_end_matches('/') {
        "" | "/v1" | "v1" => path::with_query_of(default, base),
        _ => path::with_leading_slash(base),
    }
}

fn opening(options: &EncoderOptions) -> Vec<u8> {
    let mut out = br#"{"model":"#.to_vec();
    json_writer::push_string(&mut out, &options.model);
    let parameters = options.parameters.iter();
    for (name, value) in
        parameters.filter(|(name, value)| *name != STREAM_OPTIONS || !value.is_null())
    {
        out.push(b',');
        json_writer::push_string(&mut out, name);
        out.push(b':');
        out.extend_from_slice(value.to_string().as_bytes());
    }
    out
}

/// The start of a message, up to its text: the parameters come first.
fn message_opening(options: &EncoderOptions) -> Vec<u8> {
    let mut out = vec![b'{'];
    for (name, value) in &options.parameters {
        json_writer::push_string(&mut out, name);
        out.push(b':');
        out.extend_from_slice(value.to_string().as_bytes());
        out.push(b',');
    }
    push(&mut out, r#""message":""#);
    out
}

fn push_dialogue(
    out: &mut Vec<u8>,
    template: &JsonTemplate,
    system: Option<&Text>,
    messages: &[Message],
) {
    // An empty system prompt is omitted, because some providers reject an empty text.
    let system = system.filter(|text| !text.is_empty());
    if let (Some(member), Some(text)) = (template.system, system) {
        push(out, member);
        push_text(out, text);
        out.push(b'"');
    }
    push(out, template.messages);
    let start = out.len();
    if let (None, Some(text)) = (template.system, system) {
        push_message(out, template, "system", text);
    }
    for message in messages {
        if let Some(recorded) = &message.recorded {
            push(out, recorded);
            out.push(b',');
        } else if !message.has_parts() {
            push_message(out, template, role(message.role), &message.text);
        } else {
            tool_use::push(out, template, message);
        }
    }
    // Every item ends with a comma.
    if out.len() > start {
        out.pop();
    }
    out.push(b']');
}

/// All texts of a dialogue as one, each on its own line.
fn push_prompt(
    out: &mut Vec<u8>,
    template: &JsonTemplate,
    system: Option<&Text>,
    messages: &[Message],
) {
    push(out, template.messages);
    let start = out.len();
    let texts = system.into_iter().chain(messages.iter().map(|message| &message.text));
    for text in texts.filter(|text| !text.is_empty()) {
        if out.len() > start {
            push(out, r"\n");
        }
        push_text(out, text);
    }
    out.push(b'"');
}

/// A message, followed by a comma.
fn push_message(out: &mut Vec<u8>, template: &JsonTemplate, role: &str, text: &Text) {
    push(out, template.message);
    push(out, role);
    push(out, r#"","content":""#);
    push_text(out, text);
    push(out, r#""},"#);
}

fn push_limits(out: &mut Vec<u8>, template: &JsonTemplate, turn: &Turn<'_>) {
    if let Some(limit) = turn.max_tokens.or(template.default_limit) {
        push(out, template.limit);
        push(out, itoa::Buffer::new().format(limit));
    }
}

/// Whether the name of a header suggests a credential.
pub fn names_credential(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let parts = ["authorization", "cookie", "token", "secret", "password"];
    // Matches whole words: `x-api-key` and `apikey`, but not `x-keyboard`.
    parts.iter().any(|part| name.contains(part))
        || name.split(['-', '_']).any(|word| matches!(word, "key" | "apikey"))
}

fn push_inputs(out: &mut Vec<u8>, inputs: &[Text]) {
    push(out, r#","input":["#);
    for (index, text) in inputs.iter().enumerate() {
        push(out, if index > 0 { r#",""# } else { r#"""# });
        push_text(out, text);
        out.push(b'"');
    }
    out.push(b']');
}

const fn role(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}

fn push(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

fn push_text(out: &mut Vec<u8>, text: &Text) {
    let push = if text.is_plain() { json_writer::push_plain } else { json_writer::push_escaped };
    text.pieces().for_each(|piece| push(out, piece));
}
