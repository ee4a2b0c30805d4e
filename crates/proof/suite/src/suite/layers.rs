//! The layers suite: the cost of each layer, the full stack, the cache, the log and the stores.
//!
//! It follows the published three-layer benchmark, without its third layer (tools and agents).

mod gateway_layers;
mod llm_layers;
mod store_ops;
mod tables;

use plimsoll_report::format::{digits, percent, time};

use crate::bound::{BoundResult, Requirement};
use crate::error::SuiteError;
use crate::finding;
use crate::report::{Report, Section};
use crate::result::MeasurementResult;
use crate::runner::SuiteRunner;
use crate::sizing::{self, Capacity};
use gateway_layers::{FullStack, GatewayLayers};
use llm_layers::LlmLayers;

/// The headers of the API key and the tenant. Every request carries both, so that all variants get
/// the same bytes.
const KEY: (&str, &str) = ("apikey", "load-test-key");
const TENANT: (&str, &str) = ("x-tenant-id", "retail");

pub(super) fn run(runner: &mut SuiteRunner<'_>) -> Result<Report, SuiteError> {
    let gateway = gateway_layers::measure(runner)?;
    let stack = gateway_layers::stack(runner)?;
    let llm = llm_layers::measure(runner)?;
    let log = llm_layers::log(runner)?;
    let ops = store_ops::measure(runner);
    let title = "a layered gateway: the cost of every layer, the full stack, cache, streams, log and stores";
    let mut report = Report::begin("layers", title, runner);
    report.sections.extend(tables::gateway(&gateway));
    report.sections.push(tables::stack(&stack));
    report.sections.extend(tables::llm(&llm));
    report.sections.extend(log.iter().map(tables::log));
    report.sections.push(tables::store_ops(&ops));
    report.bounds.extend(bounds(&gateway, &llm));
    report.bounds.extend(log.iter().flat_map(llm_layers::RequestLog::bounds));
    report.bounds.extend(ops.bounds());
    report.findings.extend(layer_costs(&gateway));
    report.findings.extend(stack_findings(&stack));
    report.sizing = sizing_section(&gateway, &llm, runner);
    report.references = tables::references();
    Ok(report.conclude())
}

/// The cost of every variant of layer 1.
fn layer_costs(gateway: &GatewayLayers) -> Vec<finding::Finding> {
    let of = |base: &MeasurementResult, variants: &[MeasurementResult]| -> Vec<finding::Finding> {
        let cost =
            |result: &MeasurementResult| Some(finding::cost(base, result)?.finding(&result.label));
        variants.iter().filter_map(cost).collect()
    };
    let mut findings = Vec::new();
    if let Some((bare, others)) = gateway.alone.split_first() {
        findings.extend(of(bare, others));
        let busy = bare.figures().map(|figures| figures.busy).unwrap_or_default();
        let limit = finding::bottleneck(&busy).sentence(&busy);
        findings.push(finding::Finding::note(format!("layer 1 without an upstream: {limit}")));
    }
    if let Some((bare, others)) = gateway.chats.split_first() {
        findings.extend(of(bare, others));
    }
    findings
}

/// The throughput of the full stack as a share of the upstream's, and the bottleneck by CPU time.
fn stack_findings(stack: &FullStack) -> Vec<finding::Finding> {
    let mut findings = Vec::new();
    let rate_of = |result: &MeasurementResult| result.figures()?.requests_per_s;
    if let Some(results) = stack.results.split_last() {
        let (direct, through) = results;
        for result in through.iter().filter(|result| !result.is_invalid()) {
            let Some((a, b)) = rate_of(result).zip(rate_of(direct)) else { continue };
            let busy = result.figures().map(|figures| figures.busy).unwrap_or_default();
            findings.push(finding::Finding::note(format!(
                "{}: {} of the upstream's own rate; {}",
                result.label,
                percent(a / b),
                finding::bottleneck(&busy).sentence(&busy)
            )));
        }
    }
    findings
}

/// The bounds of the published benchmark, which decide, and its goals, which do not.
fn bounds(gateway: &GatewayLayers, llm: &LlmLayers) -> Vec<BoundResult> {
    let mut bounds = Vec::new();
    let errors = |f: &crate::result::Figures| f.error_share;
    if let Some(all) = gateway.alone.last() {
        bounds.push(BoundResult::of(
            "layer 1, all layers: p99",
            all,
            |f| f.p99_ms,
            Requirement::below(100.0, time),
        ));
        bounds.push(BoundResult::of(
            "layer 1, all layers: errors",
            all,
            errors,
            Requirement::below(0.01, percent),
        ));
        bounds.push(
            BoundResult::of("layer 1: p50", all, |f| f.p50_ms, Requirement::below(10.0, time))
                .into_goal(),
        );
        bounds.push(
            BoundResult::of("layer 1: p99", all, |f| f.p99_ms, Requirement::below(50.0, time))
                .into_goal(),
        );
        bounds.push(
            BoundResult::of("layer 1: errors", all, errors, Requirement::below(0.000_1, percent))
                .into_goal(),
        );
        let overhead = gateway.alone.first().and_then(|bare| finding::cost(bare, all));
        let overhead = overhead.map(|cost| cost.throughput.median);
        bounds.push(
            BoundResult::value(
                "layer 1: cost of all layers",
                overhead,
                Requirement::below(0.1, percent),
            )
            .into_goal(),
        );
    }
    if let Some(bare) = gateway.alone.first() {
        let bound = Requirement::at_least(50_000.0, digits);
        bounds.push(
            BoundResult::of("layer 1: throughput, bare", bare, |f| f.requests_per_s, bound)
                .into_goal(),
        );
    }
    if let Some((bare, all)) = gateway.chats.first().zip(gateway.chats.last()) {
        let cost = finding::cost(bare, all).map(|cost| cost.throughput.median);
        bounds.push(
            BoundResult::value(
                "chat of 128 tokens: cost of all layers and the policy scan",
                cost,
                Requirement::below(0.15, percent),
            )
            .into_goal(),
        );
    }
    bounds.extend(llm.bounds());
    bounds
}

fn sizing_section(
    gateway: &GatewayLayers,
    llm: &LlmLayers,
    runner: &SuiteRunner<'_>,
) -> Option<Section> {
    let capacity = |what: &str, result: &MeasurementResult| {
        let figures = result.figures().filter(|_| !result.is_invalid())?;
        Some(Capacity {
            what: what.to_owned(),
            per_s: figures.requests_per_s?,
            cores: figures.busy.gateway,
            memory: runner.memory,
        })
    };
    let results = [
        ("layer 1, all layers", gateway.alone.last()),
        ("chat, all layers", gateway.chats.last()),
        ("layer 2, cache hits", llm.hit.as_ref()),
    ];
    let capacities: Vec<_> =
        results.into_iter().filter_map(|(what, result)| capacity(what, result?)).collect();
    if capacities.is_empty() {
        return None;
    }
    let (table, notes) = sizing::table(&capacities, runner.options.size_for);
    Some(Section { notes, ..Section::new("Replicas for a rate, per service", table) })
}
