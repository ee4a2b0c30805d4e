//! The part of a run that a limit or a report covers.

use std::fmt;

use crate::error::MetricsError;

/// The part of a run that a limit covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The whole run, without warm-up.
    Run,
    /// One stage, by its name or its number counted from 1.
    Stage(String),
    /// One scenario.
    Scenario(String),
    /// The scenarios of one category.
    Category(String),
    /// One target.
    Target(String),
    /// One operation of tool servers and agents, like `tools/call`.
    Operation(String),
}

impl Scope {
    /// Reads `{scenario:simple}`; nothing is the whole run.
    ///
    /// # Errors
    /// [`MetricsError::Scope`] if it is not one tag with a known key.
    pub(crate) fn parse(text: &str) -> Result<Self, MetricsError> {
        let tag = text.trim();
        if tag.is_empty() {
            return Ok(Self::Run);
        }
        let refuse = || MetricsError::Scope(tag.to_owned());
        let inside = tag.strip_prefix('{').and_then(|tag| tag.strip_suffix('}'));
        let (key, value) = inside.and_then(|tag| tag.split_once(':')).ok_or_else(refuse)?;
        let value = value.trim().to_owned();
        Ok(match key.trim() {
            "stage" => Self::Stage(value),
            "scenario" => Self::Scenario(value),
            "category" => Self::Category(value),
            "target" => Self::Target(value),
            "operation" => Self::Operation(value),
            _ => return Err(refuse()),
        })
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run => Ok(()),
            Self::Stage(name) => write!(f, "{{stage:{name}}}"),
            Self::Scenario(name) => write!(f, "{{scenario:{name}}}"),
            Self::Category(name) => write!(f, "{{category:{name}}}"),
            Self::Target(name) => write!(f, "{{target:{name}}}"),
            Self::Operation(name) => write!(f, "{{operation:{name}}}"),
        }
    }
}
