//! The result, as `versus.json` holds it. Times are in nanoseconds.

use plimsoll_measure::named_enum;
use std::collections::BTreeMap;

use plimsoll_metrics::{Judgement, ThresholdResult, confusion_matrix::Matrix, widened};
use plimsoll_rules::Finding;
use plimsoll_stats::Looks;
use plimsoll_stats::power::detectable;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::figure::Figure;
use crate::role::Role;
use crate::stated::Stated;
use crate::streams::Streams;

/// The layout of `versus.json`.
pub const SCHEMA: &str = "plimsoll.versus/2";

/// Targets that carried out the same requests, compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Versus {
    /// The layout of this file: `plimsoll.versus/2`.
    pub schema: String,
    /// Name of the run.
    pub name: String,
    /// Rounds that it comes from. With several, a difference is the mean over the rounds.
    pub rounds: u32,
    /// When the targets carried out a block: `spread`, `together` or `turns`. It is part of what
    /// was measured: beside others, a target is slower than alone.
    pub schedule: String,
    /// `spread`: time between two targets of a block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_ns: Option<u64>,
    /// Blocks per second, where the measured stages are open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Length of the measured stages in seconds; of a run that was decided, until then.
    pub duration_s: f64,
    /// Present if the run was to end as soon as it was decided. Then every interval and every p
    /// value holds at all moments at which it could have ended, together: intervals are wider than
    /// those of a run of fixed length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopping: Option<Stopping>,
    /// Whether generator and targets shared a host.
    pub same_host: bool,
    /// The figure that heads the report.
    pub headline: Figure,
    /// The figure of a whole request: the service time where all stages are closed, because their
    /// requests have no schedule to be late for; else the response time.
    pub whole: Figure,
    /// The blocks.
    pub blocks: BlockCounts,
    /// The targets, in the order of the plan.
    pub targets: Vec<TargetResult>,
    /// The differences: of each target to the reference, and of each two targets.
    pub differences: Vec<Difference>,
    /// The check of the instrument: the reference against itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Control>,
    /// What targets do to each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbance: Vec<Disturbance>,
    /// Failures that only one of two targets had.
    pub errors: Vec<ErrorDifference>,
    /// Policy decisions, where scenarios expect some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdicts: Option<Verdicts>,
    /// CPU time per request, target against target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu: Vec<CpuDifference>,
    /// The differences that were tested, together at 5 %; none of an invalid comparison.
    pub claims: Vec<Claim>,
    /// The statements that follow, those to act on first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Several rounds: the headline figure of each target in each of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_round: Vec<RoundResult>,
    /// Thresholds on what targets add, judged by the interval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<ThresholdResult>,
    /// The margin by which a target may be worse than the best one, as a share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// Targets that are worse than the best one by more than the margin, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worse_than_margin: Vec<String>,
    /// Targets of which it is not known whether they are, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub margin_unknown: Vec<String>,
    /// Where the answers of two targets differ by more than chance: their times are not those of
    /// the same work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workload_mismatch: Vec<WorkloadMismatch>,
    /// Why the comparison is invalid; empty if it is valid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invalid: Vec<String>,
}

/// A run that was to end as soon as it was decided.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stopping {
    /// When it was decided, after the run's start; left out if it was not. Blocks that started
    /// later are not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at_ns: Option<u64>,
    /// Length of the measured stages, had it not been decided.
    pub planned_s: f64,
}

/// The blocks of a run. A block is one turn, carried out on every target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockCounts {
    /// Planned.
    pub planned: u64,
    /// Recorded, without those in which each target was loaded alone to see what they do to each
    /// other.
    pub recorded: u64,
    /// Of these, completed on every target that had not been taken out.
    pub complete: u64,
    /// Recorded beside these, with each target loaded alone to see what they do to each other. They
    /// are not compared.
    #[serde(default)]
    pub alone: u64,
    /// Not complete only because a target refused the turn as its scenario expects. They have no
    /// times to compare.
    #[serde(default)]
    pub refused_as_expected: u64,
    /// Seconds were left out by sampling: one in so many was kept.
    pub one_in: u32,
}

/// A target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetResult {
    /// Its name.
    pub name: String,
    /// Its URL.
    pub url: String,
    /// Model asked for; empty for plain HTTP.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// How it is spoken to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub protocol: String,
    /// What it is compared with.
    pub role: Role,
    /// Whether it is the upstream itself, which no margin judges.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub direct: bool,
    /// Turns that it was given.
    pub turns: u64,
    /// Turns that it completed per second while it was loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<f64>,
    /// Turns that failed: errors, timeouts, refusals that no scenario expects, no end.
    pub failed: u64,
    /// How these ended: the class of the error, `status 429`, `timed_out` or `in_flight`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failures: BTreeMap<String, u64>,
    /// Its own times.
    pub times: Vec<OwnTimes>,
    /// Share of the policy decisions that were the expected ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correct: Option<f64>,
    /// Share of the turns over a connection that had been used before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused: Option<f64>,
    /// 99th percentile of how late the generator dispatched its turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatch_lag_p99_ns: Option<f64>,
    /// CPU time per request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns_per_request: Option<f64>,
    /// Lower end of its 95 % interval, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_low_ns: Option<f64>,
    /// Upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_high_ns: Option<f64>,
    /// Resident memory at the end, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The size of its image in bytes, as the user says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_bytes: Option<u64>,
    /// How long its start takes in nanoseconds, as the user says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup_ns: Option<u64>,
    /// What it states of its own time in the headers of its answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stated: Option<Stated>,
    /// How its streams came, if it sent any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<Streams>,
    /// How it differed from the reference before the load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<Finding>,
    /// Why it was taken out of the run, and when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_out: Option<String>,
    /// What it, or the connection to it, said when turns failed: the first message of the most
    /// frequent kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Present if it was down: it failed all of its turns, at least half of them, or from some time
    /// on every one to the end. Then the comparison fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<Outage>,
}

/// The headline figure of a target in one of several rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoundResult {
    /// The round, from 1.
    pub round: u32,
    /// The target.
    pub target: String,
    /// Turns that failed.
    pub failed: u64,
    /// Its own median.
    pub p50_ns: Option<f64>,
    /// What it adds to the reference at the median, and the ends of the interval with the
    /// generator's part.
    pub added_ns: Option<[f64; 3]>,
}

/// When a target was down.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outage {
    /// Where it failed every turn from some time on: when the first of these began, after the
    /// run's start. Left out of several rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_s: Option<f64>,
    /// Their number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_since: Option<u64>,
}

impl TargetResult {
    /// Its own times of a figure.
    pub fn own(&self, figure: Figure) -> Option<&OwnTimes> {
        self.times.iter().find(|times| times.figure == figure)
    }
}

/// The times of one target. `null`: too few samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwnTimes {
    /// The figure.
    pub figure: Figure,
    /// Number of values.
    pub count: u64,
    /// Median.
    pub p50_ns: Option<f64>,
    /// The least and the most that the median can be: without what the generator may have added to
    /// it, and with that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_between_ns: Option<(f64, f64)>,
    /// 90th percentile.
    pub p90_ns: Option<f64>,
    /// 95th percentile.
    #[serde(default)]
    pub p95_ns: Option<f64>,
    /// The least and the most that it can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95_between_ns: Option<(f64, f64)>,
    /// 99th percentile.
    pub p99_ns: Option<f64>,
    /// All values, where they are too few for some percentile.
    #[serde(skip)]
    pub(crate) few: Option<FewValues>,
}

/// The values of a round that has too few for some percentile: with those of other rounds they may
/// be enough.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FewValues {
    /// As they were measured.
    pub(crate) measured: Vec<f64>,
    /// Without what the generator may have added.
    pub(crate) without: Vec<f64>,
}

named_enum! {
    /// What a difference is.
    #[derive(
        Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
    )]
    #[serde(rename_all = "snake_case")]
    pub enum Kind {
        /// A percentile of the differences of pairs: what is added to a request.
        #[default]
        Added => "added",
        /// The difference of the percentiles of both targets.
        Shift => "shift",
    }
}

/// A difference, target less reference, with its 95 % interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// The target.
    pub target: String,
    /// What it is compared with.
    pub reference: String,
    /// The figure.
    pub figure: Figure,
    /// What the difference is.
    pub kind: Kind,
    /// The percentile: `p50`, `p90`, `p95`, `p99`.
    pub quantile: String,
    /// Pairs that it comes from.
    pub pairs: u64,
    /// The difference; `null` if there are too few samples.
    pub value_ns: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low_ns: Option<f64>,
    /// Upper end.
    pub high_ns: Option<f64>,
    /// Pairs that would give the same interval if they were independent.
    pub effective_pairs: Option<f64>,
    /// Batches, windows or rounds that the interval comes from, in equal ones.
    pub batches: Option<u64>,
    /// Degrees of freedom of its variance.
    pub degrees_of_freedom: Option<f64>,
    /// Two-sided p value of "there is no difference". What is added has one at the median alone: of
    /// equal targets its other percentiles are not zero.
    pub p: Option<f64>,
    /// Several rounds: the standard deviation between them, beyond what their own errors explain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between_rounds_ns: Option<f64>,
    /// How much of it the generator itself may have added. Several rounds: the most in one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_ns: Option<f64>,
    /// Where the generator has a part in it: the interval, wider by that part. The difference is no
    /// less than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least_ns: Option<f64>,
    /// And no more than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most_ns: Option<f64>,
    /// Whether the answers of the two differ, so that it is not about the same work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub other_answers: bool,
    /// Why there is no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl Difference {
    /// Between what the difference lies: its interval, with the generator's part where it has one.
    pub fn lies_between(&self) -> Option<(f64, f64)> {
        self.at_least_ns.zip(self.at_most_ns).or_else(|| self.low_ns.zip(self.high_ns))
    }

    /// The same where it is one of `among` limits that are judged: its interval is wider then, and
    /// the part of the generator is not.
    pub(crate) fn limits_among(&self, among: usize) -> Option<[f64; 2]> {
        let (least, most) = self.lies_between()?;
        let Some((value, low, high)) = self.measured() else { return Some([least, most]) };
        let [wide_low, wide_high] = widened(value, [low, high], among);
        Some([least - (low - wide_low), most + (wide_high - high)])
    }

    /// Whether the generator alone cannot have made it: zero lies outside of both limits.
    pub(crate) fn is_beyond_generator(&self) -> bool {
        self.at_least_ns.is_none()
            || self.lies_between().is_some_and(|(low, high)| low > 0.0 || high < 0.0)
    }

    /// Value, lower and upper end of its interval.
    pub fn measured(&self) -> Option<(f64, f64, f64)> {
        Some((self.value_ns?, self.low_ns?, self.high_ns?))
    }

    /// Value and the limits between which it lies, the generator's part included.
    pub fn limited(&self) -> Option<(f64, f64, f64)> {
        let (low, high) = self.lies_between()?;
        Some((self.value_ns?, low, high))
    }

    /// The smallest difference that could have been detected in 80 % of the cases.
    pub(crate) fn detectable_ns(&self, looks: Looks) -> Option<f64> {
        let (_, low, high) = self.measured()?;
        let half = (high - low) / 2.0;
        Some(detectable(half, self.batches?, self.degrees_of_freedom?, looks))
    }

    /// Whether equal targets have none, so that it has a p value.
    pub(crate) fn is_zero_for_equals(kind: Kind, quantile: &str) -> bool {
        kind != Kind::Added || quantile == "p50"
    }

    /// Whether it is that of these two targets.
    pub fn is_of(&self, target: &str, reference: &str) -> bool {
        self.target == target && self.reference == reference
    }
}

impl Versus {
    /// A difference.
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

    /// How often the blocks were looked at.
    pub fn looks(&self) -> Looks {
        if self.stopping.is_some() { Looks::Always } else { Looks::Once }
    }

    /// The name of the target that all others are compared with.
    pub fn reference(&self) -> &str {
        let reference = self.targets.iter().find(|target| target.role == Role::Reference);
        reference.or_else(|| self.targets.first()).map_or("", |target| &target.name)
    }

    /// What each target, the control among them, adds to the reference: the median, of the
    /// headline figure.
    pub fn headline_added(&self) -> impl Iterator<Item = &Difference> + Clone {
        self.differences.iter().filter(|found| {
            found.reference == self.reference()
                && (found.figure, found.kind) == (self.headline, Kind::Added)
                && found.quantile == "p50"
        })
    }

    /// The rarest percentile of which the samples give a shift of the headline figure, beyond the
    /// 90th; `None` if there are too few for any.
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

    /// The targets that are compared with the reference and with each other, by name.
    pub fn compared(&self) -> Vec<&str> {
        let reference = self.reference();
        let compared = self.targets.iter().filter(|target| target.role != Role::Control);
        compared.map(|target| &*target.name).filter(|name| *name != reference).collect()
    }

    /// Makes the comparison invalid: nothing is said of the targets.
    pub fn invalidate(&mut self, why: String) {
        self.invalid.push(why);
        self.claims.clear();
    }

    /// Why nothing can be said of the targets although the comparison is valid: no target has a
    /// difference to the reference in the headline figure.
    pub fn nothing_measured(&self) -> Option<String> {
        let compared = self.compared();
        let mut found = self.headline_added().filter(|found| compared.contains(&&*found.target));
        if found.clone().any(|found| found.value_ns.is_some()) {
            return None;
        }
        let why = found.find_map(|found| found.refused.clone());
        let why = why.unwrap_or_else(|| "no request completed on two targets".to_owned());
        Some(format!("no difference could be measured: {why}"))
    }

    /// The judgement by thresholds and margin, whether or not the comparison is invalid: a broken
    /// one fails, as a target that was down does, and what cannot be judged is inconclusive. That
    /// targets differ is a finding, and not a failure.
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
        let unlike = self.other_answers().next().filter(|_| is_bounded);
        doubtful
            .or_else(|| unlike.map(|finding| finding.text()))
            .map_or(Judgement::Pass, Judgement::Inconclusive)
    }
}

/// A feature in which the answers of two targets differ, over the pairs that both completed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadMismatch {
    /// The target.
    pub target: String,
    /// What it is compared with.
    pub reference: String,
    /// The feature: `content`, `token counts`, `reasoning`, `tool calls`, `content bytes`, `output
    /// tokens`, `input tokens`, a status or a finish reason.
    pub about: String,
    /// Whether the two numbers are shares of the answers; else they are means of an answer.
    pub is_share: bool,
    /// Of the target.
    pub of_target: f64,
    /// Of the reference.
    pub of_reference: f64,
    /// Pairs that it comes from.
    pub pairs: u64,
}

/// The reference against itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Control {
    /// The name of the second one.
    pub target: String,
    /// Median of what it adds, which must be nothing.
    pub value_ns: Option<f64>,
    /// Two-sided p value of "it adds nothing".
    pub p: Option<f64>,
    /// Whether it differs, at 99.9 % confidence: then the comparison is invalid.
    pub differs: bool,
    /// Why it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// What the other targets do to the difference between a target and the reference: what is added
/// beside the others less what is added alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Disturbance {
    /// The target.
    pub target: String,
    /// The difference; `null` if it is not known.
    pub value_ns: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low_ns: Option<f64>,
    /// Upper end.
    pub high_ns: Option<f64>,
    /// Whether it is proven, and more than 10 % of what the target adds.
    pub matters: bool,
    /// Why it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// Failures that only one of two targets had.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorDifference {
    /// One target.
    pub target: String,
    /// The other.
    pub reference: String,
    /// Pairs that both carried out.
    pub pairs: u64,
    /// Pairs that only the target failed.
    pub only_target: u64,
    /// Pairs that only the reference failed.
    pub only_reference: u64,
    /// Two-sided p value of "both fail equally often": the exact test of McNemar; or, where
    /// failures come in bursts, the sign test on batches.
    pub p: f64,
    /// Whether batches were counted, because failures came in bursts.
    pub by_batch: bool,
}

/// Policy decisions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdicts {
    /// Turns by target, expected and actual policy decision.
    pub matrix: Vec<TargetMatrix>,
    /// Turns that targets judged differently.
    pub different: u64,
}

/// The policy decisions of one target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TargetMatrix {
    /// The target.
    pub target: String,
    /// Turns by the expected policy decision, then by the actual one.
    pub turns: Matrix,
}

/// CPU time per request of two targets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuDifference {
    /// One target.
    pub target: String,
    /// The other.
    pub reference: String,
    /// The difference per request; `null` if it is not known.
    pub value_ns: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low_ns: Option<f64>,
    /// Upper end.
    pub high_ns: Option<f64>,
    /// Two-sided p value of "there is no difference".
    pub p: Option<f64>,
    /// Degrees of freedom of its variance.
    pub degrees_of_freedom: Option<f64>,
    /// Why it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// A difference that was tested.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Claim {
    /// One target: of failures the one that fails more often.
    pub target: String,
    /// The other.
    pub reference: String,
    /// What it is about: the name of a figure for what is added, `FIGURE.p99` for a shift,
    /// `failures` or `cpu`.
    pub about: String,
    /// The figure as reports name it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub figure: String,
    /// The difference and the ends of its interval, with the generator's part, in nanoseconds.
    pub values: [f64; 3],
    /// Of failures: pairs that only the target failed, that only the reference failed, and all.
    pub counts: [u64; 3],
    /// Whether failures came in bursts, so that batches were counted.
    pub by_batch: bool,
    /// Two-sided p value of "there is no difference".
    pub p: f64,
    /// p value, adjusted for all differences by Holm.
    pub p_holm: f64,
    /// Whether it holds: `p_holm` is below 5 %, and the generator alone cannot have made it.
    pub holds: bool,
    /// Whether the answers of the two differ, so that it is not about the same work.
    pub other_answers: bool,
}
