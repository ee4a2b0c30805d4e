//! The members of a request that a translation keeps, rejects or omits.
//!
//! The tables in `members.json` list the handling of every member in each dialect. Members in no
//! table are omitted and reported, so that new API members are never lost silently.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::dialect::Dialect;
use crate::error::DialectError;
use crate::json;

/// The most bytes of the names of omitted members.
const MOST_BYTES: usize = 240;
/// The most bytes of one name.
const MOST_NAME: usize = 64;

/// How a member is handled. Values are JSON without white space.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Fate {
    /// Translated with all its content.
    Kept,
    /// Handled by its own members, for an object or each object of a list.
    Of(Fates),
    /// Omitted; `null` and these values are not reported.
    LeftOut(Vec<String>),
    /// Rejected unless `null` or one of these values, because it changes the response.
    Refused(Vec<String>, String),
}

/// How the members of an object are handled, by name.
type Fates = HashMap<String, Fate>;

/// The members of a request in each dialect.
#[derive(Debug, Default, Deserialize)]
struct Tables {
    openai: Fates,
    anthropic: Fates,
}

static TABLES: LazyLock<Tables> =
    LazyLock::new(|| serde_json::from_str(include_str!("members.json")).unwrap_or_default());

/// The names of the members that a translation omits, separated by commas; `None` without any.
/// Unreadable requests are skipped here and rejected by the translation.
///
/// # Errors
/// A member whose absence would change the answer.
pub(super) fn left_out(caller: Dialect, body: &[u8]) -> Result<Option<String>, DialectError> {
    let members = match caller {
        Dialect::OpenAi => &TABLES.openai,
        Dialect::Anthropic => &TABLES.anthropic,
    };
    let mut found = Found::default();
    let Ok(body) = json::checked(body) else { return Ok(None) };
    let read = found.walk(body, members, "");
    if read.is_err() && found.refused.is_none() {
        return Ok(None);
    }
    match found.refused {
        Some((field, what)) => Err(DialectError::unsupported(field, what)),
        None => Ok((!found.names.is_empty()).then(|| found.text())),
    }
}

/// The findings so far.
#[derive(Debug, Default)]
struct Found {
    names: Vec<String>,
    bytes: usize,
    has_more: bool,
    refused: Option<(String, &'static str)>,
}

impl Found {
    /// Walks through an object, or a list of objects.
    fn walk(
        &mut self,
        value: &str,
        known: &'static Fates,
        path: &str,
    ) -> Result<(), serde_json::Error> {
        if value.starts_with('[') {
            let path = format!("{path}[]");
            return json::items(value).try_for_each(|item| self.walk(item, known, &path));
        }
        if !value.starts_with('{') {
            return Ok(());
        }
        for (name, value) in json::members(value)? {
            match known.get(&*name) {
                Some(Fate::Kept) => {}
                Some(Fate::Of(members)) => self.walk(value, members, &join(path, &name))?,
                Some(Fate::LeftOut(silent)) => {
                    self.leave_out(&name, path, is_one_of(value, silent));
                }
                None => self.leave_out(&name, path, is_one_of(value, &[])),
                Some(Fate::Refused(silent, what)) => {
                    self.refuse(&name, path, is_one_of(value, silent), what);
                }
            }
        }
        Ok(())
    }

    /// Omits a member; one without effect is not reported.
    fn leave_out(&mut self, member: &str, path: &str, says_nothing: bool) {
        let name = join(path, member);
        if says_nothing || self.names.contains(&name) {
            return;
        }
        if self.bytes + name.len() > MOST_BYTES {
            self.has_more = true;
            return;
        }
        self.bytes += name.len() + 2;
        self.names.push(name);
    }

    /// Rejects a member, unless it has no effect. The first one is reported.
    fn refuse(&mut self, member: &str, path: &str, says_nothing: bool, what: &'static str) {
        if !says_nothing && self.refused.is_none() {
            self.refused = Some((join(path, member), what));
        }
    }

    fn text(&self) -> String {
        self.names.join(", ") + if self.has_more { ", ..." } else { "" }
    }
}

/// The path of a member. Clients choose names, so characters that do not fit into a header are
/// dropped.
fn join(path: &str, member: &str) -> String {
    let member = member.chars().take(MOST_NAME);
    let member: String =
        member.map(|c| if c.is_ascii_graphic() && c != ',' { c } else { '?' }).collect();
    if path.is_empty() { member } else { format!("{path}.{member}") }
}

/// Whether a value is `null` or one of these, ignoring white space.
fn is_one_of(value: &str, silent: &[String]) -> bool {
    let text: String = value.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    text == "null" || silent.contains(&text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn names(caller: Dialect, body: &Value) -> String {
        left_out(caller, body.to_string().as_bytes()).unwrap().unwrap_or_default()
    }

    #[test]
    fn what_is_left_out_is_named_with_its_path_once() {
        let message = json!({"role": "user", "name": "ann", "content": [
            {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
            {"type": "image_url", "image_url": {"url": "u", "detail": "high"}},
            {"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}},
        ]});
        let tool = json!({"type": "function", "function": {"name": "f", "strict": true}});
        let body = json!({"model": "m", "messages": [message], "seed": 7, "top_p": 1,
            "tools": [tool], "logit_bias": {"5": 1}, "presence_penalty": 0, "x\ny,z": 1,
            "reasoning_effort": "low", "stream_options": {"include_usage": true}});
        assert_eq!(
            names(Dialect::OpenAi, &body).split(", ").collect::<std::collections::BTreeSet<_>>(),
            [
                "logit_bias",
                "messages[].content[].cache_control",
                "messages[].content[].image_url.detail",
                "messages[].name",
                "reasoning_effort",
                "seed",
                "tools[].function.strict",
                "x?y?z",
            ]
            .into()
        );
        let result = json!({"type": "tool_result", "tool_use_id": "t", "is_error": true,
            "content": [{"type": "text", "text": "x", "citations": []}]});
        let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
        let body = json!({"model": "m", "max_tokens": 5, "top_k": 5, "metadata": {"user_id": "u"},
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "system": [{"type": "text", "text": "s", "cache_control": {}}],
            "messages": [{"role": "user", "content": [result, thinking]}]});
        assert_eq!(
            names(Dialect::Anthropic, &body).split(", ").collect::<std::collections::BTreeSet<_>>(),
            [
                "messages[].content[].content[].citations",
                "messages[].content[].is_error",
                "messages[].content[].signature",
                "messages[].content[].thinking",
                "system[].cache_control",
                "thinking",
                "top_k",
            ]
            .into()
        );
    }

    #[test]
    fn values_that_say_nothing_are_not_named() {
        let body = json!({"model": "m", "messages": [{"role": "user", "content": "x"}],
            "seed": null, "frequency_penalty": 0.0, "logit_bias": {}, "logprobs": false,
            "response_format": {"type": "text"}, "functions": null, "service_tier": "auto"});
        assert_eq!(names(Dialect::OpenAi, &body), "");
        let body = json!({"model": "m", "max_tokens": 1, "messages": [],
            "thinking": {"type": "disabled"}, "mcp_servers": [], "top_k": null});
        assert_eq!(names(Dialect::Anthropic, &body), "");
    }

    #[test]
    fn what_makes_another_answer_is_refused_by_its_name() {
        for (caller, member, value) in [
            (Dialect::OpenAi, "response_format", json!({"type": "json_object"})),
            (Dialect::OpenAi, "response_format", json!({"type": "json_schema", "json_schema": {}})),
            (Dialect::OpenAi, "logprobs", json!(true)),
            (Dialect::OpenAi, "functions", json!([{"name": "f"}])),
            (Dialect::OpenAi, "modalities", json!(["text", "audio"])),
            (Dialect::Anthropic, "mcp_servers", json!([{"url": "u"}])),
            (Dialect::Anthropic, "container", json!("c")),
        ] {
            let body = json!({"model": "m", "messages": [], member: value}).to_string();
            let error = left_out(caller, body.as_bytes()).unwrap_err();
            assert_eq!(error.status(), 400);
            assert!(error.to_string().starts_with(member), "{error}");
        }
        let body = json!({"output_config": {"format": {"type": "json_schema"}}}).to_string();
        let error = left_out(Dialect::Anthropic, body.as_bytes()).unwrap_err();
        assert!(error.to_string().starts_with("output_config.format"), "{error}");
    }

    #[test]
    fn a_flood_of_brackets_is_left_to_the_translation() {
        for (opening, name) in [("[", "messages"), (r#"{"content":"#, "messages"), ("[", "x")] {
            let body = format!(r#"{{"{name}":{}"#, opening.repeat(200_000));
            assert_eq!(left_out(Dialect::OpenAi, body.as_bytes()), Ok(None));
            let closed = ["[".repeat(200_000), "]".repeat(200_000)].concat();
            let body = format!(r#"{{"{name}":{closed}}}"#);
            assert_eq!(left_out(Dialect::OpenAi, body.as_bytes()), Ok(None));
        }
    }

    #[test]
    fn a_flood_of_names_is_cut() {
        let many: serde_json::Map<String, Value> =
            (0..5_000).map(|at| (format!("member-{at}"), json!(1))).collect();
        let named = names(Dialect::OpenAi, &Value::Object(many));
        assert!(named.len() < 260 && named.ends_with(", ..."), "{named}");
        let long = json!({"y".repeat(10_000): 1});
        assert_eq!(names(Dialect::OpenAi, &long).len(), 64);
    }
}
