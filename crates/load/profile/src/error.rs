//! Problems of a profile. All are reported at once, each with its path, cause and fix.

use std::collections::BTreeMap;
use std::fmt;

use crate::path::{ConfigPath, Step};

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueSource {
    /// A profile file, or the name of a built-in profile.
    File(String),
    /// An environment variable.
    Environment(String),
    /// A command-line flag, without its value, which may be a secret.
    Flag(String),
}

impl fmt::Display for ValueSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(name) => f.write_str(name),
            Self::Environment(name) => write!(f, "environment variable {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// A cause and its fix, without a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The cause, as a predicate: "is a number".
    pub cause: String,
    /// The fix, as an instruction: "write a length of time with a unit, like `30s`".
    pub fix: String,
}

impl Fault {
    /// Creates a fault with this cause and fix.
    pub fn new(cause: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { cause: cause.into(), fix: fix.into() }
    }

    /// Splits the message of another crate's error: `CAUSE; FIX` or `CAUSE: FIX`.
    pub(crate) fn from_error(error: &impl ToString) -> Self {
        let message = error.to_string();
        let separator = last_outside_of_quotes(&message, "; ")
            .or_else(|| last_outside_of_quotes(&message, ": "));
        match separator {
            Some(at) => Self::new(&message[..at], &message[at + 2..]),
            None => Self::new(message, "correct it"),
        }
    }
}

/// The last position of `sign` outside backquotes.
fn last_outside_of_quotes(text: &str, sign: &str) -> Option<usize> {
    text.rmatch_indices(sign)
        .map(|(at, _)| at)
        .find(|at| text[..*at].matches('`').count().is_multiple_of(2))
}

/// A problem of a profile.
///
/// Displayed as `SOURCE:LINE: PATH: CAUSE; FIX`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{source_name}{}: {}{}; {}", suffix(*.line), prefix(.path), .fault.cause, .fault.fix)]
pub struct Problem {
    /// The source of the value.
    // Not called `source`, because thiserror would treat that as an underlying error.
    pub source_name: ValueSource,
    /// Line in the file, from 1, if known.
    pub line: Option<u64>,
    /// The path of the value in the profile.
    pub path: ConfigPath,
    /// The cause and the fix.
    pub fault: Fault,
}

impl Problem {
    /// Creates a problem of the value at a path, without a line.
    pub(crate) const fn new(source_name: ValueSource, path: ConfigPath, fault: Fault) -> Self {
        Self { source_name, line: None, path, fault }
    }
}

/// A colon and the line; empty if it is unknown.
fn suffix(line: Option<u64>) -> String {
    line.map(|line| format!(":{line}")).unwrap_or_default()
}

/// The path and a colon; empty for the whole profile.
fn prefix(path: &ConfigPath) -> String {
    if path.steps().is_empty() { String::new() } else { format!("{path}: ") }
}

/// All problems of a profile. As an error it is never empty.
///
/// The remedy of each problem is its [`Fault::fix`].
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines(.0))]
pub struct Problems(Vec<Problem>);

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

impl Problems {
    /// The problems, sorted by path.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }

    /// Number of problems.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no problems.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the lines of values from a file.
    pub(crate) fn with_lines(mut self, file: &ValueSource, lines: &Lines) -> Self {
        for problem in self.0.iter_mut().filter(|problem| problem.source_name == *file) {
            problem.line = lines.find(&problem.path);
        }
        self
    }

    /// Returns `value` if there are no problems.
    pub(crate) fn or<T>(self, value: T) -> Result<T, Self> {
        if self.is_empty() { Ok(value) } else { Err(self) }
    }
}

/// Sorts problems by path, without duplicates.
impl FromIterator<Problem> for Problems {
    fn from_iter<I: IntoIterator<Item = Problem>>(problems: I) -> Self {
        let mut all: Vec<_> = problems.into_iter().collect();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        all.dedup();
        Self(all)
    }
}

impl<'p> IntoIterator for &'p Problems {
    type Item = &'p Problem;
    type IntoIter = std::slice::Iter<'p, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

// Lines of the keys of a file, for error messages.

/// Lines of a file's keys, from 1. Empty for JSON, whose parser does not report them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines(BTreeMap<ConfigPath, u64>);

impl Lines {
    /// Records the line of a key.
    pub(crate) fn note(&mut self, path: ConfigPath, line: u64) {
        self.0.insert(path, line);
    }

    /// The line of the value at a path: of its key, or else of the first key inside it, or else of
    /// the enclosing value. `None` for a missing top-level key.
    pub(crate) fn find(&self, path: &ConfigPath) -> Option<u64> {
        if path.steps().is_empty() {
            return None;
        }
        self.0
            .get(path)
            .copied()
            .or_else(|| {
                let within = self.0.iter().filter(|(known, _)| known.is_within(path));
                within.map(|(_, line)| *line).min()
            })
            .or_else(|| {
                let around = self.0.iter().filter(|(known, _)| path.is_within(known));
                around.map(|(_, line)| *line).max()
            })
    }
}

// Collects problems, without those that are consequences of others.

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
