//! Paths to values of a profile, such as `scenarios[1].weight`.

use std::fmt;

use serde_json::Value;

/// One step into a profile.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Into a mapping.
    Key(String),
    /// Into a list, from 0.
    Index(usize),
}

/// A path to a value of a profile: the steps from the root.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfigPath(Vec<Step>);

impl ConfigPath {
    /// The path of the whole profile.
    pub const fn root() -> Self {
        Self(Vec::new())
    }

    /// The path of the member `key`.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.with(Step::Key(key.to_owned()))
    }

    /// The path of the item `index`.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.with(Step::Index(index))
    }

    fn with(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// The steps from the root.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Whether this path is `other`, or inside it.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// The value at this path, if there is one.
    pub fn find<'v>(&self, root: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(root, |value, step| match step {
            Step::Key(key) => value.get(key),
            Step::Index(index) => value.get(index),
        })
    }

    /// The value at this path, if there is one.
    pub fn find_mut<'v>(&self, root: &'v mut Value) -> Option<&'v mut Value> {
        self.0.iter().try_fold(root, |value, step| match step {
            Step::Key(key) => value.get_mut(key),
            Step::Index(index) => value.get_mut(index),
        })
    }
}

impl fmt::Display for ConfigPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if position == 0 => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

// Suggests the nearest known name for an unknown one.

/// The known name most similar to `written`, if one is similar enough.
///
/// At most a third of its letters may be inserted, removed, changed or swapped (the optimal string
/// alignment distance).
fn nearest<'k>(written: &str, known: &[&'k str]) -> Option<&'k str> {
    let lower = written.to_lowercase().replace('-', "_");
    let distances =
        known.iter().map(|name| (strsim::osa_distance(&lower, &name.replace('-', "_")), *name));
    let near = distances.min_by_key(|(distance, _)| *distance);
    near.filter(|(distance, name)| *distance <= (name.chars().count() / 3).max(1))
        .map(|(_, name)| name)
}

/// Maximum number of names to list.
const LISTED: usize = 24;

/// The fix for an unknown name: the nearest known one, or a list of all if there are few.
pub(crate) fn instead(written: &str, known: &[&str]) -> String {
    match nearest(written, known) {
        Some(name) => format!("did you mean `{name}`?"),
        None if known.len() > LISTED => {
            format!("`plimsoll profile schema` lists the {} known ones", known.len())
        }
        None => format!("known are {}", list(known, "and")),
    }
}

/// `a`, `b` or `c`.
pub(crate) fn one_of(names: &[&str]) -> String {
    list(names, "or")
}

fn list(names: &[&str], last: &str) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        None => "none".to_owned(),
        Some((only, [])) => only.clone(),
        Some((end, rest)) => format!("{} {last} {end}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_are_displayed_and_found() {
        let path = ConfigPath::root().key("scenarios").index(1).key("weight");
        assert_eq!(path.to_string(), "scenarios[1].weight");
        let root = json!({"scenarios": [{}, {"weight": 3}]});
        assert_eq!(path.find(&root), Some(&json!(3)));
        assert_eq!(path.key("x").find(&root), None);
        assert!(path.is_within(&ConfigPath::root().key("scenarios").index(1)));
        assert!(!path.is_within(&ConfigPath::root().key("scenarios").index(0)));
    }
}

#[cfg(test)]
mod suggest_tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested_if_it_is_similar() {
        let known = ["target", "timeout", "max_tokens"];
        for (written, suggestion) in [
            ("taget", Some("target")),
            ("Target", Some("target")),
            ("time_out", Some("timeout")),
            ("max-tokens", Some("max_tokens")),
            ("temperature", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, &known), suggestion, "{written}");
        }
    }

    #[test]
    fn lists_are_written_as_in_a_sentence() {
        assert_eq!(one_of(&["a", "b", "c"]), "`a`, `b` or `c`");
        assert_eq!(one_of(&["a"]), "`a`");
        assert_eq!(instead("x", &["abc", "def"]), "known are `abc` and `def`");
    }
}
