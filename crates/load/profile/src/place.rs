//! Places in a profile, like `scenarios[1].weight`.

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

/// A place in a profile: the steps that lead there from the top.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfigPath(Vec<Step>);

impl ConfigPath {
    /// The whole profile.
    pub const fn top() -> Self {
        Self(Vec::new())
    }

    /// The member `key` of this place.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.with(Step::Key(key.to_owned()))
    }

    /// The item `index` of this place.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.with(Step::Index(index))
    }

    fn with(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// The steps from the top.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Is this place `other`, or inside it?
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// The value at this place, if there is one.
    pub fn find<'v>(&self, root: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(root, |value, step| match step {
            Step::Key(key) => value.get(key),
            Step::Index(index) => value.get(index),
        })
    }

    /// The value at this place, if there is one.
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn places_are_written_like_paths_and_found() {
        let place = ConfigPath::top().key("scenarios").index(1).key("weight");
        assert_eq!(place.to_string(), "scenarios[1].weight");
        let root = json!({"scenarios": [{}, {"weight": 3}]});
        assert_eq!(place.find(&root), Some(&json!(3)));
        assert_eq!(place.key("x").find(&root), None);
        assert!(place.is_within(&ConfigPath::top().key("scenarios").index(1)));
        assert!(!place.is_within(&ConfigPath::top().key("scenarios").index(0)));
    }
}
