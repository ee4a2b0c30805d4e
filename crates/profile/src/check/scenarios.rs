//! Scenarios, alone and as a blend.

use plimsoll_measure::Nanos;
use plimsoll_protocol::Dialect;
use plimsoll_workload::{Content, DurationSpec, HttpSpec, PrefixPool, SystemPrompt};

use super::{Check, headers, top};
use crate::place::Place;
use crate::spec::Behaviour;

impl Check<'_> {
    pub(super) fn scenarios(&mut self) {
        self.weights();
        self.names();
        let file = self.file;
        for (index, scenario) in file.scenarios.iter().enumerate() {
            let behaviour = &scenario.behaviour;
            self.content(index, behaviour);
            self.system(index, behaviour.system.as_ref());
            self.think_time(index, behaviour.think_time);
            self.prefix_pool(index, behaviour.prefix_pool);
            self.parameters(index, behaviour);
            self.http(index, behaviour);
        }
    }

    fn weights(&mut self) {
        let weights = || self.file.scenarios.iter().map(|scenario| scenario.weight);
        if !weights().any(|weight| weight > 0.0) {
            let mend = "give at least one scenario a weight above zero";
            self.report(
                top("scenarios"),
                "all have the weight 0, so that none would ever be drawn",
                mend,
            );
        } else if weights().sum::<f64>().is_infinite() {
            self.report(
                top("scenarios"),
                "have weights whose sum is beyond all numbers",
                "write smaller weights",
            );
        }
    }

    fn names(&mut self) {
        let file = self.file;
        for (index, scenario) in file.scenarios.iter().enumerate() {
            let Some(name) = &scenario.name else { continue };
            let place = Place::top().key("scenarios").index(index).key("name");
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
            None if behaviour.protocol == Dialect::Http => {}
            None => {
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
            Some(Content::Scripted { script }) => {
                let place = place.key("script");
                self.texts(&place, script);
                let turns = usize::from(behaviour.turns);
                if !script.is_empty() && script.len() < turns {
                    let cause = format!("has {} lines for {turns} turns", script.len());
                    self.report(
                        place,
                        cause,
                        "write a line for every turn, or ask for fewer turns",
                    );
                }
            }
            Some(Content::Sized { approx_input_tokens: 0 }) => {
                self.report(
                    place.key("approx_input_tokens"),
                    "is zero",
                    "write a number of tokens, like 128",
                );
            }
            Some(Content::Sized { .. }) => {}
        }
    }

    fn texts(&mut self, place: &Place, texts: &[String]) {
        if texts.is_empty() {
            self.report(place.clone(), "is an empty list", "write at least one text");
        }
        for (index, _) in texts.iter().enumerate().filter(|(_, text)| text.trim().is_empty()) {
            self.report(place.index(index), "is an empty text", "write something, or take it out");
        }
    }

    fn system(&mut self, index: usize, system: Option<&SystemPrompt>) {
        if system == Some(&SystemPrompt::ApproxTokens(0)) {
            let place = self.draft.place_of(index, "system").key("approx_tokens");
            self.report(place, "is zero", "write a number of tokens, or leave `system` out");
        }
    }

    fn think_time(&mut self, index: usize, think_time: Option<DurationSpec>) {
        let place = self.draft.place_of(index, "think_time");
        match think_time {
            Some(DurationSpec::Uniform { min, max }) if max < min => {
                self.report(
                    place.key("uniform").key("max"),
                    "is less than `min`",
                    "write a longer one",
                );
            }
            Some(DurationSpec::Lognormal { median: Nanos::ZERO, .. }) => {
                let mend = "write a length of time above zero";
                self.report(
                    place.key("lognormal").key("median"),
                    "is zero, which no lognormal has",
                    mend,
                );
            }
            Some(DurationSpec::Lognormal { median, p95 }) if p95 < median => {
                self.report(
                    place.key("lognormal").key("p95"),
                    "is less than `median`",
                    "write a longer one",
                );
            }
            _ => {}
        }
    }

    fn prefix_pool(&mut self, index: usize, pool: Option<PrefixPool>) {
        let Some(PrefixPool { count, approx_tokens }) = pool else { return };
        let place = self.draft.place_of(index, "prefix_pool");
        for (key, value) in [("count", count), ("approx_tokens", approx_tokens)] {
            if value == 0 {
                self.report(
                    place.key(key),
                    "is zero",
                    "write 1 or more, or leave `prefix_pool` out",
                );
            }
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
        let Some(HttpSpec { method, path, .. }) = &behaviour.http else {
            if behaviour.protocol == Dialect::Http {
                let mend =
                    "write `http:` with `path`, and `method`, `headers` and `body` as needed";
                self.report(place, "is missing, and the protocol `http` needs it", mend);
            }
            return;
        };
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
