//! Chats with the agent that the gateway runs, and over WebSockets.

use serde_json::json;

use crate::error::SuiteError;
use crate::measurement::{Length, Measurement};
use crate::result::MeasurementResult;
use crate::runner::SuiteRunner;
use crate::suite::{agent_gateway, passes};
use crate::target::{Gateway, Provider, SuiteTarget};

/// The model of the agent loop, which calls the tool in each of three rounds before it answers.
const MODEL: &str = "agent";
const MODELS: &str = "models: {agent: {tool_loop: {steps: 3}}}\n";

/// What a request of the agent loop is, for the report.
pub(super) const LOOP: &str = "POST /api/chat: a request is a whole agent loop of four answers of the model and three calls of the mock's tool `echo` in between, all of them made by the gateway";
/// The same of the WebSocket.
pub(super) const WEBSOCKET: &str = "/ws/chat: a request is a message and its streamed answer, the first of ten on a connection with its handshake";
/// Messages of a connection.
const MESSAGES: u32 = 10;

/// `POST /api/chat`, the agent loop.
pub(super) fn agent_loop(
    runner: &mut SuiteRunner<'_>,
    clients: u32,
    length: Length,
) -> Result<Vec<MeasurementResult>, SuiteError> {
    if runner.is_interrupted() {
        return Ok(Vec::new());
    }
    let label = "POST /api/chat, agent loop";
    let request = |target: &SuiteTarget| {
        let body = json!({"message": "What does the tool say to a few words of yours?"});
        Measurement::post(label, target, "/api/chat", &body)
    };
    let gateway = if let Some(target) = runner.target() {
        if !runner.answers(&target.label("POST /api/chat"), request(&target))? {
            return Ok(Vec::new());
        }
        (Gateway::external(target), None)
    } else if runner.options.port.is_some() {
        runner.skip(label, "a gateway with tools needs another port; leave --port out");
        return Ok(Vec::new());
    } else {
        let (gateway, provider) = with_tools(runner)?;
        (gateway, Some(provider))
    };
    let measurement = request(&gateway.0.target).clients(clients, length);
    Ok(runner.measure(&[measurement], passes(runner.options, 1, 2)))
}

/// A gateway with tools, and the provider whose model calls them.
fn with_tools(runner: &mut SuiteRunner<'_>) -> Result<(Gateway, Provider), SuiteError> {
    let path = runner.options.folder.join("provider-agent.yaml");
    std::fs::write(&path, MODELS)
        .map_err(|source| SuiteError::Write { path: path.clone(), source })?;
    let provider = runner.provider(&["--config", &path.to_string_lossy()])?;
    let model = format!("agents.chat.model={MODEL}");
    let gateway = agent_gateway::start(runner, &provider, None, Some(model))?;
    Ok((gateway, provider))
}

/// `/ws/chat`; `paced` is a gateway whose provider takes its time.
pub(super) fn websocket(
    runner: &mut SuiteRunner<'_>,
    target: &SuiteTarget,
    paced: Option<&SuiteTarget>,
    clients: u32,
    length: Length,
) -> Result<Option<Measurement>, SuiteError> {
    let what = target.label("/ws/chat");
    if target.http2 {
        runner.skip(&what, "handshakes of WebSockets are those of HTTP/1.1: leave --http2 out");
        return Ok(None);
    }
    if !runner.answers(&what, websocket_request(target))? {
        return Ok(None);
    }
    Ok(Some(websocket_request(paced.unwrap_or(target)).clients(clients, length)))
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
