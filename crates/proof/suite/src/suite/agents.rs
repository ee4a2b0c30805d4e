//! The agents suite: a mixed day of chats, tool calls, messages to agents and approvals through one
//! gateway, and the gateway's overhead for each.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::sync::LazyLock;

use plimsoll_metrics::RunSummary;
use plimsoll_report::format::{count, digits, or_dash};
use serde::Deserialize;
use serde_json::Value;

use super::{PAIRS_PER_S, RedisServer, TIMES_SHORT, added, comparison_length};
use crate::bound::{BoundResult, Quantity, Requirement, judge};
use crate::comparison_result::ComparisonResult;
use crate::error::SuiteError;
use crate::measurement::Measurement;
use crate::report::Section;
use crate::result::{Figures, MeasurementResult};
use crate::runner::{NO_DIRECT, OWN_ONLY, Part, SuiteRunner};
use crate::suite::columns::{self, Column, ERRORS, GW_CORE, LOAD_CORE, MAX, P50, P99, PLANNED};
use crate::target::{DIRECT, Gateway, Provider, SuiteTarget};

/// Arrivals per second of all kinds together.
const PER_S: f64 = 400.0;
/// The same at the user's gateway, which may have a real model behind it.
const PER_S_OF_TARGET: f64 = 100.0;
/// Seconds of a day, and with `--short`: enough for a p99 of the rarest kind.
const SECONDS: u64 = 60;
const SECONDS_QUICK: u64 = 28;

/// A mixed day, measured.
struct Day {
    /// Where the gateway kept its state; `None` for the user's gateway.
    store: Option<&'static str>,
    rows: Vec<Row>,
    /// The gateway's overhead for each kind that has a direct way.
    added: Vec<ComparisonResult>,
}

/// A kind of request of a day.
struct Row {
    kind: &'static Kind,
    result: MeasurementResult,
    counts: Counts,
    /// Good answers in the mock's log, if it has this kind and could be read.
    logged: Option<u64>,
    /// The gateway's overhead for this kind, if it has a direct way.
    added: Option<String>,
}

/// The requests of a kind as the load counts them, warm-up included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    /// With a good answer.
    good: u64,
    /// All others. Their answers may be in the mock's log, or not.
    others: u64,
}

impl Counts {
    fn from_summary(summary: &RunSummary, scenario: &str) -> Self {
        let cells = &summary.results.cells;
        let own = cells.iter().filter(|cell| cell.scenario.as_deref() == Some(scenario));
        own.fold(Self::default(), |sum, cell| {
            let good = cell.counters.completed;
            let others = cell.counters.scheduled.saturating_sub(good);
            Self { good: sum.good + good, others: sum.others + others }
        })
    }

    /// Good answers that appear in only one of the two counts.
    const fn differ(self, logged: u64) -> u64 {
        let most = self.good + self.others;
        if logged < self.good { self.good - logged } else { logged.saturating_sub(most) }
    }
}

impl Day {
    fn new(store: Option<&'static str>, mut rows: Vec<Row>, added: Vec<ComparisonResult>) -> Self {
        for row in &mut rows {
            let label = named(row.kind.name, store);
            let compared = added.iter().find(|compared| compared.label == label);
            row.added = compared
                .and_then(|added| Some(added.marked(added.added_cell(added.compared().first()?))));
        }
        Self { store, rows, added }
    }
}

impl Row {
    /// The published bounds of the layer of agents, and that the counts agree with the mock's log.
    /// Times and counts are judged with the suite's own provider alone, which answers at once.
    fn bounds(&self, with_mock: bool) -> Vec<BoundResult> {
        let label = &self.result.label;
        let all = [Quantity::P99.bound(50.0), Quantity::ERRORS.bound(0.05)];
        let mut bounds = judge(label, &self.result, if with_mock { &all } else { &all[1..] });
        if with_mock && self.kind.has_direct_way {
            let what = format!("{label}: good answers that client or mock alone counted");
            let differ = self.logged.map(|logged| self.counts.differ(logged) as f64);
            bounds.push(BoundResult::count(&what, differ, Requirement::NONE));
        }
        bounds
    }
}

pub(super) fn run(runner: &mut SuiteRunner<'_>) -> Result<(), SuiteError> {
    let days = match runner.target() {
        Some(target) => Vec::from_iter(of_target(runner, &target)?),
        None => of_reference(runner)?,
    };
    let compared: Vec<_> = days.iter().flat_map(|day| day.added.iter().cloned()).collect();
    let sections = days.iter().map(day).chain(added::section("kind", &compared));
    let rows = days.iter().flat_map(|day| day.rows.iter().map(|row| (row, day.store.is_some())));
    runner.report.sections.extend(sections);
    runner.report.bounds.extend(rows.flat_map(|(row, with_mock)| row.bounds(with_mock)));
    Ok(())
}

/// Days of the reference gateway, one for each kind of store that this host has.
fn of_reference(runner: &mut SuiteRunner<'_>) -> Result<Vec<Day>, SuiteError> {
    let mut days = vec![with_store(runner, "memory", None)?];
    if runner.is_interrupted() {
        return Ok(days);
    }
    match RedisServer::open(runner) {
        Ok(server) => days.push(with_store(runner, "Redis", Some(&server))?),
        Err(why) => {
            runner.section = "A mixed day, Redis";
            runner.skip_section(&why);
        }
    }
    Ok(days)
}

fn with_store(
    runner: &mut SuiteRunner<'_>,
    store: &'static str,
    redis: Option<&RedisServer>,
) -> Result<Day, SuiteError> {
    let kinds: Vec<_> = KINDS.iter().collect();
    let log = runner.options.folder.join(format!("mock-{}.jsonl", store.to_lowercase()));
    let provider = runner.provider(&["--log", &log.to_string_lossy()])?;
    let gateway = start_gateway(runner, &provider, redis, None)?;
    let mut rows = measure(runner, &kinds, Some(store), &gateway.target, PER_S);
    // The provider flushes its log at its end.
    drop((gateway, provider));
    let log = MockLog::read(&log);
    for row in rows.iter_mut().filter(|row| row.kind.has_direct_way) {
        row.logged = log.as_ref().map(|log| log.good(row.kind.name));
    }
    // A provider without a log, because writing it would slow both ways.
    let provider = runner.provider(&[])?;
    let gateway = start_gateway(runner, &provider, redis, None)?;
    let ways = [(DIRECT, provider.target()), ("gateway", gateway.target)];
    let added = compare(runner, &kinds, Some(store), ways);
    Ok(Day::new(Some(store), rows, added))
}

/// The day of the user's gateway, with the kinds of requests that it answers.
fn of_target(
    runner: &mut SuiteRunner<'_>,
    target: &SuiteTarget,
) -> Result<Option<Day>, SuiteError> {
    runner.section = "A mixed day";
    let kinds = answered(runner, &KINDS.iter().collect::<Vec<_>>(), target)?;
    let Some(first) = kinds.first() else { return Ok(None) };
    runner.probe_limits(&first.request("burst", target))?;
    runner.skip("mock log", OWN_ONLY);
    runner.section = "Overhead by kind";
    let direct = direct_of(runner, target);
    let both = match &direct {
        Some(direct) => answered(runner, &with_direct_way(&kinds), direct)?,
        None => Vec::new(),
    };
    let rows = measure(runner, &kinds, None, target, PER_S_OF_TARGET);
    let ways = direct.map(|direct| [(DIRECT, direct), ("target", target.clone())]);
    let added = ways.map(|ways| compare(runner, &both, None, ways)).unwrap_or_default();
    Ok(Some(Day::new(None, rows, added)))
}

/// The kinds that a target answers; the others are left out and named.
fn answered(
    runner: &mut SuiteRunner<'_>,
    kinds: &[&'static Kind],
    target: &SuiteTarget,
) -> Result<Vec<&'static Kind>, SuiteError> {
    let mut found = Vec::new();
    for kind in kinds {
        let what = target.label(kind.asks);
        if runner.answers(&what, kind.request(&what, target))? {
            found.push(*kind);
        }
    }
    Ok(found)
}

/// The upstream of the user's gateway, if it can be asked the same.
fn direct_of(runner: &mut SuiteRunner<'_>, target: &SuiteTarget) -> Option<SuiteTarget> {
    let Some(direct) = runner.direct() else {
        runner.skip_section(NO_DIRECT);
        return None;
    };
    if direct.prefix() != target.prefix() {
        runner.skip_section("the paths of --target and --direct differ");
        return None;
    }
    Some(direct)
}

fn with_direct_way(kinds: &[&'static Kind]) -> Vec<&'static Kind> {
    kinds.iter().copied().filter(|kind| kind.has_direct_way).collect()
}

/// A label, with the store where there are several.
fn named(what: &str, store: Option<&str>) -> String {
    store.map_or_else(|| what.to_owned(), |store| format!("{what}, {store}"))
}

/// Loads a gateway with all kinds at the same time.
fn measure(
    runner: &mut SuiteRunner<'_>,
    kinds: &[&'static Kind],
    store: Option<&str>,
    target: &SuiteTarget,
    per_s: f64,
) -> Vec<Row> {
    let day = named("mixed day", store);
    let parts = parts(kinds, per_s / 100.0, |kind| format!("{day}: {kind}"));
    let rate = parts.iter().map(|part| part.rate).sum();
    let length = comparison_length(runner.options, SECONDS, SECONDS_QUICK);
    let load = Measurement::scenarios(&day, target, &scenarios(kinds, target)).rate(rate, length);
    let mut counts = vec![Counts::default(); kinds.len()];
    let results = runner.measure_parts(&load, &parts, &mut |pass| {
        for (kind, counts) in kinds.iter().zip(&mut counts) {
            let Counts { good, others } = Counts::from_summary(&pass.summary, kind.name);
            (counts.good, counts.others) = (counts.good + good, counts.others + others);
        }
    });
    let rows = kinds.iter().zip(results).zip(counts);
    rows.map(|((kind, result), counts)| Row { kind, result, counts, logged: None, added: None })
        .collect()
}

/// Sends the kinds that have a direct way both ways, request by request.
fn compare(
    runner: &mut SuiteRunner<'_>,
    kinds: &[&'static Kind],
    store: Option<&str>,
    ways: [(&str, SuiteTarget); 2],
) -> Vec<ComparisonResult> {
    let kinds = with_direct_way(kinds);
    if kinds.is_empty() {
        return Vec::new();
    }
    let all: u32 = kinds.iter().map(|kind| kind.percent).sum();
    let parts = parts(&kinds, PAIRS_PER_S / f64::from(all), |kind| named(kind, store));
    let length = comparison_length(runner.options, SECONDS, TIMES_SHORT);
    let (label, direct) = (named("mixed day", store), &ways[0].1);
    let request = Measurement::scenarios(&label, direct, &scenarios(&kinds, direct));
    let request = request.rate(PAIRS_PER_S, length);
    let targets = ways.map(|(name, target)| (name.to_owned(), target));
    runner.compare_parts(&request, &targets, &parts)
}

/// The kinds as parts of a load, with these arrivals per second for each percent.
fn parts(kinds: &[&'static Kind], per_percent: f64, label: impl Fn(&str) -> String) -> Vec<Part> {
    let names = kinds.iter().map(|kind| (kind.name, per_percent * f64::from(kind.percent)));
    names.map(|(scenario, rate)| Part { scenario, label: label(scenario), rate }).collect()
}

fn scenarios(kinds: &[&Kind], target: &SuiteTarget) -> Vec<Value> {
    kinds.iter().map(|kind| kind.scenario(target)).collect()
}

/// Good answers by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct MockLog(BTreeMap<&'static str, u64>);

impl MockLog {
    /// Reads the log of a provider that has ended; `None` if it is not there or not whole.
    fn read(path: &Path) -> Option<Self> {
        let mut log = Self::default();
        for line in BufReader::new(File::open(path).ok()?).lines() {
            let line: Value = serde_json::from_str(&line.ok()?).ok()?;
            if let Some(kind) = kind_of(&line) {
                *log.0.entry(kind).or_default() += 1;
            }
        }
        Some(log)
    }

    /// The good answers of a kind.
    fn good(&self, kind: &str) -> u64 {
        self.0.get(kind).copied().unwrap_or(0)
    }
}

/// The kind of a good answer; `docs/reference/mock.md` lists all keys of a line. The gateway's own
/// requests, such as listing tools, have no kind.
fn kind_of(line: &Value) -> Option<&'static str> {
    if line["status"] != 200 || line["end"] != "completed" {
        return None;
    }
    let rpc = &line["rpc"];
    match (line["path"].as_str()?, rpc["method"].as_str(), rpc["outcome"].as_str()) {
        ("/v1/chat/completions", ..) => Some(CHATS),
        ("/mcp", Some("tools/call"), Some("result")) => Some(TOOLS),
        ("/a2a", Some("SendMessage"), Some("result")) => Some(AGENTS),
        _ => None,
    }
}

// The table of a mixed day.

fn day(day: &Day) -> Section {
    let columns: [Column<Row>; 10] = [
        ("Kind", |row| columns::marked(&row.result, row.kind.name)),
        (PLANNED.0, |row| PLANNED.1(&row.result)),
        ("good answers", |row| columns::shown_cell(&row.result, |f| Some(f.expected()), count)),
        (P50.0, |row| P50.1(&row.result)),
        (P99.0, |row| P99.1(&row.result)),
        (MAX.0, |row| MAX.1(&row.result)),
        ("added, median", |row| or_dash(row.added.clone(), |added| added)),
        (ERRORS.0, |row| ERRORS.1(&row.result)),
        ("errors by code", |row| {
            columns::shown_cell(&row.result, Figures::error_kinds, |kinds| kinds)
        }),
        ("with warm-up: client / mock", |row| {
            or_dash(row.logged, |logged| format!("{} / {}", count(row.counts.good), count(logged)))
        }),
    ];
    let table = columns::table(&columns, &day.rows);
    let all: f64 = day.rows.iter().filter_map(|row| row.result.rate).sum();
    let title = format!("{}: {}/s in all", named("A mixed day", day.store), digits(all));
    let mut section = Section::new(title, table);
    section.notes.extend(day.rows.first().map(busy));
    section
}

/// How busy the processes were, with all kinds together.
fn busy(row: &Row) -> String {
    format!("gateway core {}, load core {}", GW_CORE.1(&row.result), LOAD_CORE.1(&row.result))
}

// The kinds of requests of a mixed day.

/// A kind of request.
#[derive(Debug, Deserialize)]
struct Kind {
    /// Its name, which is also the name of its scenario.
    pub(super) name: &'static str,
    /// Its share of all arrivals.
    pub(super) percent: u32,
    /// The request in words.
    pub(super) asks: &'static str,
    /// Whether the upstream answers it, too.
    pub(super) has_direct_way: bool,
    /// The place of the path of the request in the scenario.
    path_at: Option<&'static str>,
    /// The members of its scenario.
    scenario: Value,
}

const CHATS: &str = "chats";
const TOOLS: &str = "tools";
const AGENTS: &str = "agents";

/// All kinds. The help of the command line and the guide have their shares. Without sessions a call
/// of a tool is one request, and so has one on the direct way.
static KINDS: LazyLock<Vec<Kind>> =
    LazyLock::new(|| serde_json::from_str(include_str!("agents/kinds.json")).unwrap_or_default());

impl Kind {
    /// The scenario of this kind: every path of a suite is relative to the target's URL.
    pub(super) fn scenario(&self, target: &SuiteTarget) -> Value {
        let mut scenario = self.scenario.clone();
        let path = self.path_at.and_then(|place| scenario.pointer_mut(place));
        if let Some(Value::String(path)) = path {
            path.insert_str(0, target.prefix());
        }
        scenario["name"] = self.name.into();
        scenario["weight"] = self.percent.into();
        scenario
    }

    /// Requests of this kind alone.
    pub(super) fn request(&self, label: &str, target: &SuiteTarget) -> Measurement {
        Measurement::scenarios(label, target, &[self.scenario(target)])
    }
}

/// Starts it, without keys and limits, with its state in memory or in Redis; `more` are further
/// settings. Chats are passed on; `/mcp` is the gateway's own.
pub(super) fn start_gateway(
    runner: &mut SuiteRunner<'_>,
    provider: &Provider,
    redis: Option<&RedisServer>,
    more: Option<String>,
) -> Result<Gateway, SuiteError> {
    let more: Vec<_> = redis.map(RedisServer::setting).into_iter().chain(more).collect();
    let mut gateway = runner.gateway("baseline", "echo", &more, Some(provider))?;
    gateway.target.store_pid = redis.and_then(RedisServer::pid);
    Ok(gateway)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_counts_agree_as_far_as_requests_without_a_good_answer_allow() {
        for (good, others, logged, differ) in [
            (100, 0, 100, 0),
            (100, 0, 99, 1),
            (100, 0, 101, 1),
            // Three had no good answer here; the mock may have answered some of them.
            (97, 3, 97, 0),
            (97, 3, 100, 0),
            (97, 3, 101, 1),
            (97, 3, 96, 1),
            (0, 0, 0, 0),
        ] {
            let found = Counts { good, others }.differ(logged);
            assert_eq!(found, differ, "{good} good, {others} others, {logged} in the log");
        }
    }

    #[test]
    fn a_label_names_its_store_where_there_are_several() {
        assert_eq!(named("chats", None), "chats");
        assert_eq!(named("chats", Some("Redis")), "chats, Redis");
    }

    const CHAT: &str =
        r#"{"path":"/v1/chat/completions","status":200,"end":"completed","rpc":null,"sequence":1}"#;
    const CUT: &str =
        r#"{"path":"/v1/chat/completions","status":200,"end":"client_gone","rpc":null}"#;
    const REFUSED: &str =
        r#"{"path":"/v1/chat/completions","status":503,"end":"completed","rpc":null}"#;

    fn rpc(path: &str, method: &str, outcome: &str) -> String {
        let rpc = format!(r#"{{"method":"{method}","outcome":"{outcome}"}}"#);
        format!(r#"{{"path":"{path}","status":200,"end":"completed","rpc":{rpc}}}"#)
    }

    #[test]
    fn only_good_answers_to_what_clients_ask_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mock.jsonl");
        assert_eq!(MockLog::read(&path), None);
        let lines = [
            CHAT.to_owned(),
            CHAT.to_owned(),
            CUT.to_owned(),
            REFUSED.to_owned(),
            rpc("/mcp", "tools/list", "result"),
            rpc("/mcp", "tools/call", "result"),
            rpc("/mcp", "tools/call", "error"),
            rpc("/a2a", "SendMessage", "result"),
            rpc("/a2a", "SendMessage", "result"),
            rpc("/a2a", "SendMessage", "cancelled"),
        ];
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        let log = MockLog::read(&path).unwrap();
        let counts = [CHATS, TOOLS, AGENTS, "approvals"].map(|kind| log.good(kind));
        assert_eq!(counts, [2, 1, 2, 0]);
        // Killed while it wrote.
        fs::write(&path, format!("{CHAT}\n{{\"path\":\"/v1")).unwrap();
        assert_eq!(MockLog::read(&path), None);
    }
}

#[cfg(test)]
mod kind_tests {
    use plimsoll_measure::Nanos;

    use super::*;
    use crate::fixtures::plan_path;
    use crate::measurement::Length;

    #[test]
    fn shares_add_up_and_the_plan_has_every_kind_at_its_path() {
        assert_eq!(KINDS.iter().map(|kind| kind.percent).sum::<u32>(), 100);
        let base = "http://127.0.0.1:1/team".to_owned();
        let target = SuiteTarget { base, model: "m".to_owned(), ..SuiteTarget::default() };
        let length = Length::new(Nanos::ZERO, Nanos::from_secs(1));
        for kind in KINDS.iter() {
            let plan = kind.request("x", &target).rate(1.0, length).plan(0).unwrap();
            assert_eq!(plan.scenarios.len(), 1);
            assert_eq!(plan.scenarios[0].name, kind.name);
            let path = ["/mcp", "/a2a", "/v1/hitl"].iter().find(|path| kind.asks.contains(*path));
            let path = path.map(|path| format!("/team{path}"));
            assert_eq!(plan_path(&plan), path, "{}", kind.name);
        }
        let all: Vec<_> = KINDS.iter().map(|kind| kind.scenario(&target)).collect();
        let plan = Measurement::scenarios("x", &target, &all).rate(1.0, length).plan(0).unwrap();
        let weights: Vec<_> = plan.scenarios.iter().map(|scenario| scenario.weight).collect();
        assert_eq!(weights, [40.0, 30.0, 20.0, 10.0]);
    }
}
