//! The configuration of the A2A agents.

use std::collections::BTreeMap;

use hyper::Uri;
use serde::{Deserialize, Serialize};

use crate::check::{check_distribution, check_faults, check_share};
use crate::distribution::Distribution;
use crate::duration::HumanDuration;
use crate::fault::FaultShare;

/// The A2A agents at `/a2a` and `/a2a/{agent}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct A2aSpec {
    /// The agent at `/a2a`. Without it: `echo` if there is one, else the first by name.
    pub default: Option<String>,
    /// Larger request bodies get status 413; bytes.
    pub max_body: u32,
    /// The most tasks that are kept. For a further one the oldest that does not work is forgotten;
    /// if there is none, status 503. A task takes about half a KiB, and all echoes in tasks
    /// together at most 64 MiB.
    pub max_tasks: u32,
    /// A task without a change for so long is forgotten, unless it works.
    pub task_timeout: HumanDuration,
    /// The agents by name. The default has `asking`, `echo`, `failing` and `slow`.
    pub agents: BTreeMap<String, AgentSpec>,
}

impl Default for A2aSpec {
    fn default() -> Self {
        Self {
            default: None,
            max_body: 4 * 1024 * 1024,
            max_tasks: 100_000,
            task_timeout: HumanDuration::from_millis(30 * 60 * 1_000),
            agents: default_agents(),
        }
    }
}

fn default_agents() -> BTreeMap<String, AgentSpec> {
    let task = AgentSpec { answer: AgentAnswer::Task, ..AgentSpec::default() };
    let echo = AgentSpec {
        description: "Gives the text back in a message".to_owned(),
        echo: true,
        ..AgentSpec::default()
    };
    let (median, p95) = (HumanDuration::from_millis(200), HumanDuration::from_millis(800));
    let slow = AgentSpec {
        description: "Works on a task and delivers its result in four pieces".to_owned(),
        latency: Distribution::Lognormal { median, p95 },
        pieces: 4,
        ..task.clone()
    };
    let asking = AgentSpec {
        description: "Asks once before it works on a task".to_owned(),
        input_required_share: 1.0,
        ..task.clone()
    };
    let failing = AgentSpec {
        description: "A quarter of its tasks fail, and a quarter of its requests".to_owned(),
        failed_share: 0.25,
        rpc_error_share: 0.25,
        ..task
    };
    [("asking", asking), ("echo", echo), ("failing", failing), ("slow", slow)]
        .map(|(name, agent)| (name.to_owned(), agent))
        .into()
}

/// How an agent answers.
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
    /// Every word, for the reference page.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 2] = [Self::Message, Self::Task];
}

/// An agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct AgentSpec {
    /// What its card says about it.
    pub description: String,
    /// Whether it answers with a message or with a task.
    pub answer: AgentAnswer,
    /// Time from the complete request to the message, or to the end of the task.
    pub latency: Distribution<HumanDuration>,
    /// Whether the result is the text of the client's message.
    pub echo: bool,
    /// Bytes of the result's text, if it is not an echo.
    pub result_bytes: Distribution<u32>,
    /// Pieces in which a stream delivers the result of a task, at equal distances up to its end.
    pub pieces: u32,
    /// Share of the tasks that ask for input once, after `latency`, before they work, 0 to 1.
    pub input_required_share: f64,
    /// Share of the tasks that fail, 0 to 1.
    pub failed_share: f64,
    /// Share of the messages that get a JSON-RPC error, 0 to 1.
    pub rpc_error_share: f64,
    /// The code of these errors.
    pub rpc_error_code: i32,
    /// Another agent that it calls before it answers.
    pub calls: Option<CallSpec>,
    /// Injected faults and their shares; `@n` is behind event `n` of a stream.
    pub faults: Vec<FaultShare>,
}

impl Default for AgentSpec {
    fn default() -> Self {
        Self {
            description: String::new(),
            answer: AgentAnswer::Message,
            latency: Distribution::Constant(HumanDuration::ZERO),
            echo: false,
            result_bytes: Distribution::Constant(64),
            pieces: 1,
            input_required_share: 0.0,
            failed_share: 0.0,
            rpc_error_share: 0.0,
            rpc_error_code: -32_603,
            calls: None,
            faults: Vec::new(),
        }
    }
}

/// A call of another agent, which gets the text of the client's message and the headers
/// `x-agent-path` and `traceparent` as they came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct CallSpec {
    /// Where to: with `agent` a gateway's `/v1/a2a/send`, without it an A2A endpoint. `http` only.
    pub url: String,
    /// The agent's name at the gateway.
    pub agent: Option<String>,
    /// Sent as `Authorization: Bearer KEY`.
    pub key: Option<String>,
    /// No call if the path that came has so many names.
    pub depth: u32,
    /// No call while so many calls of this mock are in flight: the end of loops whose path is lost.
    pub in_flight: u32,
    /// A call that takes longer is given up.
    pub timeout: HumanDuration,
}

impl Default for CallSpec {
    fn default() -> Self {
        Self {
            url: String::new(),
            agent: None,
            key: None,
            depth: 8,
            in_flight: 256,
            timeout: HumanDuration::from_millis(5_000),
        }
    }
}

/// The most pieces of a result.
const MAX_PIECES: u32 = 10_000;

impl A2aSpec {
    /// An agent by its name, or the one at `/a2a`.
    pub(super) fn agent(&self, name: Option<&str>) -> Option<(&str, &AgentSpec)> {
        let chosen = name.or(self.default.as_deref());
        let found = match chosen {
            Some(name) => self.agents.get_key_value(name),
            None => self.agents.get_key_value("echo").or_else(|| self.agents.iter().next()),
        };
        found.map(|(name, agent)| (name.as_str(), agent))
    }

    pub(crate) fn check(&self, problems: &mut Vec<String>) {
        for (key, value) in [("max_body", self.max_body), ("max_tasks", self.max_tasks)] {
            if value == 0 {
                problems.push(format!("a2a.{key}: at least 1 is needed"));
            }
        }
        if let Some(name) = self.default.as_ref().filter(|name| !self.agents.contains_key(*name)) {
            problems.push(format!("a2a.default: there is no agent `{name}`"));
        }
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
        if let Some(problem) = self.calls.as_ref().and_then(CallSpec::problem) {
            problems.push(format!("{path}.calls.url: {problem}"));
        }
        check_faults(&self.faults, path, problems);
    }
}

impl CallSpec {
    /// Host and port, and the path with its query.
    pub(super) fn target(&self) -> Option<(String, String)> {
        let url: Uri = self.url.parse().ok()?;
        let host = url.host().filter(|_| url.scheme_str() == Some("http"))?;
        let path = url.path_and_query().map_or("/", |path| path.as_str());
        Some((format!("{host}:{}", url.port_u16().unwrap_or(80)), path.to_owned()))
    }

    fn problem(&self) -> Option<&'static str> {
        self.target().is_none().then_some("a URL like `http://127.0.0.1:8080/v1/a2a/send`")
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
            ("{default: x}", "a2a.default"),
            ("{agents: {'a/b': {}}}", "a2a.agents.a/b"),
            ("{agents: {'.well-known': {}}}", "a2a.agents..well-known"),
            ("{agents: {a: {pieces: 0}}}", "a2a.agents.a.pieces"),
            ("{agents: {a: {failed_share: 0.5}}}", "a2a.agents.a: only tasks"),
            (
                "{agents: {a: {answer: task, failed_share: 0.6, rpc_error_share: 0.6}}}",
                "a2a.agents",
            ),
            ("{agents: {a: {calls: {url: 'https://x/'}}}}", "a2a.agents.a.calls.url"),
            ("{agents: {a: {calls: {url: 'x'}}}}", "a2a.agents.a.calls.url"),
        ] {
            let found = problems(text);
            assert!(found.len() == 1 && found[0].starts_with(place), "{text}: {found:?}");
        }
    }

    #[test]
    fn the_agent_without_a_name_is_the_default_then_echo_then_the_first() {
        assert_eq!(default_agent("{}").as_deref(), Some("echo"));
        assert_eq!(default_agent("{default: slow}").as_deref(), Some("slow"));
        assert_eq!(default_agent("{agents: {b: {}, a: {}}}").as_deref(), Some("a"));
        assert_eq!(default_agent("{agents: {}}"), None);
        assert_eq!(A2aSpec::default().agent(Some("nobody")), None);
    }

    fn default_agent(text: &str) -> Option<String> {
        let spec: A2aSpec = serde_saphyr::from_str(text).unwrap();
        spec.agent(None).map(|(name, _)| name.to_owned())
    }

    #[test]
    fn a_target_has_a_port_and_a_path() {
        assert_eq!(
            target_of_call("http://h:81/v1/a2a/send"),
            Some(host_and_path("h:81", "/v1/a2a/send"))
        );
        assert_eq!(target_of_call("http://127.0.0.1"), Some(host_and_path("127.0.0.1:80", "/")));
        assert_eq!(
            target_of_call("http://[::1]:9/a?b=c"),
            Some(host_and_path("[::1]:9", "/a?b=c"))
        );
        assert_eq!(target_of_call("h:81/x"), None);
    }

    fn target_of_call(url: &str) -> Option<(String, String)> {
        CallSpec { url: url.to_owned(), ..CallSpec::default() }.target()
    }

    fn host_and_path(host: &str, path: &str) -> (String, String) {
        (host.to_owned(), path.to_owned())
    }
}
