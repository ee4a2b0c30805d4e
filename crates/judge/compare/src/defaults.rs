//! The gates of runs whose profile has none.

use plimsoll_metrics::{Gate, LoadModel, Metric, MetricsError};

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
    let total = &run.summary.results.total;
    let time = metadata.headline_time().name();
    let mut gates = vec![(format!("{time}.p50"), "3%")];
    let has_p99 =
        |metric: Metric| total.distribution(metric).is_some_and(|times| times.count >= 1_000);
    if has_p99(metadata.headline_time()) {
        gates.push((format!("{time}.p99"), "10%"));
    }
    if total.distribution(Metric::Ttft).is_some() {
        gates.push(("ttft.p50".to_owned(), "3%"));
        gates.extend(has_p99(Metric::Ttft).then(|| ("ttft.p99".to_owned(), "10%")));
    }
    let closed = metadata.stages.iter().any(|s| !s.warmup && s.model == LoadModel::Closed);
    gates.extend(closed.then(|| ("throughput".to_owned(), "2%")));
    let watched = run.summary.processes.iter().filter(|process| process.stage.is_none()).count();
    gates.extend((watched == 1).then(|| ("cpu".to_owned(), "3%")));
    gates.push(("error_rate".to_owned(), "0.1pp"));
    gates
}
