//! The result, stored as `versus.json`. Times are in nanoseconds.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use plimsoll_measure::named_enum;
use plimsoll_metrics::confusion_matrix::Matrix;
use plimsoll_metrics::{Judgement, ThresholdResult, widened};
use plimsoll_report::format;
use plimsoll_rules::Finding;
use plimsoll_stats::Looks;
use plimsoll_stats::multiple::ranks;
use plimsoll_stats::runs::detectable;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::figure::Figure;
use crate::streams::Streams;

/// The part of a target in a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// All others are compared with it: the upstream, or the first target.
    Reference,
    /// The reference, loaded a second time: it must not differ.
    Control,
    /// Compared with the reference and with the other targets.
    #[default]
    Target,
}

/// The rule on a target that falls behind its load.
pub const OVERLOAD: u16 = 209;

/// The layout of `versus.json`.
pub const SCHEMA: &str = "plimsoll.versus/2";

/// A comparison of targets that carried out the same requests.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Versus {
    /// Layout of this file: `plimsoll.versus/2`.
    pub schema: String,
    /// Name of the run.
    pub name: String,
    /// Number of rounds. With several, a difference is the mean over the rounds.
    pub rounds: u32,
    /// How the targets shared the time: `spread`, `together` or `turns`. It influences the results:
    /// a target beside others is slower than alone.
    pub schedule: String,
    /// Time between two targets of a block, with `spread`.
    pub gap_ns: Option<u64>,
    /// Blocks per second, if the measured stages are open.
    pub rate: Option<f64>,
    /// Length of the measured stages in seconds, up to the decision if the run ended early.
    pub duration_s: f64,
    /// Present if the run could end as soon as it was decided. Then all intervals and p values are
    /// always-valid: they hold jointly at every moment at which the run could have ended, and are
    /// wider than with a fixed length.
    pub stopping: Option<Stopping>,
    /// Whether generator and targets shared a host.
    pub same_host: bool,
    /// The report's headline figure.
    pub headline: Figure,
    /// The figure of a whole request: the service time if all stages are closed, because closed
    /// requests have no schedule to be late for; otherwise the response time.
    pub whole: Figure,
    /// Counts of blocks.
    pub blocks: BlockCounts,
    /// The targets, in the order of the plan.
    pub targets: Vec<TargetResult>,
    /// The differences of each target to the reference, and between any two targets.
    pub differences: Vec<Difference>,
    /// The self-check: the reference compared with itself.
    pub control: Option<Control>,
    /// Interference between targets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbance: Vec<Disturbance>,
    /// Failures of only one of two targets.
    pub errors: Vec<ErrorDifference>,
    /// Policy decisions, if scenarios expect any.
    pub verdicts: Option<Verdicts>,
    /// Differences in CPU time per request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu: Vec<CpuDifference>,
    /// The tested differences, significant at 5 % together; empty if the comparison is invalid.
    pub claims: Vec<Claim>,
    /// Findings, ordered by urgency.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// The headline figure of each target in each round, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_round: Vec<RoundResult>,
    /// Thresholds on overhead, judged by its interval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<ThresholdResult>,
    /// Margin by which a target may be worse than the best one, as a share.
    pub margin: Option<f64>,
    /// Statements on targets that are worse than the best one by more than the margin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worse_than_margin: Vec<String>,
    /// Statements on targets for which the margin is inconclusive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub margin_unknown: Vec<String>,
    /// Significant differences between the answers of two targets, whose times are therefore not
    /// comparable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workload_mismatch: Vec<WorkloadMismatch>,
    /// Reasons why the comparison is invalid; empty if it is valid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invalid: Vec<String>,
}

/// A run that could end as soon as it was decided.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stopping {
    /// Time of the decision since the run's start; omitted if undecided. Later blocks are ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at_ns: Option<u64>,
    /// Planned length of the measured stages.
    pub planned_s: f64,
}

/// Counts of blocks. A block is one turn, carried out on every target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockCounts {
    /// Planned blocks.
    pub planned: u64,
    /// Recorded blocks, except those that loaded each target alone to measure interference.
    pub recorded: u64,
    /// Recorded blocks completed by every target.
    pub complete: u64,
    /// Additional blocks that loaded each target alone to measure interference. They are not
    /// compared.
    #[serde(default)]
    pub alone: u64,
    /// Blocks that are incomplete only because a target rejected the turn as its scenario expects.
    /// They have no times to compare.
    #[serde(default)]
    pub refused_as_expected: u64,
    /// Sampling factor: one second in this many was kept.
    pub one_in: u32,
}

/// Results of one target.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetResult {
    /// Name of the target.
    pub name: String,
    /// URL of the target.
    pub url: String,
    /// Requested model; empty for plain HTTP.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Name of the protocol.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub protocol: String,
    /// Part in the comparison.
    pub role: Role,
    /// Whether it is the upstream, which the margin does not judge.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub direct: bool,
    /// Number of turns.
    pub turns: u64,
    /// Completed turns per second while the target was loaded, of virtual users.
    pub throughput: Option<f64>,
    /// Failed turns: errors, timeouts, unexpected rejections, and turns without an end.
    pub failed: u64,
    /// Failed turns by error class, `status 429`, `timed_out` or `in_flight`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failures: BTreeMap<String, u64>,
    /// Times of this target alone.
    pub times: Vec<OwnTimes>,
    /// Share of the policy decisions that were as expected.
    pub correct: Option<f64>,
    /// Share of the turns on a reused connection.
    pub reused: Option<f64>,
    /// 99th percentile of the generator's dispatch lag.
    pub dispatch_lag_p99_ns: Option<f64>,
    /// CPU time per request.
    pub cpu_ns_per_request: Option<f64>,
    /// Lower end of its 95 % interval, if there is one.
    pub cpu_low_ns: Option<f64>,
    /// Upper end of the interval.
    pub cpu_high_ns: Option<f64>,
    /// Resident memory at the end, in bytes.
    pub memory_bytes: Option<u64>,
    /// Times that the target reports in its response headers.
    pub stated: Option<Stated>,
    /// Shapes of its streams, if it sent any.
    pub streams: Option<Streams>,
    /// Differences from the reference found before the load, and an overload during it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<Finding>,
    /// Reason for and time of dropping it from the run.
    pub taken_out: Option<String>,
    /// Error message of failed turns, from the target or its connection: the first one of the most
    /// frequent kind.
    pub failure: Option<String>,
    /// Present if the target was down: it failed all turns, at least 45 % of them, or every turn
    /// from some time to the end. The comparison then fails.
    pub outage: Option<Outage>,
}

/// The headline figure of a target in one of several rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoundResult {
    /// Number of the round, from 1.
    pub round: u32,
    /// Name of the target.
    pub target: String,
    /// Failed turns.
    pub failed: u64,
    /// Median of the target.
    pub p50_ns: Option<f64>,
    /// Median overhead over the reference, and its interval including the measurement error.
    pub added_ns: Option<[f64; 3]>,
}

/// The outage of a target.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outage {
    /// Start of the first failed turn of the outage, since the run's start, if every later turn
    /// failed. Omitted for several rounds.
    pub since_s: Option<f64>,
    /// Number of failed turns since then.
    pub failed_since: Option<u64>,
}

impl TargetResult {
    /// The target's own times of a figure.
    pub fn own(&self, figure: Figure) -> Option<&OwnTimes> {
        self.times.iter().find(|times| times.figure == figure)
    }

    /// The finding that it fell behind its load, so that its times depend on the load's length.
    pub fn overload(&self) -> Option<&Finding> {
        let mut found = self.setup.iter().filter(|_| self.outage.is_none());
        found.find(|finding| finding.code == OVERLOAD)
    }
}

/// The times of one target. `null`: too few samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwnTimes {
    /// Compared figure.
    pub figure: Figure,
    /// Number of values.
    pub count: u64,
    /// Median.
    pub p50_ns: Option<f64>,
    /// Limits of the median: without and with the measurement error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_between_ns: Option<(f64, f64)>,
    /// 90th percentile.
    pub p90_ns: Option<f64>,
    /// 95th percentile.
    pub p95_ns: Option<f64>,
    /// Limits of the 95th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95_between_ns: Option<(f64, f64)>,
    /// 99th percentile.
    pub p99_ns: Option<f64>,
    /// All values, if they are too few for some percentile.
    #[serde(skip)]
    pub(crate) few: Option<FewValues>,
}

/// The values of a round that is too small for some percentile; several rounds together may be
/// large enough.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FewValues {
    /// Measured values.
    pub(crate) measured: Vec<f64>,
    /// Values without the measurement error.
    pub(crate) without: Vec<f64>,
}

named_enum! {
    /// Kind of a difference.
    #[derive(
        Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
    )]
    #[serde(rename_all = "snake_case")]
    pub enum Kind {
        /// A percentile of the differences of pairs: the overhead of a request.
        #[default]
        Added => "added",
        /// The difference between the percentiles of two targets.
        Shift => "shift",
    }
}

/// A difference, target minus reference, with its 95 % interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Name of the target.
    pub target: String,
    /// Name of the target it is compared with.
    pub reference: String,
    /// Compared figure.
    pub figure: Figure,
    /// Kind of the difference.
    pub kind: Kind,
    /// Percentile: `p50`, `p90`, `p95`, `p99`.
    pub quantile: String,
    /// Number of pairs.
    pub pairs: u64,
    /// The difference; `null` if there are too few samples.
    pub value_ns: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low_ns: Option<f64>,
    /// Upper end of the interval.
    pub high_ns: Option<f64>,
    /// Number of independent pairs that would give the same interval.
    pub effective_pairs: Option<f64>,
    /// Number of batches, windows or rounds behind the interval, converted to equal ones.
    pub batches: Option<u64>,
    /// Degrees of freedom of the variance.
    pub degrees_of_freedom: Option<f64>,
    /// Two-sided p value of "no difference". For added time only the median has one, because the
    /// other percentiles of equal targets are not zero.
    pub p: Option<f64>,
    /// Several rounds: standard deviation between rounds, beyond their own errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between_rounds_ns: Option<f64>,
    /// Measurement error. Several rounds: the largest of any round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_ns: Option<f64>,
    /// Lower end of the interval including the measurement error, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least_ns: Option<f64>,
    /// Upper end of the interval including the measurement error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most_ns: Option<f64>,
    /// Whether the two targets' answers differ, so that the difference is not about the same work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub other_answers: bool,
    /// Reason for a missing value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl Difference {
    /// Limits of the difference: its interval, including the measurement error.
    pub fn lies_between(&self) -> Option<(f64, f64)> {
        self.at_least_ns.zip(self.at_most_ns).or_else(|| self.low_ns.zip(self.high_ns))
    }

    /// The limits as one of `among` tests: the interval is wider then, but the measurement error is
    /// not.
    pub(crate) fn limits_among(&self, among: usize) -> Option<[f64; 2]> {
        let (least, most) = self.lies_between()?;
        let Some((value, low, high)) = self.measured() else { return Some([least, most]) };
        let [wide_low, wide_high] = widened(value, [low, high], among);
        Some([least - (low - wide_low), most + (wide_high - high)])
    }

    /// Whether the measurement error alone cannot explain it: both limits are on the same side of
    /// zero.
    pub(crate) fn is_beyond_generator(&self) -> bool {
        self.at_least_ns.is_none()
            || self.lies_between().is_some_and(|(low, high)| low > 0.0 || high < 0.0)
    }

    /// The value and its interval.
    pub fn measured(&self) -> Option<(f64, f64, f64)> {
        Some((self.value_ns?, self.low_ns?, self.high_ns?))
    }

    /// The value and its limits, including the measurement error.
    pub fn limited(&self) -> Option<(f64, f64, f64)> {
        let (low, high) = self.lies_between()?;
        Some((self.value_ns?, low, high))
    }

    /// The smallest difference that is detected with a power of 80 %.
    pub(crate) fn detectable_ns(&self, looks: Looks) -> Option<f64> {
        let (_, low, high) = self.measured()?;
        let half = (high - low) / 2.0;
        Some(detectable(half, self.batches?, self.degrees_of_freedom?, looks))
    }

    /// Whether it is zero for equal targets, so that it has a p value.
    pub(crate) fn is_zero_for_equals(kind: Kind, quantile: &str) -> bool {
        kind != Kind::Added || quantile == "p50"
    }

    /// Whether it concerns these two targets.
    pub fn is_of(&self, target: &str, reference: &str) -> bool {
        self.target == target && self.reference == reference
    }
}

impl Difference {
    /// The difference with its limits. `*` marks other answers: the times are not of the same work.
    pub fn words(&self) -> Option<String> {
        let (value, low, high) = self.limited()?;
        let mark = if self.other_answers { " *" } else { "" };
        Some(format::difference(value / 1e6, low / 1e6, high / 1e6) + mark)
    }
}

impl Versus {
    /// Finds a difference.
    pub fn difference(
        &self,
        target: &str,
        reference: &str,
        figure: Figure,
        kind: Kind,
        quantile: &str,
    ) -> Option<&Difference> {
        self.differences.iter().find(|difference| {
            difference.is_of(target, reference)
                && (difference.figure, difference.kind) == (figure, kind)
                && difference.quantile == quantile
        })
    }

    /// Whether the blocks were tested once or at many moments.
    pub fn looks(&self) -> Looks {
        if self.stopping.is_some() { Looks::Always } else { Looks::Once }
    }

    /// Name of the target that all others are compared with.
    pub fn reference(&self) -> &str {
        let reference = self.targets.iter().find(|target| target.role == Role::Reference);
        reference.or_else(|| self.targets.first()).map_or("", |target| &target.name)
    }

    /// Overhead of each target, including the control: the median of the headline figure.
    pub fn headline_added(&self) -> impl Iterator<Item = &Difference> + Clone {
        self.differences.iter().filter(|found| {
            found.reference == self.reference()
                && (found.figure, found.kind) == (self.headline, Kind::Added)
                && found.quantile == "p50"
        })
    }

    /// The rarest percentile beyond the 90th for which there are enough samples for a shift of the
    /// headline figure.
    pub(crate) fn tail(&self) -> Option<&'static str> {
        ["p99", "p95"].into_iter().find(|quantile: &&str| {
            self.differences.iter().any(|found| {
                found.kind == Kind::Shift
                    && found.figure == self.headline
                    && found.quantile == *quantile
                    && found.value_ns.is_some()
            })
        })
    }

    /// Names of the targets that are compared with the reference and with each other.
    pub fn compared(&self) -> Vec<&str> {
        let reference = self.reference();
        let compared = self.targets.iter().filter(|target| target.role != Role::Control);
        compared.map(|target| &*target.name).filter(|name| *name != reference).collect()
    }

    /// The best and the worst possible rank of each target by the headline figure: ties are targets
    /// without a significant difference. Empty if no difference was tested, as in an invalid
    /// comparison. The upstream and targets without results have no rank.
    pub(crate) fn ranks(&self) -> BTreeMap<&str, (usize, usize)> {
        let is_ranked = |target: &&TargetResult| {
            let own = target.own(self.headline).is_some_and(|own| own.count > 0);
            own && !target.direct
                && target.role != Role::Control
                && target.outage.is_none()
                && target.overload().is_none()
        };
        let ranked: Vec<&str> =
            self.targets.iter().filter(is_ranked).map(|target| &*target.name).collect();
        let mut tested = self.claims.iter().filter(|claim| claim.about == self.headline.name());
        if tested.next().is_none() || ranked.len() < 2 || self.targets.len() < 3 {
            return BTreeMap::new();
        }
        let ranks = ranks(ranked.len(), |one, other| self.order(ranked[one], ranked[other]));
        ranked.into_iter().zip(ranks).collect()
    }

    /// Compares two targets by a significant difference of the headline figure.
    fn order(&self, one: &str, other: &str) -> Option<Ordering> {
        let claims = self.claims.iter().filter(|claim| claim.about == self.headline.name());
        claims.filter(|claim| claim.holds && !claim.other_answers).find_map(|claim| {
            match [&*claim.target, &*claim.reference] {
                pair if pair == [one, other] => Some(claim.values[0].total_cmp(&0.0)),
                pair if pair == [other, one] => Some(0.0_f64.total_cmp(&claim.values[0])),
                _ => None,
            }
        })
    }

    /// Makes the comparison invalid, so that it reports nothing on the targets.
    pub fn invalidate(&mut self, why: String) {
        self.invalid.push(why);
        self.claims.clear();
    }

    /// The reason why a valid comparison reports nothing on the targets: no target has a difference
    /// to the reference in the headline figure.
    pub fn nothing_measured(&self) -> Option<String> {
        let compared = self.compared();
        let mut found = self.headline_added().filter(|found| compared.contains(&&*found.target));
        if found.clone().any(|found| found.value_ns.is_some()) {
            return None;
        }
        let why = found.find_map(|found| found.refused.clone());
        let why = why.unwrap_or_else(|| "no pair of answers has the figure".to_owned());
        Some(format!("no difference could be measured: {why}"))
    }

    /// The judgement by thresholds and margin, even if the comparison is invalid. A failed
    /// threshold or an outage fails the comparison; an undecidable threshold makes it inconclusive.
    /// A difference between targets is a finding, not a failure.
    pub fn judgement_of_bounds(&self) -> Judgement {
        let broken = self.thresholds.iter().any(|threshold| threshold.judgement == Judgement::Fail);
        let down = self.targets.iter().any(|target| target.outage.is_some());
        if broken || down || !self.worse_than_margin.is_empty() {
            return Judgement::Fail;
        }
        let doubtful = self.thresholds.iter().find_map(|threshold| match &threshold.judgement {
            Judgement::Inconclusive(why) => Some(format!("{}: {why}", threshold.metric)),
            Judgement::Pass | Judgement::Fail => None,
        });
        let doubtful = doubtful.or_else(|| self.margin_unknown.first().cloned());
        let is_bounded = self.margin.is_some() || !self.thresholds.is_empty();
        let overload = self.targets.iter().find_map(TargetResult::overload).cloned();
        let unlike = overload.or_else(|| self.other_answers().next()).filter(|_| is_bounded);
        doubtful
            .or_else(|| unlike.map(|finding| finding.text().trim_end_matches('.').to_owned()))
            .map_or(Judgement::Pass, Judgement::Inconclusive)
    }
}

/// A feature in which the answers of two targets differ, over the pairs that both completed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadMismatch {
    /// Name of the target.
    pub target: String,
    /// Name of the target it is compared with.
    pub reference: String,
    /// Name of the feature: `content`, `token counts`, `reasoning`, `tool calls`, `content bytes`,
    /// `output tokens`, `input tokens`, a status or a finish reason; followed by its first round,
    /// like `content (round 2)`, if not all rounds have it.
    pub about: String,
    /// Whether the two numbers are shares of the answers; otherwise they are means per answer.
    pub is_share: bool,
    /// Value of the target.
    pub of_target: f64,
    /// Value of the reference.
    pub of_reference: f64,
    /// Number of pairs.
    pub pairs: u64,
}

/// The self-check: the reference compared with itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Control {
    /// Name of the control target.
    pub target: String,
    /// Median difference, which must be zero.
    pub value_ns: Option<f64>,
    /// Two-sided p value of "no difference".
    pub p: Option<f64>,
    /// Whether it differs at 99.9 % confidence, which makes the comparison invalid.
    pub differs: bool,
    /// Reason why it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// Effect of the other targets on the difference between a target and the reference: the overhead
/// beside the others minus the overhead alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Disturbance {
    /// Name of the target.
    pub target: String,
    /// The difference; `null` if unknown.
    pub value_ns: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low_ns: Option<f64>,
    /// Upper end of the interval.
    pub high_ns: Option<f64>,
    /// Whether it is significant, and more than 10 % of the target's overhead.
    pub matters: bool,
    /// Reason why it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// Failures of only one of two targets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorDifference {
    /// Name of one target.
    pub target: String,
    /// Name of the other target.
    pub reference: String,
    /// Pairs that both targets carried out.
    pub pairs: u64,
    /// Pairs that failed on the target only.
    pub only_target: u64,
    /// Pairs that failed on the reference only.
    pub only_reference: u64,
    /// Two-sided p value of "both fail equally often": McNemar's exact test, or the sign test on
    /// batches if failures come in bursts.
    pub p: f64,
    /// Whether batches were counted because failures came in bursts.
    pub by_batch: bool,
}

/// Policy decisions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdicts {
    /// Turns by target, expected and actual policy decision.
    pub matrix: Vec<TargetMatrix>,
    /// Turns on which targets disagreed.
    pub different: u64,
}

/// The policy decisions of one target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TargetMatrix {
    /// Name of the target.
    pub target: String,
    /// Turns by the expected policy decision, then by the actual one.
    pub turns: Matrix,
}

/// CPU time per request of two targets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuDifference {
    /// Name of one target.
    pub target: String,
    /// Name of the other target.
    pub reference: String,
    /// Difference per request; `null` if unknown.
    pub value_ns: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low_ns: Option<f64>,
    /// Upper end of the interval.
    pub high_ns: Option<f64>,
    /// Two-sided p value of "no difference".
    pub p: Option<f64>,
    /// Degrees of freedom of the variance.
    pub degrees_of_freedom: Option<f64>,
    /// Reason why it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// A difference that was tested.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Claim {
    /// Name of one target; for failures, the one that fails more often.
    pub target: String,
    /// Name of the other target.
    pub reference: String,
    /// Tested quantity: the name of a figure for added time, `FIGURE.p99` for a shift, `failures`
    /// or `cpu`.
    pub about: String,
    /// The figure's name in reports.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub figure: String,
    /// The difference and its interval including the measurement error, in nanoseconds.
    pub values: [f64; 3],
    /// For failures: failed and all requests of the target and of the reference.
    #[serde(default)]
    pub requests: [[u64; 2]; 2],
    /// For failures: pairs that failed on the target only, on the reference only, and all pairs.
    pub counts: [u64; 3],
    /// Whether batches were counted because failures came in bursts.
    pub by_batch: bool,
    /// Two-sided p value of "no difference".
    pub p: f64,
    /// p value adjusted by Holm's method for all tested differences.
    pub p_holm: f64,
    /// Whether it is significant: `p_holm` is below 5 %, and the measurement error alone cannot
    /// explain it.
    pub holds: bool,
    /// Whether the two targets' answers differ, so that the difference is not about the same work.
    pub other_answers: bool,
}

// Times that targets report in their response headers.

/// Parts of its time that a target reports in its response headers: `Server-Timing`, and its own
/// overhead under the header's name. Plimsoll did not measure them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stated {
    /// Completed requests with such a header.
    pub responses: u64,
    /// Mean of each part over these requests in nanoseconds, by name.
    pub mean_ns: BTreeMap<String, f64>,
}

/// Combines a target's reported times over several rounds.
pub(crate) fn combine<'s>(rounds: impl Iterator<Item = &'s Stated>) -> Option<Stated> {
    let mut sum = Stated::default();
    for round in rounds {
        sum.responses += round.responses;
        for (name, mean) in &round.mean_ns {
            *sum.mean_ns.entry(name.clone()).or_default() += mean * round.responses as f64;
        }
    }
    let responses = sum.responses as f64;
    sum.mean_ns.values_mut().for_each(|total| *total /= responses);
    (sum.responses > 0).then_some(sum)
}
