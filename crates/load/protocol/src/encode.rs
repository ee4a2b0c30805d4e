//! From a [`Turn`] to the bytes of a request.

mod grammar;
mod json;
mod path;

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::turn::{Message, RequestContent, Role, Text, Turn};
use crate::{Dialect, ProtocolError};
use grammar::Grammar;

/// The version of Anthropic's API whose shapes are written and read here.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// The member of an `openai-chat` request that bounds the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenLimit {
    /// `max_tokens`: what gateways and local servers understand.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`: what OpenAI's own reasoning models insist on.
    MaxCompletionTokens,
}

/// What is the same in every request of an [`Encoder`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EncoderOptions {
    /// The model asked for; not used by plain HTTP.
    pub model: String,
    /// Further members of the JSON object, like `temperature`. One that the dialect
    /// [sets itself](Dialect::reserved) is refused, so that a request always says what its turn says.
    pub parameters: Map<String, Value>,
    /// How `openai-chat` names the most output tokens.
    pub token_limit: TokenLimit,
}

/// Says turns in one dialect. What does not change between turns is prepared once.
#[derive(Clone, Debug)]
pub struct Encoder {
    dialect: Dialect,
    token_limit: TokenLimit,
    /// The JSON object up to and including the parameters, not closed.
    opening: Vec<u8>,
}

impl Encoder {
    /// An encoder for one model.
    ///
    /// # Errors
    /// A parameter that the dialect sets itself, or any parameter of plain HTTP.
    pub fn new(dialect: Dialect, options: &EncoderOptions) -> Result<Self, ProtocolError> {
        if dialect == Dialect::Http && !options.parameters.is_empty() {
            return Err(ProtocolError::ParametersOfHttp);
        }
        let reserved = |name: &&String| dialect.reserved().contains(&name.as_str());
        if let Some(name) = options.parameters.keys().find(reserved) {
            return Err(ProtocolError::ReservedParameter { name: name.clone(), dialect });
        }
        Ok(Self { dialect, token_limit: options.token_limit, opening: opening(options) })
    }

    /// The dialect that is spoken.
    pub const fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Headers that every request with the same `stream` flag carries, names in lower case. Plain
    /// HTTP gets the authorization alone: its content type is the user's business.
    pub fn static_headers(&self, stream: bool, key: Option<&str>) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        let mut add = |name: &str, value: &str| headers.push((name.to_owned(), value.to_owned()));
        if self.dialect != Dialect::Http {
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

    /// The request's method: `POST`, or what a plain request names (`GET` if it names none).
    pub fn method<'a>(&self, turn: &Turn<'a>) -> &'a str {
        match (self.dialect, turn.ask) {
            (Dialect::Http, RequestContent::Http(ask)) if !ask.method.is_empty() => &ask.method,
            (Dialect::Http, _) => "GET",
            _ => "POST",
        }
    }

    /// Path and query of the request, from the path (and query) of the target's base URL.
    ///
    /// A base that is empty or `/` gets the dialect's default path, one that ends in `/v1` gets the
    /// rest of it, one that ends with the dialect's endpoint is used as it is, and any other is put
    /// before the default path. Plain HTTP: the request's own path, else the base, else `/`.
    ///
    /// Only plain HTTP depends on the turn; for the rest the path is worth keeping.
    pub fn path<'a>(&self, base_path: &'a str, turn: &Turn<'a>) -> Cow<'a, str> {
        match (self.dialect.endpoint(), turn.ask) {
            (Some(endpoint), _) => Cow::Owned(path::join(base_path, endpoint)),
            (None, RequestContent::Http(ask)) if !ask.path.is_empty() => path::rooted(&ask.path),
            (None, _) => path::rooted(base_path),
        }
    }

    /// Appends the body of the request to `out`, and allocates nothing besides.
    ///
    /// # Errors
    /// The turn asks for something that the dialect has no words for; `out` is unchanged.
    pub fn encode_body(&self, turn: &Turn<'_>, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        match (turn.ask, self.grammar()) {
            (RequestContent::Chat { system, messages }, Some(grammar)) => {
                out.extend_from_slice(&self.opening);
                push_dialogue(out, grammar, system, messages);
                push_limits(out, grammar, turn);
                out.push(b'}');
            }
            (RequestContent::Embed { inputs }, _) if self.dialect == Dialect::OpenaiEmbeddings => {
                out.extend_from_slice(&self.opening);
                push_inputs(out, inputs);
                out.push(b'}');
            }
            (RequestContent::Http(ask), _) if self.dialect == Dialect::Http => {
                out.extend_from_slice(&ask.body);
            }
            (ask, _) => return Err(self.wrong(ask)),
        }
        Ok(())
    }

    const fn grammar(&self) -> Option<&'static Grammar> {
        match (self.dialect, self.token_limit) {
            (Dialect::OpenaiChat, TokenLimit::MaxTokens) => Some(&grammar::OPENAI_CHAT),
            (Dialect::OpenaiChat, TokenLimit::MaxCompletionTokens) => {
                Some(&grammar::OPENAI_CHAT_RENAMED_LIMIT)
            }
            (Dialect::OpenaiResponses, _) => Some(&grammar::OPENAI_RESPONSES),
            (Dialect::AnthropicMessages, _) => Some(&grammar::ANTHROPIC_MESSAGES),
            (Dialect::OpenaiEmbeddings | Dialect::Http, _) => None,
        }
    }

    const fn wrong(&self, ask: RequestContent<'_>) -> ProtocolError {
        let ask = match ask {
            RequestContent::Chat { .. } => "a dialogue",
            RequestContent::Embed { .. } => "a list of texts to embed",
            RequestContent::Http(_) => "a plain HTTP request",
        };
        ProtocolError::WrongAsk { ask, dialect: self.dialect }
    }
}

fn opening(options: &EncoderOptions) -> Vec<u8> {
    let mut out = br#"{"model":"#.to_vec();
    json::push_string(&mut out, &options.model);
    for (name, value) in &options.parameters {
        out.push(b',');
        json::push_string(&mut out, name);
        out.push(b':');
        out.extend_from_slice(value.to_string().as_bytes());
    }
    out
}

fn push_dialogue(
    out: &mut Vec<u8>,
    grammar: &Grammar,
    system: Option<&Text>,
    messages: &[Message],
) {
    // An empty system prompt is none: some providers refuse an empty text.
    let system = system.filter(|text| !text.is_empty());
    if let (Some(member), Some(text)) = (grammar.system, system) {
        push(out, member);
        push_text(out, text);
        out.push(b'"');
    }
    push(out, grammar.messages);
    let first = system.filter(|_| grammar.system.is_none()).map(|text| ("system", text));
    let rest = messages.iter().map(|message| (role(message.role), &message.text));
    for (index, (role, text)) in first.into_iter().chain(rest).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push(out, grammar.message);
        push(out, role);
        push(out, r#"","content":""#);
        push_text(out, text);
        push(out, r#""}"#);
    }
    out.push(b']');
}

fn push_limits(out: &mut Vec<u8>, grammar: &Grammar, turn: &Turn<'_>) {
    if let Some(limit) = turn.max_tokens.or(grammar.default_limit) {
        push(out, grammar.limit);
        push(out, itoa::Buffer::new().format(limit));
    }
    if turn.stream {
        push(out, grammar.stream);
    }
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
    text.pieces().for_each(|piece| json::push_escaped(out, piece));
}
