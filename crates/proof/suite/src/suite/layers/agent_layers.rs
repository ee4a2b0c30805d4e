//! Layer 3, agents: sessions, tool calls, messages to agents and approvals, in memory and in Redis.

use plimsoll_report::format::{percent, time};
use serde_json::{Value, json};

use super::super::length;
use super::agent_checks;
use super::agent_settings::{AGENT, layer};
use super::functional::FunctionalChecks;
use super::gateway_layers::{AUTH, bare_with, with_identity};
use crate::bound::{BoundResult, Requirement};
use crate::error::SuiteError;
use crate::measurement::{Length, Measurement};
use crate::options::SuiteOptions;
use crate::result::MeasurementResult;
use crate::runner::SuiteRunner;
use crate::suite::redis_server::RedisServer;
use crate::target::{Provider, SuiteTarget};

/// An operation of the layer.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) name: &'static str,
    path: &'static str,
    /// The published goal for its time, in milliseconds.
    pub(super) goal_ms: f64,
    body: fn() -> Value,
}

/// The operations of the published benchmark, and a call of a tool that another server has.
/// Sessions and approvals live for a second, so that there is room for as many as can be made.
const OPERATIONS: [Operation; 5] = [
    Operation {
        name: "session creation",
        path: "/v1/sessions",
        goal_ms: 5.0,
        body: || json!({"ttl_s": 1, "metadata": {"purpose": "load test"}}),
    },
    Operation {
        name: "local tool call",
        path: "/v1/mcp/tools/call",
        goal_ms: 10.0,
        body: || json!({"name": "add", "arguments": {"a": 2, "b": 3}}),
    },
    Operation {
        name: "proxied tool call",
        path: "/v1/mcp/tools/call",
        goal_ms: 10.0,
        body: || json!({"name": "echo", "arguments": {"text": "what the tool repeats"}}),
    },
    Operation {
        name: "message to an agent",
        path: "/v1/a2a/send",
        goal_ms: 5.0,
        body: || json!({"agent": AGENT, "message": "Name three uses of a message queue."}),
    },
    Operation {
        name: "approval creation",
        path: "/v1/hitl",
        goal_ms: 3.0,
        body: || json!({"action": "refund", "details": {"order": 4711}, "ttl_s": 1}),
    },
];

/// Clients of the closed loops: few, and many or as many as the user says.
pub(super) fn clients(options: &SuiteOptions) -> (u32, u32) {
    let many = options.clients.unwrap_or(50);
    ((many / 5).max(1), many)
}

/// An operation with one kind of store, measured.
#[derive(Debug)]
pub(super) struct OperationResult {
    pub(super) operation: &'static Operation,
    pub(super) store: &'static str,
    /// With few clients, each of which waits for its answer; not with `--short`.
    pub(super) few: Option<MeasurementResult>,
    /// With many: its throughput is the capacity.
    pub(super) many: Option<MeasurementResult>,
    /// At half of the capacity, whether or not answers come.
    pub(super) half: Option<MeasurementResult>,
}

/// Layer 3, measured.
#[derive(Debug, Default)]
pub(super) struct AgentLayers {
    /// Whether it does what it should, for each kind of store.
    pub(super) checks: Vec<FunctionalChecks>,
    pub(super) rows: Vec<OperationResult>,
}

impl AgentLayers {
    /// Checks and measures the layer with a kind of store.
    fn measure(
        &mut self,
        runner: &mut SuiteRunner<'_>,
        provider: &Provider,
        store: &'static str,
        redis: Option<&RedisServer>,
    ) -> Result<(), SuiteError> {
        self.checks.extend(agent_checks::check(runner, provider, store, redis)?);
        self.rows.extend(with_store(runner, provider, store, redis)?);
        Ok(())
    }

    /// The published bounds, which decide, and its goals, which do not.
    pub(super) fn bounds(&self) -> Vec<BoundResult> {
        let checks = self.checks.iter().map(FunctionalChecks::bound);
        checks.chain(self.rows.iter().flat_map(bounds_of_operation)).collect()
    }
}

fn bounds_of_operation(row: &OperationResult) -> Vec<BoundResult> {
    let Some(half) = &row.half else { return Vec::new() };
    let what = |figure| format!("layer 3, {}, {}: {figure}", row.operation.name, row.store);
    let p99 = |limit| {
        BoundResult::of_figure(&what("p99"), half, |f| f.p99_ms, Requirement::below(limit, time))
    };
    let few = Requirement::below(0.05, percent);
    vec![
        p99(50.0),
        BoundResult::of_errors(&what("errors"), half, |f| f.error_share, few),
        p99(row.operation.goal_ms).into_goal(),
    ]
}

pub(super) fn measure(runner: &mut SuiteRunner<'_>) -> Result<AgentLayers, SuiteError> {
    runner.section = "Layer 3 - agent gateway";
    if runner.target().is_some() {
        runner.skip(
            "layer 3: sessions, tools, agents, approvals",
            "which tools and agents the target has is not known; use `plimsoll run mcp-tools` and `plimsoll run a2a`",
        );
        return Ok(AgentLayers::default());
    }
    if runner.is_interrupted() {
        return Ok(AgentLayers::default());
    }
    let provider = runner.provider(&[])?;
    let mut layers = AgentLayers::default();
    layers.measure(runner, &provider, "memory", None)?;
    match RedisServer::open(runner) {
        Ok(server) => layers.measure(runner, &provider, "Redis", Some(&server))?,
        Err(why) => runner.skip("layer 3 with Redis", &why),
    }
    Ok(layers)
}

fn with_store(
    runner: &mut SuiteRunner<'_>,
    provider: &Provider,
    store: &'static str,
    redis: Option<&RedisServer>,
) -> Result<Vec<OperationResult>, SuiteError> {
    let mut sets =
        bare_with(&[AUTH, "tenant={header: x-tenant-id}", "request_id={}", "metrics={}"]);
    sets.extend(layer(provider));
    sets.extend(redis.map(RedisServer::setting));
    let mut gateway = runner.gateway("layers", &sets, Some(provider))?;
    gateway.target.store_pid = redis.and_then(RedisServer::pid);
    let length = length(runner.options, 15);
    let mut rows = Vec::new();
    for operation in &OPERATIONS {
        if runner.is_interrupted() {
            break;
        }
        rows.push(operation.measure(runner, &gateway.target, store, length));
    }
    Ok(rows)
}

impl Operation {
    fn request(&self, target: &SuiteTarget, how: &str) -> Measurement {
        let label = format!("{}, {how}", self.name);
        with_identity(Measurement::post(&label, target, self.path, &(self.body)()))
    }

    fn measure(
        &'static self,
        runner: &mut SuiteRunner<'_>,
        target: &SuiteTarget,
        store: &'static str,
        length: Length,
    ) -> OperationResult {
        let (few, many) = clients(runner.options);
        let quick = runner.options.short;
        let mut closed = |clients: u32| {
            let how = format!("{clients} clients, {store}");
            let request = self.request(target, &how).clients(clients, length);
            runner.measure(&[request], 1).into_iter().next()
        };
        let few = if quick { None } else { closed(few) };
        let many = closed(many);
        // To choose a rate by, a figure that the generator kept down is good enough.
        let capacity = many.as_ref().and_then(|many| many.shown()?.requests_per_s);
        let rate = capacity.map(|rate| rate.value / 2.0).filter(|rate| *rate >= 1.0);
        let half = rate.and_then(|rate| {
            let how = format!("half of the capacity, {store}");
            let request = self.request(target, &how).rate(rate.floor(), length);
            runner.measure(&[request], 1).into_iter().next()
        });
        if half.is_none() {
            let what = format!("{}, {store}, at half of the capacity", self.name);
            runner.skip(&what, "the closed loop had no expected answer, and so no capacity");
        }
        OperationResult { operation: self, store, few, many, half }
    }
}
