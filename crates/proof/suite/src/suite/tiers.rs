//! S3: three sizes of chat, streamed and not, at rising rates up to the knee; then each feature as a delta.

mod knee;

use plimsoll_measure::Nanos;

use crate::bench::Bench;
use crate::cell::{Figures, MeasurementResult};
use crate::error::SuiteError;
use crate::finding::{self, Finding};
use crate::job::{Job, Length};
use crate::report::{Report, Section};
use crate::sizing::{self, Capacity};
use crate::subject::{Gateway, Provider, Subject};
use crate::table::Table;
use crate::words::{dash, micros, millis, rate};

use super::{columns, passes};
use knee::{Objective, knee};

/// A tier: name, built-in profile, and how many clients find its ceiling.
struct Tier {
    name: &'static str,
    profile: &'static str,
    clients: u32,
    stream: bool,
}

const TIERS: [Tier; 6] = [
    Tier { name: "128/128", profile: "perf-128-nonstream", clients: 64, stream: false },
    Tier { name: "128/128 SSE", profile: "perf-128-stream", clients: 64, stream: true },
    Tier { name: "550/150", profile: "perf-550-nonstream", clients: 64, stream: false },
    Tier { name: "550/150 SSE", profile: "perf-550-stream", clients: 64, stream: true },
    Tier { name: "12.5k/64", profile: "perf-hotpath-nonstream", clients: 32, stream: false },
    Tier { name: "12.5k/64 SSE", profile: "perf-hotpath-stream", clients: 32, stream: true },
];

/// Shares of the ceiling that the sweep tries.
const STEPS: [f64; 5] = [0.25, 0.5, 0.7, 0.85, 1.0];
const STEPS_QUICK: [f64; 4] = [0.3, 0.6, 0.8, 1.0];
/// The layers that the persona switches on, off: the raw path.
const RAW: [&str; 5] =
    ["request_id=null", "metrics=null", "tenant=null", "cache=null", "budgets=null"];

/// A tier, measured.
struct Measured {
    name: &'static str,
    stream: bool,
    ceiling: MeasurementResult,
    steps: Vec<MeasurementResult>,
}

pub(super) fn run(bench: &mut Bench<'_>) -> Result<Report, SuiteError> {
    let provider = match bench.target() {
        Some(_) => None,
        // As many tokens as each tier asks for, at once: what is left is the gateway's work.
        None => Some(bench.provider(&[])?),
    };
    let gateway = match bench.target() {
        Some(subject) => Gateway::theirs(subject),
        None => bench.gateway("llm", &RAW.map(str::to_owned), provider.as_ref())?,
    };
    let mut tiers = Vec::new();
    for tier in &TIERS {
        if !bench.is_over() {
            tiers.push(sweep(bench, &gateway.subject, tier));
        }
    }
    let features = features(bench, provider.as_ref())?;
    bench.retire(&gateway);
    let title =
        "three sizes of chat, streamed and not, up to the knee; then each feature as a delta";
    let mut report = Report::begin("tiers", title, bench);
    report.sections.push(overview(&tiers));
    report.sections.extend(tiers.iter().map(steps));
    report.sections.push(deltas(&features));
    report.findings.extend(tiers.iter().filter_map(of_tier));
    report.findings.extend(of_features(&features));
    report.sizing = sizes(&tiers, bench);
    Ok(report.conclude())
}

fn length(bench: &Bench<'_>, usual: u64) -> Length {
    let own = if bench.order.quick { Nanos::from_millis(1_200) } else { Nanos::from_secs(usual) };
    let warmup = if bench.order.quick { Nanos::from_millis(300) } else { Nanos::from_secs(2) };
    Length::new(warmup, bench.order.duration.unwrap_or(own))
}

/// The closed loop finds the ceiling, the open loop what happens on the way there.
fn sweep(bench: &mut Bench<'_>, subject: &Subject, tier: &Tier) -> Measured {
    let job = |label: &str| Job::builtin(label, subject, tier.profile, &[]);
    let clients = bench.order.clients.unwrap_or(tier.clients);
    let label = format!("{}, ceiling with {clients} clients", tier.name);
    let jobs = [job(&label).clients(clients, length(bench, 10))];
    let ceiling = bench.measure(&jobs, 1).into_iter().next().unwrap_or_default();
    let highest = ceiling.figures().and_then(|figures| figures.requests_per_s);
    let shares: &[f64] = if bench.order.quick { &STEPS_QUICK } else { &STEPS };
    let mut steps = Vec::new();
    for share in shares {
        let Some(highest) = highest.filter(|_| !bench.is_over()) else { break };
        let rate = (highest * share).round().max(1.0);
        // The share and not the rate is the name: labels are the same from run to run.
        let label = format!("{}, {:.0} % of the ceiling", tier.name, share * 100.0);
        let step = job(&label).rate(rate, length(bench, 30));
        let cells = bench.measure(&[step], 1);
        let broken = cells
            .first()
            .and_then(MeasurementResult::figures)
            .is_none_or(|f| !objective(tier.stream).kept(&f));
        steps.extend(cells);
        if broken {
            break;
        }
    }
    Measured { name: tier.name, stream: tier.stream, ceiling, steps }
}

const fn objective(_stream: bool) -> Objective {
    Objective { achieved: 0.97, p99_ms: 100.0, errors: 0.001 }
}

/// Each feature on the raw path, with a chat of 550 tokens.
fn features(
    bench: &mut Bench<'_>,
    provider: Option<&Provider>,
) -> Result<Vec<MeasurementResult>, SuiteError> {
    if bench.target().is_some() {
        bench.skip(
            "each feature as a delta",
            "the features of a target are not ours to switch; run the suite with each setting and use --baseline",
        );
        return Ok(Vec::new());
    }
    if bench.order.port.is_some() || bench.is_over() {
        return Ok(Vec::new());
    }
    let audit = serde_json::json!({"path": bench.order.folder.join("audit-tiers.jsonl")});
    let audit = format!("audit={audit}");
    let rows: [(&str, &[&str]); 8] = [
        ("raw path", &[]),
        ("request id and metrics", &["request_id={}", "metrics={}"]),
        ("key auth", &["auth={header: authorization, keys: [{name: suite, key: any}]}"]),
        ("cache (always missed)", &["tenant={header: x-tenant-id}", "cache={}"]),
        ("budget", &["tenant={header: x-tenant-id}", "budgets={default: 1000000000000}"]),
        ("policy scan of requests", &["policy={}"]),
        ("response PII scrub", &["scrub={}"]),
        ("audit rows", &[&audit]),
    ];
    let mut gateways = Vec::new();
    for (name, sets) in rows {
        let sets: Vec<_> = RAW.iter().chain(sets).map(|&set| set.to_owned()).collect();
        gateways.push((name, bench.gateway("llm", &sets, provider)?));
    }
    let length = length(bench, 20);
    let job = |(name, gateway): &(&str, Gateway)| {
        let job = Job::builtin(
            name,
            &gateway.subject,
            "perf-550-nonstream",
            &["headers.x-tenant-id=load"],
        );
        job.clients(64, length)
    };
    let jobs: Vec<_> = gateways.iter().map(job).collect();
    Ok(bench.measure(&jobs, passes(bench.order, 3, 2)))
}

fn overview(tiers: &[Measured]) -> Section {
    let heads = [
        "Tier (in/out tokens)",
        "ceiling/s",
        "knee/s",
        "p50 at half",
        "p99 at half",
        "TTFT p50",
        "gw CPU/req",
        "Bottleneck at the ceiling",
    ];
    let mut table = Table::new(heads);
    for tier in tiers {
        let busy = tier.ceiling.figures().map(|figures| figures.busy).unwrap_or_default();
        let half = half(tier);
        let of = |value: fn(&Figures) -> Option<f64>| millis(half.as_ref().and_then(value));
        table.row([
            format!("{}{}", tier.name, tier.ceiling.mark()),
            columns::throughput(&tier.ceiling),
            knee(&tier.steps, objective(tier.stream)).map_or_else(dash, |knee| knee.words()),
            of(|f| f.p50_ms),
            of(|f| f.p99_ms),
            if tier.stream { of(|f| f.ttft_p50_ms) } else { dash() },
            columns::cpu(&tier.ceiling),
            finding::limiter(&busy).word(busy.shared).to_owned(),
        ]);
    }
    let Objective { achieved, p99_ms, errors } = objective(false);
    Section::new("Raw path, every tier: what it carries and where it breaks", table)
        .note("the ceiling is that of a closed loop; the knee is the highest rate of the open sweep that keeps the objective, and a lower bound where none broke it")
        .note(format!(
            "objective: {:.0} % of the planned rate achieved, p99 <= {p99_ms} ms, errors <= {:.1} %",
            achieved * 100.0,
            errors * 100.0
        ))
}

/// The step nearest to half of the ceiling.
fn half(tier: &Measured) -> Option<Figures> {
    let ceiling = tier.ceiling.figures()?.requests_per_s?;
    let distance = |cell: &&MeasurementResult| (cell.rate.unwrap_or(0.0) - ceiling / 2.0).abs();
    tier.steps.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)))?.figures()
}

fn steps(tier: &Measured) -> Section {
    let heads = [
        "Step",
        "planned/s",
        "achieved/s",
        "p50",
        "p95",
        "p99",
        "Max",
        "TTFT p50",
        "TTFT p99",
        "errors",
        "gw core",
        "load core",
    ];
    let mut table = Table::new(heads);
    for cell in std::iter::once(&tier.ceiling).chain(&tier.steps) {
        table.row([
            columns::label(cell),
            rate(cell.rate),
            rate(cell.figures().and_then(|figures| figures.requests_per_s)),
            columns::time(cell, |f| f.p50_ms),
            columns::time(cell, |f| f.p95_ms),
            columns::time(cell, |f| f.p99_ms),
            columns::time(cell, |f| f.max_ms),
            columns::time(cell, |f| f.ttft_p50_ms),
            columns::time(cell, |f| f.ttft_p99_ms),
            columns::errors(cell),
            columns::gateway_busy(cell),
            columns::load_busy(cell),
        ]);
    }
    Section::new(format!("Sweep of {}", tier.name), table)
}

fn deltas(features: &[MeasurementResult]) -> Section {
    let heads = [
        "Feature on the raw path",
        "RPS",
        "delta of throughput",
        "gw CPU/req",
        "adds",
        "p50",
        "p99",
        "gw core",
        "load core",
    ];
    let mut table = Table::new(heads);
    for cell in features {
        let raw = features.first().filter(|raw| raw.label != cell.label);
        let cost = raw.and_then(|raw| finding::cost(raw, cell));
        table.row([
            columns::label(cell),
            columns::throughput(cell),
            cost.map_or_else(dash, |cost| {
                format!("{}{}", cost.words(), if cost.noise { " noise" } else { "" })
            }),
            columns::cpu(cell),
            cost.map_or_else(dash, |cost| micros(cost.cpu_us)),
            columns::time(cell, |f| f.p50_ms),
            columns::time(cell, |f| f.p99_ms),
            columns::gateway_busy(cell),
            columns::load_busy(cell),
        ]);
    }
    Section::new(
        "Each feature as a delta on the raw path (550/150, not streamed, 64 clients)",
        table,
    )
    .note("interleaved and paired pass by pass; a positive delta is throughput lost")
}

fn of_tier(tier: &Measured) -> Option<Finding> {
    let figures = tier.ceiling.figures().filter(|_| !tier.ceiling.is_invalid())?;
    let who = finding::limiter(&figures.busy).sentence(&figures.busy);
    Some(Finding::note(format!("{}: ceiling {}/s; {who}", tier.name, rate(figures.requests_per_s))))
}

fn of_features(features: &[MeasurementResult]) -> Vec<Finding> {
    let Some((raw, others)) = features.split_first() else { return Vec::new() };
    let of = |cell: &MeasurementResult| Some(finding::cost(raw, cell)?.finding(&cell.label));
    others.iter().filter_map(of).collect()
}

fn sizes(tiers: &[Measured], bench: &Bench<'_>) -> Option<Section> {
    let capacity = |tier: &Measured| {
        let figures = tier.ceiling.figures().filter(|_| !tier.ceiling.is_invalid())?;
        let knee = knee(&tier.steps, objective(tier.stream)).map(|knee| knee.rate);
        Some(Capacity {
            what: format!("chat {}", tier.name),
            per_s: knee.or(figures.requests_per_s)?,
            cores: figures.busy.gateway,
            memory: bench.memory,
        })
    };
    let capacities: Vec<_> = tiers.iter().filter_map(capacity).collect();
    if capacities.is_empty() {
        return None;
    }
    let (table, notes) = sizing::table(&capacities, bench.order.size_for);
    Some(Section { notes, ..Section::new("Instances for a rate", table) })
}
