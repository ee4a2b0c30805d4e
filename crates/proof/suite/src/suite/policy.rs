//! The policy suite: a policy gateway at rising rates, cold and warm, with every policy decision
//! compared with the expected one.

mod ladder;
mod tables;
mod trends;
mod unhealthy;

use plimsoll_measure::Nanos;
use plimsoll_metrics::{BandLevel, BandResult, Disturbance, Figure, Judgement, Metric, RunSummary};
use plimsoll_report::format::{digits, limited_rate, or_dash, percent, time};

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
    let pairs = pairs_of(runner, provider.as_ref())?;
    let others = other_topologies(runner);
    let gateway = start(runner, provider.as_ref(), &[])?;
    let ladder = Ladder::climb(runner, &gateway.target, "", &[]);
    let full = full(runner, &gateway.target);
    let mode = if runner.target().is_some() { "LLM on" } else { "LLM on, healthy provider" };
    let model = with_llm(runner, &gateway.target, mode);
    let unhealthy = unhealthy::measure(runner)?;
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
        report.sections.push(tables::cold_and_warm(all.clone(), runner.target().is_none()));
    }
    report.findings.extend(trends::findings(&rows));
    report.findings.extend(all.filter_map(trends::cold_start));
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
    report.findings.extend(unhealthy::findings(&unhealthy));
    report.bounds.extend(bounds(&full, &ladder.whole));
    let capacity = sizing::capacity("policy node, skip_llm=true", &[&full.result]);
    report.size("Nodes for a rate", vec![capacity], runner.options.size_for);
    report.references = tables::references();
    Ok(report.conclude())
}

/// Every profile, as far as the user lets it come.
fn pairs_of(
    runner: &mut SuiteRunner<'_>,
    provider: Option<&Provider>,
) -> Result<Vec<ColdWarm>, SuiteError> {
    let mut first_runs = first_runs(runner).into_iter();
    let mut pairs = Vec::new();
    for profile in &PROFILES {
        if !runner.is_interrupted() {
            pairs.push(pair(runner, provider, profile, first_runs.next())?);
        }
    }
    Ok(pairs)
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
    if !runner.options.just_started {
        runner.section = "Cold and warm";
        let why = "the suite cannot start the target anew: start it just before, and say so with --just-started";
        runner.skip("cold runs", why);
    }
}

/// The first run of each profile on the user's gateway that was started just now: all of them come
/// before the second ones, as whatever is cold is cold once.
fn first_runs(runner: &mut SuiteRunner<'_>) -> Vec<MeasurementResult> {
    let Some(target) = runner.target().filter(|_| runner.options.just_started) else {
        return Vec::new();
    };
    let way = Way { name: "", topology: String::new(), sets: &[], cold: Cold::Not };
    let mut results = Vec::new();
    for profile in &PROFILES {
        if runner.is_interrupted() {
            break;
        }
        let request = request(runner, profile, &target, &way, FIRST_RUN);
        let length = length_of(runner, profile);
        results.push(measure(runner, request.rate(profile.rate, length)).0);
    }
    results
}

/// What the runs of a pair are called.
const FIRST_RUN: &str = "first run (cold)";
const SECOND_RUN: &str = "second run (warm)";

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
    first_run: Option<MeasurementResult>,
) -> Result<ColdWarm, SuiteError> {
    let length = length_of(runner, profile);
    // In a new process caches, pools and the branch predictor are as cold as after a deployment.
    let gateway = start(runner, provider, &[])?;
    let cold = match first_run {
        Some(first) => Cold::Measured(first),
        None if runner.target().is_none() => Cold::First,
        None => Cold::Not,
    };
    let way = Way { name: "", topology: topology(runner), sets: &[], cold };
    Ok(twice(runner, profile, &gateway.target, way, length))
}

/// How a pair is measured, besides its profile and target.
struct Way<'a> {
    name: &'static str,
    topology: String,
    sets: &'a [&'a str],
    cold: Cold,
}

/// The first run of a pair.
enum Cold {
    /// The gateway was just started: it comes now.
    First,
    /// It came already.
    Measured(MeasurementResult),
    /// The gateway may have run for long: there is none.
    Not,
}

/// The request of one run of a pair.
fn request(
    runner: &SuiteRunner<'_>,
    profile: &Profile,
    target: &SuiteTarget,
    way: &Way<'_>,
    pass: &str,
) -> Measurement {
    let Profile { name, rate, .. } = *profile;
    let comma = if way.name.is_empty() { "" } else { ", " };
    let label = target.label(&format!("{name}{comma}{}, {rate}/s, {pass}", way.name));
    policy(runner, &label, target, way.sets)
}

fn twice(
    runner: &mut SuiteRunner<'_>,
    profile: &Profile,
    target: &SuiteTarget,
    mut way: Way<'_>,
    length: Length,
) -> ColdWarm {
    let Profile { name, rate, .. } = *profile;
    let cold = match std::mem::replace(&mut way.cold, Cold::Not) {
        Cold::First => {
            let first = request(runner, profile, target, &way, FIRST_RUN);
            Some(measure(runner, first.rate(rate, length)).0)
        }
        Cold::Measured(first) => Some(first),
        Cold::Not => None,
    };
    let (pass, mode) = match cold {
        Some(_) => (SECOND_RUN, "skip_llm=true, warm"),
        None => ("as it is", "skip_llm=true, as it is"),
    };
    let second = request(runner, profile, target, &way, pass);
    let (warm, summary) = measure(runner, second.rate(rate, length));
    let warm = row(warm, summary, format!("{rate}"), way.topology, mode);
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
            let way = Way { name: "", topology, sets: &[], cold: Cold::Not };
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
    // The loads before have warmed it.
    row(result, summary, format!("max: {rate}"), topology(runner), "skip_llm=true, warm")
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
    let own = Nanos::from_secs(if runner.options.short { 5 } else { 60 });
    let length = Length::new(Nanos::ZERO, runner.options.duration.unwrap_or(own));
    let label = format!("{rate}/s, {mode}");
    let measurement =
        Measurement::policy(&label, target, "policy-llm", &[&llm_body(runner)]).rate(rate, length);
    let (result, summary) = measure(runner, measurement);
    row(result, summary, rate.to_string(), topology(runner), mode)
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
        let way = Way { name: "HTTP/2 and TLS", topology, sets: &sets, cold: Cold::First };
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
            let judged = BoundResult {
                what: format!("warm, 100/s: {}", banded(&band.metric)),
                measured: or_dash(measured, |measured| format!("{measured} {level}")),
                bound: band.expression.clone(),
                judgement,
                decides: true,
                in_doubt_if_busy: false,
            };
            let disturbance = match Figure::named(&band.metric) {
                Some(Figure::Distribution(_)) => row.result.time().disturbance(),
                other => other.map_or(Disturbance::Either, Figure::disturbance),
            };
            match (row.result.why_unusable(), row.result.busy_host()) {
                (Some(why), _) => judged.into_doubt(&why),
                (None, Some(why)) => judged.disturbed(disturbance, why),
                (None, None) => judged,
            }
        })
        .collect()
}

/// What a band is about: a time is that of completed requests, where tables show all responses.
fn banded(metric: &str) -> &str {
    if metric == Metric::ResponseTime.name() { "response time of the allowed" } else { metric }
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
    let rate = limited_rate(row.result.throughput());
    let text = format!(
        "as fast as it goes: {rate}/s with {} policy correctness; {limit}",
        percent(correct)
    );
    if let Some(why) = row.result.busy_host() {
        return Some(finding::no_conclusion(&text, &why));
    }
    Some(if correct >= 1.0 { Finding::good(text) } else { Finding::warning(text) })
}
