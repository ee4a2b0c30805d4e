//! The request log: a row for every request, counted by the gateway and in the file.

use std::time::Duration;

use plimsoll_report::format::{count, digits, or_dash};
use plimsoll_runner::time;

use super::super::length;
use super::{log_writer, metrics, unjudged};
use crate::bound::{BoundResult, Limit, Quantity, Requirement};
use crate::error::SuiteError;
use crate::http_get::counters;
use crate::measurement::Measurement;
use crate::report::Section;
use crate::result::MeasurementResult;
use crate::runner::SuiteRunner;
use crate::suite::columns::BOTTLENECK;

/// The published goal for its rows per second.
const ROWS: Limit = Quantity::THROUGHPUT.goal(50_000.0);

/// The request log: the rows as the gateway counts them, and the lines of the file.
#[derive(Clone, Debug, Default)]
struct RequestLog {
    accepted: Option<f64>,
    written: Option<f64>,
    dropped: Option<f64>,
    /// Lines in the file after the gateway has ended.
    lines: u64,
    result: MeasurementResult,
}

impl RequestLog {
    fn section(&self) -> Section {
        let table = metrics([
            ROWS.row("Rows (requests) per second", Some(&self.result)),
            unjudged("Accepted", or_dash(self.accepted, digits), ""),
            unjudged("Written", or_dash(self.written, digits), ""),
            unjudged("Dropped, and counted", or_dash(self.dropped, digits), ""),
            unjudged("Lines in the file after the end", count(self.lines), "= written"),
            unjudged(BOTTLENECK.0, BOTTLENECK.1(&self.result), ""),
        ]);
        Section::new("Log writing (asynchronous, in batches, JSON lines)", table)
    }

    /// Accepted = written + dropped, and as many lines as written.
    fn bounds(&self) -> Vec<BoundResult> {
        let missing = self.accepted.zip(self.written).zip(self.dropped);
        let missing =
            missing.map(|((accepted, written), dropped)| (accepted - written - dropped).abs());
        // The request for the metrics makes a row itself, after they were read: the file may have
        // one line more.
        let lost = self.written.map(|written| (written - self.lines as f64).max(0.0));
        let none = Requirement::NONE;
        vec![
            BoundResult::count("request log: accepted - written - dropped", missing, none),
            BoundResult::count("request log: written, and not in the file", lost, none),
            ROWS.judge("request log", &self.result),
        ]
    }
}

/// Loads a gateway that writes a row for every request, and compares its counts with the file; then
/// loads the writer alone.
pub(super) fn measure(runner: &mut SuiteRunner<'_>) -> Result<(), SuiteError> {
    runner.section = "Log writing";
    if !runner.measures_own() {
        runner.section = log_writer::TITLE;
        runner.measures_own();
        return Ok(());
    }
    let gateway = runner.gateway("layers", "log", &[], None)?;
    let length = length(runner.options, 10);
    let measurement =
        Measurement::get("request log: a row for every request", &gateway.target, "/");
    let results = runner.measure(&[measurement.clients(200, length)], 1);
    // The last batch must be written.
    time::sleep(Duration::from_millis(600));
    let states = ["=\"accepted\"", "=\"offered\"", "=\"written\"", "=\"dropped\""];
    let rows = states.map(|state| ["audit_rows", state]);
    let address = gateway.address().unwrap_or_default();
    let [accepted, offered, written, dropped] = counters(address, rows);
    drop(gateway);
    let path = runner.options.folder.join("audit.jsonl");
    let text = std::fs::read(&path).unwrap_or_default();
    let lines = text.split(|&byte| byte == b'\n').count().saturating_sub(1) as u64;
    // A row is a few hundred bytes, and there may be millions.
    let _ = std::fs::remove_file(&path);
    let result = results.into_iter().next().unwrap_or_default();
    let log = RequestLog { accepted: accepted.or(offered), written, dropped, lines, result };
    runner.report.sections.push(log.section());
    runner.report.bounds.extend(log.bounds());
    if log.accepted.is_some() {
        log_writer::measure(runner);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_rows_of_the_log_are_found() {
        let log = |accepted, written, dropped, lines| RequestLog {
            accepted: Some(accepted),
            written: Some(written),
            dropped: Some(dropped),
            lines,
            ..RequestLog::default()
        };
        for (log, words) in [
            (log(10.0, 7.0, 3.0, 7), ["PASS", "PASS", "inconclusive"]),
            (log(10.0, 7.0, 2.0, 7), ["FAIL", "PASS", "inconclusive"]),
            (log(10.0, 10.0, 0.0, 9), ["PASS", "FAIL", "inconclusive"]),
            (log(10.0, 10.0, 0.0, 11), ["PASS", "PASS", "inconclusive"]),
        ] {
            let bounds = log.bounds();
            assert_eq!(
                bounds.iter().map(BoundResult::status).collect::<Vec<_>>(),
                words,
                "{log:?}"
            );
        }
    }
}
