//! Thresholds on what a target adds: `added.ttft{target:a}`, `p(50)<200us`.

mod judge;

use plimsoll_metrics::{MetricsError, Scope, Threshold};

use crate::figure::{Figure, QUANTILES};

const PREFIX: &str = "added.";

/// A bound on a percentile of what a target adds to a request. It is judged by the interval: kept
/// if all of it keeps the bound, broken if none of it does, else inconclusive.
#[derive(Clone, Debug)]
pub struct AddedThreshold {
    metric: String,
    expression: String,
    figure: Figure,
    /// `None`: every target.
    target: Option<String>,
    quantile: &'static str,
    bound: Threshold,
}

impl AddedThreshold {
    /// Whether a metric is one of these, and not of a single run.
    pub fn is_added(metric: &str) -> bool {
        metric.trim_start().starts_with(PREFIX)
    }

    /// Parses a bound, like `added.ttft{target:a}` and `p(50)<200us`. Without a target it is on
    /// every one.
    ///
    /// # Errors
    /// As [`Threshold::parse`], each with what to write instead.
    pub fn parse(metric: &str, expression: &str) -> Result<Self, MetricsError> {
        let metric = metric.trim();
        let rest = metric.strip_prefix(PREFIX).unwrap_or(metric);
        let (name, scope) = rest.find('{').map_or((rest, ""), |at| rest.split_at(at));
        let figure = figure(name.trim()).ok_or_else(|| unknown(name))?;
        // Any time will do to read the bound: the figures here are not those of one run.
        let bound = Threshold::parse(&format!("response_time{scope}"), expression)?;
        let target = match bound.scope() {
            Scope::Run => None,
            Scope::Target(name) => Some(name.clone()),
            _ => return Err(MetricsError::Scope(scope.to_owned())),
        };
        let quantile = bound.quantile().and_then(quantile).ok_or_else(|| refuse(expression))?;
        Ok(Self {
            metric: metric.to_owned(),
            expression: expression.trim().to_owned(),
            figure,
            target,
            quantile,
            bound,
        })
    }
}

fn figure(name: &str) -> Option<Figure> {
    Figure::ALL.into_iter().find(|figure| {
        let short = figure.name().strip_suffix("_time");
        figure.name() == name || short == Some(name)
    })
}

fn quantile(q: f64) -> Option<&'static str> {
    QUANTILES.iter().find(|(_, known)| (known - q).abs() < 1e-9).map(|(name, _)| *name)
}

fn unknown(name: &str) -> MetricsError {
    let names: Vec<_> = Figure::ALL.iter().map(|figure| figure.name()).collect();
    MetricsError::UnknownMetric {
        name: format!("{PREFIX}{}", name.trim()),
        hint: format!("what is added is known of {}", names.join(", ")),
    }
}

fn refuse(expression: &str) -> MetricsError {
    MetricsError::Expression {
        metric: "added",
        expression: expression.trim().to_owned(),
        cause: "what is added is given at p(50), p(90), p(95) and p(99)".to_owned(),
        example: "p(50)<200us",
    }
}
