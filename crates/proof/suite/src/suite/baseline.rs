//! S0: the cheap endpoints under few and many clients, with layers on and off.

use crate::bench::Bench;
use crate::cell::MeasurementResult;
use crate::error::SuiteError;
use crate::finding::{self, Finding};
use crate::job::{Job, Length};
use crate::report::{Report, Section};
use crate::sizing::{self, Capacity};
use crate::subject::{Gateway, Provider, Subject};
use crate::table::Table;
use crate::words::whole;

use super::{columns, length, passes};

const ENDPOINTS: [&str; 3] = ["/health/live", "/health", "/metrics"];
/// The sweep, and the default between its ends.
const FEW: u32 = 32;
const MANY: u32 = 256;
const USUAL: u32 = 64;
/// The key that the variant with keys asks for.
const KEY: &str = "suite-key";

pub(super) fn run(bench: &mut Bench<'_>) -> Result<Report, SuiteError> {
    let length = length(bench.order, 10);
    let provider = match bench.target() {
        Some(_) => None,
        None => Some(bench.provider(&[])?),
    };
    let gateway = match bench.target() {
        Some(subject) => Gateway::theirs(subject),
        None => bench.gateway("baseline", &off(), provider.as_ref())?,
    };
    let sweep = sweep(bench, &gateway, length);
    let variants = variants(bench, &gateway, provider.as_ref(), length)?;
    let chats = chats(bench, &gateway.subject, length)?;
    bench.retire(&gateway);
    bench.skip(
        "WebSocket load",
        "the engine speaks HTTP only; the gateway passes WebSockets through, and its own tests load them",
    );
    let mut report =
        Report::begin("baseline", "the cheap endpoints, under few and many clients", bench);
    let base = sweep.iter().find(|cell| cell.label.starts_with("GET /health/live,"));
    report.sections.extend(sections(&sweep));
    report.sections.push(variants_section(&variants));
    report.sections.push(chats_section(&chats));
    report.findings = findings(&sweep, &variants);
    report.findings.extend(base.and_then(finding::sub_millisecond));
    report.sizing = sizes(&sweep, &chats, bench);
    report.references.push(reference());
    Ok(report.conclude())
}

/// Settings of the plain gateway: neither keys nor limits.
fn off() -> Vec<String> {
    ["auth=null", "rate_limits=[]"].map(str::to_owned).into()
}

fn clients(bench: &Bench<'_>) -> Vec<u32> {
    match (bench.order.clients, bench.order.quick) {
        (Some(asked), _) => vec![asked],
        (None, true) => vec![FEW, MANY],
        (None, false) => vec![FEW, USUAL, MANY],
    }
}

fn sweep(bench: &mut Bench<'_>, gateway: &Gateway, length: Length) -> Vec<MeasurementResult> {
    let clients = clients(bench);
    let job = |path: &str, clients| {
        let label = format!("GET {path}, {clients} clients");
        Job::get(&label, &gateway.subject, path).clients(clients, length)
    };
    let jobs: Vec<_> =
        clients.iter().flat_map(|&clients| ENDPOINTS.map(|path| job(path, clients))).collect();
    let passes = passes(bench.order, 1, 3);
    bench.measure(&jobs, passes)
}

/// The same endpoint with keys, with limits, with both: interleaved with the plain gateway.
fn variants(
    bench: &mut Bench<'_>,
    plain: &Gateway,
    provider: Option<&Provider>,
    length: Length,
) -> Result<Vec<MeasurementResult>, SuiteError> {
    if bench.target().is_some() {
        bench.skip(
            "keys and rate limits on and off",
            "the layers of a target are not ours to switch; start it both ways, run the suite twice and use --baseline",
        );
        return Ok(Vec::new());
    }
    let order = bench.order;
    // A fixed port is taken by the plain gateway.
    let (keys, limits) = (keys(), limits());
    let both = [keys.clone(), limits.clone()].concat();
    let mut gateways = Vec::new();
    if order.port.is_none() {
        for (name, sets) in
            [("keys", keys), ("rate limits", limits), ("keys and rate limits", both)]
        {
            gateways.push((name, bench.gateway("baseline", &sets, provider)?));
        }
    } else {
        bench.skip(
            "keys and rate limits on",
            "a second gateway needs a port of its own; leave --port out",
        );
    }
    let clients = order.clients.unwrap_or(USUAL);
    let job = |name: &str, subject: &Subject| {
        let label = format!("GET {GUARDED}, {name}");
        let job = Job::get(&label, subject, GUARDED).clients(clients, length);
        if name.contains("keys") {
            job.header("authorization", &format!("Bearer {KEY}"))
        } else {
            job
        }
    };
    let mut jobs = vec![job("plain", &plain.subject)];
    jobs.extend(gateways.iter().map(|(name, gateway)| job(name, &gateway.subject)));
    let cells = bench.measure(&jobs, passes(order, 3, 3));
    for (_, gateway) in &gateways {
        bench.retire(gateway);
    }
    Ok(cells)
}

/// In this persona keys and limits guard everything.
const GUARDED: &str = "/health/live";

fn keys() -> Vec<String> {
    vec![
        format!("auth={{header: authorization, keys: [{{name: suite, key: {KEY}}}]}}"),
        "rate_limits=[]".to_owned(),
    ]
}

/// Limits that count every request and refuse none.
fn limits() -> Vec<String> {
    vec![
        "rate_limits=[{per: global, requests: 1000000000, window: 60s}, {per: address, requests: 1000000000, window: 60s}]".to_owned(),
    ]
}

/// Chats through the gateway to the fake provider, streamed and not.
///
/// Streams come at a reader's pace: a provider that sends them at once would show how fast the load reads.
fn chats(
    bench: &mut Bench<'_>,
    subject: &Subject,
    length: Length,
) -> Result<Vec<MeasurementResult>, SuiteError> {
    let paced = if bench.target().is_some() || bench.order.port.is_some() {
        None
    } else {
        let provider = bench.provider(&["--ttft", "20ms", "--gap", "2ms", "--tokens", "16"])?;
        let gateway = bench.gateway("baseline", &off(), Some(&provider))?;
        Some((gateway, provider))
    };
    let clients = bench.order.clients.unwrap_or(USUAL);
    let jobs = [false, true].map(|stream| {
        let how = if stream { "SSE stream" } else { "plain" };
        let label = format!("POST /v1/chat/completions, {how}");
        let paced = paced.as_ref().filter(|_| stream).map(|(gateway, _)| &gateway.subject);
        Job::chat(&label, paced.unwrap_or(subject), stream, (128, 64)).clients(clients, length)
    });
    let passes = passes(bench.order, 1, 2);
    Ok(bench.measure(&jobs, passes))
}

fn sections(sweep: &[MeasurementResult]) -> Vec<Section> {
    let mut clients: Vec<_> = sweep.iter().filter_map(|cell| cell.clients).collect();
    clients.sort_unstable();
    clients.dedup();
    let of = |clients: u32| {
        let cells: Vec<_> =
            sweep.iter().filter(|cell| cell.clients == Some(clients)).cloned().collect();
        Section::new(format!("{clients} concurrent clients, no keys, no limits"), table(&cells))
    };
    clients.into_iter().map(of).collect()
}

/// The seed's columns, and who was busy.
fn table(cells: &[MeasurementResult]) -> Table {
    let heads = [
        "Endpoint",
        "Reqs",
        "Errors",
        "RPS",
        "p50",
        "p95",
        "p99",
        "Max",
        "gw CPU/req",
        "gw core",
        "load core",
    ];
    let mut table = Table::new(heads);
    for cell in cells {
        table.row([
            columns::label(cell),
            columns::requests(cell),
            columns::errors(cell),
            columns::throughput(cell),
            columns::time(cell, |f| f.p50_ms),
            columns::time(cell, |f| f.p95_ms),
            columns::time(cell, |f| f.p99_ms),
            columns::time(cell, |f| f.max_ms),
            columns::cpu(cell),
            columns::gateway_busy(cell),
            columns::load_busy(cell),
        ]);
    }
    table
}

fn variants_section(cells: &[MeasurementResult]) -> Section {
    Section::new("Keys and rate limits, each on", table(cells)).note(
        "the limiter of the persona is 600 requests in 60 s: a safe default and no production setting; here it counts every request with a limit that none reaches",
    )
}

fn chats_section(cells: &[MeasurementResult]) -> Section {
    Section::new(
        "Agent-loop endpoints against the fake provider",
        table(cells),
    )
    .note("it answers at once; streams of our own begin after 20 ms and have 16 tokens, one every 2 ms. With a real provider these figures would be the provider's")
}

fn findings(sweep: &[MeasurementResult], variants: &[MeasurementResult]) -> Vec<Finding> {
    let of = |path: &str| -> Vec<MeasurementResult> {
        let label = format!("GET {path},");
        sweep.iter().filter(|cell| cell.label.starts_with(&label)).cloned().collect()
    };
    let mut findings = Vec::new();
    for path in ENDPOINTS {
        findings.extend(finding::saturation(path, &of(path)));
        findings.extend(finding::degradation(path, &of(path)));
    }
    let (live, metrics) = (of("/health/live"), of("/metrics"));
    if let (Some(live), Some(metrics)) = (live.first(), metrics.first()) {
        findings.extend(finding::relative("/metrics beside /health/live", live, metrics));
    }
    if let Some((plain, others)) = variants.split_first() {
        let cost =
            |cell: &MeasurementResult| Some(finding::cost(plain, cell)?.finding(&cell.label));
        findings.extend(others.iter().filter_map(cost));
    }
    findings
}

fn sizes(
    sweep: &[MeasurementResult],
    chats: &[MeasurementResult],
    bench: &Bench<'_>,
) -> Option<Section> {
    let capacity = |cell: &MeasurementResult| {
        let figures = cell.figures().filter(|_| !cell.is_invalid())?;
        Some(Capacity {
            what: cell.label.clone(),
            per_s: figures.requests_per_s?,
            cores: figures.busy.gateway,
            memory: bench.memory,
        })
    };
    let live = sweep.iter().filter(|cell| cell.label.starts_with("GET /health/live"));
    let capacities: Vec<_> = live.chain(chats).filter_map(capacity).collect();
    if capacities.is_empty() {
        return None;
    }
    let (table, notes) = sizing::table(&capacities, bench.order.size_for);
    Some(Section { notes, ..Section::new("Instances for a rate", table) })
}

/// The seed's own figures.
fn reference() -> Section {
    let mut table = Table::new(["Endpoint", "Reqs", "Errors", "RPS", "p50", "p95", "p99", "Max"]);
    for (endpoint, reqs, rps, times) in [
        ("GET /health/live, 32 clients", 340_093, 68_010, ["0.45", "0.64", "0.78", "7.17"]),
        ("GET /health, 32 clients", 349_942, 69_980, ["0.45", "0.60", "0.69", "1.35"]),
        ("GET /metrics, 32 clients", 171_173, 34_231, ["0.91", "1.34", "1.55", "49.25"]),
        ("GET /health/live, 256 clients", 339_871, 67_934, ["3.58", "4.16", "8.20", "44.88"]),
        ("GET /health, 256 clients", 342_826, 68_521, ["3.66", "4.17", "5.48", "17.11"]),
        ("GET /metrics, 256 clients", 169_060, 33_780, ["7.36", "11.66", "13.93", "58.41"]),
    ] {
        let fixed = [endpoint.to_owned(), whole(reqs), "0".to_owned(), whole(rps)];
        table.row(fixed.into_iter().chain(times.map(|time| format!("{time} ms"))));
    }
    Section::new(
        "Reference: the seed's gateway on a MacBook Pro (Apple Silicon, 8 cores), 2026-04-07, 5 s each",
        table,
    )
    .note("another gateway on other hardware, as its authors published it: not comparable with the rows above")
}
