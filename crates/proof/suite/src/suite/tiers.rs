//! The tiers suite: three sizes of chat, streamed and not: what each adds to the same requests, and
//! rising rates and the knee, which a search finds; then what each feature adds.

mod added;
mod features;
mod knee;
mod ladder;

use plimsoll_measure::Nanos;
use plimsoll_metrics::BoundedFigure;
use plimsoll_report::format::{DASH, digits, limited_rate, or_dash, time_with_share};
use plimsoll_report::table::Table;

use super::columns;
use crate::error::SuiteError;
use crate::finding::{self, Finding};
use crate::knee_result::KneeResult;
use crate::measurement::{Length, Measurement};
use crate::report::{Report, Section};
use crate::result::{Figures, MeasurementResult};
use crate::runner::SuiteRunner;
use crate::sizing::{self, Capacity};
use crate::target::{Gateway, Provider, SuiteTarget};
use features::{Features, features};
use ladder::Bounds;

/// A size of chat: name, built-in profile, and the number of clients that find its ceiling.
struct Tier {
    name: &'static str,
    profile: &'static str,
    clients: u32,
    stream: bool,
}

const TIERS: [Tier; 6] = [
    Tier { name: "128/128", profile: "perf-128-nonstream", clients: 64, stream: false },
    Tier { name: "128/128 SSE", profile: "perf-128-stream", clients: 64, stream: true },
    Tier { name: "550/150", profile: "perf-550-nonstream", clients: 64, stream: false },
    Tier { name: "550/150 SSE", profile: "perf-550-stream", clients: 64, stream: true },
    Tier { name: "12.5k/64", profile: "perf-hotpath-nonstream", clients: 32, stream: false },
    Tier { name: "12.5k/64 SSE", profile: "perf-hotpath-stream", clients: 32, stream: true },
];

/// The rates of the sweep, as shares of what the closed loop carries, which is clients / response
/// time. What lies above is the search's; a quick suite has none, and looks there itself.
const STEPS: [f64; 5] = [0.25, 0.5, 0.7, 0.85, 1.0];
const STEPS_SHORT: [f64; 5] = [0.3, 0.7, 1.0, 2.0, 4.0];
/// Turns off every layer that the preset turns on: the raw path.
const RAW: [&str; 5] =
    ["request_id=null", "metrics=null", "tenant=null", "cache=null", "budgets=null"];

/// A tier, measured.
struct TierResult {
    /// The tier, with the target where there are several.
    name: String,
    stream: bool,
    ceiling: MeasurementResult,
    steps: Vec<MeasurementResult>,
    /// The knee, or why it was not searched.
    knee: Result<KneeResult, String>,
}

/// A gateway under test.
struct Subject {
    /// Its name in comparisons.
    name: String,
    gateway: Gateway,
    /// Whether it answers chats, plain and streamed.
    answers: [bool; 2],
}

impl Subject {
    const fn target(&self) -> &SuiteTarget {
        &self.gateway.target
    }
}

/// What is measured: the gateways and the upstream.
struct Setup {
    provider: Option<Provider>,
    subjects: Vec<Subject>,
    direct: Option<SuiteTarget>,
}

pub(super) fn run(runner: &mut SuiteRunner<'_>) -> Result<Report, SuiteError> {
    let setup = setup(runner)?;
    let (mut tiers, mut compared) = (Vec::new(), Vec::new());
    for tier in &TIERS {
        let answering =
            setup.subjects.iter().filter(|subject| subject.answers[usize::from(tier.stream)]);
        let mut measured = Vec::new();
        for subject in answering {
            if !runner.is_interrupted() {
                measured.push((subject, sweep(runner, subject.target(), tier)));
            }
        }
        knee::search(runner, tier, &mut measured);
        let with_ceiling: Vec<_> =
            measured.iter().map(|(subject, result)| (*subject, result)).collect();
        compared.extend(added::compare(runner, tier, setup.direct.as_ref(), &with_ceiling));
        tiers.extend(measured.into_iter().map(|(_, result)| result));
    }
    let features = features(runner, setup.provider.as_ref())?;
    let title = "three sizes of chat, streamed and not: what each adds, and its knee; then what each feature adds";
    let mut report = Report::begin("tiers", title, runner);
    if !tiers.is_empty() {
        let several = setup.subjects.len() > 1;
        report.sections.push(overview(&tiers, runner.knee_budget(), several));
    }
    report.sections.extend(super::added::section("tier", &compared));
    report.sections.extend(tiers.iter().map(steps));
    report.sections.extend(features.as_ref().map(Features::section));
    report.findings.extend(tiers.iter().flat_map(of_tier));
    report.size("Instances for a rate", sizes(&tiers), runner.options.size_for);
    Ok(report.conclude())
}

/// Starts the reference gateway and its provider, or looks at what the user's gateways answer.
fn setup(runner: &mut SuiteRunner<'_>) -> Result<Setup, SuiteError> {
    let targets = runner.targets();
    if targets.is_empty() {
        // It sends as many tokens as each tier asks for, at once: the rest is the gateway's work.
        let provider = runner.provider(&[])?;
        let gateway = runner.gateway("llm", &RAW.map(str::to_owned), Some(&provider))?;
        let direct = Some(provider.target());
        let subject = Subject { name: "gateway".to_owned(), gateway, answers: [true; 2] };
        return Ok(Setup { provider: Some(provider), subjects: vec![subject], direct });
    }
    let mut subjects = Vec::new();
    runner.section = "Raw path, every tier";
    for (target, options) in targets.into_iter().zip(&runner.options.targets) {
        let plain = runner.answers_chats(&target, false)?;
        if plain {
            runner.probe_limits(&Measurement::chat("burst", &target, false, (8, 16)))?;
        }
        let answers = [plain, runner.answers_chats(&target, true)?];
        let name = if options.name.is_empty() { "target" } else { &options.name }.to_owned();
        subjects.push(Subject { name, gateway: Gateway::external(target), answers });
    }
    let mut direct = runner.direct();
    if let Some(target) = &direct
        && !(runner.answers_chats(target, false)? && runner.answers_chats(target, true)?)
    {
        direct = None;
    }
    if subjects.len() == 1 && runner.options.direct.is_none() {
        runner.section = "What each tier adds";
        runner.skip(
            "what the target adds in each tier",
            "it needs the upstream to compare with: give --direct URL",
        );
    }
    Ok(Setup { provider: None, subjects, direct })
}

fn length(runner: &SuiteRunner<'_>, usual: u64) -> Length {
    let own =
        if runner.options.short { Nanos::from_millis(1_200) } else { Nanos::from_secs(usual) };
    Length::new(super::warmup(runner.options), runner.options.duration.unwrap_or(own))
}

/// The closed loop finds a first rate; the open loop measures rates below it, and above it until
/// one breaks the objective.
fn sweep(runner: &mut SuiteRunner<'_>, target: &SuiteTarget, tier: &Tier) -> TierResult {
    let clients = runner.options.clients.unwrap_or(tier.clients);
    let name = target.label(tier.name);
    let label = format!("{name}, closed loop with {clients} clients");
    let closed = Measurement::builtin(&label, target, tier.profile, &[]);
    let measurements = [closed.clients(clients, length(runner, 10))];
    let ceiling = runner.measure(&measurements, 1).into_iter().next().unwrap_or_default();
    // To choose loads by, a lower bound is good enough.
    let highest = ceiling.throughput().map(|rate| rate.value);
    let shares: &[f64] = if runner.options.short { &STEPS_SHORT } else { &STEPS };
    let mut steps = Vec::new();
    for share in shares {
        let Some(highest) = highest.filter(|_| !runner.is_interrupted()) else { break };
        let rate = (highest * share).round().max(1.0);
        // Named by its share, not its rate: labels must be the same from run to run.
        let label = format!("{name}, {:.0} % of the closed loop", share * 100.0);
        let step = Measurement::builtin(&label, target, tier.profile, &[]);
        let step = step.rate(rate, length(runner, 30)).explores();
        let results = runner.measure(&[step], 1);
        let kept = results.first().and_then(|result| BOUNDS.kept_by(result));
        let is_past = results.iter().any(MeasurementResult::is_past_the_generator);
        steps.extend(results);
        // Above the closed loop's rate the next step would show no more than one that its limits
        // leave open, and a gateway whose core is full carries no more.
        let is_last = *share >= 1.0 && (kept.is_none() || finding::limiter(&[&ceiling]).is_some());
        if kept == Some(false) || is_past || is_last {
            break;
        }
    }
    let knee = Err("the knee was not searched".to_owned());
    TierResult { name, stream: tier.stream, ceiling, steps, knee }
}

/// The bounds that a step must keep.
const BOUNDS: Bounds = Bounds { achieved: 0.97, p99_ms: 100.0, errors: 0.001 };

fn overview(tiers: &[TierResult], budget: Option<Nanos>, several: bool) -> Section {
    let heads = [
        "Tier (in/out tokens)",
        "closed loop/s",
        "knee/s",
        "p50 at half",
        "p99 at half",
        "TTFT p50",
        "gw CPU/req",
        "gw memory",
        "Bottleneck, closed loop",
    ];
    let mut table = Table::new(heads);
    for tier in tiers {
        let half = half(tier);
        let half = half.as_ref();
        let ttft = half.filter(|_| tier.stream).map(|half| time_with_share(half.ttft_p50_ms));
        table.row([
            columns::marked(&tier.ceiling, &tier.name),
            columns::throughput(&tier.ceiling),
            tier.knee.as_ref().map_or_else(|_| DASH.to_owned(), KneeResult::cell),
            time_with_share(half.and_then(|half| half.p50_ms)),
            time_with_share(half.and_then(|half| half.p99_ms)),
            ttft.unwrap_or_else(|| DASH.to_owned()),
            columns::cpu(&tier.ceiling),
            columns::memory(&tier.ceiling),
            columns::bottleneck(&tier.ceiling),
        ]);
    }
    let objective = knee::OBJECTIVE;
    let knee = budget.map_or_else(
        || "the knee was not searched: --knee-budget 150s does, and a quick suite does not".to_owned(),
        |budget| format!("the knee is the highest rate at which requests keep {objective}, as a search of at most {budget} finds it (`plimsoll knee`): a rate with its 95 % interval; `..` between a rate that kept it and one that missed it; >= where nothing higher could be told. With more time (--knee-budget) it is known better; every probe is in knees/"),
    );
    let section = Section::new("Raw path, every tier: what it carries and where it breaks", table)
        .note("the closed loop carries clients / response time, which is the most that the gateway carries only if something limits it; half is the usable step nearest to half of the closed loop's rate")
        .note(knee);
    if !several {
        return section;
    }
    section.note("several targets are swept one after another, and searched in turns, probe by probe; no difference between them is taken from this table")
}

/// The figures of the usable step nearest to half of the closed loop's rate, if one is near.
fn half(tier: &TierResult) -> Option<Figures> {
    let half = tier.ceiling.throughput()?.value / 2.0;
    let distance = |result: &MeasurementResult| (result.rate.unwrap_or(0.0) - half).abs();
    let near = tier.steps.iter().filter(|step| distance(step) <= half * 0.3);
    let usable = near.filter(|step| step.why_unusable().is_none());
    usable.min_by(|a, b| distance(a).total_cmp(&distance(b)))?.figures()
}

fn steps(tier: &TierResult) -> Section {
    let heads = [
        "Step",
        "planned/s",
        "achieved/s",
        "p50",
        "p95",
        "p99",
        "Max",
        "TTFT p50",
        "TTFT p99",
        "errors",
        "gw core",
        "load core",
    ];
    let mut table = Table::new(heads);
    for result in std::iter::once(&tier.ceiling).chain(&tier.steps) {
        table.row([
            columns::label(result),
            or_dash(result.rate, digits),
            columns::per_s(result.shown().and_then(|figures| figures.requests_per_s)),
            columns::time(result, |f| f.p50_ms),
            columns::time(result, |f| f.p95_ms),
            columns::time(result, |f| f.p99_ms),
            columns::time(result, |f| f.max_ms),
            columns::time(result, |f| f.ttft_p50_ms),
            columns::time(result, |f| f.ttft_p99_ms),
            columns::errors(result),
            columns::gateway_busy(result),
            columns::load_busy(result),
        ]);
    }
    let Bounds { achieved, p99_ms, errors } = BOUNDS;
    Section::new(format!("Sweep of {}", tier.name), table)
        .note(format!(
            "it ends with the first rate that breaks its bounds: {:.0}% of the planned rate achieved, p99 <= {p99_ms}ms, errors <= {:.1}%, or that the generator cannot send",
            achieved * 100.0,
            errors * 100.0
        ))
        .note("times are service times in the closed loop, and response times at planned rates")
}

/// What the closed loop carried, and the knee.
fn of_tier(tier: &TierResult) -> Vec<Finding> {
    let knee = tier.knee.as_ref().ok();
    let knee = knee.map(|knee| Finding::note(format!("{}: {}", tier.name, knee.sentence())));
    closed_loop(tier).into_iter().chain(knee).collect()
}

fn closed_loop(tier: &TierResult) -> Option<Finding> {
    let figures = tier.ceiling.figures()?;
    let rate = limited_rate(Some(tier.ceiling.throughput()?));
    let clients = tier.ceiling.clients?;
    let text = match finding::limiter(&[&tier.ceiling]) {
        Some(limit) => format!("{limit}: its ceiling"),
        None => format!(
            "{}; this is what {clients} clients ask for, and does not show whether more would be carried",
            finding::bottleneck(&figures.busy).sentence(&figures.busy)
        ),
    };
    Some(Finding::note(format!("{}: {rate}/s in a closed loop; {text}", tier.name)))
}

/// The rate that each tier surely carries, where something limited it: the core in the closed loop,
/// throughput that fell behind the planned rate, or the objective that the search saw broken.
fn sizes(tiers: &[TierResult]) -> Vec<Result<Capacity, String>> {
    tiers.iter().map(capacity_of_tier).collect()
}

fn capacity_of_tier(tier: &TierResult) -> Result<Capacity, String> {
    let what = format!("chat {}", tier.name);
    let unknown = |why: &str| format!("instances for a rate, {what}: {why}");
    let knee = tier.knee.as_ref().map_err(|why| unknown(why))?;
    let per_s = knee.carried().ok_or_else(|| unknown(&knee.sentence()))?;
    let closed = sizing::capacity(&what, &[&tier.ceiling]);
    let last = tier.steps.iter().rev().find(|step| step.why_unusable().is_none());
    let shown =
        closed.or_else(|why| last.map_or(Err(why), |step| sizing::capacity(&what, &[step])));
    let is_busy = tier.ceiling.figures().is_none_or(|figures| figures.busy_host.is_some());
    match shown {
        Ok(capacity) if capacity.per_s.value <= per_s => Ok(capacity),
        Ok(capacity) => Ok(Capacity { per_s: BoundedFigure::exact(per_s), ..capacity }),
        Err(why) if is_busy => Err(why),
        Err(_) => {
            let limiter = format!("{}; what breaks it was not seen", knee.sentence());
            let per_s = BoundedFigure::exact(per_s);
            Ok(Capacity { what: what.clone(), per_s, cores: None, memory: None, limiter })
        }
    }
}
