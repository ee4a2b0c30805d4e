//! The grammar of limits, gates and scopes.
//!
//! `METRIC[.AGGREGATE][{SCOPE:NAME}]` and `[AGGREGATE] COMPARISON VALUE[|[COMPARISON] VALUE]`. An
//! aggregate is `p(95)` or `p95`, `med`, `mean` or `avg`, `min`, `max` or `count`; a value has the
//! unit of its metric.

use plimsoll_measure::Nanos;

use super::{Aggregate, Bound, Comparison, Limit};
use crate::catalog::{Figure, Unit};
use crate::error::MetricsError;
use crate::limit::Scope;

/// Short names of figures.
const ALIASES: [(&str, &str); 3] =
    [("response", "response_time"), ("service", "service_time"), ("errors", "error_rate")];

/// Names at most this many edits away are suggested.
const NEAR: usize = 3;

/// A number of a part of a run.
pub(super) struct Subject {
    pub(super) figure: Figure,
    pub(super) scope: Scope,
    pub(super) aggregate: Option<String>,
}

impl Subject {
    pub(super) fn parse(text: &str) -> Result<Self, MetricsError> {
        let (name, tag) = text.find('{').map_or((text, ""), |at| text.split_at(at));
        let (name, aggregate) = match name.trim().split_once('.') {
            Some((name, aggregate)) => (name, Some(aggregate.to_owned())),
            None => (name.trim(), None),
        };
        let full = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, full)| full);
        let figure = Figure::named(full).ok_or_else(|| unknown(name))?;
        Ok(Self { figure, scope: Scope::parse(tag)?, aggregate })
    }

    /// The number of the figure, which stands after the metric or before the comparison.
    pub(super) fn aggregate(&self, before: &str) -> Result<Aggregate, String> {
        let text = match &self.aggregate {
            Some(_) if !before.is_empty() => {
                return Err(format!("`{before}` is a second aggregate"));
            }
            Some(text) => text,
            None => before,
        };
        match (self.figure, Aggregate::parse(text)) {
            (Figure::Distribution(_), Some(Aggregate::Value)) => {
                Err("it names no value of the distribution, such as p(95) or mean".to_owned())
            }
            (Figure::Distribution(_), Some(found)) => Ok(found),
            (Figure::Distribution(_), None) => Err(format!(
                "`{text}` is not p(N) with N between 0 and 100, med, mean, min, max or count"
            )),
            (_, Some(Aggregate::Value | Aggregate::Count)) => Ok(Aggregate::Value),
            _ => Err(format!("it is a single number, without `{text}`")),
        }
    }
}

impl Aggregate {
    fn parse(text: &str) -> Option<Self> {
        Some(match text.trim() {
            "" | "rate" | "value" => Self::Value,
            "mean" | "avg" => Self::Mean,
            "med" => Self::Quantile(0.5),
            "min" => Self::Min,
            "max" => Self::Max,
            "count" => Self::Count,
            text => {
                let inner = text.strip_prefix('p')?;
                let inner = inner.strip_prefix('(').map_or(Some(inner), |i| i.strip_suffix(')'))?;
                let percent = number(&inner.replace('_', "."))?;
                Self::Quantile(Some(percent / 100.0).filter(|q| *q > 0.0 && *q < 1.0)?)
            }
        })
    }
}

impl Limit {
    /// Parses a limit, like `ttft{scenario:chat}` and `p(95)<500ms`.
    ///
    /// # Errors
    /// [`MetricsError::UnknownMetric`], [`MetricsError::Scope`] and [`MetricsError::Limit`], each
    /// with advice on what to write instead.
    pub fn parse(metric: &str, expression: &str) -> Result<Self, MetricsError> {
        let subject = Subject::parse(metric)?;
        subject.limit(expression).map_err(|cause| MetricsError::Limit {
            limit: format!("{}: {}", metric.trim(), expression.trim()),
            cause,
            example: example(subject.figure),
        })
    }
}

impl Limit {
    /// Parses a limit in one text: `ttft: p(95)<500ms`, `ttft.p95<500ms`.
    ///
    /// # Errors
    /// As [`Limit::parse`].
    pub fn read(text: &str) -> Result<Self, MetricsError> {
        let end = text.find([':', ' ', '<', '>', '=', '{']).unwrap_or(text.len());
        // Braces choose a part of the run, whose name may have any character.
        let brace = text[end..].strip_prefix('{').and_then(|rest| rest.find('}'));
        let (metric, rest) = text.split_at(brace.map_or(end, |inside| end + inside + 2));
        Self::parse(metric, rest.trim_start_matches([':', '.', ' ']))
    }
}

impl Subject {
    fn limit(&self, expression: &str) -> Result<Limit, String> {
        let (first, second) = match expression.split_once('|') {
            Some((first, second)) => (first, Some(second)),
            None => (expression, None),
        };
        let (left, comparison, right) =
            split(first).ok_or("it has no comparison (<, <=, >, >=, ==)")?;
        let aggregate = self.aggregate(left)?;
        let (figure, scope) = (self.figure, self.scope.clone());
        let bound = Bound::new(comparison, self.value(aggregate, right)?);
        let mut limit = Limit { figure, scope, aggregate, bound, wider: None };
        if let Some(second) = second {
            let (comparison, text) = match split(second) {
                Some(("", comparison, text)) => (comparison, text),
                Some((left, ..)) => return Err(format!("`{left}` is a second aggregate")),
                None => (comparison, second.trim()),
            };
            let wider = Bound::new(comparison, self.value(aggregate, text)?);
            if !bound.lies_within(wider) {
                return Err("the second bound is not wider than the first".to_owned());
            }
            limit.wider = Some(wider);
        }
        Ok(limit)
    }

    fn value(&self, aggregate: Aggregate, text: &str) -> Result<f64, String> {
        let unit = self.figure.unit();
        let value = match (aggregate, unit) {
            (Aggregate::Count, _) => number(text),
            (_, Unit::Time) => text.parse().ok().map(Nanos::as_millis_f64),
            (_, Unit::Share) => share(text),
            (_, Unit::RequestsPerSecond | Unit::TokensPerSecond) => {
                number(text.strip_suffix("/s").unwrap_or(text))
            }
            _ => number(text),
        };
        let name = self.figure.name();
        value.ok_or_else(|| format!("`{name}` is measured in {}, not `{text}`", unit.name()))
    }
}

/// `p(95)`, `<` and `500ms` of `p(95)<500ms`.
fn split(text: &str) -> Option<(&str, Comparison, &str)> {
    let (left, rest) = text.split_at(text.find(['<', '>', '='])?);
    let comparison = Comparison::ALL.into_iter().find(|one| rest.starts_with(one.sign()))?;
    Some((left.trim(), comparison, rest[comparison.sign().len()..].trim()))
}

fn unknown(name: &str) -> MetricsError {
    let near = Figure::all()
        .map(|figure| (strsim::damerau_levenshtein(name, figure.name()), figure.name()))
        .filter(|(distance, _)| *distance <= NEAR.min(name.len() / 2))
        .min();
    let hint = match near {
        _ if Aggregate::parse(name).is_some() => {
            "the metric comes first, like `response_time: p(95)<500ms`".to_owned()
        }
        Some((_, near)) => format!("did you mean `{near}`?"),
        None => "the most common are response_time, ttft, tpot, throughput and error_rate; \
                 docs/reference/metrics.md has all"
            .to_owned(),
    };
    MetricsError::UnknownMetric { name: name.to_owned(), hint }
}

pub(super) fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

/// `0.01` or `1%`.
fn share(text: &str) -> Option<f64> {
    let share = match text.strip_suffix('%') {
        Some(percent) => number(percent)? / 100.0,
        None => number(text)?,
    };
    (share <= 1.0).then_some(share)
}

const fn example(figure: Figure) -> &'static str {
    match figure.unit() {
        Unit::Time => "p(95)<500ms",
        Unit::Share => "<1%",
        Unit::RequestsPerSecond | Unit::TokensPerSecond => ">=100",
        _ => ">0",
    }
}
