//! Chats with the agent that the gateway runs, and over WebSockets.

use std::time::Duration;

use plimsoll_report::format::digits;
use plimsoll_runner::time;
use serde_json::json;

use crate::error::SuiteError;
use crate::http_get::counters;
use crate::measurement::{Length, Measurement};
use crate::result::MeasurementResult;
use crate::runner::SuiteRunner;
use crate::suite::agents::start_gateway;
use crate::suite::passes;
use crate::target::{Gateway, Provider, SuiteTarget};

/// The model of the agent loop, which calls the tool in each of three rounds before it answers.
const MODEL: &str = "agent";
const MODELS: &str = "models: {agent: {tool_loop: {steps: 3}}}\n";

/// Definition of a WebSocket request, for the report.
pub(super) const WEBSOCKET: &str = "/ws/chat: a request is a message and its streamed answer, the first of ten on a connection with its handshake";
/// Messages of a connection.
const MESSAGES: u32 = 10;

/// Starts of runs per second.
const RUNS_PER_S: f64 = 50.0;
/// How long the last runs may take.
const LAST_RUNS: Duration = Duration::from_secs(5);

const QUESTION: &str = "What does the tool say to a few words of yours?";

/// The gateway's own counts of runs: started, and ended well.
fn runs(address: &str) -> Option<[f64; 2]> {
    let ends = ["=\"run_create\"", "=\"run\""].map(|operation| [operation, "=\"ok\""]);
    let [started, ended] = counters(address, ends);
    Some([started?, ended.unwrap_or(0.0)])
}

/// `POST /api/chat`, the agent loop, and `POST /v1/runs`, the same in the background; with the
/// gateway's own counts of its runs.
pub(super) fn agent(
    runner: &mut SuiteRunner<'_>,
    clients: u32,
    length: Length,
) -> Result<(Vec<MeasurementResult>, Option<String>), SuiteError> {
    if runner.is_interrupted() {
        return Ok((Vec::new(), None));
    }
    let own = match runner.target() {
        Some(_) => None,
        None => Some(with_tools(runner)?),
    };
    let target = own.as_ref().map(|(gateway, _)| gateway.target.clone());
    let target = target.or_else(|| runner.target()).unwrap_or_default();
    let mut measurements = Vec::new();
    if runner.answers(&target.label("POST /api/chat"), chat(&target))? {
        measurements.push(chat(&target).clients(clients, length));
    }
    if runner.answers(&target.label("POST /v1/runs"), agent_run(&target))? {
        measurements.push(agent_run(&target).rate(RUNS_PER_S, length));
    }
    let results = runner.measure(&measurements, passes(runner.options, 1, 2));
    let runs = own.as_ref().and_then(|(gateway, _)| counted_runs(gateway.address()?));
    Ok((results, runs))
}

fn chat(target: &SuiteTarget) -> Measurement {
    let label = "POST /api/chat, agent loop";
    Measurement::post(label, target, "/api/chat", &json!({"message": QUESTION}))
}

fn agent_run(target: &SuiteTarget) -> Measurement {
    let label = format!("POST /v1/runs, {RUNS_PER_S}/s");
    Measurement::post(&label, target, "/v1/runs", &json!({"input": QUESTION}))
}

/// The gateway's counts, once the last run has ended.
fn counted_runs(address: &str) -> Option<String> {
    let ended = time::poll(LAST_RUNS, Duration::from_millis(100), || {
        runs(address).filter(|[started, ended]| started <= ended)
    });
    let [started, ended] = ended.or_else(|| runs(address))?.map(digits);
    Some(format!(
        "by the gateway's own metrics {started} runs were started, warm-up included, and {ended} ended with an answer"
    ))
}

/// A gateway with tools, and the provider whose model calls them.
fn with_tools(runner: &mut SuiteRunner<'_>) -> Result<(Gateway, Provider), SuiteError> {
    let path = runner.write("provider-agent.yaml", MODELS.as_bytes())?;
    let provider = runner.provider(&["--config", &path.to_string_lossy()])?;
    let model = format!("agents.chat.model={MODEL}");
    let gateway = start_gateway(runner, &provider, None, Some(model))?;
    Ok((gateway, provider))
}

/// `/ws/chat`; `paced` is a gateway whose provider takes its time.
pub(super) fn websocket(
    runner: &mut SuiteRunner<'_>,
    target: &SuiteTarget,
    paced: &SuiteTarget,
    clients: u32,
    length: Length,
) -> Result<Option<Measurement>, SuiteError> {
    let what = target.label("/ws/chat");
    if target.http2 {
        runner.skip(&what, "WebSocket handshakes use HTTP/1.1: leave --http2 out");
        return Ok(None);
    }
    if !runner.answers(&what, websocket_request(target))? {
        return Ok(None);
    }
    Ok(Some(websocket_request(paced).clients(clients, length)))
}

fn websocket_request(target: &SuiteTarget) -> Measurement {
    let scenario = json!({
        "name": "websocket",
        "protocol": "websocket",
        "turns": MESSAGES,
        "content": {"mode": "sized", "approx_input_tokens": 128},
        "websocket": {"path": format!("{}/ws/chat", target.prefix())},
    });
    Measurement::scenarios("/ws/chat, WebSocket", target, &[scenario])
}
