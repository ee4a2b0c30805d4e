//! The request log: a row for every request, counted by the gateway and in the file.

use std::time::Duration;

use plimsoll_report::format::digits;
use plimsoll_runner::time;

use super::super::length;
use super::gateway_layers::{audit, bare_with};
use super::log_writer;
use crate::bound::{BoundResult, Requirement};
use crate::error::SuiteError;
use crate::http_get::get;
use crate::measurement::Measurement;
use crate::result::MeasurementResult;
use crate::runner::SuiteRunner;

/// The request log: the rows as the gateway counts them, and the lines of the file.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestLog {
    pub(super) accepted: Option<f64>,
    pub(super) written: Option<f64>,
    pub(super) dropped: Option<f64>,
    /// Lines in the file after the gateway has ended.
    pub(super) lines: u64,
    pub(super) result: MeasurementResult,
}

impl RequestLog {
    /// Accepted = written + dropped, and as many lines as written.
    pub(super) fn bounds(&self) -> Vec<BoundResult> {
        let missing = self.accepted.zip(self.written).zip(self.dropped);
        let missing =
            missing.map(|((accepted, written), dropped)| (accepted - written - dropped).abs());
        // The request for the metrics makes a row itself, after they were read: the file may have
        // one line more.
        let lost = self.written.map(|written| (written - self.lines as f64).max(0.0));
        let none = Requirement::at_most(0.0, digits);
        vec![
            BoundResult::count("request log: accepted - written - dropped", missing, none),
            BoundResult::count("request log: written, and not in the file", lost, none),
            BoundResult::of_figure(
                "request log: rows/s",
                &self.result,
                |f| f.requests_per_s,
                Requirement::at_least(50_000.0, digits),
            )
            .into_goal(),
        ]
    }
}

/// Loads a gateway that writes a row for every request, and compares its counts with the file.
pub(super) fn measure(runner: &mut SuiteRunner<'_>) -> Result<Option<RequestLog>, SuiteError> {
    runner.section = "Log writing";
    if runner.target().is_some() {
        runner.skip("log writing", "the suite cannot read the target's log");
        runner.section = log_writer::TITLE;
        runner.skip(
            "rows to a file and to ClickHouse",
            "they would be those of this tool's own writer, which says nothing about the target",
        );
        return Ok(None);
    }
    if runner.is_interrupted() {
        return Ok(None);
    }
    let file = "audit.jsonl";
    let sets = bare_with(&["metrics={}", &audit(runner, file)]);
    let gateway = runner.gateway("layers", &sets, None)?;
    let length = length(runner.options, 10);
    let measurement =
        Measurement::get("request log: a row for every request", &gateway.target, "/");
    let results = runner.measure(&[measurement.clients(200, length)], 1);
    let address = gateway.address().unwrap_or_default().to_owned();
    let counts = final_row_counts(&address);
    drop(gateway);
    let path = runner.options.folder.join(file);
    let text = std::fs::read(&path).unwrap_or_default();
    let lines = text.split(|&byte| byte == b'\n').count().saturating_sub(1) as u64;
    // A row is a few hundred bytes, and there may be millions.
    let _ = std::fs::remove_file(&path);
    let result = results.into_iter().next().unwrap_or_default();
    let [accepted, offered, written, dropped] = ["accepted", "offered", "written", "dropped"]
        .map(|state| counts.iter().find(|(name, _)| name == state).map(|(_, n)| *n));
    let accepted = accepted.or(offered);
    Ok(Some(RequestLog { accepted, written, dropped, lines, result }))
}

/// The gateway's counts of rows after the last batch was written.
fn final_row_counts(address: &str) -> Vec<(String, f64)> {
    time::sleep(Duration::from_millis(600));
    let body = get(address, "/metrics", Duration::from_secs(2)).map(|response| response.body);
    row_counts(&body.unwrap_or_default())
}

/// Parses `..audit_rows{state="written"} 12` into pairs.
fn row_counts(metrics: &str) -> Vec<(String, f64)> {
    metrics
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let (labels, value) = line.split_once("audit_rows")?.1.split_once("} ")?;
            let state = labels.split('"').nth(1)?;
            Some((state.to_owned(), value.trim().parse().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_from_the_metrics() {
        let text = "# TYPE gateway_audit_rows gauge\ngateway_audit_rows{state=\"written\"} 12\ngateway_audit_rows{state=\"dropped\"} 3\nother 1\n";
        assert_eq!(row_counts(text), [("written".to_owned(), 12.0), ("dropped".to_owned(), 3.0)]);
    }

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
