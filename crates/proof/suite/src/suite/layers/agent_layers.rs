//! Layer 3, agents: sessions, tool calls, messages to agents and approvals, in memory and in Redis.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_report::format::{or_dash, percent};
use plimsoll_report::table::Table;
use plimsoll_runner::time;
use serde::Deserialize;
use serde_json::Value;

use super::super::length;
use super::functional::Checks;
use super::gateway_layers::with_identity;
use crate::bound::{BoundResult, Quantity, judge};
use crate::error::SuiteError;
use crate::http_get::HttpResponse;
use crate::measurement::{Length, Measurement};
use crate::options::SuiteOptions;
use crate::report::Section;
use crate::result::MeasurementResult;
use crate::runner::{NO_ANSWER, SuiteRunner};
use crate::sizing;
use crate::suite::RedisServer;
use crate::suite::columns::{self, CPU, Column, MEMORY, P99, RPS};
use crate::target::{Provider, SuiteTarget};

/// An operation of the layer.
#[derive(Debug, Deserialize)]
struct Operation {
    name: String,
    path: String,
    /// The published goal for its time, in milliseconds.
    goal_ms: f64,
    body: Value,
}

/// The operations of the published benchmark, and a call of a tool that another server has.
/// Sessions and approvals live for a second, so that there is room for as many as can be made.
const OPERATIONS: &str = include_str!("operations.json");

/// Clients of the closed loops: few, and many or as many as the user says.
fn clients(options: &SuiteOptions) -> (u32, u32) {
    let many = options.clients.unwrap_or(50);
    ((many / 5).max(1), many)
}

/// An operation with one kind of store, measured.
struct OperationResult {
    operation: Operation,
    store: &'static str,
    /// Result with few clients, each of which waits for its answer; `None` with `--short`.
    few: Option<MeasurementResult>,
    /// With many: its throughput is the capacity.
    many: Option<MeasurementResult>,
    /// At half of the capacity, whether or not answers come.
    half: Option<MeasurementResult>,
}

impl OperationResult {
    /// The published bounds, which decide, and its goal, which does not.
    fn bounds(&self) -> Vec<BoundResult> {
        let Operation { name, goal_ms, .. } = &self.operation;
        let name = format!("layer 3, {name}, {}", self.store);
        let limits =
            [Quantity::P99.bound(50.0), Quantity::ERRORS.bound(0.05), Quantity::P99.goal(*goal_ms)];
        self.half.as_ref().map_or_else(Vec::new, |half| judge(&name, half, &limits))
    }
}

pub(super) fn measure(runner: &mut SuiteRunner<'_>) -> Result<(), SuiteError> {
    runner.section = "Layer 3 - agent gateway";
    if !runner.measures_own() {
        return Ok(());
    }
    let provider = runner.provider(&[])?;
    let mut rows = with_store(runner, &provider, "memory", None)?;
    match RedisServer::open(runner) {
        Ok(server) => rows.extend(with_store(runner, &provider, "Redis", Some(&server))?),
        Err(why) => runner.skip("layer 3 with Redis", &why),
    }
    // The first is the creation of sessions in memory.
    let sessions = rows.first().and_then(|row| row.many.as_ref());
    let capacity = sessions.map(|many| sizing::capacity("layer 3, session creation", &[many]));
    runner.capacities.extend(capacity);
    runner.report.bounds.extend(rows.iter().flat_map(OperationResult::bounds));
    if !rows.is_empty() {
        runner.report.sections.push(section(&rows, clients(runner.options)));
    }
    Ok(())
}

/// Checks and measures the layer with a kind of store.
fn with_store(
    runner: &mut SuiteRunner<'_>,
    provider: &Provider,
    store: &'static str,
    redis: Option<&RedisServer>,
) -> Result<Vec<OperationResult>, SuiteError> {
    check(runner, provider, store, redis)?;
    let store_of = Vec::from_iter(redis.map(RedisServer::setting));
    let mut gateway = runner.gateway("layers", "layer 3", &store_of, Some(provider))?;
    gateway.target.store_pid = redis.and_then(RedisServer::pid);
    let length = length(runner.options, 15);
    let operations: Vec<Operation> = serde_json::from_str(OPERATIONS)?;
    let mut rows = Vec::new();
    for operation in operations {
        if runner.is_interrupted() {
            break;
        }
        rows.push(operation.measure(runner, &gateway.target, store, length));
    }
    Ok(rows)
}

fn section(rows: &[OperationResult], clients: (u32, u32)) -> Section {
    let (few, many) = clients;
    let [few_of, many_of, half_of]: [fn(&OperationResult) -> Option<&MeasurementResult>; 3] =
        [|row| row.few.as_ref(), |row| row.many.as_ref(), |row| row.half.as_ref()];
    let error_share: Column =
        ("Errors", |result| columns::shown_cell(result, |f| f.error_share, percent));
    let own = [
        (format!("RPS, {many} clients"), many_of, RPS),
        (format!("p99, {few} clients"), few_of, P99),
        (format!("p99, {many} clients"), many_of, P99),
        ("p99, half of it".to_owned(), half_of, P99),
        (error_share.0.to_owned(), half_of, error_share),
        (CPU.0.to_owned(), half_of, CPU),
        (MEMORY.0.to_owned(), half_of, MEMORY),
    ];
    let heads = own.iter().map(|(head, ..)| &**head);
    let mut table = Table::new(["Operation", "Store"].into_iter().chain(heads).chain(["Target"]));
    for row in rows {
        let fixed = [row.operation.name.clone(), row.store.to_owned()];
        let target = format!("< {}ms", row.operation.goal_ms);
        let cells = own.iter().map(|(_, of, column)| {
            or_dash(of(row), |result| columns::marked(result, &(column.1)(result)))
        });
        table.row(fixed.into_iter().chain(cells).chain([target]));
    }
    Section::new("Layer 3 - agent gateway (sessions, tools, agents, approvals)", table)
}

impl Operation {
    fn request(&self, target: &SuiteTarget, how: &str) -> Measurement {
        let label = format!("{}, {how}", self.name);
        with_identity(Measurement::post(&label, target, &self.path, &self.body))
    }

    fn measure(
        self,
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
            runner.skip(&what, NO_ANSWER);
        }
        OperationResult { operation: self, store, few, many, half }
    }
}

// Functional checks of layer 3 before its load: sessions, tools, agents and approvals work, and
// only for their tenant.

/// The requests, in their order.
const REQUESTS: &str = include_str!("agent_checks.json");
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// A request, and the expected parts of its answer.
#[derive(Debug, Deserialize)]
struct Check {
    /// Layer, case and expected result; `None` if it only prepares later ones.
    case: Option<[String; 3]>,
    path: String,
    /// With a body it is a `POST`.
    body: Option<Value>,
    /// The name of the key, and the tenant.
    #[serde(default = "own")]
    by: [String; 2],
    status: Option<u16>,
    /// Values by their place in the answer.
    #[serde(default)]
    has: BTreeMap<String, Value>,
    /// A place in the answer, and a part of the text there.
    contains: Option<[String; 2]>,
    /// Place of an id in the answer, and the word that later requests use for it.
    keep: Option<[String; 2]>,
    /// Seconds in which the answer may become the expected one.
    #[serde(default)]
    within_s: u64,
}

fn own() -> [String; 2] {
    ["load", "retail"].map(str::to_owned)
}

impl Check {
    fn passes(&self, last: &HttpResponse) -> bool {
        let found: Value = serde_json::from_str(&last.body).unwrap_or_default();
        self.status.is_none_or(|status| last.status == status)
            && self.has.iter().all(|(place, value)| found.pointer(place) == Some(value))
            && self.contains.iter().all(|[place, part]| {
                found.pointer(place).is_some_and(|found| found.to_string().contains(part))
            })
            && self.keep.iter().all(|[place, _]| !id_at(last, place).is_empty())
    }
}

/// The id at a place of an answer; empty if the answer lacks it.
fn id_at(last: &HttpResponse, place: &str) -> String {
    let found: Value = serde_json::from_str(&last.body).unwrap_or_default();
    found.pointer(place).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Asks a gateway of its own, with its state in memory or in Redis.
pub(super) fn check(
    runner: &mut SuiteRunner<'_>,
    provider: &Provider,
    store: &str,
    redis: Option<&RedisServer>,
) -> Result<(), SuiteError> {
    let store_of = Vec::from_iter(redis.map(RedisServer::setting));
    let gateway = runner.gateway("layers", "layer 3, checked", &store_of, Some(provider))?;
    let Some(mut checks) = Checks::of(runner, &gateway, store) else { return Ok(()) };
    let all: Vec<Check> = serde_json::from_str(REQUESTS)?;
    let mut ids: Vec<(&str, String)> = Vec::new();
    for check in &all {
        let mut texts =
            [check.path.clone(), check.body.as_ref().map(Value::to_string).unwrap_or_default()];
        for (word, id) in &ids {
            texts = texts.map(|text| text.replace(word, id));
        }
        let [path, body] = &texts;
        let [key, tenant] = &check.by;
        let headers = [("apikey", &*format!("{key}-test-key")), ("x-tenant-id", &**tenant)];
        let mut last = HttpResponse::default();
        let passed = time::poll(Duration::from_secs(check.within_s), PAUSE, || {
            last = checks.send(path, &headers, check.body.as_ref().map(|_| &**body));
            check.passes(&last).then_some(())
        });
        if let Some([layer, case, expected]) = &check.case {
            checks.note([layer, case, expected], passed.is_some(), &last);
        }
        ids.extend(check.keep.iter().map(|[place, word]| (&**word, id_at(&last, place))));
    }
    checks.conclude(&format!(" of layer 3, {store}"), runner);
    Ok(())
}
