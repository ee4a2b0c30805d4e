//! The baseline suite: cheap endpoints under few and many clients, with layers on and off; chats,
//! the agent loop and WebSockets.

mod agent_rows;
mod llm_share;
mod variants;

use plimsoll_report::format::count;
use plimsoll_report::table::Table;

use super::{columns, length, passes};
use crate::comparison_result::ComparisonResult;
use crate::error::SuiteError;
use crate::finding::{self, Finding};
use crate::measurement::{Length, Measurement};
use crate::report::{Report, Section};
use crate::result::MeasurementResult;
use crate::runner::SuiteRunner;
use crate::sizing::{self, Capacity};
use crate::target::{Gateway, SuiteTarget};

const ENDPOINTS: [&str; 3] = ["/health/live", "/health", "/metrics"];
/// The numbers of clients in the sweep.
const FEW: u32 = 32;
const MANY: u32 = 256;
const USUAL: u32 = 64;

pub(super) fn run(runner: &mut SuiteRunner<'_>) -> Result<Report, SuiteError> {
    let length = length(runner.options, 10);
    let provider = match runner.target() {
        Some(_) => None,
        None => Some(runner.provider(&[])?),
    };
    let gateway = match runner.target() {
        Some(target) => Gateway::external(target),
        None => runner.gateway("baseline", &off(), provider.as_ref())?,
    };
    let mut endpoints = Vec::new();
    let is_ours = runner.target().is_none();
    // Whether a target of the user's has keys and limits is not known.
    let how = if is_ours { OFF } else { "clients, as the target is set" };
    runner.section = how;
    for path in ENDPOINTS {
        if runner.serves(&gateway.target, path)? {
            endpoints.push(path);
        }
    }
    if let Some(path) = endpoints.first() {
        runner.probe_limits(&Measurement::get("burst", &gateway.target, path))?;
    }
    let sweep = sweep(runner, &gateway, &endpoints, length);
    let variants = variants::measure(runner, provider.as_ref(), length)?;
    let Chats { results: chats, share, runs } = chats(runner, &gateway.target, length)?;
    let mut report =
        Report::begin("baseline", "the cheap endpoints, under few and many clients", runner);
    let base = sweep.iter().find(|result| result.label.starts_with("GET /health/live,"));
    report.sections.extend(sections(&sweep, how, is_ours));
    report.sections.extend(variants.sections());
    if !chats.is_empty() {
        report.sections.push(chats_section(&chats, runner, runs));
    }
    report.sections.extend(share.iter().filter_map(llm_share::section));
    report.findings = findings(&sweep);
    report.findings.extend(share.iter().filter_map(llm_share::finding));
    report.findings.extend(base.and_then(finding::sub_millisecond));
    let capacities = sizes(&sweep, &chats);
    report.size("Instances for a rate", capacities, runner.options.size_for);
    report.references.push(reference());
    Ok(report.conclude())
}

/// Settings of the plain gateway: neither keys nor limits.
fn off() -> Vec<String> {
    ["auth=null", "rate_limits=[]"].map(str::to_owned).into()
}

fn clients(runner: &SuiteRunner<'_>) -> Vec<u32> {
    match (runner.options.clients, runner.options.short) {
        (Some(asked), _) => vec![asked],
        (None, true) => vec![FEW, MANY],
        (None, false) => vec![FEW, USUAL, MANY],
    }
}

fn sweep(
    runner: &mut SuiteRunner<'_>,
    gateway: &Gateway,
    endpoints: &[&str],
    length: Length,
) -> Vec<MeasurementResult> {
    let clients = clients(runner);
    let measurements: Vec<_> = clients
        .iter()
        .flat_map(|&clients| endpoints.iter().map(move |path| (path, clients)))
        .map(|(path, clients)| {
            let label = format!("GET {path}, {clients} clients");
            Measurement::get(&label, &gateway.target, path).clients(clients, length)
        })
        .collect();
    let passes = passes(runner.options, 3, 3);
    runner.measure(&measurements, passes)
}

/// Chats, whatever else goes with them, and what the gateway adds to one.
struct Chats {
    results: Vec<MeasurementResult>,
    share: Option<ComparisonResult>,
    /// Runs of the agent that ended well, of those that were started.
    runs: Option<agent_rows::Runs>,
}

/// Chats through the gateway to the mock provider, streamed and not, and with its agent.
///
/// Streams have a delay between tokens: without it, the speed of the load's reading would be
/// measured.
fn chats(
    runner: &mut SuiteRunner<'_>,
    target: &SuiteTarget,
    length: Length,
) -> Result<Chats, SuiteError> {
    let paced = if runner.target().is_some() {
        None
    } else {
        let provider = runner.provider(&["--ttft", "20ms", "--gap", "2ms", "--tokens", "16"])?;
        let gateway = runner.gateway("baseline", &off(), Some(&provider))?;
        Some((gateway, provider))
    };
    let clients = runner.options.clients.unwrap_or(USUAL);
    runner.section = "Agent-loop endpoints";
    let slow = paced.as_ref().map(|(gateway, _)| &gateway.target);
    let mut kinds = Vec::new();
    for stream in [false, true] {
        if runner.answers_chats(target, stream)? {
            kinds.push(stream);
        }
    }
    let answers_chats = kinds.contains(&false);
    let measurements = kinds.into_iter().map(|stream| {
        let how = if stream { "SSE stream" } else { "plain" };
        let label = format!("POST /v1/chat/completions, {how}");
        let slow = slow.filter(|_| stream);
        Measurement::chat(&label, slow.unwrap_or(target), stream, (128, 64))
            .clients(clients, length)
    });
    let mut measurements: Vec<_> = measurements.collect();
    measurements.extend(agent_rows::websocket(runner, target, slow, clients, length)?);
    let mut results = runner.measure(&measurements, passes(runner.options, 1, 2));
    let agent = agent_rows::agent(runner, clients, length)?;
    results.extend(agent.results);
    let behind = match &paced {
        Some((_, provider)) => Some(provider.target()),
        None => runner.direct().filter(|_| answers_chats),
    };
    let share = llm_share::measure(runner, behind.as_ref(), slow.unwrap_or(target));
    Ok(Chats { results, share, runs: agent.runs })
}

/// How the reference gateway is loaded in the sweep.
const OFF: &str = "clients, no keys, no limits";

fn sections(sweep: &[MeasurementResult], how: &str, is_ours: bool) -> Vec<Section> {
    let mut clients: Vec<_> = sweep.iter().filter_map(|result| result.clients).collect();
    clients.sort_unstable();
    clients.dedup();
    clients
        .into_iter()
        .map(|clients| {
            let results: Vec<_> =
                sweep.iter().filter(|result| result.clients == Some(clients)).cloned().collect();
            Section::new(
                format!("{clients} concurrent {how}"),
                table(&results),
            )
            .note("Reqs, Secs and RPS are of one window; of several passes they are the medians of what may be used, ± half their range; errors are those of all. Times are service times: the clients have no schedule. bytes: of an answer with its head")
        })
        .enumerate()
        .map(|(number, section)| if number == 0 { section.note(why_these(sweep, is_ours)) } else { section })
        .collect()
}

/// Why these endpoints, as the published benchmark chose them; of those that were loaded.
fn why_these(sweep: &[MeasurementResult], is_ours: bool) -> String {
    let loaded =
        WHY_THESE.iter().filter(|why| sweep.iter().any(|one| one.label.starts_with(why.0)));
    let whys: Vec<_> = loaded.map(|why| why.1).collect();
    let whys = whys.join("; ");
    let none =
        if is_ours { ". None calls a model, whose time would hide the gateway's" } else { "" };
    format!("why these: {whys}{none}")
}

const WHY_THESE: [(&str, &str); 3] = [
    (
        "GET /health/live,",
        "/health/live asks for the least that a gateway can answer, so that its rate is the ceiling of routing and writing",
    ),
    ("GET /health,", "/health says a little more than nothing"),
    ("GET /metrics,", "/metrics works on every call, as it writes out all counters"),
];

/// The columns of the published benchmark, and the CPU use.
fn table(results: &[MeasurementResult]) -> Table {
    let heads = [
        "Endpoint",
        "Reqs",
        "Secs",
        "Errors",
        "RPS",
        "p50",
        "p95",
        "p99",
        "Max",
        "bytes",
        "gw CPU/req",
        "gw memory",
        "gw core",
        "load core",
    ];
    let mut table = Table::new(heads);
    for result in results {
        table.row([
            columns::label(result),
            columns::answers(result),
            columns::seconds(result),
            columns::errors(result),
            columns::throughput(result),
            columns::time(result, |f| f.p50_ms),
            columns::time(result, |f| f.p95_ms),
            columns::time(result, |f| f.p99_ms),
            columns::time(result, |f| f.max_ms),
            columns::answer_bytes(result),
            columns::cpu(result),
            columns::memory(result),
            columns::gateway_busy(result),
            columns::load_busy(result),
        ]);
    }
    table
}

fn chats_section(
    results: &[MeasurementResult],
    runner: &SuiteRunner<'_>,
    runs: Option<agent_rows::Runs>,
) -> Section {
    if runner.target().is_some() {
        let section = Section::new("Agent-loop endpoints of the target", table(results))
            .note("with whatever answers behind it: its time is in these figures");
        let websocket = results.iter().any(|result| result.label.starts_with("/ws/chat"));
        return if websocket { section.note(agent_rows::WEBSOCKET) } else { section };
    }
    let mut section = Section::new("Agent-loop endpoints against the mock provider", table(results))
        .note(agent_rows::LOOP)
        .note(agent_rows::RUNS)
        .note(agent_rows::WEBSOCKET)
        .note("the provider answers at once; its streams begin after 20 ms and have 16 tokens, one every 2 ms. With a real provider these figures would be the provider's");
    section.notes.extend(runs.map(agent_rows::Runs::sentence));
    section
}

fn results_of_path(sweep: &[MeasurementResult], path: &str) -> Vec<MeasurementResult> {
    let label = format!("GET {path},");
    sweep.iter().filter(|result| result.label.starts_with(&label)).cloned().collect()
}

fn findings(sweep: &[MeasurementResult]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for path in ENDPOINTS {
        let results = results_of_path(sweep, path);
        findings.extend(finding::saturation(path, &results));
        findings.extend(finding::degradation(path, &results));
    }
    let live = results_of_path(sweep, "/health/live");
    let metrics = results_of_path(sweep, "/metrics");
    if let (Some(live), Some(metrics)) = (live.first(), metrics.first()) {
        findings.extend(finding::relative("/metrics beside /health/live", live, metrics));
    }
    findings
}

fn sizes(
    sweep: &[MeasurementResult],
    chats: &[MeasurementResult],
) -> Vec<Result<Capacity, String>> {
    let live: Vec<_> =
        sweep.iter().filter(|result| result.label.starts_with("GET /health/live")).collect();
    let live = (!live.is_empty()).then(|| sizing::capacity("GET /health/live", &live));
    // A planned rate is no capacity.
    let chats = chats
        .iter()
        .filter(|chat| chat.clients.is_some())
        .map(|chat| sizing::capacity(&chat.label, &[chat]));
    live.into_iter().chain(chats).collect()
}

/// The figures of the published benchmark.
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
        let fixed = [endpoint.to_owned(), count(reqs), "0".to_owned(), count(rps)];
        table.row(fixed.into_iter().chain(times.map(|time| format!("{time}ms"))));
    }
    Section::new(
        "Reference: another gateway on a MacBook Pro (Apple Silicon, 8 cores), 2026-04-07, 5 s each",
        table,
    )
    .note("another gateway on other hardware, as its authors published it: not comparable with the rows above")
}
