//! The layers suite: the cost of each layer, the full stack, the cache, agents, the log and the
//! stores.
//!
//! It follows the published three-layer benchmark.

mod agent_checks;
mod agent_layers;
mod agent_settings;
mod functional;
mod gateway_layers;
mod llm_layers;
mod log_writer;
mod request_log;
mod store_ops;
mod tables;

use plimsoll_metrics::BoundedFigure;
use plimsoll_report::format::{digits, limited_rate, percent, time};

use crate::bound::{BoundResult, Requirement};
use crate::comparison_plan::slug;
use crate::error::SuiteError;
use crate::finding;
use crate::options::{LayerPart, SuiteOptions};
use crate::report::{Report, Section};
use crate::result::Figures;
use crate::runner::SuiteRunner;
use crate::sizing::{self, Capacity};
use agent_layers::AgentLayers;
use functional::FunctionalChecks;
use gateway_layers::{ALL_CHAT, ALL_LAYERS, FullStack, GatewayLayers};
use llm_layers::LlmLayers;
use log_writer::WriterLimit;
use request_log::RequestLog;
use store_ops::StoreOps;

/// The headers of the API key and the tenant. Every request carries both, so that all variants get
/// the same bytes.
const KEY: (&str, &str) = ("apikey", "load-test-key");
const TENANT: (&str, &str) = ("x-tenant-id", "retail");

/// What was measured.
struct Parts {
    /// Whether the gateway is the suite's own, whose layers are known.
    is_ours: bool,
    checks: Option<FunctionalChecks>,
    gateway: GatewayLayers,
    stack: FullStack,
    llm: LlmLayers,
    agents: AgentLayers,
    log: Option<RequestLog>,
    writer: Vec<WriterLimit>,
    ops: StoreOps,
}

pub(super) fn run(runner: &mut SuiteRunner<'_>) -> Result<Report, SuiteError> {
    let parts = measure(runner)?;
    let title = "a layered gateway: the cost of every layer, the full stack, cache, streams, agents, log and stores";
    let mut report = Report::begin("layers", title, runner);
    report.sections.extend(parts.sections(agent_layers::clients(runner.options)));
    report.bounds.extend(parts.bounds());
    let Parts { gateway, stack, llm, agents, .. } = &parts;
    report.findings.extend(limits(gateway));
    report.findings.extend(stack_findings(stack));
    report.findings.extend(gateway_layers::of_upstream(stack));
    let capacities = capacities(gateway, llm, agents);
    if gateway.alone.last().or(gateway.as_it_is.as_ref()).is_some() {
        let to_reach = capacities.first().map(|capacity| to_reach(capacity, parts.is_ours));
        report.findings.extend(to_reach);
    }
    report.size("Replicas for a rate, per service", capacities, runner.options.size_for);
    report.references = tables::references();
    Ok(report.conclude())
}

/// Measures the parts that are wanted.
fn measure(runner: &mut SuiteRunner<'_>) -> Result<Parts, SuiteError> {
    let wants = wanted(runner.options);
    let checks = if wants(LayerPart::Gateway) { functional::check(runner)? } else { None };
    let (gateway, stack) = if wants(LayerPart::Gateway) {
        (gateway_layers::measure(runner)?, gateway_layers::stack(runner)?)
    } else {
        (GatewayLayers::default(), FullStack::default())
    };
    let llm =
        if wants(LayerPart::Llm) { llm_layers::measure(runner)? } else { LlmLayers::default() };
    let agents = if wants(LayerPart::Agents) {
        agent_layers::measure(runner)?
    } else {
        AgentLayers::default()
    };
    let log = if wants(LayerPart::Log) { request_log::measure(runner)? } else { None };
    let writer = match &log {
        Some(log) if log.accepted.is_some() => log_writer::measure(runner),
        _ => Vec::new(),
    };
    let ops = if !wants(LayerPart::Stores) {
        StoreOps::default()
    } else if runner.target().is_none() {
        store_ops::measure(runner)
    } else {
        runner.section = "Store operations, one after another";
        runner.skip(
            "store operations",
            "they would be those of this tool's own store, which says nothing about the target",
        );
        StoreOps::default()
    };
    let is_ours = runner.target().is_none();
    Ok(Parts { is_ours, checks, gateway, stack, llm, agents, log, writer, ops })
}

impl Parts {
    /// The tables; `clients` of the agents.
    fn sections(&self, clients: (u32, u32)) -> Vec<Section> {
        let mut sections: Vec<_> = self.checks.iter().map(FunctionalChecks::section).collect();
        sections.extend(tables::gateway(&self.gateway));
        if !self.stack.results.is_empty() {
            sections.extend(tables::stack_added(&self.stack));
            sections.push(tables::stack(&self.stack));
        }
        sections.extend(tables::llm(&self.llm, self.is_ours));
        sections.extend(self.agents.checks.iter().map(FunctionalChecks::section));
        if !self.agents.rows.is_empty() {
            sections.push(tables::agents(&self.agents, clients));
        }
        sections.extend(self.log.iter().map(tables::log));
        if !self.writer.is_empty() {
            sections.push(tables::log_writer(&self.writer));
        }
        if !self.ops.rows.is_empty() {
            sections.push(tables::store_ops(&self.ops));
        }
        sections
    }

    fn bounds(&self) -> Vec<BoundResult> {
        let mut bounds: Vec<_> = self.checks.iter().map(FunctionalChecks::bound).collect();
        bounds.extend(published_bounds(&self.gateway, &self.llm));
        bounds.extend(self.agents.bounds());
        bounds.extend(self.log.iter().flat_map(RequestLog::bounds));
        bounds.extend(self.writer.iter().flat_map(WriterLimit::bounds));
        bounds.extend(self.ops.bounds());
        bounds
    }
}

/// Whether a part is wanted: all are, unless the user names some.
fn wanted(options: &SuiteOptions) -> impl Fn(LayerPart) -> bool + use<> {
    let only = options.only.clone();
    move |part| only.is_empty() || only.contains(&part)
}

/// What it takes to reach the published goal for the rate of layer 1, or why that is not known.
fn to_reach(capacity: &Result<Capacity, String>, is_ours: bool) -> finding::Finding {
    let goal = digits(GOAL_PER_S);
    match capacity {
        Err(why) => {
            // Without the name of what is not sized.
            let why = why.split_once(": ").map_or(&**why, |(_, why)| why);
            finding::Finding::note(format!("what to buy to reach {goal}/s: unknown, because {why}"))
        }
        Ok(capacity) => {
            let needed = sizing::instances_text(GOAL_PER_S, capacity.per_s);
            let per_s = limited_rate(Some(capacity.per_s));
            let what = if is_ours {
                format!(
                    "with all layers, one worker and core for each {per_s}/s: {needed} cores or"
                )
            } else {
                format!("with {per_s}/s of one instance: {needed}")
            };
            finding::Finding::note(format!(
                "to reach {goal}/s {what} instances like this one at 70 % of their capacity, as far as they do not slow each other down, which was not measured"
            ))
        }
    }
}

/// The published goal for layer 1.
const GOAL_PER_S: f64 = 50_000.0;

/// What limits the bare gateway by itself.
fn limits(gateway: &GatewayLayers) -> Option<finding::Finding> {
    let figures = gateway.alone.first()?.figures()?;
    let limit = finding::bottleneck(&figures.busy).sentence(&figures.busy);
    Some(finding::Finding::note(format!("layer 1 without an upstream: {limit}")))
}

/// What limits each row of the full stack.
fn stack_findings(stack: &FullStack) -> Vec<finding::Finding> {
    let Some((_, through)) = stack.results.split_last() else { return Vec::new() };
    through
        .iter()
        .filter_map(|result| {
            result.throughput()?;
            let figures = result.figures()?;
            let limit = finding::bottleneck(&figures.busy).sentence(&figures.busy);
            Some(finding::Finding::note(format!("{}: {limit}", result.label)))
        })
        .collect()
}

/// The bounds of the published benchmark, which decide, and its goals, which do not.
fn published_bounds(gateway: &GatewayLayers, llm: &LlmLayers) -> Vec<BoundResult> {
    let mut bounds = Vec::new();
    let compared = gateway.alone.last().map(|all| ("layer 1, all layers", all));
    let judged = gateway.as_it_is.as_ref().map(|target| ("the target as it is", target));
    if let Some((name, all)) = compared.or(judged) {
        let time_below = |what: &str, of: fn(&Figures) -> Option<BoundedFigure>, limit| {
            let what = format!("{name}: {what}");
            BoundResult::of_figure(&what, all, of, Requirement::below(limit, time))
        };
        let errors_below = |limit| {
            let what = format!("{name}: errors");
            BoundResult::of_errors(&what, all, error_share, Requirement::below(limit, percent))
        };
        bounds.extend([
            time_below("p99", |f| f.p99_ms, 100.0),
            errors_below(0.01),
            time_below("p50", |f| f.p50_ms, 10.0).into_goal(),
            time_below("p99", |f| f.p99_ms, 50.0).into_goal(),
            errors_below(0.000_1).into_goal(),
        ]);
    }
    if let Some(added) = &gateway.added {
        let share = added.cpu_share(&slug(ALL_LAYERS));
        let requirement = Requirement::below(0.1, percent);
        bounds.push(
            BoundResult::interval(
                "layer 1: CPU per request that all layers add",
                share,
                requirement,
            )
            .into_goal(),
        );
    }
    if let Some(bare) = gateway.alone.first() {
        let bound = Requirement::at_least(GOAL_PER_S, digits);
        bounds.push(
            BoundResult::of_figure("layer 1: throughput, bare", bare, |f| f.requests_per_s, bound)
                .into_goal(),
        );
    }
    if let Some(added) = &gateway.added_to_chats {
        let what = "chat of 128 tokens: CPU per request that all layers and the policy scan add";
        let share = added.cpu_share(&slug(ALL_CHAT));
        let requirement = Requirement::below(0.15, percent);
        bounds.push(BoundResult::interval(what, share, requirement).into_goal());
    }
    bounds.extend(llm.bounds());
    bounds
}

fn error_share(f: &Figures) -> Option<f64> {
    f.error_share
}

fn capacities(
    gateway: &GatewayLayers,
    llm: &LlmLayers,
    agents: &AgentLayers,
) -> Vec<Result<Capacity, String>> {
    // The first is the creation of sessions in memory.
    let sessions = agents.rows.first().and_then(|row| row.many.as_ref());
    let results = [
        ("layer 1, all layers", gateway.alone.last()),
        ("the target as it is", gateway.as_it_is.as_ref()),
        ("chat, all layers", gateway.chats.last()),
        ("layer 2, cache hits", llm.hit.as_ref()),
        ("layer 3, session creation", sessions),
    ];
    results
        .into_iter()
        .filter_map(|(what, result)| Some(sizing::capacity(what, &[result?])))
        .collect()
}
