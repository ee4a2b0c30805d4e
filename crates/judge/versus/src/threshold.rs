//! Thresholds on overhead: `added.ttft{target:a}`, `p(50)<200us`.

use plimsoll_metrics::{Bound, Judgement, Limit, MetricsError, Scope, ThresholdResult, Unit};
use plimsoll_report::format;

use crate::figure::{Figure, QUANTILES};
use crate::result::{Kind, Versus};

const PREFIX: &str = "added.";

/// A limit on a percentile of a target's overhead per request, judged by its interval.
#[derive(Clone, Debug)]
pub struct AddedThreshold {
    figure: Figure,
    /// Name of the target; `None` for every target.
    target: Option<String>,
    quantile: &'static str,
    bound: Bound,
    expression: String,
}

impl AddedThreshold {
    /// Parses a limit such as `added.ttft{target:a}` and `p(50)<200us`. Without a target it applies
    /// to every one.
    ///
    /// # Errors
    /// The same as [`Limit::parse`], each with a suggested correction.
    pub fn parse(metric: &str, expression: &str) -> Result<Self, MetricsError> {
        let metric = metric.trim();
        let rest = metric.strip_prefix(PREFIX).unwrap_or(metric);
        let end = rest.find(['{', '.']).unwrap_or(rest.len());
        let (name, more) = rest.split_at(end);
        let figure = figure(name.trim()).ok_or_else(|| unknown(name))?;
        // Any time parses the rest: the names of the overhead figures are not metrics of a run.
        let limit = Limit::parse(&format!("response_time{more}"), expression)?;
        let target = match limit.scope() {
            Scope::Run => None,
            Scope::Target(name) => Some(name.clone()),
            other => return Err(MetricsError::Scope(other.to_string())),
        };
        let expression = limit.expression();
        let known = limit.quantile().and_then(quantile).filter(|_| !expression.contains('|'));
        let quantile = known.ok_or_else(|| MetricsError::Limit {
            limit: format!("{metric}: {expression}"),
            cause: "overhead is available as p(50), p(90), p(95) and p(99)".to_owned(),
            example: "p(50)<200us",
        })?;
        Ok(Self { figure, target, quantile, bound: limit.bound(), expression })
    }

    /// Judges the differences of `versus` by all limits.
    pub(crate) fn judge_all(limits: &[Self], versus: &Versus) -> Vec<ThresholdResult> {
        let each: Vec<(&Self, &str)> = limits
            .iter()
            .flat_map(|limit: &Self| {
                let named = limit.target.as_deref().map(|target| vec![target]);
                let targets = named.unwrap_or_else(|| versus.compared());
                targets.into_iter().map(move |target| (limit, target))
            })
            .collect();
        each.iter().map(|(limit, target)| limit.judge(versus, target, each.len())).collect()
    }

    fn judge(&self, versus: &Versus, target: &str, among: usize) -> ThresholdResult {
        if !versus.compared().contains(&target) {
            let why = format!("no target `{target}` was compared");
            return self.result(target, None, Judgement::Inconclusive(why));
        }
        let reference = versus.reference();
        let found = versus.difference(target, reference, self.figure, Kind::Added, self.quantile);
        let Some((found, between)) = found.and_then(|found| Some((found, found.lies_between()?)))
        else {
            let why = found.and_then(|found| found.refused.clone());
            let why = why.unwrap_or_else(|| "no pair has a value".to_owned());
            return self.result(target, None, Judgement::Inconclusive(why));
        };
        let ends = [between.0 / 1e6, between.1 / 1e6];
        let value = found.value_ns.map(|nanos| nanos / 1e6);
        let middle = value.unwrap_or_else(|| f64::midpoint(ends[0], ends[1]));
        let ends_among =
            |among| found.limits_among(among).map_or(ends, |ends| ends.map(|nanos| nanos / 1e6));
        let kept = self.bound.judge(ends_among, among);
        let judgement = Judgement::new(kept, || {
            let interval = format::with_interval(middle, ends[0], ends[1]);
            format!("the limit is within the interval {interval}")
        });
        self.result(target, value, judgement)
    }

    fn result(&self, target: &str, measured: Option<f64>, judgement: Judgement) -> ThresholdResult {
        ThresholdResult {
            metric: format!("{PREFIX}{}{{target:{target}}}", self.figure.name()),
            expression: self.expression.clone(),
            measured,
            generator: None,
            unit: Unit::Time,
            judgement,
            level: None,
        }
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
        hint: format!("overhead is known for {}", names.join(", ")),
    }
}
