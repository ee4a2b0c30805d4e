//! A provider that answers every call with 503: what of the requests is still useful, at rising
//! rates and as fast as it goes.

use plimsoll_report::format::percent;

use super::{LlmLoad, PolicyRow, WITH_LLM_PER_S, start, tables};
use crate::error::SuiteError;
use crate::finding::Finding;
use crate::report::Contents;
use crate::runner::SuiteRunner;

/// Rates at which requests reach the unhealthy provider: the first as the document has it, the
/// others up to where the gateway saturates.
const UNHEALTHY_PER_S: [f64; 4] = [WITH_LLM_PER_S, 5.0, 100.0, 400.0];

/// Requests that reach a provider which answers every call with 503, at rising rates.
pub(super) fn measure(
    runner: &mut SuiteRunner<'_>,
    topology: &str,
    contents: &mut Contents,
) -> Result<(), SuiteError> {
    runner.section = "Provider unhealthy";
    if runner.target().is_some() {
        runner.skip("the provider-unhealthy case", "the suite cannot break the target's provider");
        return Ok(());
    }
    let config = b"other_models: {faults: [{share: 1.0, fault: '503'}]}\n";
    let path = runner.write("provider-unhealthy.yaml", config)?;
    let provider = runner.provider(&["--config", &path.to_string_lossy()])?;
    let gateway = start(runner, Some(&provider), None)?;
    let mode = "LLM on, unhealthy provider";
    let load = LlmLoad { target: &gateway.target, topology, mode, errors_expected: true };
    let mut rows = Vec::new();
    for rate in UNHEALTHY_PER_S {
        if !runner.is_interrupted() {
            rows.push(load.at(runner, rate));
        }
    }
    if !runner.is_interrupted() {
        let clients = runner.options.clients.unwrap_or(64);
        let label = format!("as fast as it goes, {clients} clients, {mode}");
        let length = crate::suite::length(runner.options, 20);
        let request = load.request(runner, &label).clients(clients, length);
        rows.push(load.measure(runner, request, "max".to_owned()));
    }
    // The first rate, and the course up to the highest one.
    contents.sections.extend(rows.first().map(tables::unhealthy));
    contents.findings.extend(rows.first().and_then(of_unhealthy));
    contents.findings.extend(saturation(&answered(&rows)));
    if !rows.is_empty() {
        contents.sections.push(tables::unhealthy_rates(&rows));
    }
    Ok(())
}

/// The share of the requests with an answer of whatever kind, by planned rate, lowest first.
fn answered(rows: &[PolicyRow]) -> Vec<(f64, f64)> {
    let planned = rows.iter().filter(|row| row.result.busy_host().is_none());
    let mut shares: Vec<_> = planned
        .filter_map(|row| {
            row.result.figures()?;
            let counters = &row.summary.as_ref()?.results.total.counters;
            let open = counters.timed_out + counters.in_flight + counters.never_sent;
            let share =
                counters.scheduled.saturating_sub(open) as f64 / counters.scheduled.max(1) as f64;
            Some((row.result.rate?, share))
        })
        .collect();
    shares.sort_by(|one, other| one.0.total_cmp(&other.0));
    shares
}

/// Where fewer requests are answered, the gateway saturates.
const ANSWERED: f64 = 0.99;

/// The rate from which on the gateway does not answer all requests any more, if there is one.
fn saturation(answered: &[(f64, f64)]) -> Option<Finding> {
    let (highest, _) = answered.last()?;
    let beginning = "with an unhealthy provider";
    let broken = answered.iter().find(|(_, share)| *share < ANSWERED);
    Some(match broken {
        None => Finding::note(format!(
            "{beginning} the gateway answers at every planned rate up to {highest}/s"
        )),
        Some((rate, share)) => Finding::warning(format!(
            "{beginning} the gateway saturates: at {rate}/s {} of the requests have an answer",
            percent(*share)
        )),
    })
}

/// With a broken provider only requests that are blocked before it get a useful response.
fn of_unhealthy(row: &PolicyRow) -> Option<Finding> {
    row.result.figures()?;
    let total = &row.summary.as_ref()?.results.total;
    let (blocked, all) = (total.counters.blocked, total.counters.scheduled.max(1));
    let useful = total.counters.completed + blocked;
    Some(Finding::note(format!(
        "with an unhealthy provider {} of the requests get a useful response ({} are blocked before the provider); the rest are errors. Capacity with a model is the provider's, and is measured separately",
        percent(useful as f64 / all as f64),
        percent(blocked as f64 / all as f64)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published gateway saturated above 5/s.
    #[test]
    fn the_first_rate_without_all_answers_is_that_of_saturation() {
        let text = |shares: &[(f64, f64)]| saturation(shares).map(|found| found.text);
        let published = text(&[(5.0, 1.0), (20.0, 0.45), (100.0, 0.1)]).unwrap();
        assert!(published.ends_with("saturates: at 20/s 45.0% of the requests have an answer"));
        let kept = text(&[(5.0, 1.0), (400.0, 0.995)]).unwrap();
        assert!(kept.ends_with("answers at every planned rate up to 400/s"), "{kept}");
        assert_eq!(text(&[]), None);
    }
}
