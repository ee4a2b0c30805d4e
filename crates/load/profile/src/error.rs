//! What is wrong with a profile: all of it at once, each with its place and its mend.

use std::fmt;

use crate::place::ConfigPath;

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// A profile file, or the name of a built-in profile.
    File(String),
    /// An environment variable.
    Environment(String),
    /// A flag of the command line, without its value, which may be a secret.
    Flag(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(name) => f.write_str(name),
            Self::Environment(name) => write!(f, "environment variable {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// A cause and its mend, before it is known where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong, as a predicate: "is a number".
    pub cause: String,
    /// What to do about it, as an order: "write a length of time with a unit, like `30s`".
    pub mend: String,
}

impl Fault {
    /// A fault.
    pub fn new(cause: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { cause: cause.into(), mend: mend.into() }
    }

    /// From the message of another crate's error, which is written `CAUSE; MEND` or `CAUSE: MEND`.
    pub(crate) fn of(error: &impl ToString) -> Self {
        let message = error.to_string();
        let seam = last_outside_of_quotes(&message, "; ")
            .or_else(|| last_outside_of_quotes(&message, ": "));
        match seam {
            Some(at) => Self::new(&message[..at], &message[at + 2..]),
            None => Self::new(message, "correct it"),
        }
    }
}

/// Where `sign` stands for the last time outside of back-quotes.
fn last_outside_of_quotes(text: &str, sign: &str) -> Option<usize> {
    let quoted = |at: usize| text[..at].matches('`').count() % 2 == 1;
    text.rmatch_indices(sign).map(|(at, _)| at).find(|at| !quoted(*at))
}

/// One thing that is wrong with a profile.
///
/// Written as `SOURCE: PLACE: CAUSE; MEND`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{source_name}: {}{}; {}", prefix(.place), .fault.cause, .fault.mend)]
pub struct Problem {
    /// Where the value was written.
    // Not called `source`, which thiserror would take for an underlying error.
    pub source_name: Source,
    /// Where in the profile the value belongs.
    pub place: ConfigPath,
    /// What is wrong, and what to do about it.
    pub fault: Fault,
}

/// The place and a colon; nothing for the profile as a whole.
fn prefix(place: &ConfigPath) -> String {
    if place.steps().is_empty() { String::new() } else { format!("{place}: ") }
}

/// Everything that is wrong with a profile. Never empty where it is an error.
///
/// The remedy of each problem is its [`Fault::mend`].
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines(.0))]
pub struct Problems(Vec<Problem>);

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

impl Problems {
    /// The problems, in the order of their places.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Is nothing wrong?
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `value` if nothing is wrong.
    pub(crate) fn or<T>(self, value: T) -> Result<T, Self> {
        if self.is_empty() { Ok(value) } else { Err(self) }
    }
}

/// Sorted by place, each once.
impl FromIterator<Problem> for Problems {
    fn from_iter<I: IntoIterator<Item = Problem>>(problems: I) -> Self {
        let mut all: Vec<_> = problems.into_iter().collect();
        all.sort_by(|a, b| a.place.cmp(&b.place));
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
