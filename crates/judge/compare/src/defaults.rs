//! The gates of runs whose profile has none.

use plimsoll_metrics::{DistributionSummary, Gate, LoadModel, Metric, MetricsError};
use plimsoll_stats::samples_needed;

use crate::stored_run::StoredRun;

/// The gates in force: those given by flags, else those of the new runs' profile, else the usual
/// ones for what the runs measured. Also whether they are the usual ones.
pub(crate) fn gates(
    given: &[(String, String)],
    runs: &[StoredRun],
) -> Result<(Vec<Gate>, bool), MetricsError> {
    let of_profile = runs.first().map_or(&[][..], |run| &run.gates);
    let written = if given.is_empty() { of_profile } else { given };
    if !written.is_empty() {
        let parsed = written.iter().map(|(figure, margin)| Gate::parse(figure, margin));
        return Ok((parsed.collect::<Result<_, _>>()?, false));
    }
    let usual = runs.first().map(usual).unwrap_or_default();
    let parsed = usual.into_iter().map(|(figure, margin)| Gate::parse(&figure, margin));
    Ok((parsed.collect::<Result<_, _>>()?, true))
}

/// The usual gates: times of the headline, first tokens of streams, throughput of closed stages
/// (that of open ones is planned), CPU time where a process was watched, and errors.
fn usual(run: &StoredRun) -> Vec<(String, &'static str)> {
    let metadata = &run.summary.metadata;
    let mut gates = Vec::new();
    let headline = metadata.headline_time();
    gates.extend(times(run, headline));
    if headline != Metric::Ttft {
        gates.extend(times(run, Metric::Ttft));
    }
    let closed = metadata.stages.iter().any(|s| !s.warmup && s.model == LoadModel::Closed);
    gates.extend(closed.then(|| ("throughput".to_owned(), "2%")));
    let watched = run.summary.processes.iter().filter(|process| process.stage.is_none()).count();
    gates.extend((watched == 1).then(|| ("cpu".to_owned(), "3%")));
    gates.push(("error_rate".to_owned(), error_margin(run)));
    gates
}

/// The median of a time, and the rarest tail of which one run has enough values.
fn times(run: &StoredRun, metric: Metric) -> Vec<(String, &'static str)> {
    let Some(times) = run.summary.results.total.distribution(metric) else { return Vec::new() };
    let name = metric.name();
    let tail = tail(times).map(|tail| (format!("{name}.{tail}"), "10%"));
    std::iter::once((format!("{name}.p50"), "3%")).chain(tail).collect()
}

/// The rarest tail of which there are enough values; `None` if there are too few for any.
pub(crate) fn tail(times: &DistributionSummary) -> Option<&'static str> {
    let tails = [("p99", 0.99), ("p95", 0.95), ("p90", 0.9)];
    let found = tails.into_iter().find(|(_, q)| times.count >= samples_needed(*q));
    found.map(|(tail, _)| tail)
}

/// The least of these margins that three runs like this one on each side would keep in 80 % of the
/// cases, if nothing changed: chance alone makes shares of few requests differ.
fn error_margin(run: &StoredRun) -> &'static str {
    const MARGINS: [(f64, &str); 5] =
        [(0.001, "0.1pp"), (0.002, "0.2pp"), (0.005, "0.5pp"), (0.01, "1pp"), (0.02, "2pp")];
    match least_error_margin(run) {
        Some(least) => MARGINS
            .into_iter()
            .find(|(margin, _)| *margin >= least)
            .map_or("5pp", |(_, margin)| margin),
        None => MARGINS[0].1,
    }
}

/// What three runs like this one on each side would show.
fn least_error_margin(run: &StoredRun) -> Option<f64> {
    const RUNS: f64 = 3.0;
    // The normal quantiles of 97.5 % (the interval) and of 80 %.
    const QUANTILES: f64 = 1.960 + 0.842;
    let gate = Gate::parse("error_rate", "5pp").ok()?;
    let share = gate.measure(&run.summary).ok()?.value;
    let requests = gate.trials(&run.summary)? as f64 * RUNS;
    // One request more of each kind, so that no errors at all are not certainty.
    let share = (2.0 * share * requests + 1.0) / (2.0 * requests + 2.0);
    Some(QUANTILES * (2.0 * share * (1.0 - share) / requests.max(1.0)).sqrt())
}
