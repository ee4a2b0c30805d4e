//! The resolved plan of a comparison.

use plimsoll_measure::Nanos;
use plimsoll_schedule::{PairMode, PairOrder, PairSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Fault;

/// What a target is in a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetRole {
    /// One of those that are compared; the only target of a run that compares nothing.
    #[default]
    Candidate,
    /// What the others are compared with.
    Reference,
    /// The reference once more. A difference between the two shows that the measurement is wrong.
    Control,
}

impl TargetRole {
    /// Whether it is the only role of a run that compares nothing.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What later turns of a chat repeat as the model's answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Replies {
    /// Texts of our own, the same for all targets.
    #[default]
    Canned,
    /// What the target answered.
    Live,
}

/// How the targets of a run are compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VersusPlan {
    /// How they share the time of open stages.
    pub schedule: PairMode,
    /// Their order.
    pub order: PairOrder,
    /// `spread`: the most time between two requests of a block.
    pub gap: Nanos,
    /// `turns`: the least length of a window.
    pub window: Nanos,
    /// How long each target is loaded alone, to see whether they disturb each other.
    pub alone: Nanos,
    /// What later turns repeat as answers.
    pub replies: Replies,
    /// How much worse than the best a target may be, as a share.
    pub margin: Option<f64>,
    /// How often the comparison is repeated.
    pub rounds: u32,
    /// From the start of one round to the start of the next.
    pub every: Option<Nanos>,
    /// Bounds on what targets add.
    pub bounds: Vec<AddedBound>,
}

impl VersusPlan {
    /// What makes pairs of the schedule of so many targets.
    pub const fn pairs(&self, targets: u16) -> PairSpec {
        PairSpec {
            targets,
            mode: self.schedule,
            order: self.order,
            gap: self.gap,
            window: self.window,
            alone: self.alone,
        }
    }
}

/// A bound on what targets add to a time of the reference: `added.ttft{target:a}: ["p(50)<200us"]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AddedBound {
    /// The time.
    pub metric: AddedMetric,
    /// The target; `None` for all of them.
    pub target: Option<String>,
    /// The quantile of what is added, from 0 to 1.
    pub quantile: f64,
    /// What it must be less than.
    pub below: Nanos,
    /// As it is written.
    pub text: String,
}

/// A time that targets add to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AddedMetric {
    /// Response time.
    ResponseTime,
    /// Service time.
    ServiceTime,
    /// Time to the first token.
    Ttft,
    /// Time to the last token.
    LastToken,
}

impl AddedMetric {
    /// Every metric.
    pub const ALL: [Self; 4] =
        [Self::ResponseTime, Self::ServiceTime, Self::Ttft, Self::LastToken];

    /// The name in files and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ResponseTime => "response_time",
            Self::ServiceTime => "service_time",
            Self::Ttft => "ttft",
            Self::LastToken => "last_token",
        }
    }
}

/// The start of the keys of bounds on what targets add.
pub(crate) const ADDED: &str = "added.";

impl AddedBound {
    /// Reads a bound and the key that it stands under.
    ///
    /// # Errors
    /// What is wrong with it, and how to write it.
    pub(crate) fn parse(key: &str, bound: &str) -> Result<Self, Fault> {
        let rest = key.strip_prefix(ADDED).unwrap_or(key);
        let (name, scope) = rest.split_once('{').map_or((rest, None), |(n, s)| (n, Some(s)));
        let metric = AddedMetric::ALL.into_iter().find(|metric| metric.name() == name.trim());
        let metric = metric.ok_or_else(|| {
            let known = AddedMetric::ALL.map(|metric| format!("`{ADDED}{}`", metric.name()));
            Fault::new(format!("is not about a known time: `{name}`"), known.join(", "))
        })?;
        let target = scope.map(|scope| {
            let inside = scope.trim().strip_suffix('}').and_then(|s| s.strip_prefix("target:"));
            inside.map(|name| name.trim().to_owned()).ok_or_else(|| {
                let fix = format!("write `{ADDED}{}{{target:NAME}}`", metric.name());
                Fault::new("has braces without a target", fix)
            })
        });
        let fault = || {
            Fault::new(
                format!("`{bound}` is not a bound on what a target adds"),
                "write a percentile and a time, like `p(50)<200us`",
            )
        };
        let (figure, below) = bound.split_once('<').ok_or_else(fault)?;
        let inside = figure.trim().strip_prefix("p(").and_then(|rest| rest.strip_suffix(')'));
        let percent = inside.and_then(|text| text.trim().parse::<f64>().ok());
        let percent = percent.filter(|percent| (0.0..100.0).contains(percent) && *percent > 0.0);
        let quantile = percent.ok_or_else(fault)? / 100.0;
        let below = below.trim().parse().map_err(|_| fault())?;
        let text = format!("{key}: {bound}");
        Ok(Self { metric, target: target.transpose()?, quantile, below, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_on_what_is_added_are_read() {
        let bound = AddedBound::parse("added.ttft{target:a}", "p(50)<200us").unwrap();
        assert_eq!((bound.metric, bound.target.as_deref()), (AddedMetric::Ttft, Some("a")));
        assert_eq!((bound.quantile, bound.below), (0.5, Nanos::from_micros(200)));
        let bound = AddedBound::parse("added.response_time", "p(99) < 2ms").unwrap();
        assert_eq!((bound.target, bound.quantile), (None, 0.99));
        for (key, bound, part) in [
            ("added.tfft", "p(50)<1ms", "not about a known time"),
            ("added.ttft{a}", "p(50)<1ms", "without a target"),
            ("added.ttft", "p(50)>1ms", "p(50)<200us"),
            ("added.ttft", "mean<1ms", "p(50)<200us"),
            ("added.ttft", "p(0)<1ms", "p(50)<200us"),
            ("added.ttft", "p(50)<1", "p(50)<200us"),
        ] {
            let fault = AddedBound::parse(key, bound).unwrap_err();
            assert!(format!("{fault:?}").contains(part), "{key} {bound}: {fault:?}");
        }
    }
}
