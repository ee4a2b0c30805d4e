//! Parses API requests, limited to the members that affect a response, borrowed from the body.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::dialect::Dialect;
use crate::hash::fnv1a;
use crate::tool_loop::ToolTurn;

mod prompt;

use prompt::{Content, Input, Message};

/// The most texts of one embeddings request, because the response is much larger than the request.
const MAX_INPUTS: usize = 2_048;

/// A parsed API request.
#[derive(Debug)]
pub(crate) struct ApiRequest<'a> {
    pub(crate) dialect: Dialect,
    pub(crate) model: Cow<'a, str>,
    pub(crate) stream: bool,
    /// Chat completions: `stream_options.include_usage`.
    pub(crate) stream_usage: bool,
    /// The most output tokens, under any of the dialects' names.
    pub(crate) max_tokens: Option<u32>,
    /// Number of messages, or of inputs to embed.
    pub(crate) messages: u32,
    /// All texts of the prompt, in order.
    pub(crate) texts: Vec<Cow<'a, str>>,
    /// The turn of a model with a tool loop, which the text alone does not determine.
    pub(crate) tool_turn: Option<ToolTurn>,
    /// Input tokens given as numbers (embeddings).
    token_ids: u64,
}

impl<'a> ApiRequest<'a> {
    /// Parses a request's body.
    ///
    /// # Errors
    /// The problem, as a message for the client.
    pub(crate) fn parse(dialect: Dialect, body: &'a [u8]) -> Result<Self, String> {
        let members: Members<'a> = serde_json::from_slice(body).map_err(|e| unreadable(&e))?;
        match dialect {
            Dialect::OpenaiChat | Dialect::AnthropicMessages if members.messages.is_none() => {
                Err("you must provide a messages parameter".to_owned())
            }
            Dialect::OpenaiResponses | Dialect::OpenaiEmbeddings if members.input.is_none() => {
                Err("you must provide an input parameter".to_owned())
            }
            Dialect::OpenaiCompletions if members.prompt.is_none() => {
                Err("you must provide a prompt parameter".to_owned())
            }
            Dialect::AnthropicMessages if members.max_tokens.is_none() => {
                Err("max_tokens: Field required".to_owned())
            }
            _ => members.resolve(dialect),
        }
    }

    /// Parses a WebSocket message. It may name a model and limit the answer.
    ///
    /// # Errors
    /// The problem, as a message for the client.
    pub(crate) fn parse_message(text: &'a str) -> Result<Self, String> {
        let ChatMessage { message, model, max_tokens } = serde_json::from_str(text)
            .map_err(|error| format!("A message must be an object with a `message`: {error}"))?;
        Ok(Self {
            dialect: Dialect::Websocket,
            model: model.unwrap_or_default(),
            stream: true,
            stream_usage: true,
            max_tokens,
            messages: 1,
            texts: vec![message],
            token_ids: 0,
            tool_turn: None,
        })
    }

    /// The hash of the last text without the marker before it.
    pub(crate) fn content_hash(&self) -> u64 {
        self.texts.last().map_or(0, |text| fnv1a(behind_marker(text).as_bytes()))
    }

    /// Input tokens: the UTF-8 bytes of each text divided by four, rounded up, plus the token ids.
    pub(crate) fn prompt_tokens(&self) -> u64 {
        self.texts.iter().map(|text| text.len().div_ceil(4) as u64).sum::<u64>() + self.token_ids
    }
}

/// Whether the text ends with the words of a marker: five of three letters, each with a space.
fn ends_with_marker(text: &[u8]) -> bool {
    const WORDS: usize = 20;
    let Some((_, words)) = text.split_last_chunk::<WORDS>() else { return false };
    words
        .chunks(4)
        .all(|word: &[u8]| word[..3].iter().all(u8::is_ascii_lowercase) && word[3] == b' ')
}

/// The part of a text after its last marker; the whole text without one.
pub(crate) fn behind_marker(text: &str) -> &str {
    const END: &str = "--- ";
    let mut ends = text.rmatch_indices(END).map(|(at, _)| at);
    let end = ends.find(|at| ends_with_marker(&text.as_bytes()[..*at]));
    end.map_or(text, |end| &text[end + END.len()..])
}

fn unreadable(error: &serde_json::Error) -> String {
    format!("We could not parse the JSON body of your request: {error}")
}

/// The members of all dialects; unknown members are skipped. The members that are raw have another
/// meaning, or none, in other dialects.
#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow)]
    model: Cow<'a, str>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    max_tokens: Option<u32>,
    max_completion_tokens: Option<u32>,
    max_output_tokens: Option<u32>,
    #[serde(borrow)]
    system: Option<&'a RawValue>,
    #[serde(borrow)]
    instructions: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Option<Vec<Message<'a>>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    prompt: Option<&'a RawValue>,
}

/// A message of a WebSocket's client; unknown members are skipped.
#[derive(Deserialize)]
struct ChatMessage<'a> {
    #[serde(borrow)]
    message: Cow<'a, str>,
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    max_tokens: Option<u32>,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

impl<'a> Members<'a> {
    fn resolve(self, dialect: Dialect) -> Result<ApiRequest<'a>, String> {
        let (instructions, input) = match dialect {
            Dialect::AnthropicMessages => (self.system, None),
            Dialect::OpenaiResponses => (self.instructions, self.input),
            Dialect::OpenaiEmbeddings => (None, self.input),
            Dialect::OpenaiCompletions => (None, self.prompt),
            Dialect::OpenaiChat | Dialect::Websocket => (None, None),
        };
        let mut texts = Vec::new();
        if let Some(content) = typed::<Content<'a>>(instructions)? {
            content.add_texts(&mut texts);
        }
        let messages = self.messages.unwrap_or_default();
        let input = typed::<Input<'a>>(input)?;
        let inputs = input.as_ref().map_or(0, Input::items);
        if dialect == Dialect::OpenaiEmbeddings && inputs > MAX_INPUTS {
            return Err(format!("input must not have more than {MAX_INPUTS} items"));
        }
        let count = messages.len() + inputs;
        for message in messages {
            message.add_texts(&mut texts);
        }
        let token_ids = input.map_or(0, |input| input.add_texts(&mut texts));
        Ok(ApiRequest {
            dialect,
            model: self.model,
            stream: self.stream.unwrap_or(false),
            stream_usage: self.stream_options.is_some_and(|options| options.include_usage),
            max_tokens: self.max_output_tokens.or(self.max_completion_tokens).or(self.max_tokens),
            messages: u32::try_from(count).unwrap_or(u32::MAX),
            texts,
            tool_turn: None,
            token_ids,
        })
    }
}

/// Reads a raw member.
fn typed<'a, T: Deserialize<'a>>(member: Option<&'a RawValue>) -> Result<Option<T>, String> {
    let read = member.map(|raw| serde_json::from_str(raw.get()));
    read.transpose().map_err(|error| unreadable(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_and_tokens_are_found_in_every_form_of_prompt() {
        use Dialect::{
            AnthropicMessages, OpenaiChat, OpenaiCompletions, OpenaiEmbeddings, OpenaiResponses,
        };
        let rows = [
            // 5 bytes are 2 tokens, 4 bytes are 1.
            (
                OpenaiChat,
                r#"{"model":"m","messages":[{"role":"system","content":"12345"},{"role":"user","content":"1234"}]}"#,
                2,
                3,
            ),
            (
                OpenaiChat,
                r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"1234"},{"type":"image_url","image_url":{"url":"x"}},{"type":"text","text":"1"}]}]}"#,
                1,
                2,
            ),
            (
                OpenaiChat,
                r#"{"model":"m","messages":[{"role":"assistant","content":null,"tool_calls":[]}]}"#,
                1,
                0,
            ),
            // Escapes count as the characters they encode: two letters, a line end and one of two
            // bytes.
            (
                OpenaiChat,
                r#"{"model":"m","messages":[{"role":"user","content":"a\nb\u00e9"}]}"#,
                1,
                2,
            ),
            (
                AnthropicMessages,
                r#"{"model":"m","max_tokens":1,"system":"12345678","messages":[{"role":"user","content":"123"}]}"#,
                1,
                3,
            ),
            (
                AnthropicMessages,
                r#"{"model":"m","max_tokens":1,"system":[{"type":"text","text":"1234"}],"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"12345"}]}]}]}"#,
                1,
                3,
            ),
            (OpenaiResponses, r#"{"model":"m","instructions":"1234","input":"12345"}"#, 1, 3),
            (
                OpenaiResponses,
                r#"{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"12345"}]},{"type":"function_call","name":"f"}]}"#,
                2,
                2,
            ),
            (OpenaiEmbeddings, r#"{"model":"m","input":["1234","12345"]}"#, 2, 3),
            (OpenaiEmbeddings, r#"{"model":"m","input":[7,8,9]}"#, 1, 3),
            (OpenaiCompletions, r#"{"model":"m","prompt":"12345"}"#, 1, 2),
            (OpenaiCompletions, r#"{"model":"m","prompt":[7,8,9]}"#, 1, 3),
            (OpenaiEmbeddings, r#"{"model":"m","input":[[7,8],[9]]}"#, 2, 3),
        ];
        for (dialect, body, messages, tokens) in rows {
            let request = ApiRequest::parse(dialect, body.as_bytes()).unwrap();
            assert_eq!((request.messages, request.prompt_tokens()), (messages, tokens), "{body}");
        }
    }

    #[test]
    fn limits_and_stream_options_are_read_under_all_names() {
        for (member, limit) in [
            (r#""max_tokens":5"#, Some(5)),
            (r#""max_completion_tokens":6"#, Some(6)),
            (r#""max_output_tokens":7"#, Some(7)),
            (r#""max_tokens":null"#, None),
        ] {
            let body = format!(r#"{{"model":"m","input":"x","messages":[],{member}}}"#);
            let request = ApiRequest::parse(Dialect::OpenaiChat, body.as_bytes()).unwrap();
            assert_eq!(request.max_tokens, limit, "{member}");
        }
        let body = br#"{"messages":[],"stream":true,"stream_options":{"include_usage":true},"model":"a\"b"}"#;
        let request = ApiRequest::parse(Dialect::OpenaiChat, body).unwrap();
        assert_eq!((request.stream, request.stream_usage, &*request.model), (true, true, "a\"b"));
    }

    #[test]
    fn content_is_what_stands_behind_the_marker() {
        const ID: &str = "cow cat dog sun sky --- ";
        for (text, content) in [
            (format!("{ID}hello --- x"), "hello --- x"),
            (format!("{ID}shared words {ID}é] hello"), "é] hello"),
            ("hello".to_owned(), "hello"),
            ("Cow cat dog sun sky --- hello".to_owned(), "Cow cat dog sun sky --- hello"),
            (ID[4..].to_owned(), &ID[4..]),
            (ID.to_owned(), ""),
        ] {
            assert_eq!(behind_marker(&text), content);
        }
    }

    #[test]
    fn texts_without_escapes_are_not_copied() {
        let body =
            br#"{"model":"m","messages":[{"content":"plain"},{"content":[{"text":"part"}]}]}"#;
        let request = ApiRequest::parse(Dialect::OpenaiChat, body).unwrap();
        assert!(request.texts.iter().all(|text| matches!(text, Cow::Borrowed(_))), "{request:?}");
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(
            prefix in prop::sample::select(vec![
                "", r#"{"model":"m","messages":"#, r#"{"model":"m","input":"#, r#"{"system":"#,
            ]),
            bytes in prop::collection::vec(
                prop_oneof![any::<u8>(), prop::sample::select(br#"[]{}":,\1au"#.to_vec())], 0..80,
            ),
        ) {
            let body = [prefix.as_bytes(), &bytes].concat();
            for dialect in [Dialect::OpenaiChat, Dialect::OpenaiEmbeddings] {
                let _ = ApiRequest::parse(dialect, &body).map(|request| request.prompt_tokens());
            }
        }
    }

    #[test]
    fn more_inputs_than_the_limit_are_refused() {
        for (count, accepted) in [(2_048, true), (2_049, false)] {
            let found = ApiRequest::parse(
                Dialect::OpenaiEmbeddings,
                (format!(r#"{{"model":"m","input":[{}]}}"#, vec!["\"x\""; count].join(",")))
                    .as_bytes(),
            )
            .is_ok();
            assert_eq!(found, accepted, "{count}");
        }
    }

    #[test]
    fn members_of_other_dialects_may_have_any_value() {
        for (dialect, body) in [
            (Dialect::OpenaiChat, r#"{"model":"m","messages":[],"system":7,"prompt":{"id":"p"}}"#),
            (
                Dialect::AnthropicMessages,
                r#"{"model":"m","max_tokens":1,"messages":[],"input":7,"instructions":{}}"#,
            ),
            (Dialect::OpenaiResponses, r#"{"model":"m","input":"x","prompt":{"id":"p"}}"#),
            (Dialect::OpenaiEmbeddings, r#"{"model":"m","input":"x","system":{},"prompt":{}}"#),
            (Dialect::OpenaiCompletions, r#"{"model":"m","prompt":"x","input":{},"system":{}}"#),
        ] {
            let request = ApiRequest::parse(dialect, body.as_bytes());
            assert!(request.is_ok_and(|request| request.texts.len() < 2), "{body}");
        }
    }

    #[test]
    fn requests_that_no_provider_accepts_are_refused() {
        for (dialect, body) in [
            (Dialect::OpenaiChat, ""),
            (Dialect::OpenaiChat, "{"),
            (Dialect::OpenaiChat, r#"{"messages":[]}"#),
            (Dialect::OpenaiChat, r#"{"model":"m"}"#),
            (Dialect::OpenaiChat, r#"{"model":"m","messages":"hello"}"#),
            (Dialect::OpenaiChat, r#"{"model":"m","messages":[{"content":7}]}"#),
            (Dialect::OpenaiChat, r#"{"model":"m","messages":[],"max_tokens":-1}"#),
            (Dialect::AnthropicMessages, r#"{"model":"m","messages":[]}"#),
            (Dialect::OpenaiEmbeddings, r#"{"model":"m","messages":[]}"#),
            (Dialect::OpenaiCompletions, r#"{"model":"m","messages":[]}"#),
            (Dialect::OpenaiResponses, r#"{"model":"m","input":7}"#),
            (Dialect::OpenaiChat, "{\"model\":\"\u{7f}\",\"messages\":[{\"content\":\"\n\"}]}"),
        ] {
            assert!(ApiRequest::parse(dialect, body.as_bytes()).is_err(), "{body}");
        }
    }
}
