//! S1 without its third layer: what each layer costs, the full stack, the cache, the log and the stores.

mod first;
mod second;
mod stores;
mod tables;

use crate::bench::Bench;
use crate::cell::MeasurementResult;
use crate::error::SuiteError;
use crate::finding;
use crate::gate::{Bound, Gate};
use crate::report::{Report, Section};
use crate::sizing::{self, Capacity};
use crate::words::{millis, percent, rate};

use first::{First, Stack};
use second::Second;

/// The consumer's key and tenant of the persona; every request carries both, so that all send the same bytes.
const KEY: (&str, &str) = ("apikey", "load-test-key");
const TENANT: (&str, &str) = ("x-tenant-id", "retail");

pub(super) fn run(bench: &mut Bench<'_>) -> Result<Report, SuiteError> {
    let first = first::measure(bench)?;
    let stack = first::stack(bench)?;
    let second = second::measure(bench)?;
    let log = second::log(bench)?;
    let stores = stores::measure(bench);
    let title = "a layered gateway: the cost of every layer, the full stack, cache, streams, log and stores";
    let mut report = Report::begin("layers", title, bench);
    report.sections.extend(tables::first(&first));
    report.sections.push(tables::stack(&stack));
    report.sections.extend(tables::second(&second));
    report.sections.extend(log.iter().map(tables::log));
    report.sections.push(tables::stores(&stores));
    report.gates.extend(gates(&first, &second));
    report.gates.extend(log.iter().flat_map(second::Log::gates));
    report.gates.extend(stores.gates());
    report.findings.extend(costs(&first));
    report.findings.extend(of_stack(&stack));
    report.sizing = sizes(&first, &second, bench);
    report.references = tables::references();
    Ok(report.conclude())
}

/// What every variant of layer 1 costs.
fn costs(first: &First) -> Vec<finding::Finding> {
    let of = |base: &MeasurementResult, variants: &[MeasurementResult]| -> Vec<finding::Finding> {
        let cost = |cell: &MeasurementResult| Some(finding::cost(base, cell)?.finding(&cell.label));
        variants.iter().filter_map(cost).collect()
    };
    let mut findings = Vec::new();
    if let Some((bare, others)) = first.alone.split_first() {
        findings.extend(of(bare, others));
        let busy = bare.figures().map(|figures| figures.busy).unwrap_or_default();
        let who = finding::limiter(&busy).sentence(&busy);
        findings.push(finding::Finding::note(format!("layer 1 without an upstream: {who}")));
    }
    if let Some((bare, others)) = first.chats.split_first() {
        findings.extend(of(bare, others));
    }
    findings
}

/// Is the upstream the limit of the full stack? The seed says so of a stack that falls 48 % below its upstream.
fn of_stack(stack: &Stack) -> Vec<finding::Finding> {
    let mut findings = Vec::new();
    let rate_of = |cell: &MeasurementResult| cell.figures()?.requests_per_s;
    if let Some(cells) = stack.cells.split_last() {
        let (direct, through) = cells;
        for cell in through.iter().filter(|cell| !cell.is_invalid()) {
            let Some((a, b)) = rate_of(cell).zip(rate_of(direct)) else { continue };
            let busy = cell.figures().map(|figures| figures.busy).unwrap_or_default();
            findings.push(finding::Finding::note(format!(
                "{}: {} of the upstream's own rate; {}",
                cell.label,
                percent(Some(a / b)),
                finding::limiter(&busy).sentence(&busy)
            )));
        }
    }
    findings
}

/// The seed's gates, which decide, and its targets, which do not.
fn gates(first: &First, second: &Second) -> Vec<Gate> {
    let mut gates = Vec::new();
    let errors = |f: &crate::cell::Figures| f.error_share;
    if let Some(all) = first.alone.last() {
        gates.push(Gate::of(
            "layer 1, all layers: p99",
            all,
            |f| f.p99_ms,
            Bound::below(100.0, millis),
        ));
        gates.push(Gate::of(
            "layer 1, all layers: errors",
            all,
            errors,
            Bound::below(0.01, percent),
        ));
        gates
            .push(Gate::of("layer 1: p50", all, |f| f.p50_ms, Bound::below(10.0, millis)).target());
        gates
            .push(Gate::of("layer 1: p99", all, |f| f.p99_ms, Bound::below(50.0, millis)).target());
        gates.push(
            Gate::of("layer 1: errors", all, errors, Bound::below(0.000_1, percent)).target(),
        );
        let overhead = first.alone.first().and_then(|bare| finding::cost(bare, all));
        let overhead = overhead.map(|cost| cost.throughput.median);
        gates.push(
            Gate::value("layer 1: cost of all layers", overhead, Bound::below(0.1, percent))
                .target(),
        );
    }
    if let Some(bare) = first.alone.first() {
        let bound = Bound::at_least(50_000.0, rate);
        gates.push(
            Gate::of("layer 1: throughput, bare", bare, |f| f.requests_per_s, bound).target(),
        );
    }
    if let Some((bare, all)) = first.chats.first().zip(first.chats.last()) {
        let cost = finding::cost(bare, all).map(|cost| cost.throughput.median);
        gates.push(
            Gate::value(
                "chat of 128 tokens: cost of all layers and the policy scan",
                cost,
                Bound::below(0.15, percent),
            )
            .target(),
        );
    }
    gates.extend(second.gates());
    gates
}

fn sizes(first: &First, second: &Second, bench: &Bench<'_>) -> Option<Section> {
    let capacity = |what: &str, cell: &MeasurementResult| {
        let figures = cell.figures().filter(|_| !cell.is_invalid())?;
        Some(Capacity {
            what: what.to_owned(),
            per_s: figures.requests_per_s?,
            cores: figures.busy.gateway,
            memory: bench.memory,
        })
    };
    let cells = [
        ("layer 1, all layers", first.alone.last()),
        ("chat, all layers", first.chats.last()),
        ("layer 2, cache hits", second.hit.as_ref()),
    ];
    let capacities: Vec<_> =
        cells.into_iter().filter_map(|(what, cell)| capacity(what, cell?)).collect();
    if capacities.is_empty() {
        return None;
    }
    let (table, notes) = sizing::table(&capacities, bench.order.size_for);
    Some(Section { notes, ..Section::new("Replicas for a rate, per service", table) })
}
