//! Default gates for runs whose profile has none.

use plimsoll_metrics::{DistributionSummary, Gate, LoadModel, Metric, MetricsError};
use plimsoll_stats::samples_needed;

use crate::stored_run::StoredRun;

/// The effective gates, and whether they are the default ones: gates of flags, else of the new
/// runs' profile, else the default gates for the metrics of the old runs.
pub(crate) fn gates(
    given: &[(String, String)],
    base: &[StoredRun],
    new: &[StoredRun],
) -> Result<(Vec<Gate>, bool), MetricsError> {
    let of_profile = new.first().or_else(|| base.first()).map_or(&[][..], |run| &run.gates);
    let written = if given.is_empty() { of_profile } else { given };
    if !written.is_empty() {
        let parsed = written.iter().map(|(figure, margin)| Gate::parse(figure, margin));
        return Ok((parsed.collect::<Result<_, _>>()?, false));
    }
    let parsed = usual(base, new).into_iter().map(|(figure, margin)| Gate::parse(&figure, margin));
    Ok((parsed.collect::<Result<_, _>>()?, true))
}

/// The default gates: times of the headline, first tokens of streams, throughput of closed stages
/// (in open stages it is planned), CPU time if a process was monitored, and errors. A regression
/// must not influence its own verdict, so margins are derived from the old runs alone.
fn usual(base: &[StoredRun], new: &[StoredRun]) -> Vec<(String, &'static str)> {
    let Some(first) = base.first() else { return Vec::new() };
    let metadata = &first.summary.metadata;
    let headline = metadata.headline_time();
    let mut metrics = vec![headline, Metric::Ttft];
    metrics.dedup();
    let mut gates: Vec<_> =
        metrics.into_iter().flat_map(|metric| times(base.iter().chain(new), metric)).collect();
    let closed = metadata.stages.iter().any(|s| !s.warmup && s.model == LoadModel::Closed);
    gates.extend(closed.then(|| ("throughput".to_owned(), "2%")));
    let watched = first.summary.processes.iter().filter(|process| process.stage.is_none()).count();
    gates.extend((watched == 1).then(|| ("cpu".to_owned(), "3%")));
    gates.push(("error_rate".to_owned(), error_margin(base)));
    gates
}

/// Gates on the median of a time, and on the rarest percentile for which every run has enough
/// values.
fn times<'a>(
    runs: impl Iterator<Item = &'a StoredRun>,
    metric: Metric,
) -> Vec<(String, &'static str)> {
    let times = runs.filter_map(|run| run.summary.results.total.distribution(metric));
    let Some(fewest) = times.min_by_key(|times| times.count) else { return Vec::new() };
    let name = metric.name();
    let tail = tail(fewest).map(|tail| (format!("{name}.{tail}"), "10%"));
    std::iter::once((format!("{name}.p50"), "3%")).chain(tail).collect()
}

/// The rarest percentile for which there are enough values; `None` if there are too few for any.
pub(crate) fn tail(times: &DistributionSummary) -> Option<&'static str> {
    let tails = [("p99", 0.99), ("p95", 0.95), ("p90", 0.9)];
    let found = tails.into_iter().find(|(_, q)| times.count >= samples_needed(*q));
    found.map(|(tail, _)| tail)
}

/// The smallest margin that three unchanged runs on each side would pass with a probability of 80
/// %, because shares of few requests differ by chance.
fn error_margin(base: &[StoredRun]) -> &'static str {
    const MARGINS: [(f64, &str); 5] =
        [(0.001, "0.1pp"), (0.002, "0.2pp"), (0.005, "0.5pp"), (0.01, "1pp"), (0.02, "2pp")];
    const RUNS: f64 = 3.0;
    // Normal quantiles of 97.5 % (the interval) and of 80 %.
    const QUANTILES: f64 = 1.960 + 0.842;
    let counters = base.iter().map(|run| &run.summary.results.total.counters);
    let requests: u64 = counters.clone().map(|counters| counters.scheduled).sum();
    let errors: u64 = counters.map(|counters| counters.unexpected).sum();
    let each_side = RUNS * requests as f64 / base.len() as f64;
    // One request of each kind is added, because zero observed errors do not prove a zero error
    // rate.
    let share = errors as f64 / requests.max(1) as f64;
    let share = (2.0 * share * each_side + 1.0) / (2.0 * each_side + 2.0);
    let least = QUANTILES * (2.0 * share * (1.0 - share) / each_side.max(1.0)).sqrt();
    let kept = MARGINS.into_iter().find(|(margin, _)| *margin >= least);
    kept.map_or("5pp", |(_, margin)| margin)
}
