//! The figures of a pass, as the tables show them.

use std::collections::BTreeMap;

use plimsoll_measure::{ErrorClass, Nanos};
use plimsoll_metrics::{
    Bias, BoundedFigure, DistributionSummary, Finding, Group, Level, Metric, MetricsError,
    QUANTILES, Refusal, RunSummary, words_of_failure,
};
use plimsoll_report::format::{count, percent};
use plimsoll_stats::descriptive::median;
use plimsoll_why::{Answer, why};
use serde::{Deserialize, Serialize};

/// CPU seconds per second of wall time and core, of everything that could be the bottleneck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BusyShares {
    /// The gateway's process; 1.0 is one core.
    pub gateway: Option<f64>,
    /// The load's own process, per core that it has.
    pub generator: Option<f64>,
    /// The same of its busiest worker, which limits a load before all are busy.
    pub busiest_worker: Option<f64>,
    /// The provider's process.
    pub provider: Option<f64>,
    /// The process of the gateway's store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<f64>,
    /// Share of the time in which the load was ready to run and waited for its core.
    pub waited: Option<f64>,
    /// Whether load and provider share a core.
    pub shared: bool,
}

/// The figures of a pass, or the medians of several. `None` is unknown, or a percentile of too few
/// samples. Rates and times know themselves whether they may be used (`docs/adr/0007`): tables show
/// them with their mark, and whatever concludes something asks [`BoundedFigure::sound`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Planned requests without warm-up; the sum over passes.
    pub requests: u64,
    /// Those of them without the expected answer: refused (429, 404, ...), failed, timed out, never
    /// answered or never sent; with another policy decision than the expected one.
    pub errors: u64,
    /// Those of them with the expected answer; `None` in files of older versions.
    pub expected: Option<u64>,
    /// Those of them with a status or an error class, by it; the sum over passes.
    #[serde(default)]
    pub errors_by_kind: BTreeMap<String, u64>,
    /// Length of the measured window; the sum over passes.
    #[serde(default)]
    pub seconds: f64,
    /// Expected answers per second of wall time. If it is refused, it is a lower bound.
    pub requests_per_s: Option<BoundedFigure>,
    /// Planned requests per second, in the open model.
    pub planned_per_s: Option<f64>,
    /// Mean time: the response time, and in the closed model the service time, as in the headline
    /// of a run's report.
    pub mean_ms: Option<BoundedFigure>,
    /// Median time.
    pub p50_ms: Option<BoundedFigure>,
    /// 95th percentile of it.
    pub p95_ms: Option<BoundedFigure>,
    /// 99th percentile of it.
    pub p99_ms: Option<BoundedFigure>,
    /// Largest time, over all passes.
    pub max_ms: Option<BoundedFigure>,
    /// Median time to the first token.
    pub ttft_p50_ms: Option<BoundedFigure>,
    /// 99th percentile of it.
    pub ttft_p99_ms: Option<BoundedFigure>,
    /// 99th percentile of the gaps inside streams.
    pub gap_p99_ms: Option<BoundedFigure>,
    /// Bytes received, in millions per second.
    pub megabytes_per_s: Option<f64>,
    /// Bytes of an answer with its head, on average; `None` in files of older versions.
    pub answer_bytes: Option<f64>,
    /// Threads of the load; `None` in files of older versions.
    pub threads: Option<u64>,
    /// CPU time of the gateway per request, in microseconds.
    pub gateway_cpu_us: Option<f64>,
    /// Resident memory of the gateway at the end of the measured window, in bytes.
    pub gateway_memory: Option<f64>,
    /// CPU use of each process.
    pub busy: BusyShares,
    /// The bottleneck, as `plimsoll why` judges it; `None` if the load was not at its limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bottleneck: Option<Answer>,
    /// Load of other processes or machines on this host meanwhile; `None` if it was quiet.
    pub busy_host: Option<String>,
    /// Share of the planned requests without the expected answer.
    pub error_share: Option<f64>,
    /// Share of the answers with the policy decision that the scenario expects.
    pub policy_correctness: Option<f64>,
    /// Whether the load generator limited the throughput, in every usable pass.
    pub limited: bool,
    /// Why the figures must not be used; `None` for a valid measurement.
    pub invalid: Option<String>,
}

/// The responses whose times are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum TimedResponses {
    /// Completed requests.
    #[default]
    Completed,
    /// Refused ones too, where refusals are expected.
    All,
}

impl Figures {
    /// The figures of a summary.
    pub(crate) fn from_summary(
        summary: &RunSummary,
        responses: TimedResponses,
    ) -> Result<Self, MetricsError> {
        Ok(Self {
            planned_per_s: summary
                .results
                .total
                .rates
                .planned_rate_per_s
                .filter(|_| summary.health.planned_arrivals.is_some()),
            invalid: invalid(summary),
            bottleneck: Some(why(summary).answer).filter(|answer| *answer != Answer::None),
            ..Self::of_group(&summary.results.total, responses, summary.metadata.headline_time())?
        })
    }

    /// The figures of part of a run: of a stage, or of a category. `time` is the time that heads
    /// the run's report.
    pub(crate) fn of_group(
        total: &Group,
        responses: TimedResponses,
        time: Metric,
    ) -> Result<Self, MetricsError> {
        let times = times(total, responses, time)?;
        let [p50, _, p95, p99, _] = &QUANTILES;
        let (ttft, gaps) = (total.distribution(Metric::Ttft), total.distribution(Metric::Itl));
        let counters = &total.counters;
        let expected = counters.ok();
        let seconds = Some(total.duration_s).filter(|seconds| *seconds > 0.0);
        Ok(Self {
            requests: counters.scheduled,
            seconds: total.duration_s,
            errors: counters.unexpected,
            expected: Some(expected),
            errors_by_kind: errors_by_kind(total),
            // Without expected answers, the engine counts completions in the stage's own time.
            requests_per_s: match responses {
                TimedResponses::Completed => total.named_rate("throughput"),
                TimedResponses::All => {
                    total.named_rate("achieved_rate").zip(seconds).map(|(sent, seconds)| {
                        BoundedFigure { value: expected as f64 / seconds, ..sent }
                    })
                }
            }
            .filter(|_| expected > 0),
            mean_ms: times.as_ref().map(DistributionSummary::mean_figure),
            p50_ms: times.as_ref().and_then(|times| times.figure(p50)),
            p95_ms: times.as_ref().and_then(|times| times.figure(p95)),
            p99_ms: times.as_ref().and_then(|times| times.figure(p99)),
            max_ms: times.as_ref().map(DistributionSummary::max_figure),
            ttft_p50_ms: ttft.and_then(|times| times.figure(p50)),
            ttft_p99_ms: ttft.and_then(|times| times.figure(p99)),
            gap_p99_ms: gaps.and_then(|times| times.figure(p99)),
            limited: is_limited(total),
            megabytes_per_s: seconds.map(|seconds| counters.bytes_in as f64 / seconds / 1e6),
            answer_bytes: mean(counters.bytes_in, counters.completed + counters.rejected),
            error_share: total.rates.error_rate,
            policy_correctness: total.rates.policy_correctness,
            ..Self::default()
        })
    }

    /// The number of expected answers.
    pub fn expected(&self) -> u64 {
        self.expected.unwrap_or_else(|| self.requests.saturating_sub(self.errors))
    }

    /// The two most frequent kinds of errors: `429: 1,234, timed out: 2`.
    pub(crate) fn error_kinds(&self) -> Option<String> {
        let mut kinds: Vec<_> = self.errors_by_kind.iter().collect();
        kinds.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
        let texts = kinds.iter().take(2).map(|(kind, n)| format!("{kind}: {}", count(**n)));
        (!kinds.is_empty()).then(|| texts.collect::<Vec<_>>().join(", "))
    }

    /// Why too few of the answers are expected ones for the figures to be used.
    pub(crate) fn gated(&self, gate: f64) -> Option<String> {
        let kinds = self.error_kinds().map(|kinds| format!(" ({kinds})")).unwrap_or_default();
        if self.requests == 0 {
            return Some("no request".to_owned());
        }
        if self.expected() == 0 {
            return Some(format!("{} unexpected responses{kinds}", count(self.requests)));
        }
        let share = self.errors as f64 / self.requests.max(1) as f64;
        (share > gate).then(|| {
            format!(
                "{} of {} requests had no expected response{kinds}, above the limit of {}",
                percent(share),
                count(self.requests),
                percent(gate)
            )
        })
    }
}

/// Whether the generator's own work kept the rate down: it is then a lower bound.
fn is_limited(total: &Group) -> bool {
    total.refused_rates.values().any(|why| *why == Refusal::Generator)
}

fn mean(sum: u64, count: u64) -> Option<f64> {
    (count > 0).then(|| sum as f64 / count as f64)
}

/// Why the load differed from the plan. Figures that the generator falsified are refused
/// individually, so other known figures, such as the rate of a closed loop, can be used.
fn invalid(summary: &RunSummary) -> Option<String> {
    let of_load = summary.of_level(Level::Invalid).filter(|finding| finding.code != 102);
    let texts: Vec<_> = of_load.map(Finding::text).collect();
    (!texts.is_empty()).then(|| texts.join(" "))
}

/// The unsuccessful answers by status, and the failures without a status by class. A policy may be
/// expected to refuse: where refusals outnumber wrong decisions, the wrong decisions are counted
/// instead.
fn errors_by_kind(group: &Group) -> BTreeMap<String, u64> {
    let counters = &group.counters;
    let refusals: u64 = group.statuses.range(400..500).map(|(_, n)| *n).sum();
    let some_are_expected = refusals > counters.unexpected;
    let first_wrong = if some_are_expected { 500 } else { 300 };
    let refused = group.statuses.range(first_wrong..);
    let mut kinds: Vec<_> = refused.map(|(status, n)| (status.to_string(), *n)).collect();
    let server_errors: u64 = group.statuses.range(500..).map(|(_, n)| *n).sum();
    let classes =
        group.errors.iter().filter(|(class, _)| *class != "server_error" || server_errors == 0);
    kinds.extend(classes.map(|(class, n)| (with_codes(group, class), *n)));
    let decided = counters.judged.saturating_sub(counters.as_expected);
    let decided = if some_are_expected { decided } else { 0 };
    kinds.push(("wrong decision".to_owned(), decided));
    kinds.push(("timed out".to_owned(), group.counters.timed_out));
    kinds.push(("in flight".to_owned(), group.counters.in_flight));
    kinds.push(("never sent".to_owned(), group.counters.never_sent));
    sum(kinds.into_iter().filter(|(_, n)| *n > 0))
}

fn sum(kinds: impl Iterator<Item = (String, u64)>) -> BTreeMap<String, u64> {
    kinds.fold(BTreeMap::new(), |mut sum, (kind, n)| {
        *sum.entry(kind).or_default() += n;
        sum
    })
}

/// The name of an error class; a JSON-RPC class includes its most frequent code.
fn with_codes(group: &Group, class: &str) -> String {
    let frequent = group.rpc_errors.iter().max_by_key(|(_, n)| **n);
    match frequent.filter(|_| class == ErrorClass::RpcError.name()) {
        Some((code, _)) => format!("{class} {code}"),
        None => words_of_failure(class, true).0,
    }
}

/// The share of the responses that took at most a time, to 0.1 % of it; `None` without any.
pub(crate) fn share_up_to(
    group: &Group,
    responses: TimedResponses,
    time: Metric,
    limit: Nanos,
) -> Option<f64> {
    let times = times(group, responses, time).ok()??.restore().ok()?;
    let ([within], above) = times.classes(&[limit.as_u64()]);
    (within + above > 0).then(|| within as f64 / (within + above) as f64)
}

/// The times shown: completed requests, together with refusals where those are expected.
fn times(
    group: &Group,
    responses: TimedResponses,
    time: Metric,
) -> Result<Option<DistributionSummary>, MetricsError> {
    let rejected = match time {
        Metric::ServiceTime => Metric::RejectedServiceTime,
        _ => Metric::RejectedResponseTime,
    };
    let rejected = group.distribution(rejected).filter(|_| responses == TimedResponses::All);
    match (group.distribution(time), rejected) {
        (Some(completed), Some(rejected)) => completed.merged(rejected, time).map(Some),
        (one, other) => Ok(one.or(other).cloned()),
    }
}

impl Figures {
    /// The medians over several passes; counts are summed, and the largest value is the largest of
    /// all. Passes in which a figure is unusable are left out, like INVALID passes.
    pub(crate) fn median(passes: &[&Self]) -> Self {
        let middle = |of: fn(&Self) -> Option<f64>| {
            let values: Option<Vec<f64>> = passes.iter().map(|pass| of(pass)).collect();
            median(&values?)
        };
        let [requests_per_s] = middles(passes, [|f| f.requests_per_s]);
        let [gap_p99_ms] = middles(passes, [|f| f.gap_p99_ms]);
        let [ttft_p50_ms, ttft_p99_ms] = middles(passes, [|f| f.ttft_p50_ms, |f| f.ttft_p99_ms]);
        let [mean_ms, p50_ms, p95_ms, p99_ms] =
            middles(passes, [|f| f.mean_ms, |f| f.p50_ms, |f| f.p95_ms, |f| f.p99_ms]);
        let busy = BusyShares {
            gateway: middle(|f| f.busy.gateway),
            generator: middle(|f| f.busy.generator),
            busiest_worker: middle(|f| f.busy.busiest_worker),
            provider: middle(|f| f.busy.provider),
            store: middle(|f| f.busy.store),
            waited: middle(|f| f.busy.waited),
            shared: passes.iter().any(|f| f.busy.shared),
        };
        Self {
            requests: passes.iter().map(|f| f.requests).sum(),
            errors: passes.iter().map(|f| f.errors).sum(),
            expected: Some(passes.iter().map(|f| f.expected()).sum()),
            errors_by_kind: sum(passes.iter().flat_map(|f| f.errors_by_kind.clone())),
            seconds: passes.iter().map(|f| f.seconds).sum(),
            requests_per_s,
            planned_per_s: middle(|f| f.planned_per_s),
            mean_ms,
            p50_ms,
            p95_ms,
            p99_ms,
            max_ms: largest(passes.iter().filter_map(|f| f.max_ms)),
            ttft_p50_ms,
            ttft_p99_ms,
            gap_p99_ms,
            megabytes_per_s: middle(|f| f.megabytes_per_s),
            answer_bytes: middle(|f| f.answer_bytes),
            threads: passes.iter().find_map(|f| f.threads),
            gateway_cpu_us: middle(|f| f.gateway_cpu_us),
            gateway_memory: passes.iter().filter_map(|f| f.gateway_memory).reduce(f64::max),
            busy,
            bottleneck: bottleneck(passes),
            busy_host: passes.iter().find_map(|f| f.busy_host.clone()),
            error_share: middle(|f| f.error_share),
            policy_correctness: passes.iter().filter_map(|f| f.policy_correctness).reduce(f64::min),
            limited: passes.iter().all(|f| f.limited),
            invalid: passes.iter().find_map(|f| f.invalid.clone()),
        }
    }
}

/// The bottleneck, if all passes have the same.
fn bottleneck(passes: &[&Figures]) -> Option<Answer> {
    let first = passes.first()?.bottleneck;
    if passes.iter().all(|pass| pass.bottleneck == first) { first } else { Some(Answer::Unknown) }
}

/// The medians of figures of one distribution, all of the same passes: a median p99 of some passes
/// can be less than a median p95 of others, which no distribution has. These passes are those in
/// which each figure may be used that may be used in any; without such a pass all of them, and a
/// figure is then refused with any of its own.
fn middles<const N: usize>(
    passes: &[&Figures],
    figures: [fn(&Figures) -> Option<BoundedFigure>; N],
) -> [Option<BoundedFigure>; N] {
    let needed = figures.map(|figure| passes.iter().any(|pass| is_usable(figure, pass)));
    let chosen: Vec<&Figures> = passes
        .iter()
        .filter(|pass| {
            figures.iter().zip(needed).all(|(figure, needed)| !needed || is_usable(*figure, pass))
        })
        .copied()
        .collect();
    let chosen = if chosen.is_empty() { passes } else { &chosen };
    figures.map(|figure| {
        let is_known = passes.iter().all(|pass| figure(pass).is_some());
        is_known.then(|| middle_of(chosen.iter().filter_map(|pass| figure(pass))))?
    })
}

fn is_usable(figure: fn(&Figures) -> Option<BoundedFigure>, pass: &Figures) -> bool {
    figure(pass).is_some_and(|figure| figure.refused.is_none())
}

/// The median of figures; its bound is the largest, and its interval spans those of all.
fn middle_of(figures: impl Iterator<Item = BoundedFigure>) -> Option<BoundedFigure> {
    let figures: Vec<_> = figures.collect();
    let values: Vec<_> = figures.iter().map(|figure| figure.value).collect();
    // A figure without one is known as it is.
    let is_uncertain = figures.iter().any(|figure| figure.interval.is_some());
    let intervals = figures.iter().map(|figure| figure.interval.unwrap_or([figure.value; 2]));
    let intervals = intervals.filter(|_| is_uncertain);
    Some(BoundedFigure {
        value: median(&values)?,
        bound: figures.iter().map(|figure| figure.bound).reduce(f64::max)?,
        interval: intervals.reduce(|[low, high], [least, most]| [low.min(least), high.max(most)]),
        refused: figures.iter().find_map(|figure| figure.refused),
    })
}

/// The largest of several times that the generator can only make longer. The result is at most the
/// longest measured time, and at least the longest one without the generator's overhead. Requests
/// without an end in any pass may be longer still.
fn largest(figures: impl Iterator<Item = BoundedFigure> + Clone) -> Option<BoundedFigure> {
    let is_censored = figures.clone().any(|figure| figure.refused == Some(Refusal::Censored));
    let least = figures.clone().map(|figure| figure.limits(Bias::Adds)[0]).fold(0.0, f64::max);
    let longest = figures.max_by(|a, b| a.value.total_cmp(&b.value))?;
    let largest = BoundedFigure { bound: longest.value - least, ..longest };
    let refused = longest.refused.filter(|_| largest.has_notable_bound());
    Some(BoundedFigure {
        refused: if is_censored { Some(Refusal::Censored) } else { refused },
        ..largest
    })
}

#[cfg(test)]
mod tests {
    use plimsoll_metrics::Finding;

    use super::*;

    #[test]
    fn the_interval_of_a_median_spans_every_pass() {
        let rate = |value, interval| BoundedFigure { interval, ..BoundedFigure::exact(value) };
        let (sure, unsure) = (rate(100.0, None), rate(20.0, Some([18.0, 22.0])));
        let interval = |figures: &[BoundedFigure]| middle_of(figures.iter().copied())?.interval;
        assert_eq!(interval(&[sure, sure, unsure]), Some([18.0, 100.0]));
        assert_eq!(interval(&[sure, sure]), None);
    }

    #[test]
    fn a_rate_that_the_generator_kept_down_is_a_lower_bound() {
        let mut total = Group::default();
        assert!(!is_limited(&total));
        total.refused_rates.insert("throughput_per_s".to_owned(), Refusal::Generator);
        assert!(is_limited(&total));
    }

    #[test]
    fn a_time_that_the_generator_falsified_leaves_the_load_valid() {
        let of = |codes: &[u16]| {
            let findings = codes.iter().map(|code| Finding::new(*code).at(Level::Invalid));
            invalid(&RunSummary { findings: findings.collect(), ..RunSummary::default() })
        };
        assert_eq!(of(&[102, 102]), None);
        assert!(of(&[102, 101]).is_some_and(|text| text.contains("after their stage")));
        assert!(of(&[107]).is_some());
    }

    fn kinds(group: &Group) -> Option<String> {
        let errors_by_kind = errors_by_kind(group);
        Figures { errors_by_kind, ..Figures::default() }.error_kinds()
    }

    /// All counts are of all passes, and so is the length beside them.
    #[test]
    fn counts_are_summed_over_passes() {
        let pass = |requests, of_429, of_503| {
            let kinds = [("429".to_owned(), of_429), ("503".to_owned(), of_503)];
            let (errors, errors_by_kind) = (of_429 + of_503, kinds.into());
            Figures { requests, errors, errors_by_kind, seconds: 30.0, ..Figures::default() }
        };
        let all =
            Figures::median(&[&pass(3_370, 3_349, 0), &pass(3_800, 3_796, 1), &pass(582, 582, 0)]);
        assert_eq!((all.errors, &*all.error_kinds().unwrap()), (7_728, "429: 7,727, 503: 1"));
        assert_eq!((all.expected(), all.requests, all.seconds), (24, 7_752, 90.0));
    }

    /// 4,425 refusals, 1,678 of them expected by the policy; 2,747 answers were decided wrongly.
    #[test]
    fn a_refusal_that_is_expected_is_no_error() {
        let mut group = Group::default();
        group.statuses.extend([(200, 17_055), (403, 4_425), (502, 3)]);
        group.errors.insert("server_error".to_owned(), 3);
        group.counters.unexpected = 4_428;
        assert_eq!(kinds(&group).unwrap(), "403: 4,425, 502: 3");
        group.counters.unexpected = 2_750;
        (group.counters.judged, group.counters.as_expected) = (21_480, 18_733);
        assert_eq!(kinds(&group).unwrap(), "wrong decision: 2,747, 502: 3");
    }

    #[test]
    fn errors_of_json_rpc_have_their_code() {
        let mut group = Group::default();
        assert_eq!(kinds(&group), None);
        group.errors.extend([("rpc_error".to_owned(), 7), ("reset".to_owned(), 2)]);
        group.rpc_errors.extend([(-32_602, 6), (-32_603, 1)]);
        assert_eq!(kinds(&group).unwrap(), "rpc_error -32602: 7, connection reset: 2");
    }

    fn figure(value: f64, is_usable: bool) -> BoundedFigure {
        let refused = (!is_usable).then_some(Refusal::Generator);
        BoundedFigure { value, bound: value / 10.0, interval: None, refused }
    }

    #[test]
    fn refused_figures_are_left_out_of_medians_where_others_may_be_used() {
        let [one, two, nine] = [figure(1.0, true), figure(2.0, true), figure(9.0, false)];
        let middle = BoundedFigure { value: 1.5, ..two };
        assert_eq!(largest_of(&[Some(one), Some(nine), Some(two)]), Some(middle));
        assert_eq!(largest_of(&[Some(nine), Some(nine)]), Some(nine));
        assert_eq!(largest_of(&[Some(one), None]), None);
        assert_eq!(largest_of(&[]), None);
    }

    fn largest_of(figures: &[Option<BoundedFigure>]) -> Option<BoundedFigure> {
        let passes: Vec<_> = figures
            .iter()
            .map(|figure| Figures { p50_ms: *figure, ..Figures::default() })
            .collect();
        middles(&passes.iter().collect::<Vec<_>>(), [|f| f.p50_ms])[0]
    }

    #[test]
    fn percentiles_are_medians_of_the_same_passes() {
        let pass = |p50, p95, p99| Figures {
            p50_ms: Some(p50),
            p95_ms: Some(p95),
            p99_ms: Some(p99),
            ..Figures::default()
        };
        let (yes, no) = (true, false);
        // Seen on a busy host: p95 18.9 ms of the slow pass alone, p99 18.1 ms of the other.
        let slow = pass(figure(9.0, yes), figure(18.9, yes), figure(23.7, no));
        let fast = pass(figure(1.0, no), figure(12.0, no), figure(18.1, yes));
        let both = Figures::median(&[&slow, &fast]);
        let [p50, p95, p99] = [both.p50_ms, both.p95_ms, both.p99_ms].map(Option::unwrap);
        assert!(p50.value <= p95.value && p95.value <= p99.value, "{p95:?} {p99:?}");
        assert!([p50, p95, p99].iter().all(|figure| figure.refused.is_some()));
        // A pass that has all decides alone; what may be used nowhere is of that pass as well.
        let whole = pass(figure(2.0, yes), figure(3.0, yes), figure(4.0, yes));
        assert_eq!(Figures::median(&[&slow, &fast, &whole]).p95_ms, whole.p95_ms);
        let no_tail = pass(figure(2.0, yes), figure(3.0, yes), figure(4.0, no));
        let worse = pass(figure(5.0, yes), figure(6.0, no), figure(7.0, no));
        assert_eq!(Figures::median(&[&no_tail, &worse]).p50_ms, no_tail.p50_ms);
        assert_eq!(Figures::median(&[&no_tail, &worse]).p99_ms, no_tail.p99_ms);
    }

    /// Calculated by hand: a tenth of each figure may be the generator's overhead.
    #[test]
    fn the_largest_has_the_limits_of_all_passes() {
        let [sound, refused] = [figure(9.0, true), figure(9.0, false)];
        assert_eq!(largest_of_both(figure(1.0, false), sound), sound);
        assert_eq!(largest_of_both(figure(1.0, true), refused), refused);
        // The 10 includes up to 1 of overhead, but the request of 9.9 took at least 9.8.
        let other = BoundedFigure { value: 9.9, bound: 0.1, interval: None, refused: None };
        let limited = BoundedFigure { bound: 0.2, ..figure(10.0, false) };
        assert_eq!(largest_of_both(figure(10.0, false), other), limited);
        // 9.99 took at least 9.98: nothing worth a word is open.
        let other = BoundedFigure { value: 9.99, bound: 0.01, interval: None, refused: None };
        assert_eq!(largest_of_both(figure(10.0, false), other).refused, None);
        let censored = BoundedFigure { refused: Some(Refusal::Censored), ..figure(1.0, true) };
        assert_eq!(largest_of_both(censored, sound).refused, censored.refused);
    }

    /// The largest, which does not depend on the order of the passes, its bound to nine digits.
    fn largest_of_both(a: BoundedFigure, b: BoundedFigure) -> BoundedFigure {
        let [forth, back] = [[a, b], [b, a]].map(|both| largest(both.into_iter()).unwrap());
        assert_eq!(forth, back);
        BoundedFigure { bound: (forth.bound * 1e9).round() / 1e9, ..forth }
    }
}
