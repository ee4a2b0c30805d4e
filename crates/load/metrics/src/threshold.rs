//! Bounds on aggregates, written as in k6: `"ttft": ["p(95)<500ms"]`.

mod band;
mod gate;
mod judge;
mod parse;

use crate::catalog::{Figure, Unit};
use crate::scope::Scope;

pub use band::{Band, BandLevel, BandResult};
pub use gate::{Gate, Margin};
pub use judge::{Judgement, ThresholdResult};

/// A bound on an aggregate of one metric.
#[derive(Clone, Debug)]
pub struct Threshold {
    metric: String,
    expression: String,
    figure: Figure,
    scope: Scope,
    aggregate: Aggregate,
    comparison: Comparison,
    bound: f64,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Less,
    AtMost,
    Greater,
    AtLeast,
    Equal,
}

impl Comparison {
    /// Whether `measured` keeps the bound.
    #[expect(clippy::float_cmp, reason = "`==` is for counters, which are whole")]
    const fn holds(self, measured: f64, bound: f64) -> bool {
        match self {
            Self::Less => measured < bound,
            Self::AtMost => measured <= bound,
            Self::Greater => measured > bound,
            Self::AtLeast => measured >= bound,
            Self::Equal => measured == bound,
        }
    }
}

impl Threshold {
    /// The figure that it bounds.
    pub const fn figure(&self) -> Figure {
        self.figure
    }

    /// The part of the run that it is about.
    pub const fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The quantile that it bounds, from 0 to 1.
    pub const fn quantile(&self) -> Option<f64> {
        match self.aggregate {
            Aggregate::Quantile(q) => Some(q),
            _ => None,
        }
    }

    /// The unit of the measured value.
    const fn unit(&self) -> Unit {
        match self.aggregate {
            Aggregate::Count => Unit::Requests,
            _ => self.figure.unit(),
        }
    }
}
