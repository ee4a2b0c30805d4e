//! Layer 1: bare, each layer alone, all; and the full stack through an upstream.

use crate::bench::Bench;
use crate::cell::MeasurementResult;
use crate::error::SuiteError;
use crate::job::{Job, Length};
use crate::subject::{Gateway, Subject};

use super::super::{length, passes};
use super::{KEY, TENANT};

/// Layer 1, measured.
#[derive(Default)]
pub(super) struct First {
    /// `GET /`, answered by the gateway itself: bare, each layer, all.
    pub(super) alone: Vec<MeasurementResult>,
    /// A chat of 128 tokens through the gateway: bare, all layers with the policy.
    pub(super) chats: Vec<MeasurementResult>,
}

/// The full stack, measured; the last cell is the upstream without the gateway.
#[derive(Default)]
pub(super) struct Stack {
    pub(super) cells: Vec<MeasurementResult>,
}

/// The sections that the persona switches on, off.
const BARE: [&str; 9] = [
    "request_id=null",
    "metrics=null",
    "auth=null",
    "tenant=null",
    "rate_limits=[]",
    "scrub=null",
    "cache=null",
    "budgets=null",
    "routes.0.consumers=[]",
];
const FREE_SMOKE: &str = "routes.1.consumers=[]";
const AUTH: &str =
    "auth={header: apikey, keys: [{name: load, key: load-test-key, tenant: retail}]}";
const LIMIT: &str =
    "rate_limits=[{per: tenant, requests: 1000000000, window: 60s, algorithm: sliding}]";
const LIMITED: [&str; 2] = ["tenant={header: x-tenant-id}", LIMIT];
const RESTRICTED: &str = "routes.0.consumers=[load]";
const POLICY: &str = "policy={}";

/// Settings of the bare gateway with some on top.
pub(super) fn bare_with(more: &[&str]) -> Vec<String> {
    BARE.iter().chain([&FREE_SMOKE]).chain(more).map(|&set| set.to_owned()).collect()
}

/// Rows of the request log go to a file of the suite's folder.
pub(super) fn audit(bench: &Bench<'_>, name: &str) -> String {
    let path = bench.order.folder.join(name);
    format!("audit={}", serde_json::json!({"path": path}))
}

/// The seven layers of the seed: name, and settings on top of the bare gateway.
fn features(bench: &Bench<'_>) -> Vec<(&'static str, Vec<String>)> {
    let log = audit(bench, "request-log.jsonl");
    let all_log = audit(bench, "request-log-all.jsonl");
    let all =
        [LIMITED[0], LIMIT, AUTH, RESTRICTED, "metrics={}", "request_id={}", "scrub={}", &all_log];
    vec![
        ("bare", bare_with(&[])),
        ("tenant rate limit", bare_with(&LIMITED)),
        ("key auth", bare_with(&[AUTH])),
        ("request log", bare_with(&[&log])),
        ("Prometheus", bare_with(&["metrics={}"])),
        ("request id", bare_with(&["request_id={}"])),
        ("key auth + consumer restriction", bare_with(&[AUTH, RESTRICTED])),
        ("response PII scrub", bare_with(&["scrub={}"])),
        ("all seven", bare_with(&all)),
    ]
}

pub(super) fn measure(bench: &mut Bench<'_>) -> Result<First, SuiteError> {
    let clients = bench.order.clients.unwrap_or(200);
    if let Some(subject) = bench.target() {
        bench.skip(
            "bare against all layers, and each layer alone",
            "the layers of a target are not ours to switch; what is measured is the target as it is",
        );
        let job = get("target as it is", &subject, "/").clients(clients, length(bench.order, 30));
        return Ok(First {
            alone: bench.measure(&[job], passes(bench.order, 3, 2)),
            chats: vec![],
        });
    }
    let alone = alone(bench, clients)?;
    Ok(First { alone, chats: chats(bench)? })
}

/// All variants run at once, idle but for the one that is measured, and take turns.
fn alone(bench: &mut Bench<'_>, clients: u32) -> Result<Vec<MeasurementResult>, SuiteError> {
    if bench.order.port.is_some() {
        bench.skip("layer 1", "its variants need ports of their own; leave --port out");
        return Ok(Vec::new());
    }
    let mut gateways: Vec<(&str, Gateway)> = Vec::new();
    for (name, sets) in features(bench) {
        gateways.push((name, bench.gateway("layers", &sets, None)?));
    }
    let length = length(bench.order, 30);
    let jobs: Vec<_> = gateways
        .iter()
        .map(|(name, gateway)| get(name, &gateway.subject, "/").clients(clients, length))
        .collect();
    let cells = bench.measure(&jobs, passes(bench.order, 3, 2));
    for (_, gateway) in &gateways {
        bench.retire(gateway);
    }
    Ok(cells)
}

/// Chats of 128 tokens to the mock: bare, and with every layer and the policy scan.
fn chats(bench: &mut Bench<'_>) -> Result<Vec<MeasurementResult>, SuiteError> {
    if bench.order.port.is_some() || bench.is_over() {
        return Ok(Vec::new());
    }
    let provider = bench.provider(&[])?;
    let log = audit(bench, "request-log-chat.jsonl");
    let all = [
        LIMITED[0],
        LIMIT,
        AUTH,
        "metrics={}",
        "request_id={}",
        "scrub={}",
        POLICY,
        "budgets={default: 1000000000000}",
        &log,
    ];
    let bare = bench.gateway("layers", &bare_with(&[]), Some(&provider))?;
    let full = bench.gateway("layers", &bare_with(&all), Some(&provider))?;
    let length = length(bench.order, 30);
    let job = |name: &str, subject: &Subject| {
        let job = Job::chat(name, subject, false, (128, 128));
        with_identity(job).clients(64, length)
    };
    let jobs = [
        job("chat of 128 tokens, bare", &bare.subject),
        job("chat of 128 tokens, all layers and the policy scan", &full.subject),
    ];
    let cells = bench.measure(&jobs, passes(bench.order, 3, 3));
    bench.retire(&full);
    Ok(cells)
}

/// `GET` with the consumer's key and tenant.
fn get(label: &str, subject: &Subject, path: &str) -> Job {
    with_identity(Job::get(label, subject, path))
}

/// The consumer's key and tenant on every request.
pub(super) fn with_identity(job: Job) -> Job {
    job.header(KEY.0, KEY.1).header(TENANT.0, TENANT.1)
}

/// Through the gateway to an upstream, with and without keys, under few and many connections, and the upstream itself.
pub(super) fn stack(bench: &mut Bench<'_>) -> Result<Stack, SuiteError> {
    if bench.target().is_some() {
        bench.skip("the full stack", "the target's upstream is not ours to load directly");
        return Ok(Stack::default());
    }
    if bench.order.port.is_some() || bench.is_over() {
        return Ok(Stack::default());
    }
    let provider = bench.provider(&[])?;
    let plain = bench.gateway("layers", &bare_with(&["metrics={}"]), Some(&provider))?;
    let keys = bench.gateway("layers", &bare_with(&["metrics={}", AUTH]), Some(&provider))?;
    let length: Length = length(bench.order, 30);
    let job = |label: &str, subject: &Subject, path: &str, clients: u32| {
        get(label, subject, path).clients(clients, length)
    };
    let jobs = [
        job("gateway -> upstream (200)", &plain.subject, "/smoke/health", 200),
        job("gateway -> upstream + key auth (200)", &keys.subject, "/smoke/health", 200),
        job("gateway -> upstream (500)", &plain.subject, "/smoke/health", 500),
        job("upstream direct, no gateway (200)", &provider.subject(), "/health", 200),
    ];
    Ok(Stack { cells: bench.measure(&jobs, passes(bench.order, 3, 2)) })
}
