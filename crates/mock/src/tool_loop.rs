//! Models that call tools for some rounds before they answer with text.
//!
//! The turn depends only on the request, because the conversation contains the previous rounds. So
//! no state is needed, and the same request always gets the same turn.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use smart_default::SmartDefault;

use crate::check::check_distribution;
use crate::distribution::Distribution;
use crate::model_output::{ToolCall, WORD_BYTES, Words};
use crate::rng::{Purpose, RequestRng, mixed};

mod conversation;

pub(crate) use conversation::Conversation;

/// The most calls of one round.
const MAX_PARALLEL: u32 = 64;

/// The largest arguments, in bytes.
const MAX_ARGUMENTS: u32 = 1 << 20;

/// Length of arguments without words: `{"text":""}`.
const ARGUMENTS_FRAME: u32 = 11;

/// A model that calls tools. Calls are sent completely, regardless of the request's token limit.
#[derive(Clone, Debug, SmartDefault, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ToolLoop {
    /// Rounds of tool calls before the text. Sampled once per task, from the seed and the last
    /// message of the user.
    #[default(Distribution::Constant(1))]
    pub steps: Distribution<u32>,
    /// The names of the tools, called in turn. Default: the tools of the request.
    pub tools: Vec<String>,
    /// The arguments: bytes of their JSON, `{"text":"..."}`, at least 11; or an object.
    #[default(ToolArguments::Bytes(32))]
    pub arguments: ToolArguments,
    /// Calls in each round.
    #[default(1)]
    pub parallel: u32,
}

/// The arguments of the calls of a [`ToolLoop`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number of bytes, or an object with the arguments")]
pub enum ToolArguments {
    /// A number of bytes of JSON, with words that differ between calls.
    Bytes(u32),
    /// A fixed object.
    Fixed(Map<String, Value>),
}

impl ToolLoop {
    pub(crate) fn check(&self, path: &str, problems: &mut Vec<String>) {
        check_distribution(&self.steps, path, "steps", problems);
        if !(1..=MAX_PARALLEL).contains(&self.parallel) {
            problems.push(format!("{path}.parallel: from 1 to {MAX_PARALLEL}"));
        }
        if self.tools.iter().any(String::is_empty) {
            problems.push(format!("{path}.tools: a name is empty"));
        }
        if let ToolArguments::Bytes(bytes) = self.arguments
            && !(ARGUMENTS_FRAME..=MAX_ARGUMENTS).contains(&bytes)
        {
            let problem = format!("from {ARGUMENTS_FRAME} to {MAX_ARGUMENTS} bytes");
            problems.push(format!("{path}.arguments: {problem}"));
        }
    }
}

/// The turn of a model with a tool loop.
#[derive(Debug)]
pub(crate) struct ToolTurn {
    /// Rounds of tool results since the last message of the user.
    pub(crate) round: u32,
    /// Rounds before the text.
    pub(crate) steps: u32,
    /// The calls; if empty, the model answers with text.
    pub(crate) calls: Vec<ToolCall>,
}

impl ToolTurn {
    /// `task` has the random numbers of the task, and `rng` those of the request.
    pub(crate) fn new(
        tool_loop: &ToolLoop,
        conversation: &Conversation,
        task: RequestRng,
        rng: RequestRng,
    ) -> Self {
        let sampled = tool_loop.steps.draw(task, Purpose::Steps);
        let (round, steps) = (conversation.rounds, u32::try_from(sampled).unwrap_or(u32::MAX));
        let offered = &conversation.offered;
        let names = if tool_loop.tools.is_empty() { offered } else { &tool_loop.tools };
        let is_done = round >= steps || names.is_empty() || !conversation.may_call;
        let calls = if is_done { Vec::new() } else { calls(tool_loop, names, round, rng) };
        Self { round, steps, calls }
    }
}

fn calls(tool_loop: &ToolLoop, names: &[String], round: u32, rng: RequestRng) -> Vec<ToolCall> {
    let mut words = Words::new(rng);
    let mut calls = Vec::new();
    for index in 0..tool_loop.parallel {
        let place = u64::from(round) * u64::from(tool_loop.parallel) + u64::from(index);
        // Less than the number of names, which is an index.
        let name = usize::try_from(place % names.len() as u64).unwrap_or(0);
        calls.push(ToolCall {
            id: mixed(rng.id, place),
            // A string always has a JSON form.
            name: serde_json::to_string(&names[name]).unwrap_or_default(),
            arguments: Some(arguments(&tool_loop.arguments, &mut words)),
        });
    }
    calls
}

fn arguments(arguments: &ToolArguments, words: &mut Words) -> String {
    let bytes = match arguments {
        ToolArguments::Fixed(object) => return Value::Object(object.clone()).to_string(),
        ToolArguments::Bytes(bytes) => bytes.saturating_sub(ARGUMENTS_FRAME),
    };
    let mut text = Vec::with_capacity(bytes as usize + WORD_BYTES);
    words.write(bytes.div_ceil(4), &mut text);
    text.truncate(bytes as usize);
    // Words are ASCII.
    json!({"text": String::from_utf8(text).unwrap_or_default()}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;

    fn conversation(rounds: u32, offered: &[&str]) -> Conversation {
        let tools: Vec<Value> =
            offered.iter().map(|name| json!({"function": {"name": name}})).collect();
        let mut messages = vec![json!({"role": "user", "content": "task"})];
        for round in 0..rounds {
            let id = format!("call_{round}");
            messages.push(json!({"role": "assistant", "tool_calls": [{"id": id}]}));
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": "x"}));
        }
        let body = json!({"messages": messages, "tools": tools}).to_string();
        Conversation::read(Dialect::OpenaiChat, body.as_bytes()).unwrap()
    }

    fn turn(tool_loop: &ToolLoop, conversation: &Conversation) -> ToolTurn {
        let rng = |sequence| RequestRng::new(1, None, sequence);
        ToolTurn::new(tool_loop, conversation, rng(0), rng(u64::from(conversation.rounds)))
    }

    fn names(turn: &ToolTurn) -> Vec<&str> {
        turn.calls.iter().map(|call| call.name.trim_matches('"')).collect()
    }

    #[test]
    fn tools_are_called_in_turn_for_the_configured_rounds_and_then_no_more() {
        let tool_loop = ToolLoop {
            steps: Distribution::Constant(2),
            tools: vec!["a".to_owned(), "b".to_owned(), "c".to_owned()],
            parallel: 2,
            ..ToolLoop::default()
        };
        let turns: Vec<_> =
            (0..4).map(|rounds| turn(&tool_loop, &conversation(rounds, &[]))).collect();
        let found: Vec<_> =
            turns.iter().map(|turn| (turn.round, turn.steps, names(turn))).collect();
        assert_eq!(
            found,
            [(0, 2, vec!["a", "b"]), (1, 2, vec!["c", "a"]), (2, 2, vec![]), (3, 2, vec![])]
        );
        let mut ids: Vec<u64> = turns.iter().flat_map(|turn| &turn.calls).map(|c| c.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 4);
    }

    #[test]
    fn without_names_the_tools_of_the_request_are_called_and_none_if_it_has_none() {
        let tool_loop = ToolLoop::default();
        assert_eq!(names(&turn(&tool_loop, &conversation(0, &["x", "y"]))), ["x"]);
        assert!(turn(&tool_loop, &conversation(0, &[])).calls.is_empty());
        let forbidden = Conversation { may_call: false, ..conversation(0, &["x"]) };
        assert!(turn(&tool_loop, &forbidden).calls.is_empty());
    }

    #[test]
    fn arguments_have_their_size_or_are_those_configured() {
        let conversation = conversation(0, &["x"]);
        for bytes in [11, 12, 13, 14, 32, 1_000] {
            let arguments = ToolArguments::Bytes(bytes);
            let tool_loop = ToolLoop { arguments, parallel: 2, ..ToolLoop::default() };
            let turn = turn(&tool_loop, &conversation);
            for call in &turn.calls {
                let text = call.arguments.as_deref().unwrap();
                assert_eq!(text.len(), bytes as usize);
                assert!(serde_json::from_str::<Value>(text).unwrap()["text"].is_string());
            }
            let differ = turn.calls[0].arguments != turn.calls[1].arguments;
            assert!(differ || bytes < 32, "{bytes}");
        }
        let text = "{steps: 3, arguments: {q: 'a\"b'}, tools: [é]}";
        let tool_loop: ToolLoop = serde_saphyr::from_str(text).unwrap();
        let call = &turn(&tool_loop, &conversation).calls[0];
        assert_eq!(call.arguments.as_deref(), Some(r#"{"q":"a\"b"}"#));
    }

    #[test]
    fn steps_follow_from_the_task_and_have_their_distribution() {
        let steps = Distribution::Uniform { min: 1, max: 3 };
        let tool_loop = ToolLoop { steps, ..ToolLoop::default() };
        let conversation = conversation(0, &["x"]);
        let steps = |task: u64, request: u64| {
            let rng = |sequence| RequestRng::new(1, None, sequence);
            ToolTurn::new(&tool_loop, &conversation, rng(task), rng(request)).steps
        };
        assert!((0..50).all(|request| steps(7, request) == steps(7, 0)));
        let of = |wanted| (0..3_000).filter(|task| steps(*task, 0) == wanted).count();
        // Numbers are rounded: 1 and 3 have a quarter each.
        for (wanted, expected) in [(1, 750), (2, 1_500), (3, 750)] {
            assert!(of(wanted).abs_diff(expected) < 120, "{wanted}: {}", of(wanted));
        }
    }

    #[test]
    fn impossible_loops_are_refused() {
        for (text, place) in [
            ("{parallel: 0}", "loop.parallel"),
            ("{parallel: 65}", "loop.parallel"),
            ("{arguments: 10}", "loop.arguments"),
            ("{tools: ['']}", "loop.tools"),
            ("{steps: {uniform: {min: 3, max: 1}}}", "loop.steps"),
        ] {
            let tool_loop: ToolLoop = serde_saphyr::from_str(text).unwrap();
            let mut problems = Vec::new();
            tool_loop.check("loop", &mut problems);
            assert!(problems.len() == 1 && problems[0].starts_with(place), "{problems:?}");
        }
        assert!(serde_saphyr::from_str::<ToolLoop>("{arguments: text}").is_err());
    }
}
