//! Limits on figures: one grammar, one judge, one result.
//!
//! A limit is a metric, the part of the run that it covers, a comparison and a value:
//! `ttft{scenario:chat}` and `p(95)<500ms`. A second, wider value after a bar makes it a band with
//! the levels target, degraded and critical: `p(95)<500ms|1s`.

mod bound;
mod gate;
mod grammar;
mod judge;

use std::fmt;

pub use bound::{Bound, Comparison, widened};
pub use gate::{Gate, Margin};
pub use judge::{BandLevel, Judgement, ThresholdResult, Verdict};

use crate::catalog::{Figure, Unit};
use crate::error::MetricsError;

/// A limit on one number of a run.
#[derive(Clone, Debug)]
pub struct Limit {
    figure: Figure,
    scope: Scope,
    aggregate: Aggregate,
    bound: Bound,
    /// The wider bound of a band.
    wider: Option<Bound>,
}

/// One number of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Aggregate {
    /// A quantile, from 0 to 1.
    Quantile(f64),
    Mean,
    Min,
    Max,
    Count,
    /// The figure itself, where it is one number.
    Value,
}

impl fmt::Display for Aggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quantile(q) => write!(f, "p({})", (q * 1e8).round() / 1e6),
            Self::Mean => f.write_str("mean"),
            Self::Min => f.write_str("min"),
            Self::Max => f.write_str("max"),
            Self::Count => f.write_str("count"),
            Self::Value => Ok(()),
        }
    }
}

impl Limit {
    /// The limited figure.
    pub const fn figure(&self) -> Figure {
        self.figure
    }

    /// The part of the run that it covers.
    pub const fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The limited quantile, from 0 to 1.
    pub const fn quantile(&self) -> Option<f64> {
        match self.aggregate {
            Aggregate::Quantile(q) => Some(q),
            _ => None,
        }
    }

    /// The bound; of a band, its target.
    pub const fn bound(&self) -> Bound {
        self.bound
    }

    /// The metric with its scope: `ttft{scenario:chat}`.
    pub fn metric(&self) -> String {
        format!("{}{}", self.figure.name(), self.scope)
    }

    /// The rest in its one form: `p(95)<500ms`.
    pub fn expression(&self) -> String {
        let unit = self.unit();
        let first = self.bound.written(unit);
        let wider = self.wider.map(|wider| {
            let wider = wider.written(unit);
            let sign = self.bound.comparison.sign();
            format!("|{}", wider.strip_prefix(sign).unwrap_or(&wider))
        });
        format!("{}{first}{}", self.aggregate, wider.unwrap_or_default())
    }

    /// The unit of the measured value.
    const fn unit(&self) -> Unit {
        match self.aggregate {
            Aggregate::Count => Unit::Requests,
            _ => self.figure.unit(),
        }
    }
}

// The part of a run that a limit or a report covers.

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
