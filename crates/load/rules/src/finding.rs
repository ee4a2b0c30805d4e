//! A rule that fired.

use std::collections::BTreeMap;
use std::fmt::Display;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rule::{Level, Rule};

/// A rule that fired, with its evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Code of the rule: 204 for `PL204`.
    pub code: u16,
    /// Severity.
    pub level: Level,
    /// Formatted values for the text.
    pub values: BTreeMap<String, String>,
    /// Names of the targets, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
}

impl Finding {
    /// Creates a finding without values, at the level of its rule.
    pub fn new(code: u16) -> Self {
        let level = rule(code).map_or(Level::Note, |rule| rule.level);
        Self { code, level, values: BTreeMap::new(), targets: Vec::new() }
    }

    /// Adds a value for the text.
    pub fn with(mut self, name: &str, value: impl Display) -> Self {
        self.values.insert(name.to_owned(), value.to_string());
        self
    }

    /// Adds a value for the text, if there is one.
    pub fn with_some(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Sets the target, if there are several.
    pub fn of(mut self, target: Option<&str>) -> Self {
        self.targets.extend(target.map(str::to_owned));
        self
    }

    /// Changes the level.
    pub const fn at(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Text of the finding.
    pub fn text(&self) -> String {
        let text = rule(self.code).map(|rule| fill(rule.text, &self.values)).unwrap_or_default();
        if self.targets.is_empty() { text } else { format!("{}: {text}", self.targets.join(", ")) }
    }

    /// Code in the form `PL204`.
    pub fn label(&self) -> String {
        format!("PL{}", self.code)
    }

    /// Position on a screen: failures, the target, the load, streams, the bottleneck, notes.
    pub const fn rank(&self) -> u8 {
        match (self.level, self.code / 100) {
            (Level::Fail, 2) => 0,
            (Level::Fail, _) => 1,
            (Level::Invalid, _) => 2,
            (Level::Warning, 2) => 3,
            (Level::Warning, 1 | 7) => 4,
            (Level::Warning, 5) => 6,
            (Level::Warning, _) => 5,
            (Level::Note, _) => 7,
        }
    }

    /// Recommended action; may be empty.
    pub fn fix(&self) -> String {
        rule(self.code).map(|rule| fill(rule.fix, &self.values)).unwrap_or_default()
    }
}

fn rule(code: u16) -> Option<&'static Rule> {
    Rule::all().iter().find(|rule| rule.code == code)
}

/// Fills a template with its values. A part in brackets is omitted if one of its values is missing.
pub(crate) fn fill(template: &str, values: &BTreeMap<String, String>) -> String {
    let mut filled = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('[') {
        filled += &fill_part(before, values).0;
        let (part, after) = after.split_once(']').unwrap_or((after, ""));
        let (text, is_whole) = fill_part(part, values);
        if is_whole {
            filled += &text;
        }
        rest = after;
    }
    filled + &fill_part(rest, values).0
}

/// A filled part, and whether it has all of its values.
fn fill_part(part: &str, values: &BTreeMap<String, String>) -> (String, bool) {
    let (mut filled, mut is_whole, mut rest) = (String::new(), true, part);
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').unwrap_or((after, ""));
        filled += before;
        match values.get(name) {
            Some(value) => filled += value,
            None => is_whole = false,
        }
        rest = after;
    }
    (filled + rest, is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_without_its_value_is_left_out() {
        let finding = Finding::new(204).with("n", 3).with("all", 40).with("status", "503");
        assert_eq!(finding.text(), "3 of 40 requests returned 503.");
        let finding = finding.with("when", "since 1.2 s").with_some("message", Some("overloaded"));
        assert_eq!(finding.text(), "3 of 40 requests returned 503 since 1.2 s: overloaded.");
        assert_eq!(finding.fix(), "check the log of the target");
        assert_eq!(finding.level, Level::Warning);
    }
}
