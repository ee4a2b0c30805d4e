//! Counts and checks the rounds of tool calls in a conversation, with the providers' rules.

use serde_json::Value;

use crate::dialect::Dialect;

/// The inputs of a turn.
#[derive(Debug)]
pub(crate) struct Conversation {
    /// Rounds of tool results since the last message of the user.
    pub(crate) rounds: u32,
    /// The text of that message.
    pub(crate) task: String,
    /// The names of the tools that the request offers.
    pub(crate) offered: Vec<String>,
    /// Whether the request allows calls: `tool_choice` is not `none`.
    pub(crate) may_call: bool,
}

impl Conversation {
    /// Reads the conversation of a request.
    ///
    /// # Errors
    /// A call without its result, a result without its call, or a reference to an earlier response,
    /// as a message for the client.
    pub(crate) fn read(dialect: Dialect, body: &[u8]) -> Result<Self, String> {
        let body: Value = serde_json::from_slice(body).map_err(|error| {
            format!("We could not parse the JSON body of your request: {error}")
        })?;
        let mut rounds = Rounds::default();
        match dialect {
            Dialect::OpenaiChat => rounds.read_chat(&body)?,
            Dialect::OpenaiResponses => rounds.read_responses(&body)?,
            Dialect::AnthropicMessages => rounds.read_messages(&body)?,
            Dialect::OpenaiCompletions | Dialect::OpenaiEmbeddings | Dialect::Websocket => {}
        }
        let choice = &body["tool_choice"];
        let choice = choice.as_str().or_else(|| choice["type"].as_str());
        Ok(Self {
            rounds: rounds.count,
            task: rounds.task,
            offered: list(&body["tools"])
                .iter()
                .filter_map(|tool| {
                    let name = tool.get("name").or_else(|| tool["function"].get("name"));
                    name.and_then(Value::as_str).map(str::to_owned)
                })
                .collect(),
            may_call: choice != Some("none"),
        })
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A text member; empty if it is missing or not a text.
fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// The texts of a content: a text, or a list of parts, some with a text.
fn texts(content: &Value) -> String {
    let parts = list(content).iter().map(|part| text(part, "text"));
    content.as_str().map_or_else(|| parts.collect(), str::to_owned)
}

/// Follows a conversation.
#[derive(Debug, Default)]
struct Rounds<'a> {
    /// Calls without a result.
    pending: Vec<&'a str>,
    count: u32,
    task: String,
}

impl<'a> Rounds<'a> {
    fn user(&mut self, text: String) {
        (self.count, self.task) = (0, text);
    }

    /// Takes a result. The last one ends the round.
    ///
    /// # Errors
    /// Its call is not pending.
    fn result(&mut self, id: &str, problem: impl FnOnce() -> String) -> Result<(), String> {
        let place = self.pending.iter().position(|pending| *pending == id);
        self.pending.remove(place.ok_or_else(problem)?);
        self.count += u32::from(self.pending.is_empty());
        Ok(())
    }

    fn read_chat(&mut self, body: &'a Value) -> Result<(), String> {
        for message in list(&body["messages"]) {
            if text(message, "role") == "tool" {
                let call = text(message, "tool_call_id");
                self.result(call, || CHAT_WITHOUT_CALL.to_owned())?;
                continue;
            }
            self.check_chat()?;
            match text(message, "role") {
                "assistant" => {
                    self.pending = list(&message["tool_calls"]).iter().map(id).collect();
                }
                "user" => self.user(texts(&message["content"])),
                _ => {}
            }
        }
        self.check_chat()
    }

    fn check_chat(&self) -> Result<(), String> {
        self.check(|ids| {
            format!(
                "An assistant message with 'tool_calls' must be followed by tool messages responding \
                 to each 'tool_call_id'. The following tool_call_ids did not have response messages: \
                 {ids}"
            )
        })
    }

    fn read_responses(&mut self, body: &'a Value) -> Result<(), String> {
        if body["previous_response_id"].is_string() {
            return Err("This model keeps no responses: send the whole conversation in input, \
                        without previous_response_id"
                .to_owned());
        }
        if let Some(text) = body["input"].as_str() {
            self.user(text.to_owned());
        }
        for item in list(&body["input"]) {
            match (text(item, "type"), text(item, "role")) {
                ("function_call", _) => self.pending.push(text(item, "call_id")),
                ("function_call_output", _) => {
                    let call = text(item, "call_id");
                    let problem = "No tool call found for function call output with call_id";
                    self.result(call, || format!("{problem} {call}."))?;
                }
                (_, "user") => {
                    self.check_responses()?;
                    self.user(texts(&item["content"]));
                }
                _ => {}
            }
        }
        self.check_responses()
    }

    fn check_responses(&self) -> Result<(), String> {
        self.check(|ids| format!("No tool output found for function call {ids}."))
    }

    fn read_messages(&mut self, body: &'a Value) -> Result<(), String> {
        for message in list(&body["messages"]) {
            let content = list(&message["content"]);
            let parts = |kind| content.iter().filter(move |part| text(part, "type") == kind);
            let mut has_results = false;
            for part in parts("tool_result") {
                has_results = true;
                let call = text(part, "tool_use_id");
                self.result(call, || unexpected_result(call))?;
            }
            self.check_messages()?;
            if text(message, "role") == "assistant" {
                self.pending = parts("tool_use").map(id).collect();
            } else if !has_results {
                self.user(texts(&message["content"]));
            }
        }
        self.check_messages()
    }

    fn check_messages(&self) -> Result<(), String> {
        self.check(|ids| {
            format!(
                "messages: `tool_use` ids were found without `tool_result` blocks immediately after: \
                 {ids}. Each `tool_use` block must have a corresponding `tool_result` block in the \
                 next message."
            )
        })
    }

    /// Checks that every call has a result.
    fn check(&self, problem: impl FnOnce(&str) -> String) -> Result<(), String> {
        if self.pending.is_empty() { Ok(()) } else { Err(problem(&self.pending.join(", "))) }
    }
}

fn id(call: &Value) -> &str {
    text(call, "id")
}

fn unexpected_result(call: &str) -> String {
    format!(
        "messages: unexpected `tool_use_id` found in `tool_result` blocks: {call}. Each `tool_result` \
         block must have a corresponding `tool_use` block in the previous message."
    )
}

const CHAT_WITHOUT_CALL: &str =
    "messages with role 'tool' must be a response to a preceding message with 'tool_calls'.";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// A member of a conversation: a message of the user, calls, or results.
    enum Part<'a> {
        User(&'a str),
        Calls(&'a [&'a str]),
        Results(&'a [&'a str]),
    }
    use Part::{Calls, Results, User};

    fn chat(parts: &[Part<'_>]) -> Value {
        let mut messages = vec![json!({"role": "system", "content": "s"})];
        for part in parts {
            match part {
                User(text) => messages.push(json!({"role": "user", "content": text})),
                Calls(ids) => {
                    let calls: Vec<_> = ids.iter().map(|id| json!({"id": id})).collect();
                    let calls = json!({"role": "assistant", "content": null, "tool_calls": calls});
                    messages.push(calls);
                }
                Results(ids) => messages.extend(
                    ids.iter().map(|id| json!({"role": "tool", "tool_call_id": id, "content": ""})),
                ),
            }
        }
        json!({"messages": messages})
    }

    fn responses(parts: &[Part<'_>]) -> Value {
        let mut input = vec![json!({"type": "reasoning", "summary": []})];
        for part in parts {
            match part {
                User(text) => {
                    let content = json!([{"type": "input_text", "text": text}]);
                    input.push(json!({"role": "user", "content": content}));
                }
                Calls(ids) => {
                    input.extend(ids.iter().map(|id| responses_item("function_call", id)));
                }
                Results(ids) => {
                    input.extend(ids.iter().map(|id| responses_item("function_call_output", id)));
                }
            }
        }
        json!({"input": input})
    }

    fn responses_item(kind: &str, id: &str) -> Value {
        json!({"type": kind, "call_id": id, "output": "x"})
    }

    fn messages(parts: &[Part<'_>]) -> Value {
        json!({"messages": parts.iter().map(anthropic_message).collect::<Vec<_>>()})
    }

    fn anthropic_message(part: &Part<'_>) -> Value {
        match part {
            User(text) => json!({"role": "user", "content": [{"type": "text", "text": text}]}),
            Calls(ids) => {
                let uses = ids.iter().map(|id| json!({"type": "tool_use", "id": id}));
                json!({"role": "assistant", "content": uses.collect::<Vec<_>>()})
            }
            Results(ids) => {
                let results =
                    ids.iter().map(|id| json!({"type": "tool_result", "tool_use_id": id}));
                let text = json!({"type": "text", "text": "go on"});
                json!({"role": "user", "content": results.chain([text]).collect::<Vec<_>>()})
            }
        }
    }

    /// Rounds and task, or the refusal, in each dialect.
    fn read(parts: &[Part<'_>]) -> [Result<(u32, String), String>; 3] {
        let read = |dialect, body: Value| {
            let found = Conversation::read(dialect, body.to_string().as_bytes());
            found.map(|found| (found.rounds, found.task))
        };
        [
            read(Dialect::OpenaiChat, chat(parts)),
            read(Dialect::OpenaiResponses, responses(parts)),
            read(Dialect::AnthropicMessages, messages(parts)),
        ]
    }

    #[test]
    fn rounds_are_counted_from_the_last_message_of_the_user() {
        let rows: [(&[Part<'_>], u32, &str); 6] = [
            (&[], 0, ""),
            (&[User("a")], 0, "a"),
            (&[User("a"), Calls(&["1"]), Results(&["1"])], 1, "a"),
            // Parallel calls are one round, in whichever order their results come.
            (&[User("a"), Calls(&["1", "2"]), Results(&["2", "1"])], 1, "a"),
            (&[User("a"), Calls(&["1"]), Results(&["1"]), Calls(&["2"]), Results(&["2"])], 2, "a"),
            (&[User("a"), Calls(&["1"]), Results(&["1"]), User("b")], 0, "b"),
        ];
        for (index, (parts, rounds, task)) in rows.into_iter().enumerate() {
            for found in read(parts) {
                assert_eq!(found, Ok((rounds, task.to_owned())), "{index}");
            }
        }
    }

    #[test]
    fn calls_without_results_and_results_without_calls_are_refused() {
        let rows: [(&[Part<'_>], &str); 6] = [
            (&[User("a"), Calls(&["1"])], "1"),
            (&[User("a"), Calls(&["1", "2"]), Results(&["1"])], "2"),
            (&[User("a"), Calls(&["1"]), User("b")], "1"),
            (&[User("a"), Results(&["9"])], "9"),
            (&[User("a"), Calls(&["1"]), Results(&["9"])], "9"),
            (&[User("a"), Calls(&["1"]), Results(&["1", "1"])], "1"),
        ];
        for (index, (parts, id)) in rows.into_iter().enumerate() {
            for (dialect, found) in read(parts).into_iter().enumerate() {
                let problem = found.expect_err("refused");
                // Only chat completions do not name the result.
                let named = problem == CHAT_WITHOUT_CALL || problem.contains(id);
                assert!(named, "{index} {dialect}: {problem}");
            }
        }
    }

    #[test]
    fn offered_tools_and_the_choice_of_none_are_read_in_each_form() {
        for (dialect, tool, none) in [
            (Dialect::OpenaiChat, json!({"function": {"name": "f"}}), json!("none")),
            (Dialect::OpenaiResponses, json!({"type": "function", "name": "f"}), json!("none")),
            (Dialect::AnthropicMessages, json!({"name": "f"}), json!({"type": "none"})),
        ] {
            for (choice, may_call) in [(json!("auto"), true), (json!(null), true), (none, false)] {
                let body = json!({"tools": [tool, 7], "tool_choice": choice, "input": "t"});
                let found = Conversation::read(dialect, body.to_string().as_bytes()).unwrap();
                assert_eq!((found.offered, found.may_call), (vec!["f".to_owned()], may_call));
            }
        }
    }

    /// JSON made of the words that conversations are made of, in any place.
    fn any_json() -> impl Strategy<Value = Value> {
        let words = [
            "messages",
            "input",
            "role",
            "user",
            "assistant",
            "tool",
            "content",
            "type",
            "id",
            "text",
            "tool_use",
            "tool_result",
            "tool_use_id",
            "tool_call_id",
            "tool_calls",
            "call_id",
            "function_call",
            "function_call_output",
            "tools",
            "function",
            "name",
            "tool_choice",
            "none",
        ];
        let word = prop::sample::select(words.to_vec());
        let leaf = prop_oneof![
            word.clone().prop_map(Value::from),
            Just(Value::Null),
            any::<i8>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 48, 6, move |inner| {
            let object = prop::collection::btree_map(word.clone(), inner.clone(), 0..6);
            let object = object.prop_map(|members| {
                members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            });
            prop_oneof![
                prop::collection::vec(inner, 0..6).prop_map(Value::Array),
                object.prop_map(Value::Object),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_json_makes_the_reader_panic(messages in any_json(), body in any_json()) {
            let whole = json!({"messages": messages, "input": messages, "tools": body});
            for body in [whole, body] {
                for dialect in
                    [Dialect::OpenaiChat, Dialect::OpenaiResponses, Dialect::AnthropicMessages]
                {
                    let _ = Conversation::read(dialect, body.to_string().as_bytes());
                }
            }
        }
    }

    #[test]
    fn a_reference_to_an_earlier_response_and_deep_nesting_are_refused() {
        let body = br#"{"input":"x","previous_response_id":"resp_1"}"#;
        let problem = Conversation::read(Dialect::OpenaiResponses, body).unwrap_err();
        assert!(problem.contains("previous_response_id"), "{problem}");
        let deep = format!(r#"{{"messages":{}"#, "[".repeat(100_000));
        assert!(Conversation::read(Dialect::OpenaiChat, deep.as_bytes()).is_err());
    }
}
