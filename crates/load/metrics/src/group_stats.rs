//! Counts and distributions of a group of requests.

use std::collections::BTreeMap;

use plimsoll_measure::{
    ErrorClass, FinishReason, LateRead, NAMED_PARTS, Nanos, Operation, Outcome, Sample, ScenarioId,
    ServerParts, StageId, TargetId,
};
use serde::{Deserialize, Serialize};

use crate::catalog::{Counters, Metric, Population};
use crate::confusion_matrix::ConfusionMatrix;
use crate::distribution::Distribution;
use crate::edges::Edges;
use crate::starts::Starts;
use crate::stream_diagnosis::{StreamDiagnosis, StreamTally};
use crate::token_tally::{TokenFigures, TokenTally};
use crate::without_generator::MovedValues;

/// The key of a cell: the requests of one stage, one scenario and one target, and of one operation
/// where a tool server or an agent is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupKey {
    /// Its stage.
    pub stage: StageId,
    /// Its scenario.
    pub scenario: ScenarioId,
    /// Its target.
    pub target: TargetId,
    /// The operation that it requests from a tool server or an agent.
    pub operation: Option<Operation>,
}

impl GroupKey {
    /// The cell of a request.
    pub const fn for_sample(sample: &Sample) -> Self {
        let Sample { stage, scenario, target, operation, .. } = *sample;
        Self { stage, scenario, target, operation }
    }
}

/// Counters and distributions of a group of requests: one cell, or several added up. Each
/// distribution is allocated with its first value; after that, recording allocates nothing.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct GroupStats {
    pub(crate) counters: Counters,
    pub(crate) in_flight_time: u128,
    /// Requests that began or ended in another stage.
    pub(crate) edges: Edges,
    errors: BTreeMap<ErrorClass, u64>,
    statuses: BTreeMap<u16, u64>,
    rpc_errors: BTreeMap<i32, u64>,
    policy_decisions: ConfusionMatrix,
    streams: StreamTally,
    finish_reasons: BTreeMap<FinishReason, u64>,
    distributions: [Option<Box<Distribution>>; Metric::COUNT],
    /// The values that would be others without the generator's part.
    moved: Option<Box<MovedValues>>,
    /// Time of the generator in the cycles of virtual users, in nanoseconds.
    pub(crate) generator_time: u128,
    /// How much earlier a generator that is never late would have dispatched the arrivals.
    pacing_lag: Option<Box<Distribution>>,
    /// When its requests were due and sent.
    #[serde(skip)]
    pub(crate) starts: Starts,
    /// Parts of times, as the target names them.
    server_parts: Option<Box<PartsTally>>,
    /// Tokens of each request.
    tokens: Option<Box<TokenTally>>,
}

impl GroupStats {
    /// Records one request with the gaps and the late reads of its stream.
    pub(crate) fn record(&mut self, sample: &Sample, gaps: &[Nanos], late_reads: &[LateRead]) {
        self.counters.count(sample);
        self.counters.judge(sample);
        self.policy_decisions.count(sample.expected, sample.policy_decision);
        self.streams.count(sample);
        if let Outcome::Failed(class) = sample.outcome {
            *self.errors.entry(class).or_default() += 1;
        }
        if sample.status != 0 {
            *self.statuses.entry(sample.status).or_default() += 1;
        }
        if let Some(reason) = sample.finish_reason {
            *self.finish_reasons.entry(reason).or_default() += 1;
        }
        if let Some(code) = sample.rpc.code {
            *self.rpc_errors.entry(code).or_default() += 1;
        }
        if TokenTally::covers(sample) {
            self.tokens.get_or_insert_default().record(sample);
        }
        Metric::each(sample, |metric, value| self.values(metric).record(value));
        if !gaps.is_empty() && Metric::Itl.population().covers(sample.outcome) {
            let values = self.values(Metric::Itl);
            for gap in gaps {
                values.record(*gap);
            }
        }
        let own = &sample.generator;
        self.generator_time += u128::from((own.dispatch + own.send + own.finished).as_u64());
        if sample.generator_matters() || !late_reads.is_empty() {
            self.moved.get_or_insert_default().record(sample, gaps, late_reads);
        }
    }

    /// Records the parts of its time that the target names.
    pub(crate) fn record_parts(&mut self, sample: &Sample, parts: &ServerParts) {
        if Metric::ServerTime.population().covers(sample.outcome) {
            self.server_parts.get_or_insert_default().record(parts, sample.timeline.ttfb());
        }
    }

    pub(crate) fn renumber_server_parts(&mut self, numbers: &[Option<usize>]) {
        if let Some(parts) = &mut self.server_parts {
            parts.renumber(numbers);
        }
    }

    /// Records how late the generator dispatched an arrival.
    pub(crate) fn record_pacing_lag(&mut self, lag: Nanos) {
        self.pacing_lag.get_or_insert_default().record(lag);
    }

    /// Adds another group's counts and values, but not when its requests were due and sent: only
    /// a snapshot of one interval has that.
    pub fn merge(&mut self, other: &Self) {
        self.add_time(other);
        if let Some(theirs) = &other.moved {
            self.moved.get_or_insert_default().merge(theirs);
        }
        if let Some(theirs) = &other.pacing_lag {
            self.pacing_lag.get_or_insert_default().merge(theirs);
        }
        if let Some(theirs) = &other.server_parts {
            self.server_parts.get_or_insert_default().merge(theirs);
        }
        if let Some(theirs) = &other.tokens {
            self.tokens.get_or_insert_default().merge(theirs);
        }
        self.policy_decisions.merge(&other.policy_decisions);
        self.streams.merge(&other.streams);
        other.errors.iter().for_each(|(class, n)| *self.errors.entry(*class).or_default() += n);
        other.statuses.iter().for_each(|(code, n)| *self.statuses.entry(*code).or_default() += n);
        let reasons = other.finish_reasons.iter();
        reasons.for_each(|(reason, n)| *self.finish_reasons.entry(*reason).or_default() += n);
        let codes = other.rpc_errors.iter();
        codes.for_each(|(code, n)| *self.rpc_errors.entry(*code).or_default() += n);
        for (mine, theirs) in self.distributions.iter_mut().zip(&other.distributions) {
            if let Some(theirs) = theirs {
                mine.get_or_insert_default().merge(theirs);
            }
        }
    }

    /// Adds another group's counters and times, without its distributions.
    pub(crate) fn add_time(&mut self, other: &Self) {
        self.counters.merge(&other.counters);
        self.edges.merge(&other.edges);
        self.in_flight_time += other.in_flight_time;
        self.generator_time += other.generator_time;
    }

    /// The counters.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Failures by class.
    pub const fn errors(&self) -> &BTreeMap<ErrorClass, u64> {
        &self.errors
    }

    /// Responses by HTTP status.
    pub const fn statuses(&self) -> &BTreeMap<u16, u64> {
        &self.statuses
    }

    /// Why models stopped, as far as the target says.
    pub const fn finish_reasons(&self) -> &BTreeMap<FinishReason, u64> {
        &self.finish_reasons
    }

    /// Errors of JSON-RPC by code, whatever the status of the response.
    pub const fn rpc_errors(&self) -> &BTreeMap<i32, u64> {
        &self.rpc_errors
    }

    /// Expected against actual policy decisions.
    pub const fn policy_decisions(&self) -> &ConfusionMatrix {
        &self.policy_decisions
    }

    /// Parts of times, as the target names them; `None` if it names none.
    pub(crate) fn server_parts(&self) -> Option<&PartsTally> {
        self.server_parts.as_deref()
    }

    /// Tokens of each request; `None` if none are known.
    pub(crate) fn tokens(&self) -> Option<TokenFigures> {
        self.tokens.as_deref().map(TokenFigures::from_tally)
    }

    /// How its streams came; `None` if none began.
    pub fn streams(&self) -> Option<StreamDiagnosis> {
        self.streams.diagnosis()
    }

    /// A distribution; `None` if it has no value.
    pub fn distribution(&self, metric: Metric) -> Option<&Distribution> {
        self.distributions[metric as usize].as_deref()
    }

    /// A distribution without the measurement error, or the lower bounds of gaps; `None` if equal.
    pub fn undisturbed(&self, metric: Metric) -> Option<Distribution> {
        self.moved.as_ref()?.undisturbed(metric, self.distribution(metric)?)
    }

    /// The most that gaps can be without the generator's part; `None` if that would be the same.
    pub(crate) fn prolonged(&self, metric: Metric) -> Option<Distribution> {
        self.moved.as_ref()?.prolonged(metric, self.distribution(metric)?)
    }

    /// How much earlier a generator that is never late would have dispatched the arrivals; `None`
    /// if none was dispatched.
    pub fn pacing_lag(&self) -> Option<&Distribution> {
        self.pacing_lag.as_deref()
    }

    /// Requests without an end, which may be longer than all others: in flight, timed out and, for
    /// times that count from the intended start, never sent.
    pub const fn unfinished(&self, metric: Metric) -> u64 {
        unfinished(&self.counters, metric)
    }

    /// The time that requests were in flight during the stage, summed over the requests, in
    /// nanoseconds. Requests scheduled in another stage count here too.
    pub const fn in_flight_time(&self) -> u128 {
        self.in_flight_time
    }

    #[inline]
    fn values(&mut self, metric: Metric) -> &mut Distribution {
        self.distributions[metric as usize].get_or_insert_default()
    }
}

/// [`GroupStats::unfinished`] of requests with these counters.
pub(crate) const fn unfinished(counters: &Counters, metric: Metric) -> u64 {
    let sent = counters.in_flight + counters.timed_out;
    match metric {
        Metric::ResponseTime | Metric::ResponseTtft => sent + counters.never_sent,
        _ if matches!(metric.population(), Population::Completed) => sent,
        _ => 0,
    }
}

// Counts the parts of responses' times that targets state in their headers.

/// Parts of a group of requests, by the number of their name.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PartsTally {
    /// Responses with parts that may be true.
    pub(crate) responses: u64,
    /// Those with parts that cannot be.
    pub(crate) refused: u64,
    /// Sum of the times to the first byte of `responses`, in nanoseconds.
    pub(crate) ttfb: u128,
    pub(crate) times: [Option<Box<Distribution>>; NAMED_PARTS + 1],
}

impl PartsTally {
    /// Counts the parts of a response.
    pub(crate) fn record(&mut self, parts: &ServerParts, ttfb: Option<Nanos>) {
        let Some((times, ttfb)) = parts.times().zip(ttfb) else {
            self.refused += 1;
            return;
        };
        self.responses += 1;
        self.ttfb += u128::from(ttfb.as_u64());
        for (mine, time) in self.times.iter_mut().zip(times) {
            if let Some(time) = time {
                mine.get_or_insert_default().record(*time);
            }
        }
    }

    /// Part `n` becomes `numbers[n]`; without a new number it joins those that have no name.
    pub(crate) fn renumber(&mut self, numbers: &[Option<usize>]) {
        let old = std::mem::take(&mut self.times);
        for (index, times) in old.into_iter().enumerate() {
            let number = numbers.get(index).copied().flatten().unwrap_or(NAMED_PARTS);
            if let Some(times) = times {
                self.times[number.min(NAMED_PARTS)].get_or_insert_default().merge(&times);
            }
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.responses += other.responses;
        self.refused += other.refused;
        self.ttfb += other.ttfb;
        for (mine, theirs) in self.times.iter_mut().zip(&other.times) {
            if let Some(theirs) = theirs {
                mine.get_or_insert_default().merge(theirs);
            }
        }
    }
}
