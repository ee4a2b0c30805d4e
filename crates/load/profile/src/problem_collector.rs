//! Collects problems, without those that are consequences of others.

use crate::error::{Problem, Problems};
use crate::path::{ConfigPath, Step};

/// The problems of a profile so far, and the invalid values that were removed because of them.
#[derive(Debug)]
pub(crate) struct ProblemCollector {
    problems: Vec<Problem>,
    removed: Vec<ConfigPath>,
}

impl ProblemCollector {
    /// Creates a collector with the problems so far.
    pub(crate) const fn new(problems: Vec<Problem>, removed: Vec<ConfigPath>) -> Self {
        Self { problems, removed }
    }

    /// Adds a problem, unless it concerns a removed invalid value.
    pub(crate) fn add(&mut self, problem: Problem) {
        if !self.removed.iter().any(|removed| concerns(&problem.path, removed)) {
            self.problems.push(problem);
        }
    }

    /// Whether there is a problem.
    pub(crate) const fn any(&self) -> bool {
        !self.problems.is_empty()
    }

    /// All problems.
    pub(crate) fn into_problems(self) -> Problems {
        self.problems.into_iter().collect()
    }
}

/// Whether `path` is inside `removed`, or inherited from it.
fn concerns(path: &ConfigPath, removed: &ConfigPath) -> bool {
    let inherited = match path.steps() {
        [Step::Key(list), Step::Index(_), Step::Key(key), ..] if list == "scenarios" => {
            Some(ConfigPath::root().key(key))
        }
        _ => None,
    };
    path.is_within(removed) || inherited.as_ref() == Some(removed)
}
