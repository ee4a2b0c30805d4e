//! Judges thresholds on what a target adds.

use plimsoll_metrics::{Judgement, ThresholdResult, Unit};
use plimsoll_report::format;

use super::{AddedThreshold, PREFIX};
use crate::result::{Kind, Versus};

impl AddedThreshold {
    /// Judges the differences of `versus`.
    pub(crate) fn judge(&self, versus: &Versus) -> Vec<ThresholdResult> {
        let compared = versus.compared();
        let of_target = |target: &str| self.judge_target(versus, target);
        match self.target.as_deref() {
            None => compared.into_iter().map(of_target).collect(),
            Some(target) if compared.contains(&target) => vec![of_target(target)],
            Some(target) => {
                let why = format!("no target `{target}` was compared");
                vec![self.result(self.metric.clone(), None, Judgement::Inconclusive(why))]
            }
        }
    }

    fn judge_target(&self, versus: &Versus, target: &str) -> ThresholdResult {
        let two = (target, versus.reference());
        let found = versus.difference(two, self.figure, Kind::Added, self.quantile);
        let metric = format!("{PREFIX}{}{{target:{target}}}", self.figure.name());
        let Some((found, between)) = found.and_then(|found| Some((found, found.lies_between()?)))
        else {
            let why = found.and_then(|found| found.refused.clone());
            let why = why.unwrap_or_else(|| "no pair has a value".to_owned());
            return self.result(metric, None, Judgement::Inconclusive(why));
        };
        let in_ms = |nanos: f64| nanos / 1e6;
        let (low, high, value) = (in_ms(between.0), in_ms(between.1), found.value_ns.map(in_ms));
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
        ThresholdResult { metric, expression, measured, unit: Unit::Time, judgement }
    }
}
