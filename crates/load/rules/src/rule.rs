//! The rules of `rules.md`.

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| parse(include_str!("../rules.md")));

/// Severity of a rule, the most severe one first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// The target failed: exit code 1.
    Fail,
    /// The measurement is invalid: exit code 3.
    Invalid,
    /// A warning.
    Warning,
    /// A note.
    Note,
}

impl Level {
    fn parse(letter: &str) -> Option<Self> {
        match letter {
            "F" => Some(Self::Fail),
            "I" => Some(Self::Invalid),
            "W" => Some(Self::Warning),
            "N" => Some(Self::Note),
            _ => None,
        }
    }

    /// Name in JSON and on pages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Invalid => "invalid",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// A statement about a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The number after `PL`.
    pub code: u16,
    /// Name: words with hyphens.
    pub name: &'static str,
    /// Level, unless the finding sets another one.
    pub level: Level,
    /// Template of the statement.
    pub text: &'static str,
    /// Template of the recommended action; may be empty.
    pub fix: &'static str,
    /// Evidence and condition.
    pub proves: &'static str,
    /// Situations in which it does not fire, and conclusions that it does not support.
    pub not: &'static str,
}

impl Rule {
    /// All rules, ordered by code.
    pub fn all() -> &'static [Self] {
        &RULES
    }

    /// Finds a rule by its code or name.
    pub fn find(name: &str) -> Option<&'static Self> {
        let code = name.strip_prefix("PL").unwrap_or(name).parse().ok();
        RULES.iter().find(|rule| Some(rule.code) == code || rule.name == name)
    }

    /// Code in the form `PL204`.
    pub fn label(&self) -> String {
        format!("PL{}", self.code)
    }

    /// Line for a list: `PL204  warning  server-errors`.
    pub fn line(&self) -> String {
        format!("{}  {:7}  {}\n", self.label(), self.level.name(), self.name)
    }

    /// Page of the rule, in Markdown.
    pub fn page(&self) -> String {
        let Self { code, name, level, text, fix, proves, not } = self;
        let mut page = format!("## PL{code} {name} ({})\n\n> {text}\n\n", level.name());
        for (title, text) in [("Fix", fix), ("Proves", proves), ("Does not prove", not)] {
            if !text.is_empty() {
                page.extend(["- ", title, ": ", text, "\n"]);
            }
        }
        page
    }
}

fn parse(table: &'static str) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for line in table.lines() {
        if let Some(rule) = line.strip_prefix("## ").and_then(parse_head) {
            rules.push(rule);
        } else if let (Some(rule), Some((key, text))) = (rules.last_mut(), line.split_once(": ")) {
            let text = text.trim();
            match key {
                "text" => rule.text = text,
                "fix" => rule.fix = text,
                "proves" => rule.proves = text,
                "not" => rule.not = text,
                _ => {}
            }
        }
    }
    rules
}

fn parse_head(head: &'static str) -> Option<Rule> {
    let mut words = head.split_whitespace();
    let (code, name, level) = (words.next()?, words.next()?, words.next()?);
    let (code, level) = (code.parse().ok()?, Level::parse(level)?);
    Some(Rule { code, name, level, text: "", fix: "", proves: "", not: "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_whole_and_in_order() {
        let heads = include_str!("../rules.md").lines().filter(|line| line.starts_with("## "));
        assert_eq!(heads.count(), RULES.len());
        assert!(RULES.is_sorted_by(|one, other| one.code < other.code));
        assert!(RULES.len() <= 60);
        for rule in Rule::all() {
            assert!(!rule.text.is_empty() && !rule.proves.is_empty(), "{}", rule.label());
            assert!(rule.text.ends_with(['.', ']']), "{}", rule.label());
        }
    }
}
