//! The judge: whether a figure with its limits of error keeps a limit.

use plimsoll_rules::number::count;
use plimsoll_stats::samples_that_agree;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Limit;
use crate::bounded_figure::{Bias, BoundedFigure, Refusal};
use crate::catalog::Unit;
use crate::limit::Scope;
use crate::results::Results;
use crate::run_metadata::TargetInfo;

/// The judgement on a figure. It has three states, because missing data is never a pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", content = "why", rename_all = "snake_case")]
pub enum Judgement {
    /// Every value that the figure may have keeps the limit.
    Pass,
    /// None does.
    Fail,
    /// It could not be judged, for this reason.
    Inconclusive(String),
}

/// A judgement without its reason, the most severe last.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Everything passed.
    Pass,
    /// Neither is proven, or nothing was judged.
    Inconclusive,
    /// Something failed.
    Fail,
}

impl Verdict {
    /// The verdict on all of them. Without any, nothing is proven.
    pub fn of<'j>(judgements: impl IntoIterator<Item = &'j Judgement>) -> Self {
        judgements.into_iter().map(Judgement::verdict).max().unwrap_or(Self::Inconclusive)
    }

    /// Its word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Inconclusive => "INCONCLUSIVE",
        }
    }
}

impl Judgement {
    /// From the judgement at the limits of a figure.
    pub fn new(kept: Option<bool>, why_open: impl FnOnce() -> String) -> Self {
        match kept {
            Some(true) => Self::Pass,
            Some(false) => Self::Fail,
            None => Self::Inconclusive(why_open()),
        }
    }

    /// Without its reason.
    pub const fn verdict(&self) -> Verdict {
        match self {
            Self::Pass => Verdict::Pass,
            Self::Fail => Verdict::Fail,
            Self::Inconclusive(_) => Verdict::Inconclusive,
        }
    }

    /// Why it is open.
    pub fn why_open(&self) -> Option<&str> {
        match self {
            Self::Inconclusive(why) => Some(why),
            Self::Pass | Self::Fail => None,
        }
    }

    /// How many pass, fail and are open.
    pub fn count<'j>(judgements: impl IntoIterator<Item = &'j Self>) -> [usize; 3] {
        let mut counts = [0; 3];
        for judgement in judgements {
            counts[match judgement {
                Self::Pass => 0,
                Self::Fail => 1,
                Self::Inconclusive(_) => 2,
            }] += 1;
        }
        counts
    }
}

/// The level that a figure reaches in a band.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BandLevel {
    /// The first bound was kept.
    Target,
    /// Only the second bound was kept.
    Degraded,
    /// Neither bound was kept: it fails.
    Critical,
}

impl BandLevel {
    const fn word(self) -> &'static str {
        match self {
            Self::Target => "TARGET",
            Self::Degraded => "DEGRADED",
            Self::Critical => "CRITICAL",
        }
    }
}

/// A limit with its judgement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThresholdResult {
    /// The metric, with its scope.
    pub metric: String,
    /// The rest of the limit: aggregate, comparison and value.
    pub expression: String,
    /// The measured value, times in milliseconds; `null` if there is no value. A percentile that
    /// was judged without one has too few values, all of them on the same side of the bound, or a
    /// lower percentile beyond it.
    pub measured: Option<f64>,
    /// How much of it the generator may have added (of a rate: held back), where it is at least
    /// 1 % of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator: Option<f64>,
    /// Its unit.
    pub unit: Unit,
    /// The judgement.
    pub judgement: Judgement,
    /// The level reached, for a band.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<BandLevel>,
}

impl ThresholdResult {
    /// The judgement in a word; of a band, its level.
    pub fn word(&self) -> &'static str {
        self.level.map_or_else(|| self.judgement.verdict().word(), BandLevel::word)
    }

    /// Whether it has a second bound.
    pub fn is_band(&self) -> bool {
        self.expression.contains('|')
    }

    /// Why a judgement without a measured value is valid: too few values for the percentile, but
    /// all of them on one side of the bound, or a lower percentile beyond it.
    pub const fn of_every_value(&self) -> Option<&'static str> {
        match (&self.judgement, self.measured) {
            (Judgement::Pass, None) => Some("all values meet it"),
            (Judgement::Fail, None) => Some("too many values miss it"),
            _ => None,
        }
    }

    /// Reopens a broken limit on a time or a rate that other load on the host may have broken.
    /// Counts and shares stay: requests that fail are the target's.
    pub(crate) fn doubt_on_busy_host(&mut self, why: &str) {
        let Ok(limit) = Limit::parse(&self.metric, &self.expression) else { return };
        let is_upper = limit.bound.comparison.is_upper();
        let units = [Unit::Time, Unit::RequestsPerSecond, Unit::TokensPerSecond];
        let is_settled = limit.figure.disturbance().settles(false, is_upper);
        if self.judgement != Judgement::Fail || is_settled || !units.contains(&limit.unit()) {
            return;
        }
        let value = self.measured.map(|value| format!("{}; ", self.unit.value_words(value)));
        self.judgement = Judgement::Inconclusive(value.unwrap_or_default() + why);
        self.level = None;
    }
}

impl Limit {
    /// Judges a run by all of its limits. One on the whole run covers each target apart, where
    /// there are several.
    pub fn judge_all(
        limits: &[Self],
        targets: &[TargetInfo],
        results: &Results,
    ) -> Vec<ThresholdResult> {
        let each: Vec<Self> = limits.iter().flat_map(|limit| limit.by_target(targets)).collect();
        each.iter().map(|limit| limit.judge(results, each.len())).collect()
    }

    fn by_target(&self, targets: &[TargetInfo]) -> Vec<Self> {
        if targets.len() < 2 || self.scope != Scope::Run {
            return vec![self.clone()];
        }
        let scopes = targets.iter().map(|target| Scope::Target(target.name.clone()));
        scopes.map(|scope| Self { scope, ..self.clone() }).collect()
    }

    /// Judges a run by one of `among` limits.
    fn judge(&self, results: &Results, among: usize) -> ThresholdResult {
        let figure = self.measure(results);
        let is_estimated = self.rests_on_estimated_tokens(results);
        let ends = |among| {
            let ends = match &figure {
                Ok(figure) => figure.among(among).limits(self.figure.bias()),
                Err(_) => self.ends_of_few(results).unwrap_or([f64::NAN; 2]),
            };
            if is_estimated { [ends[0].min(0.0), ends[1]] } else { ends }
        };
        let target = self.bound.judge(ends, among);
        let kept = self.wider.map_or(target, |wider| wider.judge(ends, among));
        let level = self.wider.and(match (target, kept) {
            (Some(true), _) => Some(BandLevel::Target),
            (Some(false), Some(true)) => Some(BandLevel::Degraded),
            (_, Some(false)) => Some(BandLevel::Critical),
            _ => None,
        });
        ThresholdResult {
            metric: self.metric(),
            expression: self.expression(),
            measured: figure.as_ref().ok().map(|figure| figure.value),
            generator: figure.as_ref().ok().filter(|f| f.has_notable_bound()).map(|f| f.bound),
            unit: self.unit(),
            judgement: Judgement::new(kept, || match &figure {
                Err(why) => {
                    // With an upper end there are that many, and they do not all meet it.
                    let few = self.ends_of_few(results).filter(|ends| ends[1].is_infinite());
                    let agree =
                        few.and_then(|_| self.quantile()).map(samples_that_agree).map(count);
                    let agree = agree.map(|n| format!("; {n} are enough if all meet the limit"));
                    format!("{why}{}", agree.unwrap_or_default())
                }
                Ok(figure) => self.undecided(figure, is_estimated),
            }),
            level,
        }
    }

    /// Why the limits of a figure do not decide.
    fn undecided(&self, figure: &BoundedFigure, is_estimated: bool) -> String {
        let unit = self.unit();
        let [value, bound] = [figure.value, figure.bound].map(|value| unit.value_words(value));
        if is_estimated {
            return format!(
                "{value} per content event; the target reports no usage, and an event may contain several tokens"
            );
        }
        if let Some(ends) = figure.interval.filter(|_| self.figure.bias() == Bias::Takes) {
            let [low, high] = ends.map(|end| unit.value_words(end));
            return format!("{value}, 95 % interval {low} to {high}: too few responses to decide");
        }
        match (figure.refused, self.figure.bias()) {
            (Some(Refusal::Censored), _) => {
                format!("{value} of the requests that ended; requests without an end may be longer")
            }
            (_, Bias::Takes) => {
                format!("{value}, up to {bound} more without the generator: too uncertain")
            }
            (_, Bias::Adds) => format!("{value}, measurement error up to {bound}: too uncertain"),
            (_, bias @ Bias::Both) => {
                let [low, high] = figure.limits(bias).map(|end| unit.value_words(end));
                format!("{value}, {low} to {high} with measurement error: too uncertain")
            }
        }
    }
}
