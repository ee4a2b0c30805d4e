//! Reading requests: only what an answer depends on, borrowed from the request's own bytes.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::dialect::Dialect;

/// As many texts may be embedded at once: an answer is much larger than its request.
const MOST_INPUTS: usize = 2_048;

/// What a request asks for.
#[derive(Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) dialect: Dialect,
    pub(crate) model: Cow<'a, str>,
    pub(crate) stream: bool,
    /// Chat completions: `stream_options.include_usage`.
    pub(crate) stream_usage: bool,
    /// The most output tokens, under whichever name the dialect gives it.
    pub(crate) max_tokens: Option<u32>,
    /// Messages, or inputs to embed.
    pub(crate) messages: u32,
    /// Every text of the prompt, in order.
    pub(crate) texts: Vec<Cow<'a, str>>,
    /// Input tokens that came as numbers (embeddings).
    token_ids: u64,
}

impl<'a> Ask<'a> {
    /// Reads a request's body.
    ///
    /// # Errors
    /// What is wrong with it, for the client to read.
    pub(crate) fn parse(dialect: Dialect, body: &'a [u8]) -> Result<Self, String> {
        let raw: Raw<'a> = serde_json::from_slice(body).map_err(|error| {
            format!("We could not parse the JSON body of your request: {error}")
        })?;
        match dialect {
            Dialect::OpenaiChat | Dialect::AnthropicMessages if raw.messages.is_none() => {
                Err("you must provide a messages parameter".to_owned())
            }
            Dialect::OpenaiResponses | Dialect::OpenaiEmbeddings if raw.input.is_none() => {
                Err("you must provide an input parameter".to_owned())
            }
            Dialect::AnthropicMessages if raw.max_tokens.is_none() => {
                Err("max_tokens: Field required".to_owned())
            }
            Dialect::OpenaiEmbeddings if raw.input.as_ref().is_some_and(Input::is_too_long) => {
                Err(format!("input must not have more than {MOST_INPUTS} items"))
            }
            _ => Ok(raw.resolve(dialect)),
        }
    }

    /// Input tokens: for each text its UTF-8 bytes divided by four, rounded up; token ids as they are.
    pub(crate) fn prompt_tokens(&self) -> u64 {
        let tokens = |text: &Cow<'_, str>| text.len().div_ceil(4) as u64;
        self.texts.iter().map(tokens).sum::<u64>() + self.token_ids
    }
}

/// The members of all dialects. Those of other dialects, and unknown ones, are skipped unread.
#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(borrow)]
    model: Cow<'a, str>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    max_tokens: Option<u32>,
    max_completion_tokens: Option<u32>,
    max_output_tokens: Option<u32>,
    #[serde(borrow)]
    system: Option<Content<'a>>,
    #[serde(borrow)]
    instructions: Option<Content<'a>>,
    #[serde(borrow)]
    messages: Option<Vec<Message<'a>>>,
    #[serde(borrow)]
    input: Option<Input<'a>>,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

impl<'a> Raw<'a> {
    fn resolve(self, dialect: Dialect) -> Ask<'a> {
        let mut texts = Vec::new();
        texts.extend([self.system, self.instructions].into_iter().flatten().flat_map(|one| one.0));
        let messages = self.messages.unwrap_or_default();
        let input = self.input.unwrap_or_default();
        let count = messages.len() + input.items;
        texts.extend(messages.into_iter().filter_map(|one| one.content).flat_map(|one| one.0));
        texts.extend(input.texts);
        Ask {
            dialect,
            model: self.model,
            stream: self.stream.unwrap_or(false),
            stream_usage: self.stream_options.is_some_and(|options| options.include_usage),
            max_tokens: self.max_output_tokens.or(self.max_completion_tokens).or(self.max_tokens),
            messages: u32::try_from(count).unwrap_or(u32::MAX),
            texts,
            token_ids: input.token_ids,
        }
    }
}

/// A message, or any other item of a dialogue.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Option<Content<'a>>,
}

/// The texts of a message: one text, or parts of which some have a text.
#[derive(Default)]
struct Content<'a>(Vec<Cow<'a, str>>);

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    /// What a tool gave back stands in a content of its own.
    #[serde(borrow)]
    content: Option<Content<'a>>,
}

/// A text: borrowed where the JSON has no escapes in it. (`Option<Cow<str>>` alone would copy.)
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of parts")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Content(vec![Cow::Borrowed(text)]))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Content(vec![Cow::Owned(text.to_owned())]))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Content::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        let mut texts = Vec::new();
        while let Some(part) = parts.next_element::<Part<'de>>()? {
            texts.extend(part.text.map(|text| text.0));
            texts.extend(part.content.unwrap_or_default().0);
        }
        Ok(Content(texts))
    }
}

/// `input`: a text, a list of texts or of dialogue items, or tokens as numbers.
#[derive(Default)]
struct Input<'a> {
    items: usize,
    texts: Vec<Cow<'a, str>>,
    token_ids: u64,
}

impl Input<'_> {
    const fn is_too_long(&self) -> bool {
        self.items > MOST_INPUTS
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Input<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(InputVisitor)
    }
}

struct InputVisitor;

impl<'de> Visitor<'de> for InputVisitor {
    type Value = Input<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, or a list of texts, messages or tokens")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Input { items: 1, texts: vec![Cow::Borrowed(text)], token_ids: 0 })
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Input { items: 1, texts: vec![Cow::Owned(text.to_owned())], token_ids: 0 })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut input = Input::default();
        while let Some(item) = items.next_element::<Item<'de>>()? {
            input.items += 1;
            match item {
                Item::Texts(texts) => input.texts.extend(texts),
                Item::TokenIds(count) => input.token_ids += count,
                Item::TokenId => input.token_ids += 1,
            }
        }
        // A plain list of tokens is one input.
        if input.texts.is_empty() && input.token_ids == input.items as u64 && input.items > 0 {
            input.items = 1;
        }
        Ok(input)
    }
}

/// One element of an input list.
enum Item<'a> {
    Texts(Vec<Cow<'a, str>>),
    TokenIds(u64),
    TokenId,
}

impl<'de: 'a, 'a> Deserialize<'de> for Item<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ItemVisitor)
    }
}

struct ItemVisitor;

impl<'de> Visitor<'de> for ItemVisitor {
    type Value = Item<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a message, or tokens")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Item::Texts(vec![Cow::Borrowed(text)]))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Item::Texts(vec![Cow::Owned(text.to_owned())]))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Item::TokenId)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut tokens: A) -> Result<Self::Value, A::Error> {
        let mut count = 0;
        while tokens.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(Item::TokenIds(count))
    }

    fn visit_map<A: MapAccess<'de>>(self, message: A) -> Result<Self::Value, A::Error> {
        let message = Message::deserialize(MapAccessDeserializer::new(message))?;
        Ok(Item::Texts(message.content.unwrap_or_default().0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_and_tokens_are_found_in_every_shape_of_prompt() {
        use Dialect::{AnthropicMessages, OpenaiChat, OpenaiEmbeddings, OpenaiResponses};
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
            // Escapes count as what they stand for: two letters, a line end and one of two bytes.
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
            (OpenaiEmbeddings, r#"{"model":"m","input":[[7,8],[9]]}"#, 2, 3),
        ];
        for (dialect, body, messages, tokens) in rows {
            let ask = Ask::parse(dialect, body.as_bytes()).unwrap();
            assert_eq!((ask.messages, ask.prompt_tokens()), (messages, tokens), "{body}");
        }
    }

    #[test]
    fn limits_and_stream_options_are_read_under_all_their_names() {
        for (member, limit) in [
            (r#""max_tokens":5"#, Some(5)),
            (r#""max_completion_tokens":6"#, Some(6)),
            (r#""max_output_tokens":7"#, Some(7)),
            (r#""max_tokens":null"#, None),
        ] {
            let body = format!(r#"{{"model":"m","input":"x","messages":[],{member}}}"#);
            let ask = Ask::parse(Dialect::OpenaiChat, body.as_bytes()).unwrap();
            assert_eq!(ask.max_tokens, limit, "{member}");
        }
        let body = br#"{"messages":[],"stream":true,"stream_options":{"include_usage":true},"model":"a\"b"}"#;
        let ask = Ask::parse(Dialect::OpenaiChat, body).unwrap();
        assert_eq!((ask.stream, ask.stream_usage, &*ask.model), (true, true, "a\"b"));
    }

    #[test]
    fn texts_without_escapes_are_not_copied() {
        let body =
            br#"{"model":"m","messages":[{"content":"plain"},{"content":[{"text":"part"}]}]}"#;
        let ask = Ask::parse(Dialect::OpenaiChat, body).unwrap();
        assert!(ask.texts.iter().all(|text| matches!(text, Cow::Borrowed(_))), "{ask:?}");
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_fail(
            prefix in prop::sample::select(vec![
                "", r#"{"model":"m","messages":"#, r#"{"model":"m","input":"#, r#"{"system":"#,
            ]),
            bytes in prop::collection::vec(
                prop_oneof![any::<u8>(), prop::sample::select(br#"[]{}":,\1au"#.to_vec())], 0..80,
            ),
        ) {
            let body = [prefix.as_bytes(), &bytes].concat();
            for dialect in [Dialect::OpenaiChat, Dialect::OpenaiEmbeddings] {
                let _ = Ask::parse(dialect, &body).map(|ask| ask.prompt_tokens());
            }
        }
    }

    #[test]
    fn more_inputs_than_the_limit_are_refused() {
        let body =
            |count| format!(r#"{{"model":"m","input":[{}]}}"#, vec!["\"x\""; count].join(","));
        for (count, accepted) in [(2_048, true), (2_049, false)] {
            let ask = Ask::parse(Dialect::OpenaiEmbeddings, body(count).as_bytes()).is_ok();
            assert_eq!(ask, accepted, "{count}");
        }
    }

    #[test]
    fn what_no_provider_would_accept_is_refused() {
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
            (Dialect::OpenaiResponses, r#"{"model":"m","input":7}"#),
            (Dialect::OpenaiChat, "{\"model\":\"\u{7f}\",\"messages\":[{\"content\":\"\n\"}]}"),
        ] {
            assert!(Ask::parse(dialect, body.as_bytes()).is_err(), "{body}");
        }
    }
}
