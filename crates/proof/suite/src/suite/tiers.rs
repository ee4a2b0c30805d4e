//! The tiers suite: three sizes of chat, streamed and not, at rising rates up to the knee; then the
//! cost of each feature.

mod knee;

use plimsoll_measure::Nanos;
use plimsoll_report::format::{DASH, digits, or_dash, time_or_dash, time_us};
use plimsoll_report::table::Table;

use super::{columns, passes};
use crate::error::SuiteError;
use crate::finding::{self, Finding};
use crate::measurement::{Length, Measurement};
use crate::report::{Report, Section};
use crate::result::{Figures, MeasurementResult};
use crate::runner::SuiteRunner;
use crate::sizing::{self, Capacity};
use crate::target::{Gateway, Provider, SuiteTarget};
use knee::{Objective, knee};

/// A size of chat: name, built-in profile, and the number of clients that find its ceiling.
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

/// The rates of the sweep, as shares of the ceiling.
const STEPS: [f64; 5] = [0.25, 0.5, 0.7, 0.85, 1.0];
const STEPS_QUICK: [f64; 4] = [0.3, 0.6, 0.8, 1.0];
/// Turns off every layer that the preset turns on: the raw path.
const RAW: [&str; 5] =
    ["request_id=null", "metrics=null", "tenant=null", "cache=null", "budgets=null"];

/// A tier, measured.
struct TierResult {
    name: &'static str,
    stream: bool,
    ceiling: MeasurementResult,
    steps: Vec<MeasurementResult>,
}

pub(super) fn run(runner: &mut SuiteRunner<'_>) -> Result<Report, SuiteError> {
    let provider = match runner.target() {
        Some(_) => None,
        // It sends as many tokens as each tier asks for, at once: the rest is the gateway's work.
        None => Some(runner.provider(&[])?),
    };
    let gateway = match runner.target() {
        Some(target) => Gateway::external(target),
        None => runner.gateway("llm", &RAW.map(str::to_owned), provider.as_ref())?,
    };
    let mut tiers = Vec::new();
    for tier in &TIERS {
        if !runner.is_interrupted() {
            tiers.push(sweep(runner, &gateway.target, tier));
        }
    }
    let features = features(runner, provider.as_ref())?;
    runner.record_memory(&gateway);
    let title =
        "three sizes of chat, streamed and not, up to the knee; then each feature as a delta";
    let mut report = Report::begin("tiers", title, runner);
    report.sections.push(overview(&tiers));
    report.sections.extend(tiers.iter().map(steps));
    report.sections.push(deltas(&features));
    report.findings.extend(tiers.iter().filter_map(of_tier));
    report.findings.extend(of_features(&features));
    report.sizing = sizes(&tiers, runner);
    Ok(report.conclude())
}

fn length(runner: &SuiteRunner<'_>, usual: u64) -> Length {
    let own =
        if runner.options.quick { Nanos::from_millis(1_200) } else { Nanos::from_secs(usual) };
    let warmup = if runner.options.quick { Nanos::from_millis(300) } else { Nanos::from_secs(2) };
    Length::new(warmup, runner.options.duration.unwrap_or(own))
}

/// The closed loop finds the ceiling; the open loop measures the rates below it.
fn sweep(runner: &mut SuiteRunner<'_>, target: &SuiteTarget, tier: &Tier) -> TierResult {
    let measurement = |label: &str| Measurement::builtin(label, target, tier.profile, &[]);
    let clients = runner.options.clients.unwrap_or(tier.clients);
    let label = format!("{}, ceiling with {clients} clients", tier.name);
    let measurements = [measurement(&label).clients(clients, length(runner, 10))];
    let ceiling = runner.measure(&measurements, 1).into_iter().next().unwrap_or_default();
    let highest = ceiling.figures().and_then(|figures| figures.requests_per_s);
    let shares: &[f64] = if runner.options.quick { &STEPS_QUICK } else { &STEPS };
    let mut steps = Vec::new();
    for share in shares {
        let Some(highest) = highest.filter(|_| !runner.is_interrupted()) else { break };
        let rate = (highest * share).round().max(1.0);
        // Named by its share, not its rate: labels must be the same from run to run.
        let label = format!("{}, {:.0} % of the ceiling", tier.name, share * 100.0);
        let step = measurement(&label).rate(rate, length(runner, 30));
        let results = runner.measure(&[step], 1);
        let broken = results
            .first()
            .and_then(MeasurementResult::figures)
            .is_none_or(|f| !OBJECTIVE.kept(&f));
        steps.extend(results);
        if broken {
            break;
        }
    }
    TierResult { name: tier.name, stream: tier.stream, ceiling, steps }
}

/// The bounds that a sustained rate must keep.
const OBJECTIVE: Objective = Objective { achieved: 0.97, p99_ms: 100.0, errors: 0.001 };

/// Measures each feature on the raw path, with a chat of 550 tokens.
fn features(
    runner: &mut SuiteRunner<'_>,
    provider: Option<&Provider>,
) -> Result<Vec<MeasurementResult>, SuiteError> {
    if runner.target().is_some() {
        runner.skip(
            "each feature as a delta",
            "the suite cannot switch the features of a target; run it with each setting and use --baseline",
        );
        return Ok(Vec::new());
    }
    if runner.options.port.is_some() || runner.is_interrupted() {
        return Ok(Vec::new());
    }
    let audit = serde_json::json!({"path": runner.options.folder.join("audit-tiers.jsonl")});
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
        gateways.push((name, runner.gateway("llm", &sets, provider)?));
    }
    let length = length(runner, 20);
    let measurement = |(name, gateway): &(&str, Gateway)| {
        let measurement = Measurement::builtin(
            name,
            &gateway.target,
            "perf-550-nonstream",
            &["headers.x-tenant-id=load"],
        );
        measurement.clients(64, length)
    };
    let measurements: Vec<_> = gateways.iter().map(measurement).collect();
    Ok(runner.measure(&measurements, passes(runner.options, 3, 2)))
}

fn overview(tiers: &[TierResult]) -> Section {
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
        let of = |value: fn(&Figures) -> Option<f64>| time_or_dash(half.as_ref().and_then(value));
        table.row([
            format!("{}{}", tier.name, tier.ceiling.marker()),
            columns::throughput(&tier.ceiling),
            knee(&tier.steps, OBJECTIVE).map_or_else(|| DASH.to_owned(), |knee| knee.text()),
            of(|f| f.p50_ms),
            of(|f| f.p99_ms),
            if tier.stream { of(|f| f.ttft_p50_ms) } else { DASH.to_owned() },
            columns::cpu(&tier.ceiling),
            finding::bottleneck(&busy).word(busy.shared).to_owned(),
        ]);
    }
    let Objective { achieved, p99_ms, errors } = OBJECTIVE;
    Section::new("Raw path, every tier: what it carries and where it breaks", table)
        .note("the ceiling is that of a closed loop; the knee is the highest rate of the open sweep that keeps the objective, a lower bound if no rate broke it")
        .note(format!(
            "objective: {:.0}% of the planned rate achieved, p99 <= {p99_ms}ms, errors <= {:.1}%",
            achieved * 100.0,
            errors * 100.0
        ))
}

/// The figures of the step nearest to half of the ceiling.
fn half(tier: &TierResult) -> Option<Figures> {
    let ceiling = tier.ceiling.figures()?.requests_per_s?;
    let distance = |result: &&MeasurementResult| (result.rate.unwrap_or(0.0) - ceiling / 2.0).abs();
    tier.steps.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)))?.figures()
}

fn steps(tier: &TierResult) -> Section {
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
    for result in std::iter::once(&tier.ceiling).chain(&tier.steps) {
        table.row([
            columns::label(result),
            or_dash(result.rate, digits),
            or_dash(result.figures().and_then(|figures| figures.requests_per_s), digits),
            columns::time(result, |f| f.p50_ms),
            columns::time(result, |f| f.p95_ms),
            columns::time(result, |f| f.p99_ms),
            columns::time(result, |f| f.max_ms),
            columns::time(result, |f| f.ttft_p50_ms),
            columns::time(result, |f| f.ttft_p99_ms),
            columns::errors(result),
            columns::gateway_busy(result),
            columns::load_busy(result),
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
    for result in features {
        let raw = features.first().filter(|raw| raw.label != result.label);
        let cost = raw.and_then(|raw| finding::cost(raw, result));
        table.row([
            columns::label(result),
            columns::throughput(result),
            cost.map_or_else(
                || DASH.to_owned(),
                |cost| format!("{}{}", cost.text(), if cost.noise { " noise" } else { "" }),
            ),
            columns::cpu(result),
            or_dash(cost.and_then(|cost| cost.cpu_us), time_us),
            columns::time(result, |f| f.p50_ms),
            columns::time(result, |f| f.p99_ms),
            columns::gateway_busy(result),
            columns::load_busy(result),
        ]);
    }
    Section::new(
        "Each feature as a delta on the raw path (550/150, not streamed, 64 clients)",
        table,
    )
    .note("interleaved and paired pass by pass; a positive delta is throughput lost")
}

fn of_tier(tier: &TierResult) -> Option<Finding> {
    let figures = tier.ceiling.figures().filter(|_| !tier.ceiling.is_invalid())?;
    let limit = finding::bottleneck(&figures.busy).sentence(&figures.busy);
    Some(Finding::note(format!(
        "{}: ceiling {}/s; {limit}",
        tier.name,
        or_dash(figures.requests_per_s, digits)
    )))
}

fn of_features(features: &[MeasurementResult]) -> Vec<Finding> {
    let Some((raw, others)) = features.split_first() else { return Vec::new() };
    let of = |result: &MeasurementResult| Some(finding::cost(raw, result)?.finding(&result.label));
    others.iter().filter_map(of).collect()
}

fn sizes(tiers: &[TierResult], runner: &SuiteRunner<'_>) -> Option<Section> {
    let capacity = |tier: &TierResult| {
        let figures = tier.ceiling.figures().filter(|_| !tier.ceiling.is_invalid())?;
        let knee = knee(&tier.steps, OBJECTIVE).map(|knee| knee.rate);
        Some(Capacity {
            what: format!("chat {}", tier.name),
            per_s: knee.or(figures.requests_per_s)?,
            cores: figures.busy.gateway,
            memory: runner.memory,
        })
    };
    let capacities: Vec<_> = tiers.iter().filter_map(capacity).collect();
    if capacities.is_empty() {
        return None;
    }
    let (table, notes) = sizing::table(&capacities, runner.options.size_for);
    Some(Section { notes, ..Section::new("Instances for a rate", table) })
}
