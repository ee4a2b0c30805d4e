//! The result as text, at most 80 columns wide except for quotes.

use std::fmt::Write as _;

use plimsoll_report::format::{count, time, wrap};
use plimsoll_report::table::{Layout, Table};

use crate::map::LogOf;
use crate::times::{GroupTimes, Join, MatchCounts, Quantiles, Verdict};

const WIDTH: usize = 80;

/// Resolution of the log in milliseconds from which it is worth a line; below, it does not affect
/// any printed digit.
const COARSE: f64 = 0.01;

/// Formats the result as text. Control characters of the log are escaped.
pub fn text(join: &Join) -> String {
    let mut out = headline(join);
    out += &books(&join.books);
    out += &examples(join);
    out += &times(join);
    out += &caches(join);
    out += &stated(join);
    for note in &join.notes {
        out += &paragraph("note: ", note);
    }
    plimsoll_report::printable(&out).into_owned()
}

fn headline(join: &Join) -> String {
    let MatchCounts { in_run, matched, lost, foreign, twice, disagreeing, .. } = join.books;
    let verdict = match &join.verdict {
        Verdict::Agree => "run and log agree".to_owned(),
        Verdict::Disagree => "run and log DISAGREE".to_owned(),
        Verdict::Unjudged(_) => "cannot be judged".to_owned(),
    };
    let mut out = format!(
        "join: {verdict}: {} requests, {} matched\n      {} lost by the log, {} twice, {} \
         disagreeing, {} foreign\n",
        count(in_run),
        count(matched),
        count(lost),
        count(twice),
        count(disagreeing),
        count(foreign)
    );
    if let Verdict::Unjudged(why) = &join.verdict {
        out += &paragraph("why: ", why);
    }
    let _ = writeln!(out, "run   {}\nlog   {}", join.run, join.log);
    out + &paragraph("map   ", &format!("{} ({})", join.map, join.map_origin))
}

/// The nonzero counts that are missing from the headline.
fn books(books: &MatchCounts) -> String {
    let others = [
        (books.retried, "matched by several rows because of retries"),
        (books.kept, "answered by the gateway without the upstream"),
        (books.unanswered, "unanswered and not in the log: they may not have arrived"),
        (books.unnamed, "without a row, and without a unique id header"),
        (books.in_flight, "in flight at the end of the run, and not in the log"),
        (books.never_sent_in_log, "in the log although the run never sent them"),
    ];
    let others = others.iter().filter(|(number, _)| *number > 0);
    let lines = others.map(|(number, what)| format!("{:>9}  {what}\n", count(*number)));
    lines.collect()
}

fn examples(join: &Join) -> String {
    let kinds = [
        ("lost", &join.examples.lost),
        ("twice", &join.examples.twice),
        ("foreign", &join.examples.foreign),
    ];
    let mut out = String::new();
    for (kind, ids) in kinds.into_iter().filter(|(_, ids)| !ids.is_empty()) {
        let _ = writeln!(out, "{kind}, like {}", ids.first().map_or("", String::as_str));
    }
    for found in &join.disagreements {
        let _ = writeln!(out, "{} differ in {}, like", found.field, count(found.count));
        for example in found.examples.iter().take(2) {
            let _ = writeln!(out, "  {example}");
        }
    }
    out
}

fn time_or_dash(ms: Option<f64>) -> String {
    ms.map_or_else(dash, time)
}

fn difference_or_dash(ms: Option<f64>, steps: f64) -> String {
    ms.map_or_else(dash, |ms| known(ms, steps))
}

fn times(join: &Join) -> String {
    if let Some(why) = &join.times_refused {
        return paragraph("times - ", why);
    }
    let mut table =
        Table::new(["p50", "requests", "client", "outside [95 %]", "gateway", "upstream"]);
    let (steps, mut refused) = (join.steps_ms.unwrap_or(0.0), false);
    let mut tails = Table::new(["p99", "requests", "client", "outside", "gateway", "upstream"]);
    for group in &join.times {
        let GroupTimes { client, outside, gateway, upstream, .. } = group;
        let name = match &group.cache {
            None => format!("{} {}", group.scenario, group.outcome),
            Some(state) => format!("  cache: {state}"),
        };
        let requests = count(group.requests);
        table.row([
            name.clone(),
            requests.clone(),
            time_or_dash(client.p50_ms),
            with_interval(outside, steps),
            difference_or_dash(gateway.and_then(|times| times.p50_ms), steps),
            time_or_dash(upstream.and_then(|times| times.p50_ms)),
        ]);
        tails.row([
            name,
            requests,
            time_or_dash(client.p99_ms),
            difference_or_dash(outside.p99_ms, steps),
            difference_or_dash(gateway.and_then(|times| times.p99_ms), steps),
            time_or_dash(upstream.and_then(|times| times.p99_ms)),
        ]);
        refused |= client.p50_ms.is_none() || client.p99_ms.is_none();
    }
    let layout = Layout::new(WIDTH);
    let mut out = format!("{}{}", table.text(&layout), tails.text(&layout));
    if refused {
        out += "  -: too few requests for that percentile.\n";
    }
    if steps >= COARSE {
        let _ = writeln!(out, "  The log's resolution limits differences to {}.", time(steps));
    }
    let outside = match join.log_of {
        LogOf::Gateway => "outside = client - gateway's total, request by request.",
        LogOf::Upstream => "outside = client - upstream, request by request.",
    };
    let _ = writeln!(out, "  {outside} Parts of a percentile\n  do not add up.");
    if join.impossible > 0 {
        let text = "requests took longer in the log than for the client";
        let _ = writeln!(out, "  {} {text}", count(join.impossible));
    }
    out
}

/// Cache results according to the log; empty if it has none.
fn caches(join: &Join) -> String {
    let Some(caches) = &join.caches else { return String::new() };
    let states = [
        (caches.hits, "hits"),
        (caches.misses, "misses"),
        (caches.bypassed, "bypassed"),
        (caches.unknown, "not said"),
    ];
    let shown = states.iter().filter(|(number, _)| *number > 0);
    let parts: Vec<_> = shown.map(|(number, what)| format!("{} {what}", count(*number))).collect();
    let unlike = match caches.unlike_headers {
        0 => String::new(),
        unlike => format!("; {} differ from the response headers", count(unlike)),
    };
    paragraph("cache, by the log: ", &format!("{}{unlike}", parts.join(", ")))
}

/// Times reported in headers, next to the measured ones.
fn stated(join: &Join) -> String {
    if join.stated.is_empty() {
        return String::new();
    }
    let mut table =
        Table::new(["p50, by headers", "requests", "stated", "gateway", "log", "client"]);
    let steps = join.steps_ms.unwrap_or(0.0);
    for row in &join.stated {
        let gateway = row.gateway.and_then(|times| times.p50_ms);
        table.row([
            format!("{} {} {}", row.scenario, row.outcome, row.name),
            count(row.requests),
            p50(Some(row.stated)),
            gateway.map_or_else(dash, |value| known(value, steps)),
            p50(row.log),
            p50(Some(row.client)),
        ]);
    }
    let text = table.text(&Layout::new(WIDTH));
    format!(
        "{text}  stated = reported by the target in headers. The others cover the same requests.\n"
    )
}

fn p50(times: Option<Quantiles>) -> String {
    times.and_then(|times| times.p50_ms).map_or_else(dash, time)
}

fn dash() -> String {
    "-".to_owned()
}

/// Formats a time difference, or only its bound if it is below the log's resolution.
fn known(value: f64, steps: f64) -> String {
    if value.abs() < steps { format!("<{}", time(steps)) } else { time(value) }
}

fn with_interval(times: &Quantiles, steps: f64) -> String {
    let Some(value) = times.p50_ms else { return dash() };
    match (times.p50_low_ms, times.p50_high_ms) {
        _ if value.abs() < steps => known(value, steps),
        (Some(low), Some(high)) => plimsoll_report::format::with_interval(value, low, high),
        _ => time(value),
    }
}

/// Formats a label and a text with hanging indentation.
fn paragraph(label: &str, text: &str) -> String {
    let lines = wrap(text, WIDTH - 8);
    let mut out = String::new();
    for (index, line) in lines.iter().enumerate() {
        let _ = writeln!(out, "{}{line}", if index == 0 { label } else { "      " });
    }
    out
}
