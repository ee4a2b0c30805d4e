//! Breakdown of the slowest requests by phase.

use plimsoll_metrics::{Chosen, ExemplarRequest, RunExemplars};
use plimsoll_report::format::{count, or_dash, time};
use plimsoll_report::printable;
use plimsoll_report::table::Table;
use serde_json::{Map, Value, json};

use super::over_time::second;
use super::{Chart, Rows};
use crate::chart::ServerParts;

/// The phases of a request in order.
const PHASES: [&str; 9] = [
    "wait for a connection",
    "generator delay",
    "DNS",
    "connect",
    "TLS",
    "send",
    "first byte",
    "first token",
    "rest of the response",
];

/// The parts that a gateway's log reports.
const PARTS: [&str; 3] = ["gateway log: outside", "gateway log: gateway", "gateway log: upstream"];

/// The slowest requests in descending order.
pub(super) fn chart(exemplars: &RunExemplars, server: &[ServerParts]) -> Option<Chart> {
    let mut requests: Vec<_> = exemplars.chosen(Chosen::ResponseTime).collect();
    requests.sort_by(|a, b| end_ms(b).total_cmp(&end_ms(a)));
    let rows: Value = requests.iter().flat_map(|request| spans(request, server)).collect();
    let log = if server.is_empty() {
        ""
    } else {
        " The second bar is the gateway's own log: it states lengths, not when they began."
    };
    (!requests.is_empty()).then(|| Chart {
        id: "slowest",
        title: "The slowest requests".to_owned(),
        text: format!(
            "The {} slowest of {} requests outside of warm-up, by phase.{log}",
            requests.len(),
            count(exemplars.offered)
        ),
        spec: include_str!("../../assets/charts/slowest.json"),
        data: Map::from_iter([("rows".to_owned(), rows)]),
        table: table(&requests, server),
    })
}

/// The bars of a request: its phases, and below them the parts from the log.
fn spans(request: &ExemplarRequest, server: &[ServerParts]) -> Vec<Value> {
    let mut bars: Vec<_> = phases(request)
        .into_iter()
        .map(|(nth, span)| bar(request, "client", PHASES[nth], span))
        .collect();
    if let Some(parts) = parts_of(request, server).filter(|parts| is_possible(parts)) {
        let mut at = request.dispatch_lag_ms + request.sent_ms.unwrap_or_default();
        for (name, length) in PARTS.into_iter().zip(lengths(parts)) {
            let Some(length) = length else { continue };
            bars.push(bar(request, "log", name, (at, at + length)));
            at += length;
        }
    }
    bars
}

fn bar(request: &ExemplarRequest, seen_by: &str, phase: &str, span: (f64, f64)) -> Value {
    json!({
        "request": request.request_id,
        "target": printable(&request.target),
        "stage": printable(&request.stage),
        "outcome": printable(&outcome(request)),
        "seen by": seen_by,
        "phase": phase,
        "from": span.0,
        "to": span.1,
    })
}

/// End of a request, relative to its intended start; for a request in flight at the end of the run,
/// its known duration.
fn end_ms(request: &ExemplarRequest) -> f64 {
    let open = request.open_ms.map(|open| request.dispatch_lag_ms + open);
    request.response_time_ms.or(open).unwrap_or(request.dispatch_lag_ms)
}

/// Outcome of a request, and its error class.
fn outcome(request: &ExemplarRequest) -> String {
    let words = request.outcome.replace('_', " ");
    match &request.error {
        Some(error) => format!("{words}: {error}"),
        None if request.outcome == "rejected" => format!("{words}: {}", request.status),
        None => words,
    }
}

/// The log's times of a request.
fn parts_of<'s>(request: &ExemplarRequest, server: &'s [ServerParts]) -> Option<&'s ServerParts> {
    server.iter().find(|parts| parts.request_id == request.request_id)
}

const fn lengths(parts: &ServerParts) -> [Option<f64>; 3] {
    [Some(parts.outside_ms), parts.gateway_ms, parts.upstream_ms]
}

/// Whether the log's times are possible: their sum must not exceed the time the client waited.
fn is_possible(parts: &ServerParts) -> bool {
    lengths(parts).iter().flatten().all(|length| *length >= 0.0)
}

/// The phases with a nonzero length, as an index into [`PHASES`], with start and end in
/// milliseconds after the intended start. Each begins at the end of the previous one.
fn phases(request: &ExemplarRequest) -> Vec<(usize, (f64, f64))> {
    let r = request;
    let (dispatched, end) = (r.dispatch_lag_ms, end_ms(r));
    let connected = r.connected_ms.map(|ms| dispatched + ms);
    let resolved = r.dns_ms.map(|dns| dispatched + dns);
    // The handshakes end when the connection is ready.
    let handshakes = r.tls_ms.map(|tls| tls + r.upgrade_ms.unwrap_or_default()).or(r.upgrade_ms);
    let plain = connected.zip(handshakes).map(|(at, took)| at - took);
    let first = r.ttfb_ms.map(|ms| dispatched + ms);
    let ends = [
        Some(dispatched - r.late_by_generator_ms),
        Some(dispatched),
        resolved,
        plain.or_else(|| connected.filter(|_| r.connect_ms.is_some())),
        connected,
        r.sent_ms.map(|ms| dispatched + ms),
        first.or(Some(end)),
        r.ttft_ms.map(|ms| dispatched + ms),
        Some(end),
    ];
    let mut at = 0.0;
    let mut found = Vec::new();
    for (phase, to) in ends.into_iter().enumerate() {
        let Some(to) = to.map(|to| to.min(end)).filter(|to| *to > at) else { continue };
        found.push((phase, (at, to)));
        at = to;
    }
    found
}

/// Formats a time, marked as unusable if more than a twentieth of it may be measurement error.
fn marked(ms: f64, own_ms: Option<f64>) -> String {
    let mark = if own_ms.is_some_and(|own| own * 20.0 > ms) { "!" } else { "" };
    format!("{}{mark}", time(ms))
}

fn table(requests: &[&ExemplarRequest], server: &[ServerParts]) -> Table {
    let mut table = Rows::named("slowest").table();
    table.rows.extend(requests.iter().map(|request| row(request)));
    if !server.is_empty() {
        table.head.extend(["log: outside", "gateway", "upstream"].map(str::to_owned));
        for (row, request) in table.rows.iter_mut().zip(requests) {
            let parts = parts_of(request, server).map_or([None; 3], lengths);
            row.extend(parts.map(|length| or_dash(length, time)));
        }
    }
    table
}

fn row(r: &ExemplarRequest) -> Vec<String> {
    let times = [
        Some(r.dispatch_lag_ms),
        Some(r.late_by_generator_ms),
        r.dns_ms,
        r.connect_ms,
        r.tls_ms,
        r.sent_ms,
        r.ttfb_ms,
        r.ttft_ms,
        r.service_time_ms,
        r.server_time_ms,
    ];
    let about = [
        r.request_id.clone(),
        r.target.clone(),
        r.stage.clone(),
        second(r.intended_s),
        outcome(r),
        or_dash(r.response_time_ms, |ms| marked(ms, r.generator_ms)),
    ];
    about.into_iter().chain(times.map(|ms| or_dash(ms, time))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_follow_one_another_and_fill_the_whole_time() {
        let request = ExemplarRequest {
            dispatch_lag_ms: 10.0,
            late_by_generator_ms: 4.0,
            dns_ms: Some(1.0),
            connect_ms: Some(2.0),
            tls_ms: Some(5.0),
            connected_ms: Some(8.0),
            sent_ms: Some(9.0),
            ttfb_ms: Some(30.0),
            ttft_ms: Some(50.0),
            response_time_ms: Some(100.0),
            outcome: "completed".to_owned(),
            ..ExemplarRequest::default()
        };
        let expected = [
            (0, (0.0, 6.0)),
            (1, (6.0, 10.0)),
            (2, (10.0, 11.0)),
            (3, (11.0, 13.0)),
            (4, (13.0, 18.0)),
            (5, (18.0, 19.0)),
            (6, (19.0, 40.0)),
            (7, (40.0, 60.0)),
            (8, (60.0, 100.0)),
        ];
        assert_eq!(phases(&request), expected);
        // A reused connection without a response in time.
        let silent = ExemplarRequest {
            connected_ms: Some(0.0),
            sent_ms: Some(0.5),
            response_time_ms: None,
            open_ms: Some(70.0),
            outcome: "in_flight".to_owned(),
            ..ExemplarRequest::default()
        };
        assert_eq!(phases(&silent), [(5, (0.0, 0.5)), (6, (0.5, 70.0))]);
    }
}
