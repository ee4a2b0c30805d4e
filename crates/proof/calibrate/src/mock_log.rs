//! Joins the mock provider's log of requests with the samples of a run, by request id.

use std::collections::HashMap;

use plimsoll_measure::Sample;
use plimsoll_mock::LogRecord;
use plimsoll_runner::Finished;

/// The sample of each LLM request with the mock's record of it.
pub(crate) fn join<'r, 'l>(
    run: &'r Finished,
    log: &'l [LogRecord],
) -> Vec<(&'r Sample, &'l LogRecord)> {
    let by_id: HashMap<&str, &LogRecord> =
        log.iter().filter_map(|record| Some((record.request_id.as_deref()?, record))).collect();
    run.samples
        .iter()
        .filter_map(|sample| {
            let conversation = plimsoll_workload::conversation_id(run.ids, sample.conversation);
            let id = format!("{}-{}", conversation.as_str(), sample.turn);
            Some((sample, *by_id.get(id.as_str())?))
        })
        .collect()
}

/// The time that the mock took for a request, in microseconds: from its arrival, by the kernel's
/// timestamp, to the return of the `write` of the last byte of the response.
pub(crate) fn true_service_us(record: &LogRecord) -> Option<f64> {
    let last = record.chunks.last()?.written;
    Some(last.checked_sub(record.arrived)? as f64 / 1e3)
}
