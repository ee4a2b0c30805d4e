//! Judges thresholds on what a target adds.

use plimsoll_metrics::{Judgement, ThresholdResult, Unit};
use plimsoll_report::format;

use super::{AddedThreshold, PREFIX};
use crate::result::{Kind, Versus};

impl AddedThreshold {
    /// Judges the differences of `versus`.
    pub(crate) fn judge(&self, versus: &Versus) -> Vec<ThresholdResult> {
        let compared = versus.compared();
        match self.target.as_deref() {
            None => compared.into_iter().map(|target| self.judge_target(versus, target)).collect(),
            Some(target) if compared.contains(&target) => vec![self.judge_target(versus, target)],
            Some(target) => {
                let why = format!("no target `{target}` was compared");
                vec![self.result(self.metric.clone(), None, Judgement::Inconclusive(why))]
            }
        }
    }

    fn judge_target(&self, versus: &Versus, target: &str) -> ThresholdResult {
        let reference = versus.reference();
        let found = versus.difference(target, reference, self.figure, Kind::Added, self.quantile);
        let metric = format!("{PREFIX}{}{{target:{target}}}", self.figure.name());
        let Some((found, between)) = found.and_then(|found| Some((found, found.lies_between()?)))
        else {
            let why = found.and_then(|found| found.refused.clone());
            let why = why.unwrap_or_else(|| "no pair has a value".to_owned());
            return self.result(metric, None, Judgement::Inconclusive(why));
        };
        let (low, high) = (between.0 / 1e6, between.1 / 1e6);
        let value = found.value_ns.map(|nanos| nanos / 1e6);
        let judgement = match (self.bound.keeps(low), self.bound.keeps(high)) {
            (true, true) => Judgement::Pass,
            (false, false) => Judgement::Fail,
            _ => {
                let value = value.unwrap_or_default();
                let interval = format::with_interval(value, low, high);
                Judgement::Inconclusive(format!("the bound lies in the interval {interval}"))
            }
        };
        self.result(metric, value, judgement)
    }

    fn result(
        &self,
        metric: String,
        measured: Option<f64>,
        judgement: Judgement,
    ) -> ThresholdResult {
        let expression = self.expression.clone();
        ThresholdResult {
            metric,
            expression,
            measured,
            generator: None,
            unit: Unit::Time,
            judgement,
        }
    }
}
