//! Where the time of single requests went: the slowest ones, and random ones for comparison.

use std::collections::BTreeSet;

use maud::{Markup, html};
use plimsoll_metrics::{Chosen, ExemplarRequest, RunExemplars};
use plimsoll_report::format::{count, or_dash, time};
use plimsoll_report::table::Table;

use super::exemplar_rows::{self, Rows, end_ms, is_completed, label, marked};
use crate::drawn_chart::Chart;
use crate::input::ServerParts;
use crate::plot::legend;

/// Half the height of a bar.
const HALF: f64 = 4.0;

/// The phases of a request in their order: class of the mark, and words.
const PHASES: [(&str, &str); 9] = [
    ("queue", "waited for a slot or connection"),
    ("own", "Plimsoll was late"),
    ("f4", "DNS"),
    ("f3", "connect"),
    ("f5", "TLS, WebSocket handshake"),
    ("f1", "send"),
    ("f0", "wait for the first byte"),
    ("f0 half", "first byte to first token"),
    ("f2", "rest of the response"),
];

/// The parts that a log tells: class of the mark, and words. They have no colours, as phases have.
const PARTS: [(&str, &str); 3] = [
    ("s-part s-outside", "by the log: outside of the gateway"),
    ("s-part s-gateway", "in the gateway"),
    ("s-part s-upstream", "in its upstream"),
];
/// Where they lie below the bar of phases, and half their height.
const BELOW: f64 = 6.3;
const BELOW_HALF: f64 = 1.7;

/// The slowest requests, and random ones.
pub(super) fn charts(exemplars: &RunExemplars, server: &[ServerParts]) -> Vec<Chart> {
    let mut slowest: Vec<_> = exemplars.chosen(Chosen::ResponseTime).collect();
    slowest.sort_by(|a, b| end_ms(b).total_cmp(&end_ms(a)));
    let mut random: Vec<_> = exemplars.chosen(Chosen::Random).collect();
    random.sort_by_key(|request| exemplars.targets.iter().position(|name| *name == request.target));
    // Of a handful of requests, the random ones are the same again.
    let more = random.iter().any(|request| !request.chosen.contains(&Chosen::ResponseTime));
    let of = count(exemplars.offered);
    let slow = format!("The {} slowest of {of} requests outside of warm-up", slowest.len());
    let fair = format!("{} random requests of {of}", random.len());
    let slowest = chart("slowest", "The slowest requests", &slow, &slowest, exemplars, server);
    let random = chart("random", "Random requests", &fair, &random, exemplars, server);
    [slowest, random.filter(|_| more)].into_iter().flatten().collect()
}

fn chart(
    id: &str,
    title: &str,
    which: &str,
    requests: &[&ExemplarRequest],
    exemplars: &RunExemplars,
    server: &[ServerParts],
) -> Option<Chart> {
    let ends: Vec<_> = requests.iter().map(|request| end_ms(request)).collect();
    let longest = ends.iter().copied().reduce(f64::max)?;
    let shortest = ends.iter().copied().fold(longest, f64::min);
    let rows = Rows::new(&ends);
    let used: BTreeSet<usize> =
        requests.iter().flat_map(|request| phases(request)).map(|(phase, _)| phase).collect();
    let mut shown: Vec<(&str, &str)> = used.into_iter().map(|phase| PHASES[phase]).collect();
    let told = requests
        .iter()
        .filter(|request| parts_of(request, server).is_some_and(is_possible))
        .count();
    if told > 0 {
        shown.extend(PARTS);
    }
    let entries: Vec<_> =
        shown.iter().map(|(class, words)| ((*class).to_owned(), (*words).to_owned())).collect();
    Some(Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        text: format!(
            "{which}: {} to {} from intended start to end. A row has its time, request id and second.{}{}",
            time(shortest),
            time(longest),
            rows.note(),
            told_of(told, requests.len())
        ),
        drawing: html! {
            (rows.axis("from intended start"))
            @for (row, request) in requests.iter().enumerate() {
                (label(row, &marked(end_ms(request), request.generator_ms), request, exemplars.targets.len()))
                (bar(&rows, row, request))
                @if let Some(parts) = parts_of(request, server).filter(|parts| is_possible(parts)) { (below(&rows, row, request, parts)) }
            }
        },
        height: Some(rows.height()),
        legend: legend(&entries),
        table: table(requests, server),
    })
}

fn bar(rows: &Rows, row: usize, request: &ExemplarRequest) -> Markup {
    html! {
        @for (phase, (from, to)) in phases(request) {
            (rows.part(row, PHASES[phase].0, from, to, HALF))
        }
        (rows.end(row, end_ms(request), is_completed(request)))
    }
}

/// What the log tells of a request.
fn parts_of<'s>(request: &ExemplarRequest, server: &'s [ServerParts]) -> Option<&'s ServerParts> {
    server.iter().find(|parts| parts.request_id == request.request_id)
}

/// How many of the requests the log has.
fn told_of(told: usize, of: usize) -> String {
    if told == 0 {
        return String::new();
    }
    format!(
        " Below {told} of {of} stands what the gateway's own log tells, from the moment of sending: lengths are known, and not where in time they lie."
    )
}

/// A log that says more than the client waited cannot be true.
fn is_possible(parts: &ServerParts) -> bool {
    let lengths = [Some(parts.outside_ms), parts.gateway_ms, parts.upstream_ms];
    lengths.iter().flatten().all(|length| *length >= 0.0)
}

/// The parts of a request, one after the other.
fn below(rows: &Rows, row: usize, request: &ExemplarRequest, parts: &ServerParts) -> Markup {
    let lengths = [Some(parts.outside_ms), parts.gateway_ms, parts.upstream_ms];
    let mut at = request.dispatch_lag_ms + request.sent_ms.unwrap_or_default();
    html! {
        @for ((class, _), length) in PARTS.into_iter().zip(lengths) {
            @if let Some(length) = length {
                (rows.part_at(row, class, at, at + length, BELOW, BELOW_HALF))
                ({ at += length; "" })
            }
        }
    }
}

/// The phases that took any time, as an index into [`PHASES`], in milliseconds after the intended
/// start. Each begins where the one before it ends.
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

fn table(requests: &[&ExemplarRequest], server: &[ServerParts]) -> Table {
    let head = [
        "response time",
        "before dispatch",
        "of it Plimsoll",
        "DNS",
        "connect",
        "TLS",
        "sent after",
        "first byte",
        "first token",
        "end",
        "said by the target",
    ];
    let mut table = exemplar_rows::table(requests, head, |r| {
        [
            or_dash(r.response_time_ms, |ms| marked(ms, r.generator_ms)),
            time(r.dispatch_lag_ms),
            time(r.late_by_generator_ms),
            or_dash(r.dns_ms, time),
            or_dash(r.connect_ms, time),
            or_dash(r.tls_ms, time),
            or_dash(r.sent_ms, time),
            or_dash(r.ttfb_ms, time),
            or_dash(r.ttft_ms, time),
            or_dash(r.service_time_ms, time),
            or_dash(r.server_time_ms, time),
        ]
    });
    if !server.is_empty() {
        table.head.extend(["log: outside", "gateway", "upstream"].map(str::to_owned));
        for (row, request) in table.rows.iter_mut().zip(requests) {
            let parts = parts_of(request, server);
            row.extend([
                or_dash(parts, |parts| time(parts.outside_ms)),
                or_dash(parts.and_then(|parts| parts.gateway_ms), time),
                or_dash(parts.and_then(|parts| parts.upstream_ms), time),
            ]);
        }
    }
    table
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
        // A connection that was there, and no answer in time.
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
