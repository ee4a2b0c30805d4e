//! The policy suite: a policy gateway at rising rates, cold and warm, with every policy decision
//! compared with the expected one.

mod ladder;
mod tables;
mod unhealthy;

use std::io;

use plimsoll_measure::Nanos;
use plimsoll_metrics::{BandLevel, Metric, RunSummary, ThresholdResult};
use plimsoll_report::format::{digits, or_dash, percent, time};

use super::columns;
use crate::bound::{BoundResult, Quantity, disturbance, judge};
use crate::error::SuiteError;
use crate::measurement::{Length, LoadShape, Measurement};
use crate::report::{Report, Section, published};
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
    /// Difference from other pairs of the profile; empty for the first.
    pub(super) way: &'static str,
    /// `None` for the user's gateway, which the suite cannot start anew.
    pub(super) cold: Option<MeasurementResult>,
    pub(super) warm: PolicyRow,
}

pub(super) fn run(runner: &mut SuiteRunner<'_>) -> Result<(), SuiteError> {
    runner.section = "By rate, topology and mode";
    for target in runner.targets() {
        let what = "POST /api/request";
        if !runner.answers(what, Measurement::policy(what, &target, "policy", &[]))? {
            return Ok(());
        }
        let request = policy(runner, "burst", &target, &[]);
        runner.probe_limits(&request)?;
    }
    skip_for_targets(runner);
    let is_ours = runner.target().is_none();
    let provider = if is_ours { Some(runner.provider(&[])?) } else { None };
    let topology =
        runner.target().map_or_else(|| "loopback, HTTP/1.1".to_owned(), |one| topology_of(&one));
    let plain = Way { topology, ..Way::default() };
    let mut pairs = pairs(runner, provider.as_ref(), &plain)?;
    let others = other_topologies(runner);
    let gateway = start(runner, provider.as_ref(), &[])?;
    let mut ladders = vec![ladder::climb(runner, &gateway.target, "", &[])];
    let full = full(runner, &gateway.target, &plain.topology);
    let mode = if is_ours { "LLM on, healthy provider" } else { "LLM on" };
    let (target, topology) = (&gateway.target, &*plain.topology);
    let load = LlmLoad { target, topology, mode, errors_expected: false };
    let model = unhealthy::expected(load.at(runner, WITH_LLM_PER_S));
    let mut unhealthy = unhealthy::measure(runner, &plain.topology)?;
    let capacity = pairs.len().checked_sub(1);
    if model.mode == unhealthy::MODE {
        unhealthy.push(tables::unhealthy(&model));
    }
    secure(runner, provider.as_ref(), &mut pairs, &mut ladders)?;
    let warm = pairs.iter().map(|pair| &pair.warm);
    let rows: Vec<_> = warm.chain(&others).chain([&full, &model]).collect();
    // The rows of each target at the highest rate; the first is the headline.
    let judged = capacity.map(|index| &pairs[index].warm);
    let judged: Vec<_> =
        judged.into_iter().chain(others.iter().filter(|row| is_capacity(row))).collect();
    runner.report.load_test = judged.first().map(|row| load_test(runner, row)).unwrap_or_default();
    runner.capacities.push(sizing::capacity("policy node, skip_llm=true", &[&full.result]));
    runner.report.references =
        ["Reference: 5 agents", "Reference, cold and warm"].map(published).into();
    let ladder = ladders[0].0.clone();
    let Report { sections, bounds, .. } = &mut runner.report;
    sections.push(tables::headline(&rows));
    sections.extend(ladders.into_iter().map(|(_, section)| section));
    if pairs.iter().any(|pair| pair.cold.is_some()) {
        sections.push(tables::cold_and_warm(&pairs));
    }
    for row in judged {
        sections.extend(tables::decisions(row));
        bounds.extend(bands(row));
        bounds.push(Quantity::CORRECTNESS.bound(1.0).judge(&row.name(), &row.result));
    }
    sections.extend(unhealthy);
    bounds.extend(bounds_of(&full, &ladder));
    Ok(())
}

/// Whether a row has the highest rate of the profiles.
fn is_capacity(row: &PolicyRow) -> bool {
    PROFILES.last().is_some_and(|profile| row.result.rate == Some(profile.rate))
}

impl PolicyRow {
    /// A name that is unique among all rows: `loopback, HTTP/1.1, 100/s, skip_llm=true, warm`.
    fn name(&self) -> String {
        format!("{}, {}/s, {}", self.topology, self.rate, self.mode)
    }
}

/// Lists measurements that are skipped for the user's gateways.
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
        let why = "the suite cannot restart the target: restart it, and pass --just-started";
        runner.skip("cold runs", why);
    }
}

/// Names of runs, and their wording in the headline.
const COLD: (&str, &str) = ("first run (cold)", "skip_llm=true, cold");
const WARM: (&str, &str) = ("second run (warm)", "skip_llm=true, warm");
const AS_IT_IS: (&str, &str) = ("as it is", "skip_llm=true, as it is");

/// Starts a gateway that blocks every violation, as in the published benchmark, or returns the
/// user's.
fn start(
    runner: &mut SuiteRunner<'_>,
    provider: Option<&Provider>,
    tls: &[String],
) -> Result<Gateway, SuiteError> {
    match runner.target() {
        Some(target) => Ok(Gateway::external(target)),
        None => runner.gateway("policy", "enforced", tls, provider),
    }
}

fn measure(
    runner: &mut SuiteRunner<'_>,
    measurement: Measurement,
) -> (MeasurementResult, Option<RunSummary>) {
    let mut last = None;
    let results = runner.measure_by(&[measurement], 1, &mut |pass| {
        last = Some(pass.summary.clone());
    });
    (results.into_iter().next().unwrap_or_default(), last)
}

/// A length without a warm-up.
fn cold_length(runner: &SuiteRunner<'_>, usual: u64, short: u64) -> Length {
    let own = Nanos::from_secs(if runner.options.short { short } else { usual });
    Length::new(Nanos::ZERO, runner.options.duration.unwrap_or(own))
}

/// How the gateway is reached.
#[derive(Default)]
struct Way {
    /// Difference from the first; empty for the first.
    name: &'static str,
    topology: String,
    /// Settings of the requests.
    sets: &'static [&'static str],
    /// The gateway's setting for TLS.
    tls: Option<String>,
}

/// One run of a profile.
fn once(
    runner: &mut SuiteRunner<'_>,
    profile: &Profile,
    target: &SuiteTarget,
    way: &Way,
    run: (&str, &'static str),
) -> PolicyRow {
    let Profile { name, rate, seconds, short_seconds } = *profile;
    let comma = if way.name.is_empty() { "" } else { ", " };
    let label = target.label(&format!("{name}{comma}{}, {rate}/s, {}", way.name, run.0));
    let request = policy(runner, &label, target, way.sets);
    let request = request.rate(rate, cold_length(runner, seconds, short_seconds));
    row(runner, request, &way.topology, run.1)
}

/// Every profile, as far as the user lets it come: cold, in a new process whose caches, pools and
/// branch predictor are as cold as after a deployment, and warm. On the user's gateway that was
/// started just now all first runs come before the second ones, as whatever is cold is cold once.
fn pairs(
    runner: &mut SuiteRunner<'_>,
    provider: Option<&Provider>,
    way: &Way,
) -> Result<Vec<ColdWarm>, SuiteError> {
    let mut first_runs = Vec::new();
    if let Some(target) = runner.target().filter(|_| runner.options.just_started) {
        for profile in &PROFILES {
            if !runner.is_interrupted() {
                first_runs.push(once(runner, profile, &target, way, COLD).result);
            }
        }
    }
    let mut first_runs = first_runs.into_iter();
    let mut pairs = Vec::new();
    for profile in &PROFILES {
        if runner.is_interrupted() {
            break;
        }
        let gateway = start(runner, provider, way.tls.as_slice())?;
        let target = if way.tls.is_some() { gateway.https() } else { gateway.target.clone() };
        let cold = if target.external {
            first_runs.next()
        } else {
            Some(once(runner, profile, &target, way, COLD).result)
        };
        let second = if cold.is_some() { WARM } else { AS_IT_IS };
        let warm = once(runner, profile, &target, way, second);
        pairs.push(ColdWarm { name: profile.name, rate: profile.rate, way: way.name, cold, warm });
    }
    Ok(pairs)
}

/// The profiles on the further targets, each under its own name.
fn other_topologies(runner: &mut SuiteRunner<'_>) -> Vec<PolicyRow> {
    let mut rows = Vec::new();
    for target in runner.targets().into_iter().skip(1) {
        let way = Way { topology: topology_of(&target), ..Way::default() };
        for profile in &PROFILES {
            if !runner.is_interrupted() {
                rows.push(once(runner, profile, &target, &way, AS_IT_IS));
            }
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
    let body = runner.options.client_id.is_some().then(|| body(runner, "sql", true));
    let sets: Vec<_> = body.iter().map(String::as_str).chain(sets.iter().copied()).collect();
    Measurement::policy(label, target, "policy", &sets)
}

/// The setting for the body of requests, with the client that the user names; without `skip_llm`
/// they reach the model if the policy allows them.
fn body(runner: &SuiteRunner<'_>, request_type: &str, skip_llm: bool) -> String {
    let client = runner.options.client_id.as_deref().unwrap_or("load-test");
    format!(
        r#"http.body={{"query": "{{{{prompt}}}}", "client_id": "{client}", "request_type": "{request_type}", "user_token": "load-test-token", "skip_llm": {skip_llm}}}"#
    )
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
    runner: &mut SuiteRunner<'_>,
    measurement: Measurement,
    topology: &str,
    mode: &'static str,
) -> PolicyRow {
    let rate = match measurement.shape {
        LoadShape::Rate(rate) => rate.to_string(),
        LoadShape::Clients(_) => "max".to_owned(),
    };
    let (result, summary) = measure(runner, measurement);
    let topology = with_negotiated(topology.to_owned(), summary.as_ref());
    PolicyRow { topology, mode, rate, result, summary }
}

/// A way to the gateway, with the parameters agreed in its TLS handshakes; unchanged without TLS.
fn with_negotiated(topology: String, summary: Option<&RunSummary>) -> String {
    let targets = summary.into_iter().flat_map(|summary| &summary.metadata.targets);
    let agreed: Vec<&str> =
        targets.flat_map(|target| target.tls.keys()).map(String::as_str).collect();
    if agreed.is_empty() { topology } else { format!("{topology}, {}", agreed.join(" and ")) }
}

/// Name of the way to the user's gateway in the headline, with the requested protocol.
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

/// A load at the gateway's capacity: throughput, and whether policy decisions stay correct.
fn full(runner: &mut SuiteRunner<'_>, target: &SuiteTarget, topology: &str) -> PolicyRow {
    let clients = runner.options.clients.unwrap_or(64);
    let length = super::length(runner.options, 20);
    let label = format!("as fast as it goes, {clients} clients");
    let measurement = policy(runner, &label, target, &[]).clients(clients, length);
    // The loads before have warmed it.
    let full = row(runner, measurement, topology, WARM.1);
    PolicyRow { rate: format!("max: {}", columns::ACHIEVED.1(&full.result)), ..full }
}

const WITH_LLM_PER_S: f64 = 20.0;

/// Requests that reach the model.
struct LlmLoad<'a> {
    target: &'a SuiteTarget,
    topology: &'a str,
    mode: &'static str,
    /// Whether errors are the provider's.
    errors_expected: bool,
}

impl LlmLoad<'_> {
    /// At a rate.
    fn at(&self, runner: &mut SuiteRunner<'_>, rate: f64) -> PolicyRow {
        let length = cold_length(runner, 60, 5);
        let request = self.request(runner, &format!("{rate}/s, {}", self.mode));
        row(runner, request.rate(rate, length), self.topology, self.mode)
    }

    /// The request, with the client that the user names.
    fn request(&self, runner: &SuiteRunner<'_>, label: &str) -> Measurement {
        let body = body(runner, "llm_chat", false);
        let mut request = Measurement::policy(label, self.target, "policy-llm", &[&body]);
        request.errors_expected = self.errors_expected;
        request
    }
}

/// Every profile over HTTP/2 and TLS, cold and warm, and the ladder.
fn secure(
    runner: &mut SuiteRunner<'_>,
    provider: Option<&Provider>,
    all: &mut Vec<ColdWarm>,
    ladders: &mut Vec<(MeasurementResult, Section)>,
) -> Result<(), SuiteError> {
    runner.section = "The ladder over HTTP/2";
    if runner.target().is_some() {
        runner.skip(
            "HTTP/2 with TLS 1.3 beside HTTP/1.1",
            "the suite does not give the target a certificate; name an https:// target with --http2, and the whole suite runs over it",
        );
        return Ok(());
    }
    let way = Way {
        name: "HTTP/2 and TLS",
        topology: "loopback, HTTP/2".to_owned(),
        sets: &["http_version=http2", "tls.insecure=true"],
        tls: Some(make_certificate(runner)?),
    };
    all.extend(pairs(runner, provider, &way)?);
    if !runner.is_interrupted() {
        let gateway = start(runner, provider, way.tls.as_slice())?;
        ladders.push(ladder::climb(runner, &gateway.https(), "over HTTP/2", way.sets));
    }
    Ok(())
}

/// The three bands of the published benchmark, judged on the warm run at the highest rate: critical
/// fails. With too many unexpected answers, no band is on target.
fn bands(row: &PolicyRow) -> Vec<BoundResult> {
    let Some(summary) = &row.summary else { return Vec::new() };
    let bands = summary.thresholds.iter().filter(|limit| limit.is_band());
    bands
        .map(|band: &ThresholdResult| {
            let level = match band.level {
                Some(BandLevel::Target) => "on target",
                Some(BandLevel::Degraded) => "degraded",
                Some(BandLevel::Critical) => "critical",
                None => "not judged",
            };
            let measured = band.measured.map(|value| match band.unit {
                plimsoll_metrics::Unit::Time => time(value),
                plimsoll_metrics::Unit::Share => percent(value),
                _ => digits(value),
            });
            let judged = BoundResult::new(
                &format!("{}: {}", row.name(), banded(&band.metric)),
                or_dash(measured, |measured| format!("{measured} {level}")),
                band.expression.clone(),
                band.judgement.clone(),
            );
            let is_upper = band.expression.contains('<');
            let disturbance = disturbance(&band.metric, &row.result);
            match (row.result.why_unusable(), row.result.busy_host()) {
                (Some(why), _) => judged.into_doubt(&why),
                (None, Some(why)) => judged.disturbed(disturbance, is_upper, why),
                (None, None) => judged,
            }
        })
        .collect()
}

/// The metric of a band: a time covers completed requests only, whereas tables show all responses.
fn banded(metric: &str) -> &str {
    if metric == Metric::ResponseTime.name() { "response time of allowed requests" } else { metric }
}

fn bounds_of(full: &PolicyRow, ladder: &MeasurementResult) -> Vec<BoundResult> {
    let fast = [
        Quantity::THROUGHPUT.bound(500.0),
        Quantity::THROUGHPUT.goal(1_000.0),
        Quantity::CORRECTNESS.bound(1.0),
    ];
    let steps =
        [Quantity::P95.bound(10.0), Quantity::P99.bound(25.0), Quantity::ERRORS.bound(0.001)];
    let fast = judge("one node, as fast as it goes", &full.result, &fast);
    fast.into_iter().chain(judge("ladder", ladder, &steps)).collect()
}

/// Makes a self-signed certificate for the loopback address, and returns the gateway's setting for
/// it.
fn make_certificate(runner: &SuiteRunner<'_>) -> Result<String, SuiteError> {
    let made = rcgen::generate_simple_self_signed(["localhost", "127.0.0.1"].map(str::to_owned));
    let made = made.map_err(io::Error::other).map_err(SuiteError::system("write tls-cert.pem"))?;
    let cert = runner.write("tls-cert.pem", made.cert.pem().as_bytes())?;
    let key = runner.write("tls-key.pem", made.signing_key.serialize_pem().as_bytes())?;
    // JSON is YAML, and escapes any path.
    Ok(format!("tls={}", serde_json::json!({"cert": cert, "key": key})))
}
