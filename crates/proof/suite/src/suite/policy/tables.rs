//! The tables of the policy suite.

use std::collections::BTreeSet;

use plimsoll_metrics::{Bias, BoundedFigure, Group, RunSummary};
use plimsoll_report::format::{DASH, count, or_dash, percent, time, time_with_share};
use plimsoll_report::table::Table;

use super::{ColdWarm, PolicyRow};
use crate::figures::{TimedResponses, share_up_to};
use crate::ratio::Ratio;
use crate::report::Section;
use crate::result::{Figures, MeasurementResult};
use crate::suite::columns;

/// HTTP success: the share of requests with a 2xx or with the 403 of a policy. Any other refusal,
/// like 429 or 404, is none.
fn success(group: &Group) -> String {
    let ok: u64 = group.statuses.range(200..300).map(|(_, count)| *count).sum();
    let blocked = group.statuses.get(&403).copied().unwrap_or(0);
    let all = group.counters.scheduled;
    or_dash((all > 0).then(|| (ok + blocked) as f64 / all as f64), percent)
}

pub(super) fn correctness(group: &Group) -> String {
    or_dash(group.rates.policy_correctness, percent)
}

/// The share of all responses within the 10 ms of the published script's check.
fn within_10ms(summary: &RunSummary) -> Option<f64> {
    let time = summary.metadata.headline_time();
    share_up_to(&summary.results.total, TimedResponses::All, time, 10.0)
}

pub(super) fn headline(rows: &[&PolicyRow]) -> Section {
    let heads = [
        "RPS",
        "Topology",
        "LLM mode",
        "achieved",
        "P50",
        "P95",
        "P99",
        "<= 10ms",
        "HTTP success",
        "Policy correctness",
        "gw CPU/req",
        "gw core",
        "gw memory",
    ];
    let mut table = Table::new(heads);
    for row in rows {
        let total = row.summary.as_ref().map(|summary| &summary.results.total);
        table.row([
            columns::marked(&row.result, &row.rate),
            row.topology.clone(),
            row.mode.to_owned(),
            columns::throughput(&row.result),
            columns::time(&row.result, |f| f.p50_ms),
            columns::time(&row.result, |f| f.p95_ms),
            columns::time(&row.result, |f| f.p99_ms),
            or_dash(row.summary.as_ref().and_then(within_10ms), percent),
            total.map_or_else(|| DASH.to_owned(), success),
            total.map_or_else(|| DASH.to_owned(), correctness),
            columns::cpu(&row.result),
            columns::gateway_busy(&row.result),
            columns::memory(&row.result),
        ]);
    }
    Section::new("By rate, topology and mode (headline: warm)", table)
        .note("times are those of all responses, allowed and blocked: response times, and service times where it is as fast as it goes; arrivals are evenly spaced. HTTP success: 2xx or 403; achieved: answers with the expected policy decision per second; policy correctness: the share of answered requests with the policy decision that the scenario expects")
        .note("too few requests for a percentile: `-` (a p95 needs 200, a p99 1,000)")
}

/// A figure of a measurement.
pub(super) type Of = fn(&Figures) -> Option<BoundedFigure>;

/// How many times as long the first run took as the second.
pub(super) fn factor(cold: &MeasurementResult, warm: &MeasurementResult, of: Of) -> Option<Ratio> {
    Ratio::new(cold.bounded(of).ok()?, warm.bounded(of).ok()?, Bias::Adds)
}

pub(super) fn cold_and_warm<'a>(
    pairs: impl Iterator<Item = &'a ColdWarm>,
    is_ours: bool,
) -> Section {
    let heads = ["Profile", "First run (cold)", "Second run (warm)", "Factor"];
    let mut table = Table::new(heads);
    let figures: [(&str, Of); 4] = [
        ("P50", |f| f.p50_ms),
        ("P95", |f| f.p95_ms),
        ("P99", |f| f.p99_ms),
        ("Max", |f| f.max_ms),
    ];
    for pair in pairs {
        let Some(cold) = &pair.cold else { continue };
        for (name, of) in figures {
            let warm = &pair.warm.result;
            table.row([
                format!("{}/s {}, {name}{}", pair.rate, pair.name, way(pair)),
                columns::marked(cold, &columns::time(cold, of)),
                columns::marked(warm, &columns::time(warm, of)),
                or_dash(factor(cold, warm, of), |factor| {
                    factor.text(|times| format!("{times:.1}x"))
                }),
            ]);
        }
    }
    let section = Section::new(
        "Cold and warm: each profile twice against a gateway that was just started",
        table,
    );
    let section = if is_ours {
        section
    } else {
        section.note("all first runs come before all second ones; the single requests under \"What the target has\" came before, and the user says that the target was just started")
    };
    section.note("the figures of the first run include its first request: nothing is warmed up. Limits in brackets: what the generator itself may have added to either run")
}

fn way(pair: &ColdWarm) -> String {
    if pair.way.is_empty() { String::new() } else { format!(" ({})", pair.way) }
}

/// The confusion matrix, and the figures by category, of the warm run at the highest rate.
pub(super) fn decisions(row: &PolicyRow) -> Vec<Section> {
    let summary = row.summary.as_ref();
    summary.map_or_else(Vec::new, |summary| {
        vec![confusion(&row.result, summary), categories(&row.result, summary)]
    })
}

fn confusion(result: &MeasurementResult, summary: &RunSummary) -> Section {
    let policy_decisions = &summary.results.total.policy_decisions;
    let actual: BTreeSet<_> =
        policy_decisions.values().flat_map(|row| row.keys()).cloned().collect();
    let heads =
        std::iter::once("Expected".to_owned()).chain(actual.iter().map(|a| format!("was {a}")));
    let mut table = Table::new(heads);
    for (expected, row) in policy_decisions {
        let counts = actual
            .iter()
            .map(|policy_decision| count(row.get(policy_decision).copied().unwrap_or(0)));
        table.row(std::iter::once(columns::marked(result, expected)).chain(counts));
    }
    Section::new("Confusion matrix of the warm run at 100/s", table)
}

/// The number of scenarios of each category, as the load had them.
fn scenarios(summary: &RunSummary) -> String {
    let scenarios = &summary.metadata.scenarios;
    format!("{} scenarios in the mix", count(scenarios.len() as u64))
}

fn categories(result: &MeasurementResult, summary: &RunSummary) -> Section {
    let mut table = Table::new([
        "Category",
        "requests",
        "allowed",
        "blocked",
        "unexpected",
        "correctness",
        "P50",
        "P99",
    ]);
    for group in &summary.results.by_category {
        let figures =
            Figures::of_group(group, TimedResponses::All, summary.metadata.headline_time())
                .unwrap_or_default();
        let counters = &group.counters;
        table.row([
            columns::marked(result, group.category.as_deref().unwrap_or_default()),
            count(counters.scheduled),
            count(counters.allowed),
            count(counters.blocked),
            count(counters.unexpected),
            correctness(group),
            time_with_share(figures.p50_ms),
            time_with_share(figures.p99_ms),
        ]);
    }
    Section::new("By category (warm, 100/s)", table).note(format!(
        "{}; expected: normal and pii allowed (200), injections and destructive statements blocked (403)",
        scenarios(summary)
    ))
}

pub(super) fn unhealthy(row: &PolicyRow) -> Section {
    let mut table =
        Table::new(["Category", "requests", "200", "403 blocked", "failed", "useful responses"]);
    for group in row.summary.iter().flat_map(|summary| &summary.results.by_category) {
        let c = &group.counters;
        let useful = (c.completed + c.blocked) as f64 / c.scheduled.max(1) as f64;
        let failed = c.scheduled.saturating_sub(c.completed + c.rejected);
        table.row([
            columns::marked(&row.result, group.category.as_deref().unwrap_or_default()),
            count(c.scheduled),
            count(c.completed),
            count(c.blocked),
            count(failed),
            percent(useful),
        ]);
    }
    Section::new("Provider unhealthy: it answers every call with 503 (20/s, skip_llm=false)", table)
        .note("failures here are the provider's and expected; no bound counts them as errors")
}

/// The same at rising rates, up to saturation.
pub(super) fn unhealthy_rates(rows: &[PolicyRow]) -> Section {
    let mut table = Table::new([
        "planned/s",
        "useful responses",
        "useful/s",
        "P50",
        "P99",
        "gw core",
        "Bottleneck",
    ]);
    let mut rows: Vec<_> = rows.iter().collect();
    rows.sort_by(|a, b| {
        let [a, b] = [a, b].map(|row| row.result.rate.unwrap_or(f64::INFINITY));
        a.total_cmp(&b)
    });
    for row in rows {
        let counters = row.summary.as_ref().map(|summary| &summary.results.total.counters);
        let useful = counters
            .filter(|c| c.scheduled > 0)
            .map(|c| (c.completed + c.blocked) as f64 / c.scheduled as f64);
        table.row([
            columns::marked(&row.result, &row.rate),
            or_dash(useful, percent),
            columns::throughput(&row.result),
            columns::time(&row.result, |f| f.p50_ms),
            columns::time(&row.result, |f| f.p99_ms),
            columns::gateway_busy(&row.result),
            columns::bottleneck(&row.result),
        ]);
    }
    Section::new("Provider unhealthy, at rising rates", table).note(
        "the share of useful responses stays that of the blocked ones as long as the gateway has time for all; where it falls, or P99 rises, the failing calls cost the others",
    )
}

/// The figures of the published benchmark.
pub(super) fn references() -> Vec<Section> {
    let heads = ["RPS", "Topology", "P50", "P95", "P99", "HTTP success", "Policy correctness"];
    let mut table = Table::new(heads);
    for (rps, topology, times) in [
        (20, "in-VPC", [6.30, 8.98, 24.80]),
        (20, "SaaS", [6.33, 9.95, 27.46]),
        (50, "in-VPC", [6.32, 12.05, 38.62]),
        (50, "SaaS", [6.50, 10.30, 26.12]),
        (100, "in-VPC", [6.35, 13.61, 46.94]),
        (100, "SaaS", [6.43, 18.46, 76.43]),
    ] {
        let times = times.map(time);
        let fixed = [rps.to_string(), topology.to_owned()];
        let shares = ["100%", "100%"].map(str::to_owned);
        table.row(fixed.into_iter().chain(times).chain(shares));
    }
    let mut cold = Table::new(["Profile", "First run (cold)", "Second run (warm)", "Factor"]);
    for (name, first, second) in [
        ("20/s light, P95", 91.81, 9.95),
        ("20/s light, P99", 917.32, 27.46),
        ("50/s hourly, P95", 37.91, 10.30),
        ("50/s hourly, P99", 747.23, 26.12),
    ] {
        let factor = format!("{:.1}x", first / second);
        add_row(&mut cold, name, [first, second], factor);
    }
    let where_from = "Reference: 5 agents + 10 orchestrators (Fargate, 1 vCPU and 2 GB each), HTTP/2 + TLS 1.3, 2026-05-02";
    let other = "another gateway on other hardware, as its authors published it: not comparable with the rows above";
    vec![
        Section::new(where_from, table).note(other).note(
            "by its own bands a P50 over 5 ms is critical; the P99 of the light profile, with 600 requests, rests on 6 of them",
        ),
        Section::new("Reference, cold and warm (SaaS topology)", cold),
    ]
}

fn add_row(table: &mut Table, name: &str, times: [f64; 2], factor: String) {
    let [first, second] = times.map(time);
    table.row([name.to_owned(), first, second, factor]);
}
