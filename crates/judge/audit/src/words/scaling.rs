//! "scales", "linear", "maintains performance": against tables that have more than one number of
//! clients.

use super::Claim;
use crate::finding::Findings;
use crate::heading::Quantity;
use crate::reading::Reading;
use crate::record::{Record, Table};
use crate::rules::digits;

const CLAIMS: [&str; 9] = [
    "scales efficiently",
    "scales linearly",
    "scales well",
    "scales with",
    "linear scal",
    "scales near",
    "maintains performance",
    "scales smoothly",
    "scales gracefully",
];

/// Throughput that grows by less than a tenth of what the clients do does not scale.
const GROWS: f64 = 0.1;

/// Two loads of one table.
struct Step {
    clients: f64,
    /// The largest growth that the digits allow.
    rate: f64,
    printed: f64,
    time: Option<f64>,
    line: usize,
}

pub(super) fn check(claim: &Claim<'_>, reading: &Reading, findings: &mut Findings) {
    if !claim.has(&CLAIMS) || claim.is_hedged() || claim.has(&["horizontal", "replica", "nodes"]) {
        return;
    }
    let steps: Vec<Step> = reading.tables.iter().flat_map(steps).collect();
    let Some(worst) = steps.iter().min_by(|one, other| one.rate.total_cmp(&other.rate)) else {
        return;
    };
    if !steps
        .iter()
        .all(|step: &Step| step.rate - 1.0 < GROWS * (step.clients - 1.0) && step.rate < 1.1)
    {
        return;
    }
    let change = (worst.printed - 1.0) * 100.0;
    let word = if change < 0.0 { "less" } else { "more" };
    let time = worst.time.map(|time| format!(" at {} times the latency", digits(time)));
    let because = format!(
        "with {} times the clients: {} % {word} throughput{} (line {})",
        digits(worst.clients),
        digits(change.abs()),
        time.unwrap_or_default(),
        worst.line
    );
    findings.add(claim.finding("scaling words", because, "\"saturated\", or figures that grow"));
}

/// Neighbouring loads that differ in their clients by half or more, and in no other label.
fn steps(table: &Table) -> Vec<Step> {
    let mut loads: Vec<(f64, &Record)> = table
        .records
        .iter()
        .filter_map(|record| Some((record.only(Quantity::Clients)?.number.value, record)))
        .filter(|(clients, record)| *clients > 0.0 && record.only(Quantity::Rate).is_some())
        .collect();
    loads.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut steps = Vec::new();
    for two in loads.windows(2) {
        let [(fewer, low), (more, high)] = two else { continue };
        if *more < fewer * 1.5 || !alike(low, high) {
            continue;
        }
        steps.extend(step(more / fewer, low, high));
    }
    steps
}

fn step(clients: f64, low: &Record, high: &Record) -> Option<Step> {
    let (one, other) = (low.only(Quantity::Rate)?, high.only(Quantity::Rate)?);
    let time = low.subjects().first().and_then(|of| {
        let (one, other) = (low.mean(of)?, high.mean(of)?);
        Some(other.number.value / one.number.value)
    });
    let rate = other.number.high / one.number.low.max(f64::MIN_POSITIVE);
    let printed = other.number.value / one.number.value.max(f64::MIN_POSITIVE);
    Some(Step { clients, rate, printed, time, line: other.line })
}

/// Their words are the same: one endpoint, one product.
fn alike(one: &Record, other: &Record) -> bool {
    let [one, other] = [one, other].map(|record| {
        let cells = record.words.iter().map(|(_, cell)| cell);
        cells.filter(|cell| cell.chars().any(char::is_alphabetic)).collect::<Vec<_>>()
    });
    one == other
}
