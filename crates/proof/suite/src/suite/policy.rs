//! The policy suite: a policy gateway at rising rates, cold and warm, with every policy decision
//! compared with the expected one.

mod ladder;
mod tables;

use plimsoll_measure::Nanos;
use plimsoll_metrics::{BandLevel, BandResult, Judgement, RunSummary};
use plimsoll_report::format::{digits, or_dash, percent, time};

use self::ladder::Ladder;
use super::certificate;
use super::columns;
use crate::bound::{BoundResult, Requirement};
use crate::error::SuiteError;
use crate::figures::TimedResponses;
use crate::finding::{self, Finding};
use crate::measurement::{Length, Measurement};
use crate::report::Report;
use crate::result::MeasurementResult;
use crate::runner::SuiteRunner;
use crate::sizing;
use crate::target::{Gateway, Provider, SuiteTarget};

/// A profile of the published policy benchmark.
struct Profile {
    name: &'static str,
    rate: f64,
    /// Its length.
    seconds: u64,
    /// With `--short`; enough for a p99 of the allowed requests at the highest rate.
    short_seconds: u64,
}

const PROFILES: [Profile; 3] = [
    Profile { name: "light", rate: 20.0, seconds: 30, short_seconds: 6 },
    Profile { name: "hourly", rate: 50.0, seconds: 60, short_seconds: 6 },
    Profile { name: "capacity", rate: 100.0, seconds: 120, short_seconds: 14 },
];
/// Requests that reach the model if the policy allows them.
const WITH_LLM: &str = r#"http.body={"query": "{{prompt}}", "client_id": "load-test", "request_type": "llm_chat", "user_token": "load-test-token", "skip_llm": false}"#;
/// Every violation is blocked, as in the published benchmark.
const ENFORCED: &str = "policy={endpoint: true, actions: {sql_injection: block, dangerous: block, admin: block, pii: redact, prompt_injection: block}}";

/// A measurement with its circumstances, and the summary of its last pass.
pub(super) struct PolicyRow {
    pub(super) topology: String,
    pub(super) mode: &'static str,
    pub(super) rate: String,
    pub(super) result: MeasurementResult,
    pub(super) summary: Option<RunSummary>,
}

/// The first and the second run of a profile against a gateway that was just started.
pub(super) struct ColdWarm {
    pub(super) name: &'static str,
    pub(super) rate: f64,
    /// What distinguishes it from other pairs of the profile; empty for the first.
    pub(super) way: &'static str,
    /// `None` for the user's gateway, which the suite cannot start anew.
    pub(super) cold: Option<MeasurementResult>,
    pub(super) warm: PolicyRow,
}

pub(super) fn run(runner: &mut SuiteRunner<'_>) -> Result<Report, SuiteError> {
    let title =
        "policy enforcement at rising rates, cold and warm, with every policy decision checked";
    runner.section = "By rate, topology and mode";
    for target in runner.targets() {
        if !runner.decides_policy(&target)? {
            return Ok(Report::begin("policy", title, runner).conclude());
        }
        let request = policy(runner, "burst", &target, &[]);
        runner.probe_limits(&request)?;
    }
    skip_for_targets(runner);
    let provider = match runner.target() {
        Some(_) => None,
        None => Some(runner.provider(&[])?),
    };
    let mut pairs = Vec::new();
    for profile in &PROFILES {
        if !runner.is_interrupted() {
            pairs.push(pair(runner, provider.as_ref(), profile)?);
        }
    }
    let others = other_topologies(runner);
    let gateway = start(runner, provider.as_ref(), &[])?;
    let ladder = Ladder::climb(runner, &gateway.target, "", &[]);
    let full = full(runner, &gateway.target);
    let mode = if runner.target().is_some() { "LLM on" } else { "LLM on, healthy provider" };
    let model = with_llm(runner, &gateway.target, mode);
    let unhealthy = unhealthy(runner)?;
    let (secure, secure_ladder) = secure(runner, provider.as_ref())?;
    let all = pairs.iter().chain(&secure);
    let mut report = Report::begin("policy", title, runner);
    let warm = all.clone().map(|pair| &pair.warm);
    let rows: Vec<_> = warm.chain(&others).chain([&full, &model]).collect();
    report.load_test = pairs.last().map(|pair| load_test(runner, &pair.warm)).unwrap_or_default();
    report.sections.push(tables::headline(&rows));
    report
        .sections
        .extend([Some(&ladder), secure_ladder.as_ref()].into_iter().flatten().map(Ladder::section));
    if all.clone().any(|pair| pair.cold.is_some()) {
        report.sections.push(tables::cold_and_warm(all));
    }
    if let Some(capacity) = pairs.last().map(|pair| &pair.warm) {
        report.sections.extend(tables::decisions(capacity));
        report.bounds.extend(bands(capacity));
        report.findings.extend(signs(capacity));
    }
    report.sections.extend(unhealthy.first().map(tables::unhealthy));
    if !unhealthy.is_empty() {
        report.sections.push(tables::unhealthy_rates(&unhealthy));
    }
    report.findings.extend(of_full(&full));
    report.findings.extend(unhealthy.first().and_then(of_unhealthy));
    report.bounds.extend(bounds(&full, &ladder.whole));
    let capacity = sizing::capacity("policy node, skip_llm=true", &[&full.result]);
    report.size("Nodes for a rate", vec![capacity], runner.options.size_for);
    report.references = tables::references();
    Ok(report.conclude())
}

/// Says what is not measured of the user's gateways.
fn skip_for_targets(runner: &mut SuiteRunner<'_>) {
    if runner.target().is_none() {
        return;
    }
    if runner.options.targets.len() > 1 {
        runner.section = "The ladder";
        runner
            .skip("the ladder and the model of further targets", "they are of the first one alone");
    }
    runner.section = "Cold and warm";
    runner.skip("cold runs", "the suite cannot start the target anew; only warm runs are shown");
}

/// Starts a gateway, or returns the user's.
fn start(
    runner: &mut SuiteRunner<'_>,
    provider: Option<&Provider>,
    sets: &[String],
) -> Result<Gateway, SuiteError> {
    let all: Vec<_> = std::iter::once(ENFORCED.to_owned()).chain(sets.iter().cloned()).collect();
    match runner.target() {
        Some(target) => Ok(Gateway::external(target)),
        None => runner.gateway("policy", &all, provider),
    }
}

fn measure(
    runner: &mut SuiteRunner<'_>,
    measurement: Measurement,
) -> (MeasurementResult, Option<RunSummary>) {
    let mut last = None;
    let mut keep = |_: usize, pass: &crate::runner::Pass| last = Some(pass.summary.clone());
    let results = runner.measure_by(&[measurement], 1, TimedResponses::All, &mut keep);
    (results.into_iter().next().unwrap_or_default(), last)
}

fn length_of(runner: &SuiteRunner<'_>, profile: &Profile) -> Length {
    let Profile { seconds, short_seconds, .. } = *profile;
    let seconds = if runner.options.short { short_seconds } else { seconds };
    let measured = runner.options.duration.unwrap_or_else(|| Nanos::from_secs(seconds));
    Length::new(Nanos::ZERO, measured)
}

fn pair(
    runner: &mut SuiteRunner<'_>,
    provider: Option<&Provider>,
    profile: &Profile,
) -> Result<ColdWarm, SuiteError> {
    let length = length_of(runner, profile);
    // In a new process caches, pools and the branch predictor are as cold as after a deployment.
    let gateway = start(runner, provider, &[])?;
    let (topology, cold) = (topology(runner), runner.target().is_none());
    let way = Way { name: "", topology, sets: &[], cold };
    Ok(twice(runner, profile, &gateway.target, way, length))
}

/// How a pair is measured, besides its profile and target.
struct Way<'a> {
    name: &'static str,
    topology: String,
    sets: &'a [&'a str],
    /// Whether the gateway was just started, so that the first run is a cold one.
    cold: bool,
}

fn twice(
    runner: &mut SuiteRunner<'_>,
    profile: &Profile,
    target: &SuiteTarget,
    way: Way<'_>,
    length: Length,
) -> ColdWarm {
    let Profile { name, rate, .. } = *profile;
    let request = |runner: &SuiteRunner<'_>, pass: &str| {
        let comma = if way.name.is_empty() { "" } else { ", " };
        let label = target.label(&format!("{name}{comma}{}, {rate}/s, {pass}", way.name));
        policy(runner, &label, target, way.sets).rate(rate, length)
    };
    let cold = way.cold.then(|| {
        let request = request(runner, "first run (cold)");
        measure(runner, request).0
    });
    let request = request(runner, if way.cold { "second run (warm)" } else { "as it is" });
    let (warm, summary) = measure(runner, request);
    let warm = row(warm, summary, format!("{rate}"), way.topology, "skip_llm=true, warm");
    ColdWarm { name, rate, way: way.name, cold, warm }
}

/// The profiles on the further targets, each under its own name.
fn other_topologies(runner: &mut SuiteRunner<'_>) -> Vec<PolicyRow> {
    let mut rows = Vec::new();
    for target in runner.targets().into_iter().skip(1) {
        for profile in &PROFILES {
            if runner.is_interrupted() {
                return rows;
            }
            let topology = topology_of(&target);
            let way = Way { name: "", topology, sets: &[], cold: false };
            let length = length_of(runner, profile);
            rows.push(twice(runner, profile, &target, way, length).warm);
        }
    }
    rows
}

/// Policy requests, with the client that the user names.
fn policy(
    runner: &SuiteRunner<'_>,
    label: &str,
    target: &SuiteTarget,
    sets: &[&str],
) -> Measurement {
    let body = runner.options.client_id.as_ref().map(|client| {
        format!(
            r#"http.body={{"query": "{{{{prompt}}}}", "client_id": "{client}", "request_type": "sql", "user_token": "load-test-token", "skip_llm": true}}"#
        )
    });
    let sets: Vec<_> = body.iter().map(String::as_str).chain(sets.iter().copied()).collect();
    Measurement::policy(label, target, "policy", &sets)
}

/// The `load_test_...` metrics of the headline's last row, with their labels.
fn load_test(runner: &SuiteRunner<'_>, row: &PolicyRow) -> String {
    let Some(summary) = row.summary.as_ref().filter(|_| row.result.why_unusable().is_none()) else {
        return String::new();
    };
    let notes = &runner.options.notes;
    let [environment, provider] = ["environment", "provider"]
        .map(|name| notes.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone()));
    let environment = environment.unwrap_or_else(|| row.topology.clone());
    let client = runner.options.client_id.clone().unwrap_or_else(|| "load-test".to_owned());
    let provider = provider.unwrap_or_else(|| "none (skip_llm=true)".to_owned());
    let mut summary = summary.clone();
    for (name, value) in [("client", client), ("environment", environment), ("provider", provider)]
    {
        summary.metadata.labels.insert(name.to_owned(), value);
    }
    let text = plimsoll_report::prometheus(&summary);
    let own = text.split_inclusive('\n').filter(|line| {
        line.trim_start_matches("# HELP ").trim_start_matches("# TYPE ").starts_with("load_test_")
    });
    own.collect()
}

fn row(
    result: MeasurementResult,
    summary: Option<RunSummary>,
    rate: String,
    topology: String,
    mode: &'static str,
) -> PolicyRow {
    let topology = with_negotiated(topology, summary.as_ref());
    PolicyRow { topology, mode, rate, result, summary }
}

/// A way to the gateway with what its TLS handshakes agreed on; unchanged without TLS.
fn with_negotiated(topology: String, summary: Option<&RunSummary>) -> String {
    let targets = summary.into_iter().flat_map(|summary| &summary.metadata.targets);
    let agreed: Vec<&str> =
        targets.flat_map(|target| target.tls.keys()).map(String::as_str).collect();
    if agreed.is_empty() { topology } else { format!("{topology}, {}", agreed.join(" and ")) }
}

/// What the headline calls the way to the gateway, with the protocol that is asked for.
fn topology(runner: &SuiteRunner<'_>) -> String {
    runner.target().map_or_else(|| "loopback, HTTP/1.1".to_owned(), |target| topology_of(&target))
}

fn topology_of(target: &SuiteTarget) -> String {
    let protocol = match (target.base.starts_with("https:"), target.http2) {
        (true, true) => "HTTP/2",
        (true, false) => "HTTP/1.1",
        (false, true) => "HTTP/2, no TLS",
        (false, false) => "HTTP/1.1, no TLS",
    };
    let name = if target.name.is_empty() { "the target's" } else { &*target.name };
    format!("{name}, {protocol}")
}

/// As many requests as the gateway takes: throughput, and whether policy decisions stay correct.
fn full(runner: &mut SuiteRunner<'_>, target: &SuiteTarget) -> PolicyRow {
    let clients = runner.options.clients.unwrap_or(64);
    let length = super::length(runner.options, 20);
    let label = format!("as fast as it goes, {clients} clients");
    let measurement = policy(runner, &label, target, &[]).clients(clients, length);
    let (result, summary) = measure(runner, measurement);
    let rate = columns::per_s(result.shown().and_then(|figures| figures.requests_per_s));
    row(result, summary, format!("max ({rate})"), topology(runner), "skip_llm=true, warm")
}

fn with_llm(runner: &mut SuiteRunner<'_>, target: &SuiteTarget, mode: &'static str) -> PolicyRow {
    with_llm_at(runner, target, mode, WITH_LLM_PER_S)
}

const WITH_LLM_PER_S: f64 = 20.0;

/// The body of requests that reach the model, with the client that the user names.
fn llm_body(runner: &SuiteRunner<'_>) -> String {
    let client = runner.options.client_id.as_deref().unwrap_or("load-test");
    WITH_LLM.replace(r#""client_id": "load-test""#, &format!(r#""client_id": "{client}""#))
}

fn with_llm_at(
    runner: &mut SuiteRunner<'_>,
    target: &SuiteTarget,
    mode: &'static str,
    rate: f64,
) -> PolicyRow {
    let usual = runner.options.duration.unwrap_or(Nanos::from_secs(60));
    let measured = if runner.options.short { Nanos::from_secs(5) } else { usual };
    let length = Length::new(Nanos::ZERO, measured);
    let label = format!("{rate}/s, {mode}");
    let measurement =
        Measurement::policy(&label, target, "policy-llm", &[&llm_body(runner)]).rate(rate, length);
    let (result, summary) = measure(runner, measurement);
    row(result, summary, rate.to_string(), topology(runner), mode)
}

/// Rates at which requests reach the unhealthy provider: the first as the document has it, the
/// others up to where the gateway saturates.
const UNHEALTHY_PER_S: [f64; 4] = [WITH_LLM_PER_S, 5.0, 100.0, 400.0];

/// Requests that reach a provider which answers every call with 503, at rising rates.
fn unhealthy(runner: &mut SuiteRunner<'_>) -> Result<Vec<PolicyRow>, SuiteError> {
    runner.section = "Provider unhealthy";
    if runner.target().is_some() {
        runner.skip("the provider-unhealthy case", "the suite cannot break the target's provider");
        return Ok(Vec::new());
    }
    let path = runner.options.folder.join("provider-unhealthy.yaml");
    let config = "other_models: {faults: [{share: 1.0, fault: '503'}]}\n";
    std::fs::write(&path, config)
        .map_err(|source| SuiteError::Write { path: path.clone(), source })?;
    let provider = runner.provider(&["--config", &path.to_string_lossy()])?;
    let gateway = start(runner, Some(&provider), &[])?;
    let mut rows = Vec::new();
    for rate in UNHEALTHY_PER_S {
        if runner.is_interrupted() {
            break;
        }
        let mut row = with_llm_at(runner, &gateway.target, "LLM on, unhealthy provider", rate);
        row.result.errors_expected = true;
        // The runner keeps a copy of the result.
        runner.results.iter_mut().rev().take(1).for_each(|result| result.errors_expected = true);
        rows.push(row);
    }
    if !runner.is_interrupted() {
        rows.push(unhealthy_as_fast_as_it_goes(runner, &gateway.target));
    }
    Ok(rows)
}

fn unhealthy_as_fast_as_it_goes(runner: &mut SuiteRunner<'_>, target: &SuiteTarget) -> PolicyRow {
    let clients = runner.options.clients.unwrap_or(64);
    let (mode, length) = ("LLM on, unhealthy provider", super::length(runner.options, 20));
    let label = format!("as fast as it goes, {clients} clients, {mode}");
    let measurement = Measurement::policy(&label, target, "policy-llm", &[&llm_body(runner)]);
    let (mut result, summary) = measure(runner, measurement.clients(clients, length));
    result.errors_expected = true;
    runner.results.iter_mut().rev().take(1).for_each(|result| result.errors_expected = true);
    row(result, summary, "max".to_owned(), topology(runner), mode)
}

/// Every profile over HTTP/2 and TLS, cold and warm, and the ladder.
fn secure(
    runner: &mut SuiteRunner<'_>,
    provider: Option<&Provider>,
) -> Result<(Vec<ColdWarm>, Option<Ladder>), SuiteError> {
    runner.section = "The ladder over HTTP/2";
    if runner.target().is_some() {
        runner.skip(
            "HTTP/2 with TLS 1.3 beside HTTP/1.1",
            "the suite does not give the target a certificate; name an https:// target with --http2, and the whole suite runs over it",
        );
        return Ok((Vec::new(), None));
    }
    let sets = ["http_version=http2", "tls.insecure=true"];
    let tls = certificate::make(&runner.options.folder)?;
    let mut pairs = Vec::new();
    for profile in &PROFILES {
        if runner.is_interrupted() {
            break;
        }
        let gateway = start(runner, provider, std::slice::from_ref(&tls))?;
        let topology = "loopback, HTTP/2".to_owned();
        let way = Way { name: "HTTP/2 and TLS", topology, sets: &sets, cold: true };
        let length = length_of(runner, profile);
        pairs.push(twice(runner, profile, &gateway.https(), way, length));
    }
    if runner.is_interrupted() {
        return Ok((pairs, None));
    }
    let gateway = start(runner, provider, std::slice::from_ref(&tls))?;
    let ladder = Ladder::climb(runner, &gateway.https(), "over HTTP/2", &sets);
    Ok((pairs, Some(ladder)))
}

/// The three bands of the published benchmark, judged on the warm run at the highest rate: critical
/// fails. Where too many answers are not the expected ones nothing can be on target.
fn bands(row: &PolicyRow) -> Vec<BoundResult> {
    let Some(summary) = &row.summary else { return Vec::new() };
    let unusable = row.result.why_unusable();
    summary
        .bands
        .iter()
        .map(|band: &BandResult| {
            let (level, judgement) = match &band.level {
                BandLevel::Target => ("on target", Judgement::Pass),
                BandLevel::Degraded => ("degraded", Judgement::Pass),
                BandLevel::Critical => ("critical", Judgement::Fail),
                BandLevel::Inconclusive(why) => {
                    ("not judged", Judgement::Inconclusive(why.clone()))
                }
            };
            let measured = band.measured.map(|value| match band.unit {
                plimsoll_metrics::Unit::Time => time(value),
                plimsoll_metrics::Unit::Share => percent(value),
                _ => digits(value),
            });
            BoundResult {
                what: format!("warm, 100/s: {}", band.metric),
                measured: or_dash(measured, |measured| format!("{measured} {level}")),
                bound: band.expression.clone(),
                judgement: match &unusable {
                    Some(why) => Judgement::Inconclusive(why.to_string()),
                    None => judgement,
                },
                decides: true,
                timeless: false,
            }
        })
        .collect()
}

fn bounds(full: &PolicyRow, ladder: &MeasurementResult) -> Vec<BoundResult> {
    let all = Requirement::at_least(1.0, percent);
    vec![
        BoundResult::of_figure(
            "throughput of one node",
            &full.result,
            |f| f.requests_per_s,
            Requirement::at_least(500.0, digits),
        ),
        BoundResult::of_figure(
            "throughput of one node, goal",
            &full.result,
            |f| f.requests_per_s,
            Requirement::at_least(1_000.0, digits),
        )
        .into_goal(),
        BoundResult::of_errors(
            "policy correctness, as fast as it goes",
            &full.result,
            |f| f.policy_correctness,
            all,
        ),
        BoundResult::of_figure("ladder: p95", ladder, |f| f.p95_ms, Requirement::below(10.0, time)),
        BoundResult::of_figure("ladder: p99", ladder, |f| f.p99_ms, Requirement::below(25.0, time)),
        BoundResult::of_errors(
            "ladder: errors",
            ladder,
            |f| f.error_share,
            Requirement::below(0.001, percent),
        ),
    ]
}

/// The signs that the metrics see in a run. Without usable figures there is neither a good nor a
/// bad one.
fn signs(row: &PolicyRow) -> Vec<Finding> {
    let usable = row.result.why_unusable().is_none() && row.result.busy_host().is_none();
    let summary = row.summary.as_ref().filter(|_| usable);
    let signs = summary.into_iter().flat_map(|summary| &summary.interpretation);
    signs
        .map(
            |sign| {
                if sign.starts_with("Healthy") {
                    Finding::good(sign)
                } else {
                    Finding::warning(sign)
                }
            },
        )
        .collect()
}

fn of_full(row: &PolicyRow) -> Option<Finding> {
    let figures = row.result.figures()?;
    let correct = figures.policy_correctness?;
    let limit = finding::bottleneck(&figures.busy).sentence(&figures.busy);
    let rate =
        row.result.figure(|f| f.requests_per_s).map(|rate| format!("{}/s with ", digits(rate)));
    let rate = rate.unwrap_or_default();
    let text =
        format!("as fast as it goes: {rate}{} policy correctness; {limit}", percent(correct));
    if let Some(why) = row.result.busy_host() {
        return Some(finding::no_conclusion(&text, &why));
    }
    Some(if correct >= 1.0 { Finding::good(text) } else { Finding::warning(text) })
}

/// With a broken provider only requests that are blocked before it get a useful response.
fn of_unhealthy(row: &PolicyRow) -> Option<Finding> {
    row.result.figures()?;
    let total = &row.summary.as_ref()?.results.total;
    let (blocked, all) = (total.counters.blocked, total.counters.scheduled.max(1));
    let useful = total.counters.completed + blocked;
    Some(Finding::note(format!(
        "with an unhealthy provider {} of the requests get a useful response ({} are blocked before the provider); the rest are errors. Capacity with a model is the provider's, and is measured separately",
        percent(useful as f64 / all as f64),
        percent(blocked as f64 / all as f64)
    )))
}
