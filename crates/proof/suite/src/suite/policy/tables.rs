//! The tables of the policy suite.

use std::collections::BTreeSet;

use plimsoll_measure::Nanos;
use plimsoll_metrics::{Bias, BoundedFigure, Group, RunSummary};
use plimsoll_report::format::{count, or_dash, percent, time_with_share};
use plimsoll_report::table::Table;

use super::{ColdWarm, PolicyRow};
use crate::figures::{TimedResponses, share_up_to};
use crate::ratio::Ratio;
use crate::report::Section;
use crate::result::{Figures, MeasurementResult};
use crate::suite::columns::{self, BOTTLENECK, CPU, Column, GW_CORE, MEMORY, P50, P95, P99};

impl PolicyRow {
    fn total(&self) -> Option<&Group> {
        self.summary.as_ref().map(|summary| &summary.results.total)
    }
}

/// HTTP success: the share of requests with a 2xx or with the 403 of a policy. Any other refusal,
/// such as 429 or 404, counts as a failure.
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
    share_up_to(&summary.results.total, TimedResponses::All, time, Nanos::from_millis(10))
}

pub(super) fn headline(rows: &[&PolicyRow]) -> Section {
    let columns: [Column<&PolicyRow>; 11] = [
        ("Topology, rate, mode", |row| columns::marked(&row.result, &row.name())),
        ("achieved", |row| columns::throughput(&row.result)),
        ("P50", |row| P50.1(&row.result)),
        ("P95", |row| P95.1(&row.result)),
        ("P99", |row| P99.1(&row.result)),
        ("<= 10ms", |row| or_dash(row.summary.as_ref().and_then(within_10ms), percent)),
        ("HTTP success", |row| or_dash(row.total(), success)),
        ("Policy correctness", |row| or_dash(row.total(), correctness)),
        (CPU.0, |row| CPU.1(&row.result)),
        (GW_CORE.0, |row| GW_CORE.1(&row.result)),
        (MEMORY.0, |row| MEMORY.1(&row.result)),
    ];
    let table = columns::table(&columns, rows);
    Section::new("By rate, topology and mode (headline: warm)", table)
}

/// A figure of a measurement.
pub(super) type Of = fn(&Figures) -> Option<BoundedFigure>;

/// How many times as long the first run took as the second.
pub(super) fn factor(cold: &MeasurementResult, warm: &MeasurementResult, of: Of) -> Option<Ratio> {
    Ratio::new(cold.bounded(of).ok()?, warm.bounded(of).ok()?, Bias::Adds)
}

pub(super) fn cold_and_warm(pairs: &[ColdWarm]) -> Section {
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
    let title = "Cold and warm: each profile twice against a gateway that was just started";
    Section::new(title, table)
}

fn way(pair: &ColdWarm) -> String {
    if pair.way.is_empty() { String::new() } else { format!(" ({})", pair.way) }
}

/// The confusion matrix, and the figures by category, of the warm run at the highest rate.
pub(super) fn decisions(row: &PolicyRow) -> Vec<Section> {
    let summary = row.summary.as_ref();
    summary.map_or_else(Vec::new, |summary| vec![confusion(row, summary), categories(row, summary)])
}

fn confusion(row: &PolicyRow, summary: &RunSummary) -> Section {
    let policy_decisions = &summary.results.total.policy_decisions;
    let actual: BTreeSet<_> =
        policy_decisions.values().flat_map(|row| row.keys()).cloned().collect();
    let heads =
        std::iter::once("Expected".to_owned()).chain(actual.iter().map(|a| format!("was {a}")));
    let mut table = Table::new(heads);
    for (expected, decided) in policy_decisions {
        let counts = actual
            .iter()
            .map(|policy_decision| count(decided.get(policy_decision).copied().unwrap_or(0)));
        table.row(std::iter::once(columns::marked(&row.result, expected)).chain(counts));
    }
    Section::new(format!("Confusion matrix: {}", row.name()), table)
}

/// The number of scenarios of each category, as the load had them.
fn scenarios(summary: &RunSummary) -> String {
    let scenarios = &summary.metadata.scenarios;
    format!("{} scenarios in the mix", count(scenarios.len() as u64))
}

fn categories(row: &PolicyRow, summary: &RunSummary) -> Section {
    let heads = "Category|requests|allowed|blocked|unexpected|correctness|P50|P99";
    let mut table = Table::new(heads.split('|'));
    let time = summary.metadata.headline_time();
    for group in &summary.results.by_category {
        let figures = Figures::of_group(group, TimedResponses::All, time).unwrap_or_default();
        let counters = &group.counters;
        table.row([
            columns::marked(&row.result, group.category.as_deref().unwrap_or_default()),
            count(counters.scheduled),
            count(counters.allowed),
            count(counters.blocked),
            count(counters.unexpected),
            correctness(group),
            time_with_share(figures.p50_ms),
            time_with_share(figures.p99_ms),
        ]);
    }
    Section::new(format!("By category: {}", row.name()), table).note(format!(
        "{}; expected: normal and pii allowed (200), injections and destructive statements blocked (403)",
        scenarios(summary)
    ))
}

pub(super) fn unhealthy(row: &PolicyRow) -> Section {
    let heads = "Category|requests|200|403 blocked|failed|useful responses";
    let mut table = Table::new(heads.split('|'));
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
    let title = "Provider unhealthy: it answers every call with an error (20/s, skip_llm=false)";
    Section::new(title, table)
}

/// The same at rising rates, up to saturation.
pub(super) fn unhealthy_rates(rows: &[PolicyRow]) -> Section {
    let columns: [Column<&PolicyRow>; 7] = [
        ("planned/s", |row| columns::marked(&row.result, &row.rate)),
        ("useful responses", |row| {
            let counters = row.total().map(|total| &total.counters).filter(|c| c.scheduled > 0);
            or_dash(counters, |c| percent((c.completed + c.blocked) as f64 / c.scheduled as f64))
        }),
        ("useful/s", |row| columns::throughput(&row.result)),
        ("P50", |row| P50.1(&row.result)),
        ("P99", |row| P99.1(&row.result)),
        (GW_CORE.0, |row| GW_CORE.1(&row.result)),
        (BOTTLENECK.0, |row| BOTTLENECK.1(&row.result)),
    ];
    let mut rows: Vec<_> = rows.iter().collect();
    rows.sort_by(|a, b| {
        let [a, b] = [a, b].map(|row| row.result.rate.unwrap_or(f64::INFINITY));
        a.total_cmp(&b)
    });
    let table = columns::table(&columns, &rows);
    Section::new("Provider unhealthy, at rising rates", table)
}
