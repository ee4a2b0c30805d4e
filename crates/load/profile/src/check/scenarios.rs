//! Scenarios, alone and as a blend.

use plimsoll_measure::Seed;
use plimsoll_protocol::Dialect;
use plimsoll_workload::{Content, HttpSpec, Workload, WorkloadError};

use super::{Check, headers, top};
use crate::error::Fault;
use crate::place::ConfigPath;
use crate::resolve;
use crate::spec::{Behaviour, ScenarioFile};

impl Check<'_> {
    pub(super) fn scenarios(&mut self) {
        self.names();
        self.as_workload();
        let file = self.file;
        for (index, scenario) in file.scenarios.iter().enumerate() {
            let behaviour = &scenario.behaviour;
            self.content(index, behaviour);
            self.parameters(index, behaviour);
            self.http(index, behaviour);
            self.policy_decisions(index, behaviour);
        }
    }

    fn policy_decisions(&mut self, index: usize, behaviour: &Behaviour) {
        for (policy_decision, sign) in behaviour.policy_decision.matches_in_order() {
            if sign.is_empty() {
                let place =
                    self.draft.place_of(index, "policy_decision").key(policy_decision.name());
                let mend = "write `status`, `header` or `body_contains`, or leave it out";
                self.report(place, "asks for nothing, so that every answer would bear it", mend);
            }
        }
        if behaviour.category.as_ref().is_some_and(|category| category.trim().is_empty()) {
            let place = self.draft.place_of(index, "category");
            self.report(place, "is empty", "write a name, or leave it out");
        }
    }

    /// What the workload itself says about its scenarios.
    fn as_workload(&mut self) {
        // Under names that are their positions, so that each problem finds its way back.
        let numbered = |(index, file): (usize, &ScenarioFile)| {
            resolve::scenario((
                index,
                ScenarioFile { name: Some(index.to_string()), ..file.clone() },
            ))
        };
        let scenarios: Vec<_> = self.file.scenarios.iter().enumerate().map(numbered).collect();
        let found = Workload::new(&scenarios, None, None, Seed(self.file.seed));
        let Err(WorkloadError::Scenarios(problems)) = found else { return };
        for problem in problems {
            let place = match problem.scenario.parse() {
                Ok(index) if self.lacks_content(index) && problem.field.starts_with("content") => {
                    continue;
                }
                Ok(index) => self.inside(index, &problem.field),
                Err(_) => top("scenarios"),
            };
            self.report_fault(place, Fault::of(&problem.fault));
        }
    }

    /// The place of a field like `content.script` of a scenario.
    fn inside(&self, index: usize, field: &str) -> ConfigPath {
        let mut steps = field.split('.');
        let first = steps.next().unwrap_or_default();
        steps.fold(self.draft.place_of(index, first), |place, step| place.key(step))
    }

    /// Is there no content where there has to be one?
    fn lacks_content(&self, index: usize) -> bool {
        let behaviour = self.file.scenarios.get(index).map(|scenario| &scenario.behaviour);
        behaviour.is_some_and(|own| own.content.is_none() && own.protocol != Dialect::Http)
    }

    fn names(&mut self) {
        let file = self.file;
        for (index, scenario) in file.scenarios.iter().enumerate() {
            let Some(name) = &scenario.name else { continue };
            let place = ConfigPath::top().key("scenarios").index(index).key("name");
            let earlier =
                file.scenarios[..index].iter().position(|other| other.name.as_ref() == Some(name));
            if name.trim().is_empty() {
                self.report(place, "is empty", "write a name, or leave it out");
            } else if let Some(earlier) = earlier {
                let cause = format!("is `{name}`, and so is that of scenarios[{earlier}]");
                self.report(place, cause, "give each scenario a name of its own");
            }
        }
    }

    fn content(&mut self, index: usize, behaviour: &Behaviour) {
        let place = self.draft.place_of(index, "content");
        match &behaviour.content {
            None if self.lacks_content(index) => {
                let cause = format!("is missing, and {} needs it", behaviour.protocol.name());
                let mend = match behaviour.http {
                    Some(_) => {
                        "write `protocol: http` if the `http` request is meant, else `content:`"
                    }
                    None => {
                        "write `content:` with `mode` and `prompts`, `script` or `approx_input_tokens`"
                    }
                };
                self.report(place, cause, mend);
            }
            Some(Content::Pool { prompts }) => self.texts(&place.key("prompts"), prompts),
            Some(Content::Scripted { script }) => self.texts(&place.key("script"), script),
            Some(Content::Sized { .. }) | None => {}
        }
    }

    fn texts(&mut self, place: &ConfigPath, texts: &[String]) {
        for (index, _) in texts.iter().enumerate().filter(|(_, text)| text.trim().is_empty()) {
            self.report(place.index(index), "is an empty text", "write something, or take it out");
        }
    }

    fn parameters(&mut self, index: usize, behaviour: &Behaviour) {
        let place = self.draft.place_of(index, "parameters");
        for member in behaviour.protocol.reserved() {
            if behaviour.parameters.contains_key(*member) {
                let mend = "leave it out, and use the profile's own keys (`model`, `system`, `content`, `stream`, `max_tokens`)";
                self.report(place.key(member), "is written by Plimsoll itself", mend);
            }
        }
    }

    fn http(&mut self, index: usize, behaviour: &Behaviour) {
        let place = self.draft.place_of(index, "http");
        let Some(HttpSpec { method, path, .. }) = &behaviour.http else { return };
        if !headers::is_name(method) {
            self.report(
                place.key("method"),
                "is not an HTTP method",
                "write one like `GET` or `POST`",
            );
        }
        if !path.is_empty() && !path.starts_with('/') {
            self.report(place.key("path"), "does not start with `/`", "put a `/` before it");
        }
        // Blanks inside of a template are gone when it has been filled in.
        if without_templates(path).bytes().any(|byte| !byte.is_ascii_graphic()) {
            let cause = "has a blank, a control or a non-ASCII character in it";
            self.report(place.key("path"), cause, "percent-encode it, like `%20`");
        }
    }
}

fn without_templates(path: &str) -> String {
    let mut rest = path;
    let mut plain = String::new();
    while let Some((before, after)) = rest.split_once("{{") {
        plain.push_str(before);
        rest = after.split_once("}}").map_or("", |(_, tail)| tail);
    }
    plain + rest
}
