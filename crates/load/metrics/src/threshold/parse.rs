//! Parses thresholds.

use plimsoll_measure::Nanos;

use super::{Aggregate, Comparison, Threshold};
use crate::catalog::{Figure, Unit};
use crate::error::MetricsError;
use crate::scope::Scope;

/// The longest come first: `<=` must not be read as `<`.
const COMPARISONS: [(&str, Comparison); 5] = [
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("==", Comparison::Equal),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

impl Threshold {
    /// Parses one bound, like `ttft` and `p(95)<500ms`. The metric may name a scope in k6's tag
    /// syntax: `ttft{scenario:simple}`.
    ///
    /// # Errors
    /// [`MetricsError::UnknownMetric`], [`MetricsError::Scope`], [`MetricsError::Expression`] and
    /// [`MetricsError::Unit`], each with what to write instead.
    pub fn parse(metric: &str, expression: &str) -> Result<Self, MetricsError> {
        let (name, scope) = scoped(metric)?;
        let figure = Figure::named(name).ok_or_else(|| unknown(name))?;
        let parser = ExpressionParser { figure, expression };
        let (left, comparison, right) = parser.split()?;
        let aggregate = parser.aggregate(left)?;
        let bound = parser.bound(aggregate, right)?;
        let (metric, expression) = (metric.trim().to_owned(), expression.trim().to_owned());
        Ok(Self { metric, expression, figure, scope, aggregate, comparison, bound })
    }
}

/// Splits `ttft{scenario:simple}`.
pub(super) fn scoped(metric: &str) -> Result<(&str, Scope), MetricsError> {
    let Some((name, tag)) = metric.split_once('{') else {
        return Ok((metric.trim(), Scope::Run));
    };
    let refuse = || MetricsError::Scope(format!("{{{tag}"));
    let tag = tag.trim_end().strip_suffix('}').ok_or_else(refuse)?;
    let (key, value) = tag.split_once(':').ok_or_else(refuse)?;
    let value = value.trim().to_owned();
    let scope = match key.trim() {
        "stage" => Scope::Stage(value),
        "scenario" => Scope::Scenario(value),
        "category" => Scope::Category(value),
        "target" => Scope::Target(value),
        "operation" => Scope::Operation(value),
        _ => return Err(refuse()),
    };
    Ok((name.trim(), scope))
}

/// Names at most this many edits away are suggested.
const NEAR: usize = 3;

pub(super) fn unknown(name: &str) -> MetricsError {
    let near = Figure::all()
        .map(|figure| (strsim::damerau_levenshtein(name, figure.name()), figure.name()))
        .filter(|(distance, _)| *distance <= NEAR)
        .min();
    let hint = near.map_or_else(
        || format!("known are {}", Figure::all().map(Figure::name).collect::<Vec<_>>().join(", ")),
        |(_, near)| format!("did you mean `{near}`?"),
    );
    MetricsError::UnknownMetric { name: name.to_owned(), hint }
}

/// Parses the expression of a known figure.
struct ExpressionParser<'a> {
    figure: Figure,
    expression: &'a str,
}

impl<'a> ExpressionParser<'a> {
    fn split(&self) -> Result<(&'a str, Comparison, &'a str), MetricsError> {
        let at = self.expression.find(['<', '>', '=']);
        let (left, rest) = self.expression.split_at(at.unwrap_or(self.expression.len()));
        let found = COMPARISONS.iter().find_map(|(sign, c)| Some((c, rest.strip_prefix(sign)?)));
        let (comparison, right) =
            found.ok_or_else(|| self.refuse("there is no comparison (<, <=, >, >=, ==) in it"))?;
        Ok((left.trim(), *comparison, right.trim()))
    }

    fn aggregate(&self, text: &str) -> Result<Aggregate, MetricsError> {
        match self.figure {
            Figure::Distribution(_) => self.aggregate_of_times(text),
            Figure::Counter(_) => self.single(text, &["", "count", "value"]),
            Figure::Rate(_) => self.single(text, &["", "rate", "value"]),
        }
    }

    fn single(&self, text: &str, words: &[&str]) -> Result<Aggregate, MetricsError> {
        if words.contains(&text) {
            return Ok(Aggregate::Value);
        }
        Err(self.refuse(&format!("it is one number, which has no `{text}`")))
    }

    fn aggregate_of_times(&self, text: &str) -> Result<Aggregate, MetricsError> {
        match text {
            "mean" | "avg" => Ok(Aggregate::Mean),
            "med" => Ok(Aggregate::Quantile(0.5)),
            "min" => Ok(Aggregate::Min),
            "max" => Ok(Aggregate::Max),
            "count" => Ok(Aggregate::Count),
            "" => Err(self.refuse("it does not say which value is bounded")),
            _ => self.percentile(text),
        }
    }

    fn percentile(&self, text: &str) -> Result<Aggregate, MetricsError> {
        let inner = text.strip_prefix("p(").and_then(|rest| rest.strip_suffix(')'));
        let percent: Option<f64> = inner.and_then(|number| number.trim().parse().ok());
        match percent {
            Some(percent) if percent > 0.0 && percent < 100.0 => {
                Ok(Aggregate::Quantile(percent / 100.0))
            }
            Some(_) => {
                Err(self.refuse("a percentile lies between 0 and 100; the ends are min and max"))
            }
            None => {
                Err(self.refuse(&format!("`{text}` is none of p(N), med, mean, min, max, count")))
            }
        }
    }

    fn bound(&self, aggregate: Aggregate, text: &str) -> Result<f64, MetricsError> {
        let bound = match (aggregate, self.figure.unit()) {
            (Aggregate::Count, _) => number(text),
            (_, Unit::Time) => text.parse().ok().map(Nanos::as_millis_f64),
            (_, Unit::Share) => share(text),
            (_, Unit::RequestsPerSecond | Unit::TokensPerSecond) => {
                number(text.strip_suffix("/s").unwrap_or(text))
            }
            _ => number(text),
        };
        bound.ok_or_else(|| MetricsError::Unit {
            metric: self.figure.name(),
            expression: self.expression.trim().to_owned(),
            bound: text.to_owned(),
            unit: self.figure.unit().word(),
            example: example(self.figure),
        })
    }

    fn refuse(&self, cause: &str) -> MetricsError {
        MetricsError::Expression {
            metric: self.figure.name(),
            expression: self.expression.trim().to_owned(),
            cause: cause.to_owned(),
            example: example(self.figure),
        }
    }
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
        Unit::Share => "rate<1%",
        Unit::RequestsPerSecond | Unit::TokensPerSecond => "value>=100",
        _ => "count>0",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(metric: &str, expression: &str) -> (Aggregate, Comparison, f64) {
        let threshold = Threshold::parse(metric, expression).unwrap();
        (threshold.aggregate, threshold.comparison, threshold.bound)
    }

    #[test]
    fn every_form_of_the_documentation_is_read() {
        use Aggregate::{Count, Max, Mean, Quantile, Value};
        use Comparison::{AtLeast, AtMost, Equal, Greater, Less};
        for (metric, expression, expected) in [
            ("ttft", "p(95)<500ms", (Quantile(0.95), Less, 500.0)),
            ("ttft", " max < 2s ", (Max, Less, 2_000.0)),
            ("response_time", "mean<20ms", (Mean, Less, 20.0)),
            ("response_time", "avg<250us", (Mean, Less, 0.25)),
            ("response_time", "p(99.9)<=1s", (Quantile(99.9 / 100.0), AtMost, 1_000.0)),
            ("itl", "count>=1000", (Count, AtLeast, 1_000.0)),
            ("error_rate", "rate<0.01", (Value, Less, 0.01)),
            ("error_rate", "<1%", (Value, Less, 0.01)),
            ("throughput", ">=100", (Value, AtLeast, 100.0)),
            ("throughput", "value>=100/s", (Value, AtLeast, 100.0)),
            ("completed", "count>0", (Value, Greater, 0.0)),
            ("failed", "==0", (Value, Equal, 0.0)),
        ] {
            assert_eq!(parse(metric, expression), expected, "{metric}: {expression}");
        }
    }

    #[test]
    fn a_scope_is_one_tag() {
        for (metric, scope) in [
            ("ttft", Scope::Run),
            ("ttft{scenario:simple}", Scope::Scenario("simple".to_owned())),
            ("ttft{ stage : @100:60s }", Scope::Stage("@100:60s".to_owned())),
            ("ttft{target:a}", Scope::Target("a".to_owned())),
            ("ttft{category:pii}", Scope::Category("pii".to_owned())),
            ("ttft{operation:tools/call}", Scope::Operation("tools/call".to_owned())),
        ] {
            let threshold = Threshold::parse(metric, "max<1s").unwrap();
            assert_eq!(threshold.scope, scope, "{metric}");
        }
    }

    #[test]
    fn a_wrong_threshold_is_refused_with_the_fix() {
        for (metric, expression, says) in [
            ("ttfb_", "max<1s", "did you mean `ttfb`?"),
            ("nonsense_metric", "max<1s", "known are response_time, service_time"),
            ("ttft", "p(95)<500", "measured in time; write it like `p(95)<500ms`"),
            ("ttft", "p(95)<1%", "measured in time"),
            ("ttft", "<500ms", "does not say which value"),
            ("ttft", "p(100)<1s", "between 0 and 100"),
            ("ttft", "p95<1s", "`p95` is none of p(N)"),
            ("ttft", "p(95)", "no comparison"),
            ("ttft", "p(95)=1s", "no comparison"),
            ("error_rate", "p(95)<1%", "it is one number"),
            ("error_rate", "rate<5", "measured in share"),
            ("error_rate", "rate<5ms", "measured in share"),
            ("throughput", "value>=1s", "measured in requests/s"),
            ("completed", "count>-1", "measured in requests"),
            ("ttft{scenario}", "max<1s", "is not a scope"),
            ("ttft{tenant:a}", "max<1s", "is not a scope"),
            ("ttft{stage:a", "max<1s", "is not a scope"),
        ] {
            let error = Threshold::parse(metric, expression).unwrap_err().to_string();
            assert!(error.contains(says), "{metric}: {expression}: {error}");
        }
    }
}
