//! Layer 1, the gateway: bare, each layer alone, all; and the full stack through an upstream.
//!
//! The overhead of a layer comes from the same requests to the gateway with the layer and without
//! it.

use plimsoll_metrics::Bias;
use plimsoll_report::format::{or_dash, percent};
use plimsoll_report::table::Table;

use super::{GOAL_PER_S, KEY, TENANT, metrics};
use crate::bound::{BoundResult, Limit, Quantity, Requirement, judge};
use crate::comparison_result::ComparisonResult;
use crate::error::SuiteError;
use crate::measurement::Measurement;
use crate::ratio::Ratio;
use crate::report::Section;
use crate::result::MeasurementResult;
use crate::runner::{NO_DIRECT, OWN_ONLY, SuiteRunner};
use crate::sizing;
use crate::suite::columns::{self, BOTTLENECK, Column, ERRORS, GW_CORE, LOAD_CORE, P50, P99, RPS};
use crate::suite::{
    PAIRS_PER_S, TIMES_SHORT, Variants, VariantsLoad, comparison_length, length, passes, table,
};
use crate::target::{DIRECT, SuiteTarget};

/// Requests per second and target that compare `GET`s: CPU time is read in ticks of 10 ms.
const GETS_PER_S: f64 = 200.0;

pub(super) fn measure(runner: &mut SuiteRunner<'_>) -> Result<(), SuiteError> {
    let clients = runner.options.clients.unwrap_or(200);
    let length = length(runner.options, 30);
    if let Some(target) = runner.target() {
        return as_it_is(runner, &target, clients);
    }
    let gateways = runner.variants("layers", "layer", None)?;
    let load = VariantsLoad { label: "each layer", clients, length, per_s: GETS_PER_S };
    let layers =
        Variants::measure(runner, &gateways, &load, |label, target| get(label, target, "/"));
    drop(gateways);
    let chats = if runner.is_interrupted() { None } else { Some(chats(runner)?) };
    let all = std::iter::once(&layers).chain(&chats);
    let costs = table("Layer", all);
    runner.report.sections.extend([
        of_layers(&layers),
        Section::new("Overhead by layer: alone over the bare gateway, then all", costs),
    ]);
    let (bare, full) = (layers.alone.first(), layers.alone.last());
    runner
        .report
        .bounds
        .extend(full.iter().flat_map(|all| judge("layer 1, all layers", all, &BOUNDS)));
    runner.report.bounds.push(cpu_bound(OVERHEAD, &layers, 0.1));
    runner.report.bounds.extend(bare.map(|bare| THROUGHPUT.judge("layer 1, bare", bare)));
    let capacity = full.map(|all| sizing::capacity("layer 1, all layers", &[all]));
    runner.capacities.extend(capacity);
    if let Some(chats) = &chats {
        let what = "chat of 128 tokens: CPU per request that all layers and the policy scan add";
        runner.report.bounds.push(cpu_bound(what, chats, 0.15));
        let all = chats.alone.last();
        let capacity = all.map(|all| sizing::capacity("chat, all layers", &[all]));
        runner.capacities.extend(capacity);
    }
    Ok(())
}

/// The published goal for the rate.
const THROUGHPUT: Limit = Quantity::THROUGHPUT.goal(GOAL_PER_S);
/// The published goals for times and errors of layer 1.
const GOALS: [Limit; 3] =
    [Quantity::P50.goal(10.0), Quantity::P99.goal(50.0), Quantity::ERRORS.goal(0.000_1)];
/// The published bounds of layer 1, which decide, and its goals, which do not.
const BOUNDS: [Limit; 5] =
    [Quantity::P99.bound(100.0), Quantity::ERRORS.bound(0.01), GOALS[0], GOALS[1], GOALS[2]];

/// The name of a bound and of its row.
const OVERHEAD: &str = "Layer overhead: CPU per request that all layers add";

fn cpu_bound(what: &str, variants: &Variants, share: f64) -> BoundResult {
    let bound = Requirement::below(share, percent);
    BoundResult::interval(what, variants.cpu_share_of_last(), bound).into_goal()
}

fn of_layers(layers: &Variants) -> Section {
    let (bare, all) = (layers.alone.first(), layers.alone.last());
    let overhead = cpu_bound(OVERHEAD, layers, 0.1);
    let table = metrics([
        THROUGHPUT.row("Throughput (bare, no layers)", bare),
        THROUGHPUT.row("Throughput (all layers active)", all),
        GOALS[0].row("P50 latency, all layers", all),
        GOALS[1].row("P99 latency, all layers", all),
        overhead.row(OVERHEAD),
        GOALS[2].row("Error rate", all),
    ]);
    Section::new("Layer 1 - gateway only (GET /, answered by the gateway itself)", table)
}

/// The user's gateway, whose layers cannot be switched.
fn as_it_is(
    runner: &mut SuiteRunner<'_>,
    target: &SuiteTarget,
    clients: u32,
) -> Result<(), SuiteError> {
    runner.section = "Overhead by layer";
    runner.skip_section(OWN_ONLY);
    let request = get("target as it is, GET /", target, "/");
    runner.section = "The target as it is";
    if !runner.serves(target, "/")? {
        return Ok(());
    }
    runner.probe_limits(&request)?;
    let measurement = request.clients(clients, length(runner.options, 30));
    let results = runner.measure(&[measurement], passes(runner.options, 3, 2));
    let name = "the target as it is";
    for result in &results {
        let shown = Some(result);
        let table = metrics([
            THROUGHPUT.row("Throughput", shown),
            GOALS[0].row("P50 latency", shown),
            GOALS[1].row("P99 latency", shown),
            GOALS[2].row("Error rate", shown),
        ]);
        runner.report.sections.push(Section::new("The target as it is (GET /)", table));
        runner.report.bounds.extend(judge(name, result, &BOUNDS));
        runner.capacities.push(sizing::capacity(name, &[result]));
    }
    Ok(())
}

/// Chats of 128 tokens to the mock: bare, and with every layer and the policy scan.
fn chats(runner: &mut SuiteRunner<'_>) -> Result<Variants, SuiteError> {
    let provider = runner.provider(&[])?;
    let gateways = runner.variants("layers", "chat", Some(&provider))?;
    let length = length(runner.options, 30);
    let load =
        VariantsLoad { label: "chat of 128 tokens", clients: 64, length, per_s: PAIRS_PER_S };
    Ok(Variants::measure(runner, &gateways, &load, |label, target| {
        with_identity(Measurement::chat(label, target, false, (128, 128)))
    }))
}

/// `GET` with the consumer's key and tenant.
fn get(label: &str, target: &SuiteTarget, path: &str) -> Measurement {
    with_identity(Measurement::get(label, target, path))
}

/// Adds the consumer's key and tenant to every request to a gateway of the suite.
pub(super) fn with_identity(measurement: Measurement) -> Measurement {
    let headers = identity(&measurement.target);
    headers.iter().fold(measurement, |measurement, (name, value)| measurement.header(name, value))
}

/// The headers of the consumer's key and tenant, which only a gateway of the suite knows.
pub(super) const fn identity(target: &SuiteTarget) -> &'static [(&'static str, &'static str)] {
    if target.external { &[] } else { &[KEY, TENANT] }
}

/// The path through the gateway, and the request it sends upstream.
const SMOKE: &str = "/smoke/get";
const UPSTREAM: &str = "/get";

/// Measures requests through the gateway to an upstream, with and without keys, with few and many
/// connections, and the upstream itself; of the user's gateway if the suite may load that, too.
pub(super) fn stack(runner: &mut SuiteRunner<'_>) -> Result<(), SuiteError> {
    runner.section = STACK;
    if let Some(target) = runner.target() {
        let Some(direct) = runner.direct() else {
            runner.skip_section(NO_DIRECT);
            return Ok(());
        };
        let serve = [runner.serves(&target, SMOKE)?, runner.serves(&direct, UPSTREAM)?];
        if serve != [true; 2] || runner.is_interrupted() {
            return Ok(());
        }
        let (target, direct) = behind(&target, &direct);
        let gateways = [("gateway", &target)];
        load_stack(runner, &direct, &gateways);
        return Ok(());
    }
    if runner.is_interrupted() {
        return Ok(());
    }
    let provider = runner.provider(&[])?;
    let gateways = runner.variants("layers", "stack", Some(&provider))?;
    let gateways: Vec<_> = gateways.iter().map(|(name, one)| (*name, &one.target)).collect();
    load_stack(runner, &provider.target(), &gateways);
    Ok(())
}

/// Loads the gateways, the second of which has keys, and the upstream, each alone; then sends the
/// same requests to all of them.
fn load_stack(
    runner: &mut SuiteRunner<'_>,
    upstream: &SuiteTarget,
    gateways: &[(&str, &SuiteTarget)],
) {
    let few = runner.options.clients.unwrap_or(200);
    let many = few.saturating_mul(5) / 2;
    let gateway = gateways[0].1;
    let keys = gateways.get(1).map(|keys| ("gateway -> upstream + key auth", keys.1, SMOKE, few));
    let rows = std::iter::once(("gateway -> upstream", gateway, SMOKE, few)).chain(keys).chain([
        ("gateway -> upstream", gateway, SMOKE, many),
        ("upstream direct, no gateway", upstream, UPSTREAM, few),
    ]);
    let length = length(runner.options, 30);
    let measurements: Vec<_> = rows
        .map(|(what, target, path, clients)| {
            get(&format!("{what} ({clients})"), target, path).clients(clients, length)
        })
        .collect();
    let results = runner.measure(&measurements, passes(runner.options, 3, 2));
    let behind = (DIRECT.to_owned(), upstream.below(UPSTREAM));
    let through = gateways.iter().map(|(name, target)| ((*name).to_owned(), target.below(SMOKE)));
    let targets: Vec<_> = std::iter::once(behind).chain(through).collect();
    let request = with_identity(Measurement::get_base("full stack", &targets[0].1))
        .rate(GETS_PER_S, comparison_length(runner.options, 30, TIMES_SHORT));
    let added = runner.compare(request, &targets, false);
    let columns = &[RESULT, P50, P99, ERRORS, GW_CORE, UPSTREAM_CORE, BOTTLENECK];
    let mut table = columns::results("Metric", columns, &results);
    add_share(&mut table, &results);
    runner.report.sections.extend([stack_added(&added), Section::new(STACK, table)]);
}

const STACK: &str = "Full stack (gateway -> upstream -> response)";
const RESULT: Column = ("Result", RPS.1);
const UPSTREAM_CORE: Column = ("load+upstream core", LOAD_CORE.1);

/// The gateway's overhead over the upstream.
fn stack_added(added: &ComparisonResult) -> Section {
    let mut table = Table::new(["Target", "p50", "added, median", "p99 shift"]);
    for target in std::iter::once(added.reference()).chain(added.compared()) {
        table.row([
            format!("{}{target}", added.marker()),
            added.p50(target),
            added.added_cell(target),
            added.tail_cell(target),
        ]);
    }
    Section::new("Overhead of the gateway over the upstream", table)
}

/// A gateway of the user's and its upstream, whose process is the provider's of both.
pub(super) fn behind(target: &SuiteTarget, direct: &SuiteTarget) -> (SuiteTarget, SuiteTarget) {
    let provider_pid = direct.gateway_pid;
    let target = SuiteTarget { provider_pid, ..target.clone() };
    (target, SuiteTarget { provider_pid, gateway_pid: None, name: String::new(), ..direct.clone() })
}

/// Adds the share of the upstream's own rate.
fn add_share(table: &mut Table, results: &[MeasurementResult]) {
    table.head.push("of upstream".to_owned());
    let upstream = results.last().and_then(MeasurementResult::throughput);
    for (row, result) in table.rows.iter_mut().zip(results) {
        let both = result.throughput().zip(upstream);
        let share = both.and_then(|(own, upstream)| Ratio::new(own, upstream, Bias::Takes));
        row.push(or_dash(share, |share| share.text(percent)));
    }
}
