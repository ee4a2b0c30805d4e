//! Checks the scenarios, individually and as a mix.

use plimsoll_measure::{IdSeed, Seed};
use plimsoll_plan::HttpVersion;
use plimsoll_protocol::Dialect;
use plimsoll_workload::{
    Content, HttpSpec, StatusSet, WebSocketSpec, Workload, WorkloadError, part_names, with_parts,
};

use super::{ProfileCheck, targets, top};
use crate::error::Fault;
use crate::path::ConfigPath;
use crate::spec::{self, Behaviour};

impl ProfileCheck<'_> {
    pub(super) fn check_scenarios(&mut self) {
        self.check_names();
        self.check_as_workload();
        let file = self.file;
        for (index, scenario) in file.scenarios.iter().enumerate() {
            let behaviour = &scenario.behaviour;
            self.check_content(index, behaviour);
            self.check_parameters(index, behaviour);
            self.check_http(index, behaviour);
            self.check_rpc(index, behaviour);
            self.check_websocket(index, behaviour);
            self.check_policy_decisions(index, behaviour);
            self.check_agent(index, behaviour);
        }
    }

    /// Rejects agents in a comparison: the targets must receive the same requests, but an agent's
    /// requests depend on the responses.
    fn check_agent(&mut self, index: usize, behaviour: &Behaviour) {
        if behaviour.agent.is_some() && targets::compares(self.file, self.purpose) {
            let path = self.layers.behaviour_path(index, "agent");
            let cause = "cannot be compared, because the responses of each target determine its next requests";
            self.report(path, cause, "run it against each target, and use `plimsoll compare`");
        }
    }

    fn check_policy_decisions(&mut self, index: usize, behaviour: &Behaviour) {
        for (decision, found) in behaviour.policy_decision.matches_in_order() {
            if found.is_empty() {
                let path =
                    self.layers.behaviour_path(index, "policy_decision").key(decision.name());
                let fix = "write `status`, `header` or `body_contains`, or leave it out";
                self.report(path, "is empty, so that every response would match", fix);
            }
        }
        if behaviour.category.as_ref().is_some_and(|category| category.trim().is_empty()) {
            let path = self.layers.behaviour_path(index, "category");
            self.report(path, "is empty", "write a name, or leave it out");
        }
    }

    /// Adds problems found by the workload.
    fn check_as_workload(&mut self) {
        // Uses positions as names, so that each problem can be mapped to its scenario.
        let mut numbered = self.file.scenarios.clone();
        for (index, file) in numbered.iter_mut().enumerate() {
            file.name = Some(index.to_string());
        }
        let scenarios = with_parts(spec::scenarios(numbered), None);
        let found = Workload::new(&scenarios, None, None, Seed(self.file.seed), IdSeed::default());
        let Err(WorkloadError::Scenarios(problems)) = found else { return };
        for problem in problems {
            let path = match problem.scenario.parse() {
                Ok(index) if self.lacks_content(index) && problem.field.starts_with("content") => {
                    continue;
                }
                Ok(index) => self.field_path(index, &problem.field),
                Err(_) => top("scenarios"),
            };
            self.report_fault(path, Fault::from_error(&problem.fault));
        }
    }

    /// The path of a scenario's field, such as `content.script`.
    fn field_path(&self, index: usize, field: &str) -> ConfigPath {
        let mut steps = field.split('.');
        let first = steps.next().unwrap_or_default();
        steps.fold(self.layers.behaviour_path(index, first), |path, step| match step.parse() {
            Ok(position) => path.index(position),
            Err(_) => path.key(step),
        })
    }

    /// Whether a scenario lacks required content.
    fn lacks_content(&self, index: usize) -> bool {
        let behaviour = self.file.scenarios.get(index).map(|scenario| &scenario.behaviour);
        behaviour.is_some_and(|own| {
            own.content.is_none() && !matches!(own.protocol, Dialect::Http | Dialect::Mcp)
        })
    }

    fn check_names(&mut self) {
        let file = self.file;
        for (index, scenario) in file.scenarios.iter().enumerate() {
            let Some(name) = &scenario.name else { continue };
            let path = ConfigPath::root().key("scenarios").index(index).key("name");
            let earlier =
                file.scenarios[..index].iter().position(|other| other.name.as_ref() == Some(name));
            if name.trim().is_empty() {
                self.report(path, "is empty", "write a name, or leave it out");
            } else if file.scenarios.iter().any(|other| {
                let own = other.name.as_ref().filter(|_| other.behaviour.agent.is_some());
                own.is_some_and(|own| part_names(own).contains(name))
            }) {
                let cause = format!("is `{name}`, like a part of an agent");
                self.report(path, cause, "give it a different name");
            } else if let Some(earlier) = earlier {
                let cause = format!("is `{name}`, like the name of scenarios[{earlier}]");
                self.report(path, cause, "give each scenario a different name");
            }
        }
    }

    fn check_content(&mut self, index: usize, behaviour: &Behaviour) {
        let path = self.layers.behaviour_path(index, "content");
        match &behaviour.content {
            None if self.lacks_content(index) => {
                let cause = format!("is missing, and {} needs it", behaviour.protocol.name());
                let fix = match behaviour.http {
                    Some(_) => {
                        "write `protocol: http` if the `http` request is intended, else `content:`"
                    }
                    None => {
                        "write `content:` with `mode` and `prompts`, `script` or `approx_input_tokens`"
                    }
                };
                self.report(path, cause, fix);
            }
            Some(Content::Pool { prompts }) => self.check_texts(&path.key("prompts"), prompts),
            Some(Content::Scripted { script }) => self.check_texts(&path.key("script"), script),
            Some(Content::Sized { .. } | Content::File { .. }) | None => {}
        }
    }

    fn check_texts(&mut self, path: &ConfigPath, texts: &[String]) {
        for (index, _) in texts.iter().enumerate().filter(|(_, text)| text.trim().is_empty()) {
            self.report(path.index(index), "is an empty text", "write a text, or remove it");
        }
    }

    fn check_parameters(&mut self, index: usize, behaviour: &Behaviour) {
        let path = self.layers.behaviour_path(index, "parameters");
        if behaviour.protocol.is_rpc() && !behaviour.parameters.is_empty() {
            let cause = format!("is not for the protocol `{}`", behaviour.protocol.name());
            let fix = "write them into the `arguments` of a step, or leave them out";
            return self.report(path, cause, fix);
        }
        for member in behaviour.protocol.reserved() {
            if behaviour.parameters.contains_key(*member) {
                let fix = "leave it out, and use the profile's own keys (`model`, `system`, `content`, `stream`, `max_tokens`)";
                self.report(path.key(member), "is written by Plimsoll itself", fix);
            }
        }
    }

    fn check_http(&mut self, index: usize, behaviour: &Behaviour) {
        let path = self.layers.behaviour_path(index, "http");
        let Some(HttpSpec { method, path: target, expect, .. }) = &behaviour.http else { return };
        if !targets::is_name(method) {
            self.report(
                path.key("method"),
                "is not an HTTP method",
                "write one like `GET` or `POST`",
            );
        }
        if expect.as_ref().is_some_and(StatusSet::is_empty) {
            let fix = "write statuses, like `200, 304, 404`, `2xx` or `any`, or leave it out";
            self.report(path.key("expect"), "has no status", fix);
        }
        // Spaces inside a placeholder disappear when it is replaced.
        self.check_path(path.key("path"), target, &without_placeholders(target));
    }

    fn check_rpc(&mut self, index: usize, behaviour: &Behaviour) {
        let mut paths = Vec::new();
        if let Some(server) = &behaviour.mcp {
            paths.push(("mcp", "path", &server.path));
        }
        if let Some(agent) = &behaviour.a2a {
            paths.push(("a2a", "path", &agent.path));
            paths.push(("a2a", "card_path", &agent.card_path));
        }
        for (section, key, value) in paths {
            let path = self.layers.behaviour_path(index, section).key(key);
            self.check_path(path, value, value);
        }
    }

    /// Checks a path: `written` is shown in messages, `sent` is what is sent of it.
    fn check_path(&mut self, path: ConfigPath, written: &str, sent: &str) {
        if !written.is_empty() && !written.starts_with('/') {
            self.report(path.clone(), "does not start with `/`", "put a `/` before it");
        }
        if sent.bytes().any(|byte| !byte.is_ascii_graphic()) {
            let cause = "contains a space, a control or a non-ASCII character";
            self.report(path, cause, "percent-encode it, like `%20`");
        }
    }
}

impl ProfileCheck<'_> {
    fn check_websocket(&mut self, index: usize, behaviour: &Behaviour) {
        if behaviour.protocol == Dialect::Websocket {
            let path = self.layers.behaviour_path(index, "protocol");
            if self.file.http_version != HttpVersion::Http1 {
                let cause = "is `websocket`, whose handshake requires HTTP/1.1";
                self.report(path.clone(), cause, "leave `http_version` out");
            }
            if self.file.max_connections.is_some() {
                let cause = "is `websocket`, where each conversation has a connection of its own";
                self.report(path, cause, "leave `max_connections` out");
            }
        }
        let path = self.layers.behaviour_path(index, "websocket");
        let Some(WebSocketSpec { path: own, subprotocol }) = &behaviour.websocket else { return };
        if own.as_ref().is_some_and(|own| {
            !(own.starts_with('/') && own.bytes().all(|byte| byte.is_ascii_graphic()))
        }) {
            let fix = "start it with `/`, and percent-encode what is not printable ASCII";
            self.report(path.key("path"), "is not a path", fix);
        }
        if subprotocol.as_ref().is_some_and(|name| !targets::is_name(name)) {
            let cause = "is not the name of a subprotocol";
            self.report(path.key("subprotocol"), cause, "write one word, like `chat.v1`");
        }
    }
}

fn without_placeholders(text: &str) -> String {
    let mut rest = text;
    let mut plain = String::new();
    while let Some((before, after)) = rest.split_once("{{") {
        plain.push_str(before);
        rest = after.split_once("}}").map_or("", |(_, tail)| tail);
    }
    plain + rest
}
