//! S2: the policy gateway at rising rates, cold and warm, with the policy decisions held against what is expected.

mod tables;

use plimsoll_metrics::{BandLevel, BandResult, Judgement, RunSummary};

use crate::bench::Bench;
use crate::cell::{Answers, Figures, MeasurementResult};
use crate::error::SuiteError;
use crate::finding::{self, Finding};
use crate::gate::{Bound, Gate};
use crate::job::{Amount, Job, Length};
use crate::report::{Report, Section};
use crate::sizing::{self, Capacity};
use crate::subject::{Gateway, Provider, Subject};
use crate::words::{percent, rate};

use plimsoll_measure::Nanos;

use super::certificate;

/// The seed's profiles: name, requests per second, seconds; and the seconds with `--quick`, long enough for a p99 of
/// what is let through at the highest rate.
const PROFILES: [(&str, f64, u64, u64); 3] =
    [("light", 20.0, 30, 6), ("hourly", 50.0, 60, 6), ("capacity", 100.0, 120, 14)];
/// The ladder, and its short form.
const LADDER: &str = "@10:30s,@50:60s,@100:120s,@200:60s,@100..0:30s";
const LADDER_QUICK: &str = "@10:2s,@50:3s,@100:4s,@200:6s,@100..0:2s";
/// Asks the model, where the policy lets it.
const WITH_LLM: &str = r#"http.body={"query": "{{prompt}}", "client_id": "load-test", "request_type": "llm_chat", "user_token": "load-test-token", "skip_llm": false}"#;
/// Everything that is to be refused is refused, as in the seed's own measurement.
const ENFORCED: &str = "policy={endpoint: true, actions: {sql_injection: block, dangerous: block, admin: block, pii: redact, prompt_injection: block}}";

/// A measured cell, and the summary of its last pass.
pub(super) struct Row {
    pub(super) topology: &'static str,
    pub(super) mode: &'static str,
    pub(super) rate: String,
    pub(super) cell: MeasurementResult,
    pub(super) summary: Option<RunSummary>,
}

/// The first and the second run of a profile against a gateway that was just started.
pub(super) struct Pair {
    pub(super) name: &'static str,
    pub(super) rate: f64,
    pub(super) cold: MeasurementResult,
    pub(super) warm: Row,
}

pub(super) fn run(bench: &mut Bench<'_>) -> Result<Report, SuiteError> {
    let provider = match bench.target() {
        Some(_) => None,
        None => Some(bench.provider(&[])?),
    };
    let mut pairs = Vec::new();
    for profile in PROFILES {
        if !bench.is_over() {
            pairs.push(pair(bench, provider.as_ref(), profile)?);
        }
    }
    let gateway = start(bench, provider.as_ref(), &[])?;
    let (ladder, steps) = ladder(bench, &gateway.subject);
    let full = full(bench, &gateway.subject);
    let model = with_llm(bench, &gateway.subject, "LLM on, healthy provider");
    let unhealthy = unhealthy(bench)?;
    let secure = secure(bench, provider.as_ref())?;
    bench.retire(&gateway);
    let title =
        "policy enforcement at rising rates, cold and warm, with every policy decision checked";
    let mut report = Report::begin("policy", title, bench);
    let warm: Vec<_> = pairs.iter().map(|pair| &pair.warm).collect();
    let rows: Vec<_> = warm.iter().copied().chain([&full, &model]).chain(&secure).collect();
    report.sections.push(tables::headline(&rows));
    report.sections.push(tables::ladder(&steps));
    report.sections.push(tables::cold_and_warm(&pairs));
    let capacity = pairs.last().map(|pair| &pair.warm);
    if let Some(summary) = capacity.and_then(|row| row.summary.as_ref()) {
        report.sections.push(tables::confusion(summary));
        report.sections.push(tables::categories(summary));
        report.gates.extend(bands(summary, capacity.is_some_and(|row| row.cell.is_invalid())));
        report.findings.extend(summary.interpretation.iter().map(|sign| of_sign(sign)));
    }
    report.sections.push(tables::unhealthy(unhealthy.as_ref()));
    report.findings.extend(of_full(&full));
    report.findings.extend(of_unhealthy(unhealthy.as_ref()));
    report.gates.extend(gates(&full, &ladder));
    report.sizing = size(&full, bench);
    report.references = tables::references();
    Ok(report.conclude())
}

/// A gateway that was just started, or the user's.
fn start(
    bench: &mut Bench<'_>,
    provider: Option<&Provider>,
    sets: &[String],
) -> Result<Gateway, SuiteError> {
    let all: Vec<_> = std::iter::once(ENFORCED.to_owned()).chain(sets.iter().cloned()).collect();
    match bench.target() {
        Some(subject) => Ok(Gateway::theirs(subject)),
        None => bench.gateway("policy", &all, provider),
    }
}

fn measure(bench: &mut Bench<'_>, job: Job) -> (MeasurementResult, Option<RunSummary>) {
    let mut last = None;
    let mut keep = |_: usize, pass: &crate::bench::Pass| last = Some(pass.summary.clone());
    let cells = bench.measure_by(&[job], 1, Answers::All, &mut keep);
    (cells.into_iter().next().unwrap_or_default(), last)
}

fn pair(
    bench: &mut Bench<'_>,
    provider: Option<&Provider>,
    (name, rate, usual, quick): (&'static str, f64, u64, u64),
) -> Result<Pair, SuiteError> {
    let seconds = if bench.order.quick { quick } else { usual };
    let measured = bench.order.duration.unwrap_or_else(|| Nanos::from_secs(seconds));
    let length = Length::new(Nanos::ZERO, measured);
    // A fresh process: caches, pools and the branch predictor are as cold as after a deployment.
    let gateway = start(bench, provider, &[])?;
    let job = |pass: &str| {
        let label = format!("{name}, {rate}/s, {pass}");
        Job::builtin(&label, &gateway.subject, "policy", &[]).rate(rate, length)
    };
    let (cold, _) = measure(bench, job("first run (cold)"));
    let (warm, summary) = measure(bench, job("second run (warm)"));
    bench.retire(&gateway);
    let warm = row(warm, summary, format!("{rate}"), topology(bench), "skip_llm=true, warm");
    Ok(Pair { name, rate, cold, warm })
}

fn row(
    cell: MeasurementResult,
    summary: Option<RunSummary>,
    rate: String,
    topology: &'static str,
    mode: &'static str,
) -> Row {
    Row { topology, mode, rate, cell, summary }
}

fn topology(bench: &Bench<'_>) -> &'static str {
    if bench.target().is_some() { "the target's" } else { "loopback, HTTP/1.1" }
}

/// The ladder as one run: each step is a row.
fn ladder(
    bench: &mut Bench<'_>,
    subject: &Subject,
) -> (MeasurementResult, Vec<(String, Figures, RunSummary)>) {
    let stages = if bench.order.quick { LADDER_QUICK } else { LADDER };
    let label = format!("ladder {stages}");
    let job = Job::builtin(&label, subject, "policy", &[]).stages(Amount::Rate(100.0), stages);
    let (cell, summary) = measure(bench, job);
    let Some(summary) = summary else { return (cell, Vec::new()) };
    let step = |group: &plimsoll_metrics::Group| {
        let figures = Figures::of_group(group, Answers::All).ok()?;
        let mut part = summary.clone();
        part.results.total = group.clone();
        Some((group.stage.clone().unwrap_or_default(), figures, part))
    };
    let steps = summary.results.by_stage.iter().filter_map(step).collect();
    (cell, steps)
}

/// As many requests as the gateway takes: throughput, and whether policy decisions stay right.
fn full(bench: &mut Bench<'_>, subject: &Subject) -> Row {
    let clients = bench.order.clients.unwrap_or(64);
    let length = super::length(bench.order, 20);
    let label = format!("as fast as it goes, {clients} clients");
    let job = Job::builtin(&label, subject, "policy", &[]).clients(clients, length);
    let (cell, summary) = measure(bench, job);
    let rate = rate(cell.figures().and_then(|figures| figures.requests_per_s));
    row(cell, summary, format!("max ({rate})"), topology(bench), "skip_llm=true, warm")
}

fn with_llm(bench: &mut Bench<'_>, subject: &Subject, mode: &'static str) -> Row {
    let usual = bench.order.duration.unwrap_or(Nanos::from_secs(60));
    let measured = if bench.order.quick { Nanos::from_secs(5) } else { usual };
    let length = Length::new(Nanos::ZERO, measured);
    let label = format!("20/s, {mode}");
    let job = Job::builtin(&label, subject, "policy-llm", &[WITH_LLM]).rate(20.0, length);
    let (cell, summary) = measure(bench, job);
    row(cell, summary, "20".to_owned(), topology(bench), mode)
}

/// The same with a provider that answers every call with 503.
fn unhealthy(bench: &mut Bench<'_>) -> Result<Option<Row>, SuiteError> {
    if bench.target().is_some() {
        bench.skip("the provider-unhealthy case", "the target's provider is not ours to break");
        return Ok(None);
    }
    let path = bench.order.folder.join("provider-unhealthy.yaml");
    let config = "other_models: {faults: [{share: 1.0, fault: '503'}]}\n";
    std::fs::write(&path, config)
        .map_err(|source| SuiteError::Write { path: path.clone(), source })?;
    let provider = bench.provider(&["--config", &path.to_string_lossy()])?;
    let gateway = start(bench, Some(&provider), &[])?;
    let mut row = with_llm(bench, &gateway.subject, "LLM on, unhealthy provider");
    row.cell.errors_wanted = true;
    // The bench keeps the cell as well.
    bench.cells.iter_mut().rev().take(1).for_each(|cell| cell.errors_wanted = true);
    Ok(Some(row))
}

/// The capacity profile over HTTP/2 and TLS 1.3.
fn secure(bench: &mut Bench<'_>, provider: Option<&Provider>) -> Result<Option<Row>, SuiteError> {
    if bench.target().is_some() {
        bench.skip(
            "HTTP/2 with TLS 1.3",
            "give an https:// target; the suite then runs over it as it is",
        );
        return Ok(None);
    }
    if bench.order.port.is_some() || bench.is_over() {
        return Ok(None);
    }
    let tls = certificate::make(&bench.order.folder)?;
    let gateway = start(bench, provider, &[tls])?;
    let subject = gateway.https();
    let measured = if bench.order.quick { Nanos::from_secs(5) } else { Nanos::from_secs(60) };
    let length = Length::new(Nanos::from_millis(500), bench.order.duration.unwrap_or(measured));
    let sets = ["http_version=http2", "tls.insecure=true"];
    let job = Job::builtin("100/s, HTTP/2 and TLS 1.3", &subject, "policy", &sets);
    let (cell, summary) = measure(bench, job.rate(100.0, length));
    let row = row(cell, summary, "100".to_owned(), "loopback, HTTP/2 + TLS 1.3", "skip_llm=true");
    Ok(Some(row))
}

/// The three bands of the seed, judged on the warm run at the highest rate: critical fails.
fn bands(summary: &RunSummary, invalid: bool) -> Vec<Gate> {
    let gate = |standing: &BandResult| {
        let (level, judgement) = match &standing.level {
            BandLevel::Target => ("on target", Judgement::Pass),
            BandLevel::Degraded => ("degraded", Judgement::Pass),
            BandLevel::Critical => ("critical", Judgement::Fail),
            BandLevel::Inconclusive(why) => ("", Judgement::Inconclusive(why.clone())),
        };
        let measured = standing.measured.map(|value| match standing.unit {
            plimsoll_metrics::Unit::Time => crate::words::millis(Some(value)),
            plimsoll_metrics::Unit::Share => percent(Some(value)),
            _ => rate(Some(value)),
        });
        let measured = measured.unwrap_or_else(crate::words::dash);
        Gate {
            what: format!("warm, 100/s: {}", standing.metric),
            measured: format!("{measured} {level}").trim().to_owned(),
            bound: standing.expression.clone(),
            judgement: if invalid {
                Judgement::Inconclusive("the measurement is invalid".to_owned())
            } else {
                judgement
            },
            decides: true,
        }
    };
    summary.bands.iter().map(gate).collect()
}

fn gates(full: &Row, ladder: &MeasurementResult) -> Vec<Gate> {
    let correct = |row: &Row| row.summary.as_ref()?.results.total.rates.policy_correctness;
    let whole = Bound::at_least(1.0, percent);
    let throughput = |figures: &Figures| figures.requests_per_s;
    vec![
        Gate::of("throughput of one node", &full.cell, throughput, Bound::at_least(500.0, rate)),
        Gate::of(
            "throughput of one node, target",
            &full.cell,
            throughput,
            Bound::at_least(1_000.0, rate),
        )
        .target(),
        Gate::value("policy correctness, as fast as it goes", correct(full), whole),
        Gate::of("ladder: p95", ladder, |f| f.p95_ms, Bound::below(10.0, crate::words::millis)),
        Gate::of("ladder: p99", ladder, |f| f.p99_ms, Bound::below(25.0, crate::words::millis)),
        Gate::of("ladder: errors", ladder, |f| f.error_share, Bound::below(0.001, percent)),
    ]
}

fn of_sign(sign: &str) -> Finding {
    if sign.starts_with("Healthy") { Finding::good(sign) } else { Finding::warning(sign) }
}

fn of_full(row: &Row) -> Option<Finding> {
    let figures = row.cell.figures().filter(|_| !row.cell.is_invalid())?;
    let total = &row.summary.as_ref()?.results.total;
    let correct = total.rates.policy_correctness?;
    let who = finding::limiter(&figures.busy).sentence(&figures.busy);
    let told = format!(
        "as fast as it goes: {}/s with {} policy correctness; {who}",
        rate(figures.requests_per_s),
        percent(Some(correct))
    );
    Some(if correct >= 1.0 { Finding::good(told) } else { Finding::warning(told) })
}

/// With a broken provider only what is blocked before it gets a useful answer.
fn of_unhealthy(row: Option<&Row>) -> Option<Finding> {
    let total = &row?.summary.as_ref()?.results.total;
    let (blocked, all) = (total.counters.blocked, total.counters.scheduled.max(1));
    let useful = total.counters.completed + blocked;
    Some(Finding::note(format!(
        "with an unhealthy provider {} of the requests get a useful answer ({} blocked before the provider is asked); the rest are errors: capacity with a model is the provider's, and measured apart",
        percent(Some(useful as f64 / all as f64)),
        percent(Some(blocked as f64 / all as f64))
    )))
}

fn size(full: &Row, bench: &Bench<'_>) -> Option<Section> {
    let figures = full.cell.figures().filter(|_| !full.cell.is_invalid())?;
    let capacity = Capacity {
        what: "policy node, skip_llm=true".to_owned(),
        per_s: figures.requests_per_s?,
        cores: figures.busy.gateway,
        memory: bench.memory,
    };
    let (table, notes) = sizing::table(&[capacity], bench.order.size_for);
    Some(Section { notes, ..Section::new("Nodes for a rate", table) })
}
