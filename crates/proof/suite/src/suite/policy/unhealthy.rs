//! A provider that answers every call with 503: what of the requests is still useful, at rising
//! rates and as fast as it goes.

use plimsoll_measure::ErrorClass;

use super::{LlmLoad, PolicyRow, WITH_LLM_PER_S, row, start, tables};
use crate::error::SuiteError;
use crate::report::Section;
use crate::runner::{OWN_ONLY, SuiteRunner};

/// Rates at which requests reach the unhealthy provider: the first as the document has it, the
/// others up to where the gateway saturates.
const UNHEALTHY_PER_S: [f64; 4] = [WITH_LLM_PER_S, 5.0, 100.0, 400.0];

/// The mode of the rows.
pub(super) const MODE: &str = "LLM on, unhealthy provider";

/// The same row for a gateway whose provider does not answer: the gateway still blocks correctly,
/// and every allowed request fails at the provider. The published case describes this; it is not an
/// error of the gateway.
pub(super) fn expected(mut row: PolicyRow) -> PolicyRow {
    let total = row.summary.as_ref().map(|summary| &summary.results.total);
    let is_unhealthy = total.is_some_and(|total| {
        let counters = &total.counters;
        let failed = total.errors.get(ErrorClass::ServerError.name()).copied().unwrap_or_default();
        counters.blocked > 0
            && counters.blocked == counters.as_expected
            && failed > 0
            && failed + counters.blocked == counters.scheduled
    });
    if is_unhealthy {
        (row.mode, row.result.errors_expected) = (MODE, true);
    }
    row
}

/// Requests that reach a provider which answers every call with 503: the first rate, and the course
/// up to the highest one.
pub(super) fn measure(
    runner: &mut SuiteRunner<'_>,
    topology: &str,
) -> Result<Vec<Section>, SuiteError> {
    runner.section = "Provider unhealthy";
    if runner.target().is_some() {
        runner.skip_section(OWN_ONLY);
        return Ok(Vec::new());
    }
    let config = b"other_models: {faults: [{share: 1.0, fault: '503'}]}\n";
    let path = runner.write("provider-unhealthy.yaml", config)?;
    let provider = runner.provider(&["--config", &path.to_string_lossy()])?;
    let gateway = start(runner, Some(&provider), &[])?;
    let mode = MODE;
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
        rows.push(row(runner, request, topology, mode));
    }
    let rising = (rows.len() > 1).then(|| tables::unhealthy_rates(&rows));
    Ok(rows.first().map(tables::unhealthy).into_iter().chain(rising).collect())
}
