//! The tables of the layers suite.

use plimsoll_measure::Nanos;
use plimsoll_metrics::{Bias, BoundedFigure};
use plimsoll_report::format::{DASH, count, digits, or_dash, percent, time_us};
use plimsoll_report::table::Table;

use super::agent_layers::{AgentLayers, OperationResult};
use super::gateway_layers::{ALL_LAYERS, FullStack, GatewayLayers};
use super::llm_layers::{GATEWAY, LlmLayers, Misses};
use super::log_writer::{self, WriterLimit};
use super::request_log::RequestLog;
use super::store_ops::{AT_ONCE, StoreOps};
use crate::comparison_plan::slug;
use crate::finding;
use crate::ratio::Ratio;
use crate::report::Section;
use crate::result::{Figures, MeasurementResult};
use crate::suite::columns;

/// Metric, result, target: the columns of the published benchmark.
fn metrics(rows: &[(&str, String, &str)]) -> Table {
    let mut table = Table::new(["Metric", "Result", "Target"]);
    for (metric, result, target) in rows {
        table.row([(*metric).to_owned(), result.clone(), (*target).to_owned()]);
    }
    table
}

/// The same with the share of a least target that is reached, where a row has a rate.
fn metrics_of_target(rows: &[(&str, String, &str)], shares: &[Option<String>]) -> Table {
    let mut table = Table::new(["Metric", "Result", "Target", "of target"]);
    for ((metric, result, target), share) in rows.iter().zip(shares) {
        let share = or_dash(share.clone(), |share| share);
        table.row([(*metric).to_owned(), result.clone(), (*target).to_owned(), share]);
    }
    table
}

/// A rate as a share of its target, which it reaches at least: the generator can only have held it
/// back.
fn of_target(result: Option<&MeasurementResult>, least: f64) -> Option<String> {
    let rate = result?.throughput()?;
    let at_least = if rate.refused.is_some() { ">= " } else { "" };
    Some(format!("{at_least}{}", percent(rate.value / least)))
}

/// A time of a result, behind the mark of the result: these tables have no row for each result.
fn figure(result: Option<&MeasurementResult>, of: fn(&Figures) -> Option<BoundedFigure>) -> String {
    or_dash(result, |result| columns::marked(result, &columns::time(result, of)))
}

/// A share of errors, or another number that is never refused alone.
fn number(
    result: Option<&MeasurementResult>,
    of: fn(&Figures) -> Option<f64>,
    format: fn(f64) -> String,
) -> String {
    or_dash(result, |result| {
        columns::marked(result, &or_dash(result.shown().as_ref().and_then(of), format))
    })
}

fn throughput(result: Option<&MeasurementResult>) -> String {
    result.map_or_else(
        || DASH.to_owned(),
        |result| columns::marked(result, &columns::throughput(result)),
    )
}

pub(super) fn gateway(layers: &GatewayLayers) -> Vec<Section> {
    if let Some(target) = &layers.as_it_is {
        return vec![as_it_is(target)];
    }
    let (bare, all) = (layers.alone.first(), layers.alone.last());
    if bare.is_none() {
        return Vec::new();
    }
    let overhead = layers.added.as_ref().and_then(|added| added.cpu_share(&slug(ALL_LAYERS)).ok());
    let rows = [
        ("Throughput (bare, no layers)", throughput(bare), ">= 50,000/s"),
        ("Throughput (all layers active)", throughput(all), ">= 50,000/s"),
        ("P50 latency, all layers", figure(all, |f| f.p50_ms), "< 10ms"),
        ("P99 latency, all layers", figure(all, |f| f.p99_ms), "< 50ms"),
        (
            "Layer overhead, of the CPU per request",
            or_dash(overhead, |share| {
                let [value, low, high] = share.map(percent);
                format!("{value} [{low}, {high}]")
            }),
            "< 10%",
        ),
        ("Error rate", number(all, |f| f.error_share, percent), "< 0.01%"),
    ];
    let shares = [of_target(bare, 50_000.0), of_target(all, 50_000.0), None, None, None, None];
    let alone = Section::new("Layer 1 - gateway only (GET /, answered by the gateway itself)", metrics_of_target(&rows, &shares))
        .note("whether a target is met is judged under Bounds; this gateway has one worker on one core, and the published 50,000/s are of 4 vCPU");
    vec![alone, costs(layers)]
}

/// The user's gateway: one row, as nothing of it can be switched.
fn as_it_is(target: &MeasurementResult) -> Section {
    let result = Some(target);
    let rows = [
        ("Throughput", throughput(result), ">= 50,000/s"),
        ("P50 latency", figure(result, |f| f.p50_ms), "< 10ms"),
        ("P99 latency", figure(result, |f| f.p99_ms), "< 50ms"),
        ("Error rate", number(result, |f| f.error_share, percent), "< 0.01%"),
    ];
    let shares = [of_target(result, 50_000.0), None, None, None];
    Section::new("The target as it is (GET /)", metrics_of_target(&rows, &shares))
        .note("whether a target is met is judged under Bounds; what its layers cost is unknown: the suite cannot switch them")
}

fn costs(layers: &GatewayLayers) -> Section {
    let mut table = columns::variants("Layer");
    let groups = [(&layers.alone, &layers.added), (&layers.chats, &layers.added_to_chats)];
    for (results, added) in groups {
        for (index, result) in results.iter().enumerate() {
            table.row(columns::variant(result, added.as_ref().filter(|_| index > 0)));
        }
    }
    Section::new("What each layer adds: alone to the bare gateway, then all", table)
        .note(columns::ADDED_BY_VARIANTS)
        .note("the other columns are of each variant by itself, in a closed loop: times are service times. They are measured one after another, and no cost is taken from them")
        .note("the scrub reads answers of upstreams, and GET / is the gateway's own: the row of the scrub alone shows what it costs where there is nothing to read. What reading costs is below, in the answers of an upstream, and in the chats with all layers")
}

/// What the gateway adds to the upstream.
pub(super) fn stack_added(stack: &FullStack) -> Option<Section> {
    let added = stack.added.as_ref()?;
    let mut table = Table::new(["Target", "p50", "added, median", "p99 shift"]);
    for target in std::iter::once(added.reference()).chain(added.compared()) {
        table.row([
            format!("{}{target}", added.marker()),
            added.p50(target),
            added.added_cell(target),
            added.tail_cell(target),
        ]);
    }
    Some(
        Section::new("What the gateway adds to the upstream", table)
            .note("every request goes to the upstream itself and through each gateway, close together; differences request by request, with their 95 % intervals and what the generator may have added"),
    )
}

pub(super) fn stack(stack: &FullStack) -> Section {
    let mut table = Table::new([
        "Metric",
        "Result",
        "p50",
        "p99",
        "Errors",
        "gw core",
        "load+upstream core",
        "Bottleneck",
    ]);
    for result in &stack.results {
        table.row([
            columns::label(result),
            columns::throughput(result),
            columns::time(result, |f| f.p50_ms),
            columns::time(result, |f| f.p99_ms),
            columns::errors(result),
            columns::gateway_busy(result),
            columns::load_busy(result),
            columns::bottleneck(result),
        ]);
    }
    Section::new("Full stack (gateway -> upstream -> response)", table)
        .note("times are service times; Bottleneck: whose core was at least 90 % busy by measured CPU time")
}

pub(super) fn llm(layers: &LlmLayers, is_ours: bool) -> Vec<Section> {
    let mut sections = Vec::new();
    if let (Some(hit), Some(proof)) = (&layers.hit, &layers.proof) {
        sections.push(hits(hit, layers.live.as_ref(), is_ours).note(proof));
    }
    sections.extend(layers.misses.as_ref().map(misses));
    sections.extend(layers.streams.as_ref().map(streams));
    sections
}

fn hits(hit: &MeasurementResult, live: Option<&MeasurementResult>, is_ours: bool) -> Section {
    let rates = hit.throughput().zip(live.and_then(MeasurementResult::throughput));
    let of_live = rates.and_then(|(hit, live)| Ratio::new(hit, live, Bias::Takes));
    let result = Some(hit);
    let rows = [
        ("Cache-hit throughput", throughput(result), ">= 2,000/s"),
        ("Cache-hit average", figure(result, |f| f.mean_ms), "< 5ms"),
        ("Cache-hit P99", figure(result, |f| f.p99_ms), "< 20ms"),
        ("Cache-hit error rate", number(result, |f| f.error_share, percent), "< 0.01%"),
        (
            "Cache-hit rate over /health/live of the same gateway",
            or_dash(of_live, |share| share.text(percent)),
            ">= 50%",
        ),
    ];
    let shares = [of_target(result, 2_000.0), None, None, None, None];
    // What else a target does for a hit is not known.
    let with = if is_ours { " (tenant, cache and budget check on every request)" } else { "" };
    let title = format!("Layer 2 - LLM gateway, cache hits{with}");
    Section::new(title, metrics_of_target(&rows, &shares))
}

fn misses(misses: &Misses) -> Section {
    let Misses { added, per_s, is_ours } = misses;
    let rows = [
        ("Cache miss: added to the provider, median", added.marked_added(GATEWAY), "< 20ms"),
        ("Cache miss: CPU of the gateway per request", added.marked_own_cpu(GATEWAY), ""),
    ];
    let delay = if *is_ours { " (20 ms to the first token)" } else { "" };
    Section::new("Layer 2 - LLM gateway, cache misses", metrics(&rows)).note(format!(
        "the same prompts, which never repeat, go to the gateway and to the provider itself{delay}, close together, {per_s} a second to each"
    ))
}

fn streams(result: &MeasurementResult) -> Section {
    let mut table = Table::new([
        "Streams",
        "finished/s",
        "errors",
        "TTFT p50",
        "TTFT p99",
        "gap p99",
        "gw core",
        "load core",
    ]);
    table.row([
        columns::label(result),
        columns::throughput(result),
        columns::errors(result),
        columns::time(result, |f| f.ttft_p50_ms),
        columns::time(result, |f| f.ttft_p99_ms),
        columns::time(result, |f| f.gap_p99_ms),
        columns::gateway_busy(result),
        columns::load_busy(result),
    ]);
    Section::new("Layer 2 - concurrent SSE streams through the gateway", table)
        .note("the provider sends a first token after 100 ms and 19 more, one every 200 ms; the published benchmark has 10,000 at once, --short runs 1,000")
}

/// Operations of the third layer.
pub(super) fn agents(layers: &AgentLayers, clients: (u32, u32)) -> Section {
    let (few, many) = clients;
    let mut table = Table::new([
        "Operation",
        "Store",
        &*format!("RPS, {many} clients"),
        &*format!("p99, {few} clients"),
        &*format!("p99, {many} clients"),
        "p99, half of it",
        "Errors",
        "gw CPU/req",
        "gw memory",
        "Target",
    ]);
    for OperationResult { operation, store, few, many, half } in &layers.rows {
        table.row([
            operation.name.to_owned(),
            (*store).to_owned(),
            throughput(many.as_ref()),
            figure(few.as_ref(), |f| f.p99_ms),
            figure(many.as_ref(), |f| f.p99_ms),
            figure(half.as_ref(), |f| f.p99_ms),
            number(half.as_ref(), |f| f.error_share, percent),
            or_dash(half.as_ref(), |half| columns::marked(half, &columns::cpu(half))),
            or_dash(half.as_ref(), columns::memory),
            format!("< {}ms", operation.goal_ms),
        ]);
    }
    Section::new("Layer 3 - agent gateway (sessions, tools, agents, approvals)", table)
        .note("half of it: arrivals at half the rate that the clients of the first column reached, whether or not answers come; there times are response times, errors and CPU are of it, and it alone is judged. With clients, times are service times")
        .note("the proxied tool and the agent are the mock's, which answers at once")
}

pub(super) fn log(log: &RequestLog) -> Section {
    let rows = [
        ("Rows (requests) per second", throughput(Some(&log.result)), ">= 50,000/s"),
        ("Accepted", or_dash(log.accepted, digits), ""),
        ("Written", or_dash(log.written, digits), ""),
        ("Dropped, and counted", or_dash(log.dropped, digits), ""),
        ("Lines in the file after the end", count(log.lines), "= written"),
    ];
    let limit = log.result.figures().map(|figures| {
        let limit = finding::bottleneck(&figures.busy).sentence(&figures.busy);
        format!(": {limit}")
    });
    let limit = limit.unwrap_or_default();
    Section::new("Log writing (asynchronous, in batches, JSON lines)", metrics(&rows)).note(
        format!(
            "the rate is that of the requests that make the rows, not the writer's limit{limit}"
        ),
    )
}

/// The writer of the log by itself.
pub(super) fn log_writer(limits: &[WriterLimit]) -> Section {
    let mut table =
        Table::new(["Rows to", "rows/s", "Written", "There", "Dropped", "Secs", "published"]);
    for limit in limits {
        table.row([
            limit.to.to_owned(),
            digits(limit.per_s()),
            count(limit.stats.written),
            or_dash(limit.there, count),
            count(limit.stats.dropped.total()),
            digits(limit.took_s),
            "50,000+/s (estimated)".to_owned(),
        ]);
    }
    let (until, there) = if limits.len() > 1 {
        ("on the disk, or confirmed by ClickHouse", "in the file, or by ClickHouse itself")
    } else {
        ("on the disk", "in the file")
    };
    Section::new(log_writer::TITLE, table)
        .note(format!("two threads offer rows of chats as fast as the writer takes them, until the last one is {until}; there: counted {there}"))
}

pub(super) fn store_ops(ops: &StoreOps) -> Section {
    let mut table =
        Table::new(["Operation", "Store", "p50", "p99", "Max", "Count", "ops/s, 64 at once"]);
    for op in &ops.rows {
        table.row([
            op.operation.to_owned(),
            op.store.to_owned(),
            micros_cell(op.times.quantile(0.5)),
            micros_cell(op.times.quantile(0.99)),
            micros_cell(op.times.max()),
            count(op.times.count()),
            digits(op.per_s),
        ]);
    }
    let has_redis = ops.rows.iter().any(|op| op.store == "Redis");
    let redis = if has_redis { "; Redis on this machine over loopback" } else { "" };
    Section::new("Store operations, one after another (target: each < 1 ms)", table)
        .note(format!("ops/s: {AT_ONCE} at once over one connection of one thread, each repeated as soon as it ends"))
        .note(format!("the gateway's own store library, called from this process{redis}"))
}

fn micros_cell(value: Option<Nanos>) -> String {
    or_dash(value.map(Nanos::as_micros_f64), time_us)
}

/// The figures of the published benchmark.
pub(super) fn references() -> Vec<Section> {
    let rows = [
        ("Layer 1: throughput, bare", "46,665/s", "50,000/s"),
        ("Layer 1: throughput, all plugins", "43,011/s", "50,000/s"),
        ("Layer 1: P50 / P99", "5.25ms / ~15ms", "< 10 / < 50ms"),
        ("Layer 1: plugin overhead", "< 8%", "< 10%"),
        ("Full stack, 200 connections", "961/s", ""),
        ("Full stack + key auth", "848/s", ""),
        ("Full stack, 500 connections", "951/s", ""),
        ("Upstream direct (Python httpbin)", "1,835/s", ""),
        ("Layer 2: cache hit, 30 workers", "599/s", "2,000/s"),
        ("Layer 2: cache hit, average / P99", "18.43ms / 61.23ms", "< 5 / < 20ms"),
        ("Log writing (estimated)", "50,000+/s", ""),
        ("Store operations in Redis", "< 1 ms each", "< 1ms"),
    ];
    let rows = rows.map(|(metric, result, target)| (metric, result.to_owned(), target));
    vec![
        Section::new("Reference: APISIX and Rust gateways on AWS m6a.xlarge (4 vCPU, 16 GB), wrk, 2026-04-09", metrics(&rows))
            .note("other gateways on other hardware, as their authors published them: not comparable with the rows above")
            .note("the stack falls 48 % below its upstream and the report blames the upstream; the cache-hit rate is bound by a client that starts a process per request"),
    ]
}
