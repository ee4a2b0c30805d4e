//! Encodes a [`Turn`] into the bytes of a request.

mod tool_use;

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::turn::{Message, RecordedRequest, RequestContent, Role, Text, Turn};
use crate::{Dialect, json_escape};

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
                Cow::Owned(join_unversioned(base_path, endpoint))
            }
            (Some(endpoint), _) => Cow::Owned(join(base_path, endpoint)),
            (None, RequestContent::Http(http)) if !http.path.is_empty() => {
                below(base_path, &http.path)
            }
            (None, _) => with_leading_slash(base_path),
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
            (Dialect::OpenaiChat, TokenLimit::MaxTokens) => Some(&OPENAI_CHAT),
            (Dialect::OpenaiChat, TokenLimit::MaxCompletionTokens) => {
                Some(&OPENAI_CHAT_COMPLETION_LIMIT)
            }
            (Dialect::OpenaiCompletions, _) => Some(&OPENAI_COMPLETIONS),
            (Dialect::OpenaiResponses, _) => Some(&OPENAI_RESPONSES),
            (Dialect::AnthropicMessages, _) => Some(&ANTHROPIC_MESSAGES),
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
        return with_query_of(own, base);
    }
    let (path, _) = base.split_at(base.find('?').unwrap_or(base.len()));
    match path.trim_end_matches('/') {
        "" | "/v1" | "v1" => with_query_of(default, base),
        _ => with_leading_slash(base),
    }
}

fn opening(options: &EncoderOptions) -> Vec<u8> {
    let mut out = br#"{"model":"#.to_vec();
    json_escape::push_string(&mut out, &options.model);
    let parameters = options.parameters.iter();
    for (name, value) in
        parameters.filter(|(name, value)| *name != STREAM_OPTIONS || !value.is_null())
    {
        out.push(b',');
        json_escape::push_string(&mut out, name);
        out.push(b':');
        out.extend_from_slice(value.to_string().as_bytes());
    }
    out
}

/// The start of a message, up to its text: the parameters come first.
fn message_opening(options: &EncoderOptions) -> Vec<u8> {
    let mut out = vec![b'{'];
    for (name, value) in &options.parameters {
        json_escape::push_string(&mut out, name);
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
    let push = if text.is_plain() { json_escape::push_plain } else { json_escape::push_escaped };
    text.pieces().for_each(|piece| push(out, piece));
}

// The fixed JSON text of each chat dialect.

/// The fixed JSON text of one dialect, around the parts that differ between turns.
#[derive(Clone, Copy, Debug)]
struct JsonTemplate {
    /// Start of the member with the system prompt; `None` if the prompt is the first message.
    system: Option<&'static str>,
    /// Start of the list of messages.
    messages: &'static str,
    /// Start of one message, up to the value of its role.
    message: &'static str,
    /// Start of the output token limit.
    limit: &'static str,
    /// Default output token limit, for dialects that require one.
    default_limit: Option<u32>,
    /// Requests a stream, with usage at its end.
    stream: &'static str,
    /// Format of tool calls and their results.
    tools: ToolFormat,
}

/// Format of tool calls and their results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToolFormat {
    /// `tool_calls` in the model's message, and a message of the role `tool` for each result.
    Messages,
    /// Separate items next to the messages.
    Items,
    /// Blocks in the content of the messages.
    Blocks,
}

impl JsonTemplate {
    /// Requests a stream without further options, in every dialect.
    const STREAM_ONLY: &'static str = r#","stream":true"#;
}

const OPENAI_CHAT: JsonTemplate = JsonTemplate {
    system: None,
    messages: r#","messages":["#,
    message: r#"{"role":""#,
    limit: r#","max_tokens":"#,
    default_limit: None,
    stream: r#","stream":true,"stream_options":{"include_usage":true}"#,
    tools: ToolFormat::Messages,
};

const OPENAI_CHAT_COMPLETION_LIMIT: JsonTemplate =
    JsonTemplate { limit: r#","max_completion_tokens":"#, ..OPENAI_CHAT };

/// A single text replaces the messages.
const OPENAI_COMPLETIONS: JsonTemplate =
    JsonTemplate { messages: r#","prompt":""#, message: "", ..OPENAI_CHAT };

const OPENAI_RESPONSES: JsonTemplate = JsonTemplate {
    system: Some(r#","instructions":""#),
    messages: r#","input":["#,
    message: r#"{"type":"message","role":""#,
    limit: r#","max_output_tokens":"#,
    default_limit: None,
    stream: r#","stream":true"#,
    tools: ToolFormat::Items,
};

const ANTHROPIC_MESSAGES: JsonTemplate = JsonTemplate {
    system: Some(r#","system":""#),
    messages: r#","messages":["#,
    message: r#"{"role":""#,
    limit: r#","max_tokens":"#,
    default_limit: Some(1024),
    stream: r#","stream":true"#,
    tools: ToolFormat::Blocks,
};

// The request path: the target's path joined with the dialect's endpoint.

/// Joins the path of a target's base URL with the dialect's endpoint (`/chat/completions`).
///
/// - empty or `/`: `/v1` and the endpoint;
/// - ends in `/v1`: the endpoint is appended;
/// - already ends with the endpoint: unchanged;
/// - any other prefix: `/v1` and the endpoint are appended.
///
/// Trailing slashes of the base are ignored. Its query (`?api-version=...`) stays at the end.
fn join(base: &str, endpoint: &str) -> String {
    let (path, query) = base.split_at(base.find('?').unwrap_or(base.len()));
    let path = path.trim_end_matches('/');
    let (version, endpoint) = match () {
        () if path.ends_with(endpoint) => ("", ""),
        () if path == "v1" || path.ends_with("/v1") => ("", endpoint),
        () => ("/v1", endpoint),
    };
    with_leading_slash(&[path, version, endpoint, query].concat()).into_owned()
}

/// The same for an endpoint outside the API below `/v1`, which replaces `/v1`.
fn join_unversioned(base: &str, endpoint: &str) -> String {
    let (path, query) = base.split_at(base.find('?').unwrap_or(base.len()));
    let path = path.trim_end_matches('/');
    let prefix = match () {
        () if path.ends_with(endpoint) => return with_leading_slash(path).into_owned() + query,
        () if path == "v1" => "",
        () => path.strip_suffix("/v1").unwrap_or(path),
    };
    with_leading_slash(&[prefix, endpoint, query].concat()).into_owned()
}

/// A request's own path with the query of the target, which every request keeps.
fn with_query_of<'a>(path: &'a str, base: &str) -> Cow<'a, str> {
    let path = with_leading_slash(path);
    match base.split_once('?').map(|(_, query)| query).filter(|query| !query.is_empty()) {
        None => path,
        Some(query) => {
            let join = if path.contains('?') { '&' } else { '?' };
            Cow::Owned(format!("{path}{join}{query}"))
        }
    }
}

/// A request's own path below the path of the target, whose query is kept. `/v1` is a prefix of the
/// LLM dialects, not of plain requests. A path that begins with the prefix is unchanged.
fn below<'a>(base: &str, own: &'a str) -> Cow<'a, str> {
    let (prefix, _) = base.split_at(base.find('?').unwrap_or(base.len()));
    let prefix = with_leading_slash(prefix.trim_end_matches('/'));
    let own_path = with_leading_slash(own);
    let rest = own_path.strip_prefix(&*prefix);
    let has_it = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']));
    if matches!(&*prefix, "/" | "/v1") || has_it {
        return with_query_of(own, base);
    }
    Cow::Owned(with_query_of(&format!("{prefix}{own_path}"), base).into_owned())
}

/// The path with a leading `/`.
fn with_leading_slash(path: &str) -> Cow<'_, str> {
    if path.starts_with('/') { Cow::Borrowed(path) } else { Cow::Owned(format!("/{path}")) }
}

// Errors in a request, found before it is sent.

/// A request that cannot be encoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// A parameter has the name of a member that the encoder sets. Remedy: remove it from the
    /// parameters, and use the field of the scenario (`stream`, `max_tokens`, `system`, ...) or
    /// target (`model`).
    #[error(
        "`{name}` cannot be a parameter of {}: it is set from the scenario or target; use their \
         own fields for it", dialect.name()
    )]
    ReservedParameter {
        /// Name of the parameter.
        name: String,
        /// The dialect that sets it.
        dialect: Dialect,
    },
    /// Parameters for plain HTTP. Remedy: write them into the request's body.
    #[error("plain HTTP takes no parameters: write them into the request's body")]
    ParametersOfHttp,
    /// Parameters for JSON-RPC. Remedy: write them into the arguments of a step.
    #[error(
        "tool servers and agents take no parameters: write them into the `arguments` of a step"
    )]
    ParametersOfRpc,
    /// The dialect cannot express the turn's content. Remedy: choose the protocol that fits the
    /// scenario's content.
    #[error(
        "{content} cannot be sent as {}: choose the protocol that fits the scenario's content",
        dialect.name()
    )]
    UnsupportedContent {
        /// The content of the turn.
        content: &'static str,
        /// The dialect.
        dialect: Dialect,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_targets_query_is_kept_on_a_requests_own_path() {
        for (path, base, whole) in [
            ("/x", "/base", "/x"),
            ("x", "/base?", "/x"),
            ("/x", "/base?v=1", "/x?v=1"),
            ("/x?a=2", "?v=1&w=2", "/x?a=2&v=1&w=2"),
        ] {
            assert_eq!(with_query_of(path, base), whole);
        }
    }

    #[test]
    fn a_requests_own_path_is_below_that_of_the_target() {
        for (base, own, whole) in [
            ("", "/x", "/x"),
            ("/", "x", "/x"),
            ("/v1", "/x", "/x"),
            ("/v2", "/x", "/v2/x"),
            ("/gw/", "/x?a=2", "/gw/x?a=2"),
            ("/gw?k=1", "/x", "/gw/x?k=1"),
            ("/gw", "/gw/x", "/gw/x"),
            ("/gw", "/gw", "/gw"),
            ("/gw", "/gwx", "/gw/gwx"),
            ("/gw", "/?a=1", "/gw/?a=1"),
        ] {
            assert_eq!(below(base, own), whole, "{own} below {base}");
        }
    }

    #[test]
    fn an_endpoint_without_a_version_takes_its_place() {
        for (base, path) in [
            ("", "/ws/chat"),
            ("/", "/ws/chat"),
            ("/v1", "/ws/chat"),
            ("v1/", "/ws/chat"),
            ("/proxy/v1?k=1", "/proxy/ws/chat?k=1"),
            ("/proxy", "/proxy/ws/chat"),
            ("/rev1", "/rev1/ws/chat"),
            ("/my/ws/chat/", "/my/ws/chat"),
            ("/ws/chat?k=1", "/ws/chat?k=1"),
        ] {
            assert_eq!(join_unversioned(base, "/ws/chat"), path, "{base:?}");
        }
    }

    #[test]
    fn base_paths_are_joined_with_the_endpoint() {
        for (base, path, rule) in [
            ("", "/v1/messages", "nothing gets the default"),
            ("/", "/v1/messages", "a bare slash is nothing"),
            ("/v1", "/v1/messages", "the version gets the rest"),
            ("/v1/", "/v1/messages", "a slash at the end does not count"),
            ("v1", "/v1/messages", "a slash at the start is added"),
            ("/proxy/v1", "/proxy/v1/messages", "so does a version below a prefix"),
            ("/v1/messages", "/v1/messages", "a whole path is used as it is"),
            ("/v1/messages/", "/v1/messages", "also with a slash at its end"),
            ("/my/messages", "/my/messages", "also below another prefix"),
            ("/gateway", "/gateway/v1/messages", "a prefix is put before the default"),
            ("/gateway/", "/gateway/v1/messages", "with one slash between"),
            ("/rev1", "/rev1/v1/messages", "only the whole word is a version"),
            ("/xmessages", "/xmessages/v1/messages", "only the whole word is an endpoint"),
            ("/v1?k=1", "/v1/messages?k=1", "a query stays at the end"),
            ("/v1/messages?k=/v1", "/v1/messages?k=/v1", "also of a whole path"),
            ("?k=1", "/v1/messages?k=1", "also of nothing"),
        ] {
            assert_eq!(join(base, "/messages"), path, "{rule}: {base:?}");
        }
    }
}
