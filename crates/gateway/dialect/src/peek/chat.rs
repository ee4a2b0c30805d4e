//! A look at a chat of the usual shape, in one pass.

use crate::dialect::Endpoint;
use crate::peek::path::Path;
use crate::peek::{RequestView, Settings, Text};
use crate::scanner::{Scanner, once};

/// Members of messages that hold texts in shapes of their own.
const UNUSUAL: [&str; 8] =
    ["text", "refusal", "input", "source", "tool_calls", "function", "arguments", "output"];

/// The members of a chat, as they are written: in the settings null is a value, too.
#[derive(Default)]
struct Members<'a> {
    model: Option<&'a str>,
    texts: Option<Vec<Text<'a>>>,
    settings: Settings<'a>,
}

/// Reads a chat whose contents are strings; none where anything is unusual, or wrong.
pub(super) fn read(body: &str) -> Option<RequestView<'_>> {
    let mut members = Members::default();
    let mut scanner = Scanner::new(body);
    scanner.object(|scanner, name| member(body, scanner, name, &mut members))?;
    scanner.end()?;
    members.peek(body)
}

fn member<'a>(
    body: &'a str,
    scanner: &mut Scanner<'a>,
    name: &str,
    members: &mut Members<'a>,
) -> Option<()> {
    let settings = &mut members.settings;
    match name {
        "model" => once(&mut members.model, scanner.string()?),
        "messages" => once(&mut members.texts, messages(body, scanner)?),
        "stream" => once(&mut settings.stream, scanner.value()?),
        "stream_options" => once(&mut settings.stream_options, scanner.value()?),
        "max_tokens" => once(&mut settings.max_tokens, scanner.value()?),
        "max_completion_tokens" => once(&mut settings.max_completion_tokens, scanner.value()?),
        "max_output_tokens" => once(&mut settings.max_output_tokens, scanner.value()?),
        "tools" => once(&mut settings.tools, scanner.value()?),
        // Of other endpoints.
        "system" | "instructions" | "input" => None,
        _ => scanner.value().map(|_| ()),
    }
}

fn messages<'a>(body: &'a str, scanner: &mut Scanner<'a>) -> Option<Vec<Text<'a>>> {
    let mut texts = Vec::with_capacity(4);
    let count = scanner.array(|scanner| {
        let (mut role, mut content) = (None, None);
        scanner.object(|scanner, name| match name {
            "role" => once(&mut role, scanner.string()?),
            "content" => once(&mut content, scanner.value()?),
            unusual if UNUSUAL.contains(&unusual) => None,
            _ => scanner.value().map(|_| ()),
        })?;
        role.filter(|role| !role.contains('\\'))?;
        if let Some(content) = content.filter(|content| *content != "null") {
            texts.push(Text::of(body, content, Path::Name("content")).ok()?);
        }
        Some(())
    })?;
    (count > 0).then_some(texts)
}

impl<'a> Members<'a> {
    fn peek(self, body: &'a str) -> Option<RequestView<'a>> {
        let model = Text::of(body, self.model?, Path::Name("model")).ok()?;
        let settings = self.settings.without_nulls();
        Some(RequestView {
            body,
            streaming: settings.streaming().ok()?,
            max_tokens: settings.max_tokens(Endpoint::Chat).ok()?,
            tools: settings.has_tools(),
            model: Some(model).filter(|model| !model.as_str().is_empty())?,
            texts: self.texts?,
            token_ids: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What was read, in a form that can be compared.
    fn seen(peek: &RequestView<'_>) -> String {
        let RequestView { body: _, model, streaming, max_tokens, tools, texts, token_ids } = peek;
        format!("{model:?} {streaming:?} {max_tokens:?} {tools} {texts:?} {token_ids}")
    }

    fn agree(body: &str) -> Result<(), TestCaseError> {
        let Some(plain) = read(body) else { return Ok(()) };
        let thorough = RequestView::read_thoroughly(Endpoint::Chat, body);
        prop_assert!(thorough.is_ok(), "{body}: {thorough:?}");
        prop_assert_eq!(Some(seen(&plain)), thorough.ok().as_ref().map(seen), "{}", body);
        Ok(())
    }

    #[test]
    fn the_usual_shapes_are_read() {
        let rows = [
            r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#,
            r#" {"messages":[{"content":"a\n\"b\"","role":"user","name":"n"},{"role":"assistant","content":null}],
                "model":"m","stream":true,"stream_options":{"include_usage":true},"max_tokens":5,
                "max_completion_tokens":null,"tools":[{"type":"function"}],"temperature":0.5,"stop":["x"]} "#,
            r#"{"model":"m","messages":[{"role":"user","content":""}],"tools":[],"stream":null}"#,
        ];
        for body in rows {
            assert!(read(body).is_some(), "{body}");
            agree(body).unwrap();
        }
    }

    #[test]
    fn what_is_unusual_is_left_to_the_thorough_reader() {
        let rows = [
            r#"{"model":"m","messages":[]}"#,
            r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}"#,
            r#"{"model":"m","messages":[{"role":"assistant","tool_calls":[]}]}"#,
            r#"{"model":"m","model":"m","messages":[{"role":"user"}]}"#,
            r#"{"model":"m","m\u006fdel":"m","messages":[{"role":"user"}]}"#,
            r#"{"model":"m","messages":[{"role":"user","content":"\ud800"}]}"#,
            r#"{"model":"m","messages":[{"role":"user"}],"stream":"true"}"#,
            r#"{"model":"m","messages":[{"role":"user"}],"max_tokens":-1}"#,
            r#"{"model":"m","messages":[{"role":"user"}],"input":1}"#,
            r#"{"model":"m","messages":[{"role":"user"}]} x"#,
        ];
        for body in rows {
            assert!(read(body).is_none(), "{body}");
        }
    }

    fn chats() -> impl Strategy<Value = String> {
        let values = || {
            prop::sample::select(vec![
                "\"m\"",
                "\"\"",
                "\"a\\nb\"",
                "\"\\ud800\"",
                "\"\\q\"",
                "null",
                "true",
                "false",
                "5",
                "-1",
                "1.5",
                "[]",
                "{}",
                "[1]",
                "{\"include_usage\":true}",
                "{\"include_usage\":1}",
                "[{\"role\":\"user\"}]",
                "x",
                "[{\"role\":\"user\",\"content\":\"hi\"},{\"content\":\"é\",\"role\":\"\\u0061\"}]",
                "[{\"role\":\"user\",\"content\":\"hi\",\"content\":\"a\"}]",
                "[{\"role\":\"user\",\"content\":[{\"text\":\"part\"}]},{\"role\":\"tool\",\"content\":\"t\"}]",
                "[{\"role\":null}]",
                "[[\"user\"]]",
            ])
        };
        let names = prop::sample::select(vec![
            "model",
            "messages",
            "stream",
            "stream_options",
            "max_tokens",
            "max_completion_tokens",
            "tools",
            "input",
            "temperature",
            "mod\\u0065l",
        ]);
        let members = prop::collection::vec((names, values()), 0..4);
        members.prop_map(|members| {
            let base =
                [("model", "\"m\""), ("messages", "[{\"role\":\"user\",\"content\":\"hi\"}]")];
            let kept =
                base.into_iter().filter(|(name, _)| members.iter().all(|(own, _)| own != name));
            let all = kept.chain(members.iter().copied());
            let all: Vec<_> = all.map(|(name, value)| format!("\"{name}\": {value}")).collect();
            format!("{{{}}}", all.join(" ,"))
        })
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_the_thorough_reader_reads(body in chats()) {
            agree(&body)?;
        }

        #[test]
        fn so_it_is_when_a_byte_is_lost(body in chats(), at in any::<prop::sample::Index>()) {
            let at = body.floor_char_boundary(at.index(body.len()));
            let character = body[at..].chars().next().map_or(0, char::len_utf8);
            agree(&[&body[..at], &body[at + character..]].concat())?;
        }
    }
}
