//! The baseline suite: cheap endpoints under few and many clients, with layers on and off; chats,
//! the agent loop and WebSockets.

use std::collections::BTreeSet;

use plimsoll_report::format::{percent, time};
use plimsoll_report::table::Table;

use super::columns::{
    self, ANSWERS, BYTES, CPU, ERRORS, GW_CORE, LOAD_CORE, MAX, MEMORY, P50, P95, P99, RPS,
    SECONDS, STORE,
};
use super::{length, passes};
use crate::comparison_result::Interval;
use crate::error::SuiteError;
use crate::measurement::{Length, Measurement};
use crate::report::{Section, published};
use crate::result::MeasurementResult;
use crate::runner::{NO_DIRECT, SuiteRunner};
use crate::suite::layers::NO_CHAT;
use crate::suite::{TIMES_SHORT, comparison_length};
use crate::target::{DIRECT, SuiteTarget};
use crate::{finding, sizing};

mod agent_rows;
mod variants;

const ENDPOINTS: [&str; 3] = ["/health/live", "/health", "/metrics"];
/// The numbers of clients in the sweep.
const FEW: u32 = 32;
const MANY: u32 = 256;
const USUAL: u32 = 64;

pub(super) fn run(runner: &mut SuiteRunner<'_>) -> Result<(), SuiteError> {
    let length = length(runner.options, 10);
    let (gateway, provider) = runner.subject("baseline", OFF)?;
    let is_ours = runner.target().is_none();
    // Whether a target of the user's has keys and limits is not known.
    let how = if is_ours { "clients, no keys, no limits" } else { "clients, as the target is set" };
    runner.section = how;
    let mut endpoints = Vec::new();
    for path in ENDPOINTS {
        if runner.serves(&gateway.target, path)? {
            endpoints.push(path);
        }
    }
    if let Some(path) = endpoints.first() {
        runner.probe_limits(&Measurement::get("burst", &gateway.target, path))?;
    }
    let clients = clients(runner);
    let measurements = clients.iter().flat_map(|&clients| {
        endpoints.iter().map(move |path| (format!("GET {path}, {clients} clients"), path, clients))
    });
    let measurements: Vec<_> = measurements
        .map(|(label, path, clients)| {
            Measurement::get(&label, &gateway.target, path).clients(clients, length)
        })
        .collect();
    let sweep = runner.measure(&measurements, 3);
    let variants = variants::sections(runner, provider.as_ref(), length)?;
    runner.report.sections.extend(sections(&sweep, how));
    runner.report.references.push(published("Reference: another gateway on a MacBook Pro"));
    let sweeps = ENDPOINTS.map(|path| (path, results_of_path(&sweep, path)));
    let sweeps = sweeps.iter().map(|(path, results)| (*path, &results[..]));
    runner.report.sections.extend(finding::scaling(sweeps).into_iter().chain(variants));
    let live = results_of_path(&sweep, "/health/live");
    let levels: Vec<_> = live.iter().collect();
    let capacity = (!levels.is_empty()).then(|| sizing::capacity("GET /health/live", &levels));
    runner.capacities.extend(capacity);
    chats(runner, &gateway.target, length)
}

/// The plain gateway: neither keys nor limits.
const OFF: &str = "off";

fn clients(runner: &SuiteRunner<'_>) -> Vec<u32> {
    match (runner.options.clients, runner.options.short) {
        (Some(asked), _) => vec![asked],
        (None, true) => vec![FEW, MANY],
        (None, false) => vec![FEW, USUAL, MANY],
    }
}

/// Chats through the gateway to the mock provider, streamed and not, and with its agent; and the
/// gateway's overhead per chat.
///
/// Streams have a delay between tokens: without it, the speed of the load's reading would be
/// measured.
fn chats(
    runner: &mut SuiteRunner<'_>,
    target: &SuiteTarget,
    length: Length,
) -> Result<(), SuiteError> {
    let paced = if runner.target().is_some() {
        None
    } else {
        let provider = runner.provider(&["--ttft", "20ms", "--gap", "2ms", "--tokens", "16"])?;
        let gateway = runner.gateway("baseline", OFF, &[], Some(&provider))?;
        Some((gateway, provider))
    };
    let clients = runner.options.clients.unwrap_or(USUAL);
    runner.section = "Agent-loop endpoints";
    let slow = paced.as_ref().map_or(target, |(gateway, _)| &gateway.target);
    let mut measurements = Vec::new();
    let plain = runner.answers_chats(target, false)?;
    for (answers, stream) in [(plain, false), (runner.answers_chats(target, true)?, true)] {
        let (how, target) = if stream { ("SSE stream", slow) } else { ("plain", target) };
        let label = format!("POST /v1/chat/completions, {how}");
        let chat = Measurement::chat(&label, target, stream, (128, 64)).clients(clients, length);
        measurements.extend(answers.then_some(chat));
    }
    measurements.extend(agent_rows::websocket(runner, target, slow, clients, length)?);
    let mut results = runner.measure(&measurements, passes(runner.options, 1, 2));
    let (agent, runs) = agent_rows::agent(runner, clients, length)?;
    results.extend(agent);
    // A planned rate does not show a capacity.
    let closed = results.iter().filter(|chat| chat.clients.is_some());
    runner.capacities.extend(closed.map(|chat| sizing::capacity(&chat.label, &[chat])));
    if !results.is_empty() {
        let section = chats_section(&results, runner.target().is_none(), runs);
        runner.report.sections.push(section);
    }
    let behind = match &paced {
        Some((_, provider)) => Some(provider.target()),
        None => runner.direct().filter(|_| plain),
    };
    measure(runner, behind.as_ref(), slow);
    Ok(())
}

fn sections(sweep: &[MeasurementResult], how: &str) -> Vec<Section> {
    let all_clients = sweep.iter().filter_map(|result| result.clients).collect::<BTreeSet<_>>();
    all_clients
        .into_iter()
        .map(|clients: u32| {
            let results = sweep.iter().filter(|result| result.clients == Some(clients));
            Section::new(format!("{clients} concurrent {how}"), table(results))
        })
        .collect()
}

/// The columns of the published benchmark, and the CPU use.
fn table<'r>(results: impl IntoIterator<Item = &'r MeasurementResult>) -> Table {
    let columns = &[
        RPS, P50, P95, P99, MAX, ERRORS, ANSWERS, SECONDS, CPU, GW_CORE, LOAD_CORE, STORE, MEMORY,
        BYTES,
    ];
    columns::results("Endpoint", columns, results)
}

fn chats_section(results: &[MeasurementResult], is_ours: bool, runs: Option<String>) -> Section {
    if !is_ours {
        let section = Section::new("Agent-loop endpoints of the target", table(results));
        let websocket = results.iter().any(|result| result.label.starts_with("/ws/chat"));
        return if websocket { section.note(agent_rows::WEBSOCKET) } else { section };
    }
    let title = "Agent-loop endpoints against the mock provider";
    let mut section = Section::new(title, table(results));
    section.notes.extend(runs);
    section
}

fn results_of_path(sweep: &[MeasurementResult], path: &str) -> Vec<MeasurementResult> {
    let label = format!("GET {path},");
    sweep.iter().filter(|result| result.label.starts_with(&label)).cloned().collect()
}

// The gateway's share of an LLM call: the same chat through it and at the upstream.

/// Chats per second on each way.
const PAIRS_PER_S: f64 = 40.0;
const GATEWAY: &str = "gateway";
/// Times of providers for which the share is computed, in milliseconds.
const PROVIDERS_MS: [f64; 3] = [100.0, 500.0, 2_000.0];

/// The title of its table.
const TITLE: &str = "The gateway's share of an LLM call";

/// Compares the two ways, or states the requirement if there is nothing to compare with.
fn measure(runner: &mut SuiteRunner<'_>, behind: Option<&SuiteTarget>, gateway: &SuiteTarget) {
    runner.section = TITLE;
    let Some(behind) = behind else {
        let has_direct = runner.direct().is_some();
        return runner.skip_section(if has_direct { NO_CHAT } else { NO_DIRECT });
    };
    if runner.is_interrupted() {
        return;
    }
    let targets = vec![(DIRECT.to_owned(), behind.clone()), (GATEWAY.to_owned(), gateway.clone())];
    let request = Measurement::chat(TITLE, behind, false, (128, 64))
        .rate(PAIRS_PER_S, comparison_length(runner.options, 30, TIMES_SHORT));
    let compared = runner.compare(request, &targets, false);
    if let (Ok(added), Some(provider)) = (compared.added(GATEWAY), compared.p50_ms(DIRECT)) {
        runner.report.sections.push(section(added, provider));
    }
}

/// The gateway's overhead as a share of the call through it, for a given response time of the
/// provider: the value and the ends of its interval.
fn shares(added_ms: Interval, provider_ms: f64) -> Interval {
    added_ms.map(|added| added.max(0.0) / (provider_ms + added.max(0.0)))
}

fn section(added: Interval, provider: f64) -> Section {
    let mut table = Table::new(["Provider takes", "gateway adds", "share of the call"]);
    let computed = PROVIDERS_MS.into_iter().map(|provider| (provider, "computed"));
    for (provider, how) in std::iter::once((provider, "measured")).chain(computed) {
        let [value, low, high] = shares(added, provider).map(percent);
        table.row([
            format!("{} ({how})", time(provider)),
            time(added[0]),
            format!("{value} [{low}, {high}]"),
        ]);
    }
    Section::new(TITLE, table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_of_the_whole_call_and_never_negative() {
        let shares = shares([1.0, -0.5, 3.0], 9.0).map(percent);
        assert_eq!(shares, ["10.0%", "0%", "25.0%"]);
    }
}
