//! Checks the scenarios, each and as a mix.

use plimsoll_measure::{IdSeed, Seed};
use plimsoll_protocol::Dialect;
use plimsoll_workload::{Content, HttpSpec, Workload, WorkloadError};

use super::{ProfileCheck, headers, top};
use crate::error::Fault;
use crate::path::ConfigPath;
use crate::scenario;
use crate::spec::{Behaviour, ScenarioFile};

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
            self.check_policy_decisions(index, behaviour);
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

    /// Adds the problems that the workload finds.
    fn check_as_workload(&mut self) {
        // Positions serve as names, so that each problem can be mapped to its scenario.
        let numbered = |(index, file): (usize, &ScenarioFile)| {
            scenario::scenario((
                index,
                ScenarioFile { name: Some(index.to_string()), ..file.clone() },
            ))
        };
        let scenarios: Vec<_> = self.file.scenarios.iter().enumerate().map(numbered).collect();
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

    /// The path of a field like `content.script` of a scenario.
    fn field_path(&self, index: usize, field: &str) -> ConfigPath {
        let mut steps = field.split('.');
        let first = steps.next().unwrap_or_default();
        steps.fold(self.layers.behaviour_path(index, first), |path, step| path.key(step))
    }

    /// Whether a scenario that needs content has none.
    fn lacks_content(&self, index: usize) -> bool {
        let behaviour = self.file.scenarios.get(index).map(|scenario| &scenario.behaviour);
        behaviour.is_some_and(|own| own.content.is_none() && own.protocol != Dialect::Http)
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
            } else if let Some(earlier) = earlier {
                let cause = format!("is `{name}`, like that of scenarios[{earlier}]");
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
            Some(Content::Sized { .. }) | None => {}
        }
    }

    fn check_texts(&mut self, path: &ConfigPath, texts: &[String]) {
        for (index, _) in texts.iter().enumerate().filter(|(_, text)| text.trim().is_empty()) {
            self.report(path.index(index), "is an empty text", "write a text, or remove it");
        }
    }

    fn check_parameters(&mut self, index: usize, behaviour: &Behaviour) {
        let path = self.layers.behaviour_path(index, "parameters");
        for member in behaviour.protocol.reserved() {
            if behaviour.parameters.contains_key(*member) {
                let fix = "leave it out, and use the profile's own keys (`model`, `system`, `content`, `stream`, `max_tokens`)";
                self.report(path.key(member), "is written by Plimsoll itself", fix);
            }
        }
    }

    fn check_http(&mut self, index: usize, behaviour: &Behaviour) {
        let path = self.layers.behaviour_path(index, "http");
        let Some(HttpSpec { method, path: target, .. }) = &behaviour.http else { return };
        if !headers::is_name(method) {
            self.report(
                path.key("method"),
                "is not an HTTP method",
                "write one like `GET` or `POST`",
            );
        }
        if !target.is_empty() && !target.starts_with('/') {
            self.report(path.key("path"), "does not start with `/`", "put a `/` before it");
        }
        // Spaces inside a placeholder are gone when it has been filled in.
        if without_placeholders(target).bytes().any(|byte| !byte.is_ascii_graphic()) {
            let cause = "contains a space, a control or a non-ASCII character";
            self.report(path.key("path"), cause, "percent-encode it, like `%20`");
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
