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

use crate::catalog::{Figure, Unit};
use crate::scope::Scope;

pub use bound::{Bound, Comparison, widened};
pub use gate::{Gate, Margin};
pub use judge::{BandLevel, Judgement, ThresholdResult, Verdict};

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
