//! Reads a chat of the usual shape in one pass; `json_scanner` says what that saves.

use super::field_path::FieldPath;
use super::settings::{Settings, Streaming};
use super::texts::RequestText;
use crate::dialect::Endpoint;
use crate::json_scanner::{Scanner, set_once};

/// Members of messages with texts that only the serde path reads.
const UNUSUAL: [&str; 8] =
    ["text", "refusal", "input", "source", "tool_calls", "function", "arguments", "output"];

/// A chat whose contents are strings.
pub(super) struct Chat<'a> {
    pub(super) model: RequestText<'a>,
    pub(super) streaming: Streaming,
    pub(super) max_tokens: Option<u64>,
    pub(super) answers: u64,
    pub(super) tools: bool,
    pub(super) texts: Vec<RequestText<'a>>,
}

/// The members found so far. Null settings are kept, to detect duplicates.
#[derive(Default)]
struct Members<'a> {
    model: Option<&'a str>,
    texts: Option<Vec<RequestText<'a>>>,
    settings: Settings<'a>,
}

/// Reads a chat; None if anything in it is unusual or invalid.
pub(super) fn read(body: &str) -> Option<Chat<'_>> {
    let mut members = Members::default();
    let mut scanner = Scanner::new(body);
    scanner.object(|scanner, name| read_member(body, scanner, name, &mut members))?;
    scanner.end()?;
    members.finish(body)
}

fn read_member<'a>(
    body: &'a str,
    scanner: &mut Scanner<'a>,
    name: &str,
    members: &mut Members<'a>,
) -> Option<()> {
    let settings = &mut members.settings;
    match name {
        "model" => set_once(&mut members.model, scanner.string()?),
        "messages" => set_once(&mut members.texts, read_messages(body, scanner)?),
        "stream" => set_once(&mut settings.stream, scanner.value()?),
        "stream_options" => set_once(&mut settings.stream_options, scanner.value()?),
        "max_tokens" => set_once(&mut settings.max_tokens, scanner.value()?),
        "max_completion_tokens" => set_once(&mut settings.max_completion_tokens, scanner.value()?),
        "max_output_tokens" => set_once(&mut settings.max_output_tokens, scanner.value()?),
        "n" => set_once(&mut settings.n, scanner.value()?),
        "tools" => set_once(&mut settings.tools, scanner.value()?),
        // Members of other endpoints.
        "system" | "instructions" | "input" => None,
        _ => scanner.value().map(|_| ()),
    }
}

fn read_messages<'a>(body: &'a str, scanner: &mut Scanner<'a>) -> Option<Vec<RequestText<'a>>> {
    let mut texts = Vec::with_capacity(4);
    let count = scanner.array(|scanner| {
        let (mut role, mut content) = (None, None);
        scanner.object(|scanner, name| match name {
            "role" => set_once(&mut role, scanner.string()?),
            "content" => set_once(&mut content, scanner.value()?),
            unusual if UNUSUAL.contains(&unusual) => None,
            _ => scanner.value().map(|_| ()),
        })?;
        role.filter(|role| !role.contains('\\'))?;
        if let Some(content) = content.filter(|content| *content != "null") {
            texts.push(RequestText::decode(body, content, FieldPath::Name("content")).ok()?);
        }
        Some(())
    })?;
    (count > 0).then_some(texts)
}

impl<'a> Members<'a> {
    fn finish(self, body: &'a str) -> Option<Chat<'a>> {
        let model = RequestText::decode(body, self.model?, FieldPath::Name("model")).ok()?;
        let settings = self.settings.without_nulls();
        Some(Chat {
            streaming: settings.streaming().ok()?,
            max_tokens: settings.max_tokens(Endpoint::Chat).ok()?,
            answers: settings.answers().ok()?,
            tools: settings.has_tools(),
            model: Some(model).filter(|model| !model.as_str().is_empty())?,
            texts: self.texts?,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::request_view::RequestView;

    /// Whatever the fast path reads, the serde path reads with the same result.
    fn agree(body: &str) -> Result<(), TestCaseError> {
        let Some(fast) = RequestView::read_fast(body) else { return Ok(()) };
        let slow = RequestView::read_with_serde(Endpoint::Chat, body);
        prop_assert!(slow.is_ok(), "{body}: {slow:?}");
        let slow = slow.ok().map(|view| format!("{view:?}"));
        prop_assert_eq!(Some(format!("{fast:?}")), slow, "{}", body);
        Ok(())
    }

    #[test]
    fn usual_chats_take_the_fast_path() {
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
    fn unusual_and_invalid_chats_take_the_serde_path() {
        let rows = [
            r#"{"model":"m","messages":[]}"#,
            r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}"#,
            r#"{"model":"m","messages":[{"role":"assistant","tool_calls":[]}]}"#,
            r#"{"model":"m","model":"m","messages":[{"role":"user"}]}"#,
            r#"{"model":"m","m\u006fdel":"m","messages":[{"role":"user"}]}"#,
            r#"{"model":"m","messages":[{"role":"user","content":"\ud800"}]}"#,
            r#"{"model":"m","messages":[{"role":"user"}],"stream":"true"}"#,
            r#"{"model":"m","messages":[{"role":"user"}],"max_tokens":-1}"#,
            r#"{"model":"m","messages":[{"role":"user"}],"n":0}"#,
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
            "n",
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
        fn both_paths_agree(body in chats()) {
            agree(&body)?;
        }

        #[test]
        fn both_paths_agree_when_a_character_is_missing(body in chats(), at in any::<prop::sample::Index>()) {
            let at = body.floor_char_boundary(at.index(body.len()));
            let character = body[at..].chars().next().map_or(0, char::len_utf8);
            agree(&[&body[..at], &body[at + character..]].concat())?;
        }
    }
}
