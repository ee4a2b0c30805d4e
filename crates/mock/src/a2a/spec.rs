//! The configuration of the A2A agents.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use crate::check::{check_distribution, check_faults, check_positive, check_share};
use crate::distribution::Distribution;
use crate::duration::HumanDuration;
use crate::fault::FaultShare;

/// The A2A agents at `/a2a` and `/a2a/{agent}`.
#[derive(Clone, Debug, SmartDefault, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct A2aSpec {
    /// The most stored tasks. A new one replaces the oldest idle task; if all are working, it gets
    /// status 503. A task uses about half a KiB, and the echoes of all tasks together at most 64
    /// MiB.
    #[default(100_000)]
    pub max_tasks: u32,
    /// The agents by name; `/a2a` is `echo` if it exists, else the first. The default has `asking`,
    /// `echo`, `failing` and `slow`.
    #[default(serde_saphyr::from_str(include_str!("agents.yaml")).unwrap_or_default())]
    pub agents: BTreeMap<String, AgentSpec>,
}

/// The form of an agent's answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentAnswer {
    /// With a message.
    #[default]
    Message,
    /// With a task that works and then ends.
    Task,
}

impl AgentAnswer {
    /// All variants, for the reference page.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 2] = [Self::Message, Self::Task];
}

/// An agent.
#[derive(Clone, Debug, SmartDefault, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct AgentSpec {
    /// The description in its card.
    pub description: String,
    /// Whether it answers with a message or with a task.
    pub answer: AgentAnswer,
    /// Time from the complete request to the message, or to the end of the task.
    pub latency: Distribution<HumanDuration>,
    /// Whether the result is the text of the client's message.
    pub echo: bool,
    /// Bytes of the result's text, if it is not an echo.
    #[default(Distribution::Constant(64))]
    pub result_bytes: Distribution<u32>,
    /// Number of pieces of a streamed result, at equal intervals.
    #[default(1)]
    pub pieces: u32,
    /// Share of the tasks that request input once, after `latency`, before they work, 0 to 1.
    pub input_required_share: f64,
    /// Share of the tasks that fail, 0 to 1.
    pub failed_share: f64,
    /// Share of the messages that get a JSON-RPC error, 0 to 1.
    pub rpc_error_share: f64,
    /// The code of these errors.
    #[default(-32_603)]
    pub rpc_error_code: i32,
    /// Injected faults and their shares; `@n` is after event `n` of a stream.
    pub faults: Vec<FaultShare>,
}

/// The most pieces of a result.
const MAX_PIECES: u32 = 10_000;

impl A2aSpec {
    /// An agent by its name, or the one at `/a2a`.
    pub(super) fn agent(&self, name: Option<&str>) -> Option<(&str, &AgentSpec)> {
        let found = match name {
            Some(name) => self.agents.get_key_value(name),
            None => self.agents.get_key_value("echo").or_else(|| self.agents.iter().next()),
        };
        found.map(|(name, agent)| (name.as_str(), agent))
    }

    pub(crate) fn check(&self, problems: &mut Vec<String>) {
        check_positive(self.max_tasks, "a2a", "max_tasks", problems);
        for (name, agent) in &self.agents {
            let path = format!("a2a.agents.{name}");
            if name.is_empty()
                || name.starts_with('.')
                || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
            {
                problems.push(format!("{path}: letters, digits, `-`, `_` and `.` make a name"));
            }
            agent.check(&path, problems);
        }
    }
}

impl AgentSpec {
    fn check(&self, path: &str, problems: &mut Vec<String>) {
        if !(1..=MAX_PIECES).contains(&self.pieces) {
            problems.push(format!("{path}.pieces: from 1 to {MAX_PIECES}"));
        }
        check_distribution(&self.latency, path, "latency", problems);
        check_distribution(&self.result_bytes, path, "result_bytes", problems);
        check_share(self.input_required_share, path, "input_required_share", problems);
        check_share(self.failed_share, path, "failed_share", problems);
        check_share(self.rpc_error_share, path, "rpc_error_share", problems);
        let errors = self.failed_share + self.rpc_error_share;
        check_share(errors, path, "failed_share plus rpc_error_share", problems);
        if self.answer == AgentAnswer::Message
            && (self.failed_share > 0.0 || self.input_required_share > 0.0)
        {
            problems.push(format!("{path}: only tasks fail or ask for input: `answer: task`"));
        }
        check_faults(&self.faults, path, problems);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let spec: A2aSpec = serde_saphyr::from_str(text).unwrap();
        let mut problems = Vec::new();
        spec.check(&mut problems);
        problems
    }

    #[test]
    fn impossible_agents_are_refused() {
        assert_eq!(problems("{}"), Vec::<String>::new());
        for (text, place) in [
            ("{max_tasks: 0}", "a2a.max_tasks"),
            ("{agents: {'a/b': {}}}", "a2a.agents.a/b"),
            ("{agents: {'.well-known': {}}}", "a2a.agents..well-known"),
            ("{agents: {a: {pieces: 0}}}", "a2a.agents.a.pieces"),
            ("{agents: {a: {failed_share: 0.5}}}", "a2a.agents.a: only tasks"),
            (
                "{agents: {a: {answer: task, failed_share: 0.6, rpc_error_share: 0.6}}}",
                "a2a.agents",
            ),
        ] {
            let found = problems(text);
            assert!(found.len() == 1 && found[0].starts_with(place), "{text}: {found:?}");
        }
    }

    #[test]
    fn the_agent_without_a_name_is_echo_then_the_first() {
        assert_eq!(default_agent("{}").as_deref(), Some("echo"));
        assert_eq!(default_agent("{agents: {b: {}, a: {}}}").as_deref(), Some("a"));
        assert_eq!(default_agent("{agents: {}}"), None);
        assert_eq!(A2aSpec::default().agent(Some("nobody")), None);
    }

    fn default_agent(text: &str) -> Option<String> {
        let spec: A2aSpec = serde_saphyr::from_str(text).unwrap();
        spec.agent(None).map(|(name, _)| name.to_owned())
    }
}
