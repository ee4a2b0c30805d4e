//! The tiers suite: three sizes of chat, streamed and not: what each adds to the same requests, and
//! rising rates and the knee, which a search finds; then what each feature adds.

use plimsoll_measure::Nanos;
use plimsoll_metrics::{BoundedFigure, Judgement};
use plimsoll_report::format::{or_dash, time_with_share};

use super::columns::{
    self, ACHIEVED, BOTTLENECK, CPU, Column, ERRORS, GW_CORE, LOAD_CORE, MAX, MEMORY, P50, P95,
    P99, PLANNED, TTFT_P50, TTFT_P99,
};
use super::{PAIRS_PER_S, TIMES_SHORT, Variants, VariantsLoad, comparison_length, table};
use crate::bound::Quantity;
use crate::comparison_result::ComparisonResult;
use crate::error::SuiteError;
use crate::finding;
use crate::knee_result::KneeResult;
use crate::measurement::{Length, Measurement};
use crate::report::Section;
use crate::result::{Figures, MeasurementResult, Unusable};
use crate::runner::{NO_ANSWER, NO_DIRECT, SuiteRunner};
use crate::sizing::{self, Capacity};
use crate::target::{DIRECT, Gateway, Provider, SuiteTarget};

mod knee;

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

/// The rates of the sweep, as shares of the closed loop's throughput, which is clients / response
/// time. The search covers higher rates; a quick suite has no search, and checks them in the sweep.
const STEPS: [f64; 5] = [0.25, 0.5, 0.7, 0.85, 1.0];
const STEPS_SHORT: [f64; 5] = [0.3, 0.7, 1.0, 2.0, 4.0];

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

/// The subjects of the measurement: the gateways and the upstream.
struct Setup {
    provider: Option<Provider>,
    subjects: Vec<Subject>,
    direct: Option<SuiteTarget>,
}

pub(super) fn run(runner: &mut SuiteRunner<'_>) -> Result<(), SuiteError> {
    let setup = setup(runner)?;
    let (mut tiers, mut compared) = (Vec::new(), Vec::new());
    for tier in &TIERS {
        let answering =
            setup.subjects.iter().filter(|subject| subject.answers[usize::from(tier.stream)]);
        let mut measured = Vec::new();
        for subject in answering {
            if !runner.is_interrupted() {
                measured.push((subject, sweep(runner, &subject.gateway.target, tier)));
            }
        }
        knee::search(runner, tier, &mut measured);
        compared.extend(compare(runner, tier, setup.direct.as_ref(), &measured));
        tiers.extend(measured.into_iter().map(|(_, result)| result));
    }
    let features = features(runner, setup.provider.as_ref())?;
    let overview = (!tiers.is_empty()).then(|| overview(&tiers, runner.knee_budget()));
    let added = super::added::section("tier", &compared);
    let sections = overview.into_iter().chain(added).chain(tiers.iter().map(steps));
    runner.report.sections.extend(sections.chain(features));
    runner.capacities.extend(tiers.iter().map(capacity_of_tier));
    Ok(())
}

/// The title of the table of differences.
const ADDED: &str = "Overhead by tier";

/// Rate of all targets together, as a share of the lowest throughput in the closed loop: the
/// overhead then applies to requests that do not wait for each other.
const SHARE: f64 = 0.2;

/// Sends the requests of a tier to the upstream and to each target. `measured` are the targets that
/// completed the closed loop, with its results.
fn compare(
    runner: &mut SuiteRunner<'_>,
    tier: &Tier,
    direct: Option<&SuiteTarget>,
    measured: &[(&Subject, TierResult)],
) -> Option<ComparisonResult> {
    let behind = direct.map(|direct| (DIRECT.to_owned(), direct.clone()));
    let subjects =
        measured.iter().map(|(subject, _)| (subject.name.clone(), subject.gateway.target.clone()));
    let targets: Vec<_> = behind.into_iter().chain(subjects).collect();
    if targets.len() < 2 || runner.is_interrupted() {
        return None;
    }
    // To choose a rate by, a figure that the generator kept down is good enough.
    let ceilings = measured
        .iter()
        .filter_map(|(_, result)| result.ceiling.shown()?.requests_per_s.map(|rate| rate.value));
    let Some(lowest) = ceilings.reduce(f64::min) else {
        runner.section = ADDED;
        runner.skip(tier.name, NO_ANSWER);
        return None;
    };
    let rate = (lowest * SHARE / targets.len() as f64).clamp(1.0, PAIRS_PER_S).round();
    let request = Measurement::builtin(tier.name, &targets[0].1, tier.profile, &[]);
    let request = request.rate(rate, comparison_length(runner.options, 30, TIMES_SHORT));
    Some(runner.compare(request, &targets, false))
}

/// Starts the reference gateway and its provider, or probes the user's gateways.
fn setup(runner: &mut SuiteRunner<'_>) -> Result<Setup, SuiteError> {
    let targets = runner.targets();
    if targets.is_empty() {
        // It sends as many tokens as each tier asks for, at once: the rest is the gateway's work.
        let provider = runner.provider(&[])?;
        let gateway = runner.gateway("llm", "raw", &[], Some(&provider))?;
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
        runner.section = ADDED;
        runner.skip_section(NO_DIRECT);
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
        let kept = results.first().and_then(is_kept);
        let is_past = results.iter().any(MeasurementResult::is_past_the_generator);
        steps.extend(results);
        // Above the closed loop's rate, a step after an undecided one would be undecided too, and a
        // gateway with a full core has reached its limit.
        let is_last = *share >= 1.0 && (kept.is_none() || finding::limiter(&[&ceiling]).is_some());
        if kept == Some(false) || is_past || is_last {
            break;
        }
    }
    let knee = Err("not searched".to_owned());
    TierResult { name, stream: tier.stream, ceiling, steps, knee }
}

/// The bounds that a step must keep: the share of the planned rate, the p99 in milliseconds, and
/// the share of errors.
const ACHIEVED_SHARE: f64 = 0.97;
const STEP_P99_MS: f64 = 100.0;
const STEP_ERRORS: f64 = 0.001;

/// Whether a step keeps its bounds; `None` if unknown, or if the generator's overhead decides.
/// Error rates above the gate break them.
fn is_kept(step: &MeasurementResult) -> Option<bool> {
    if matches!(step.why_unusable(), Some(Unusable::Errors(_))) {
        return Some(false);
    }
    let limits = [
        Quantity::THROUGHPUT.bound(step.rate.unwrap_or(0.0) * ACHIEVED_SHARE),
        Quantity::TAIL.bound(STEP_P99_MS),
        Quantity::ERRORS.bound(STEP_ERRORS),
    ];
    let judged: Vec<_> = limits.iter().map(|limit| limit.judge("", step).judgement).collect();
    let all_pass = judged.iter().all(|judged| *judged == Judgement::Pass);
    if judged.contains(&Judgement::Fail) { Some(false) } else { all_pass.then_some(true) }
}

fn overview(tiers: &[TierResult], budget: Option<Nanos>) -> Section {
    let columns: [Column<TierResult>; 9] = [
        ("Tier (in/out tokens)", |tier| columns::marked(&tier.ceiling, &tier.name)),
        ("closed loop/s", |tier| columns::throughput(&tier.ceiling)),
        ("capacity/s", |tier| or_dash(tier.knee.as_ref().ok(), KneeResult::cell)),
        ("p50 at half", |tier| time_with_share(half(tier).and_then(|half| half.p50_ms))),
        ("p99 at half", |tier| time_with_share(half(tier).and_then(|half| half.p99_ms))),
        ("TTFT p50", |tier| {
            or_dash(half(tier).filter(|_| tier.stream), |half| time_with_share(half.ttft_p50_ms))
        }),
        (CPU.0, |tier| CPU.1(&tier.ceiling)),
        (MEMORY.0, |tier| MEMORY.1(&tier.ceiling)),
        ("Bottleneck, closed loop", |tier| BOTTLENECK.1(&tier.ceiling)),
    ];
    let table = columns::table(&columns, tiers);
    let section = Section::new("Raw path, every tier: capacity and limits", table);
    let Some(budget) = budget else { return section.note("capacity: see --knee-budget") };
    section.note(format!("capacity: {}, at most {budget}", knee::OBJECTIVE))
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
    let columns =
        &[PLANNED, ACHIEVED, P50, P95, P99, MAX, TTFT_P50, TTFT_P99, ERRORS, GW_CORE, LOAD_CORE];
    let table =
        columns::results("Step", columns, std::iter::once(&tier.ceiling).chain(&tier.steps));
    Section::new(format!("Sweep of {}", tier.name), table)
}

/// The rate that is certainly within a tier's capacity, if something limited it: the core in the
/// closed loop, throughput below the planned rate, or a broken objective in the search.
fn capacity_of_tier(tier: &TierResult) -> Result<Capacity, String> {
    let what = format!("chat {}", tier.name);
    let unknown = |why: &str| sizing::unknown(&what, why);
    let knee = tier.knee.as_ref().map_err(|why| unknown(why))?;
    let per_s = knee.carried().ok_or_else(|| unknown(&knee.cell()))?;
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
            let limiter = "knee".to_owned();
            let per_s = BoundedFigure::exact(per_s);
            Ok(Capacity { what: what.clone(), per_s, cores: None, memory: None, limiter })
        }
    }
}

// The overhead of each feature over the raw path: the same request to the gateway with the feature
// and without it.

/// Measures each feature on the raw path, with a chat of 550 tokens.
fn features(
    runner: &mut SuiteRunner<'_>,
    provider: Option<&Provider>,
) -> Result<Option<Section>, SuiteError> {
    runner.section = "Overhead by feature";
    if !runner.measures_own() {
        return Ok(None);
    }
    let gateways = runner.variants("llm", "feature", provider)?;
    let length = length(runner, 20);
    let load = VariantsLoad { label: "each feature", clients: 64, length, per_s: PAIRS_PER_S };
    let variants = Variants::measure(runner, &gateways, &load, |label, target| {
        Measurement::builtin(label, target, "perf-550-nonstream", &["headers.x-tenant-id=load"])
    });
    let table = table("Feature on the raw path", [&variants]);
    let title = "Overhead by feature over the raw path (550/150, not streamed)";
    Ok(Some(Section::new(title, table)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_metrics::Refusal;

    fn step(planned: f64, achieved: f64, p99: f64, errors: u64) -> MeasurementResult {
        let figures = Figures {
            requests: 1_000,
            errors,
            error_share: Some(errors as f64 / 1_000.0),
            requests_per_s: Some(BoundedFigure::exact(achieved)),
            planned_per_s: Some(planned),
            p99_ms: Some(BoundedFigure::exact(p99)),
            ..Figures::default()
        };
        MeasurementResult {
            rate: Some(planned),
            passes: vec![figures],
            ..MeasurementResult::default()
        }
    }

    #[test]
    fn a_step_breaks_its_bounds_by_rate_tail_or_errors() {
        for (step, kept) in [
            (step(300.0, 299.0, 9.0, 0), Some(true)),
            (step(300.0, 299.0, 9.0, 1), Some(false)),
            (step(300.0, 280.0, 9.0, 0), Some(false)),
            (step(300.0, 300.0, 101.0, 0), Some(false)),
            (step(300.0, 300.0, 9.0, 2), Some(false)),
            // Fast, because half of the answers are refusals.
            (step(300.0, 300.0, 1.0, 500), Some(false)),
            // Refusals only.
            (step(300.0, 300.0, 1.0, 1_000), Some(false)),
        ] {
            assert_eq!(is_kept(&step), kept, "{step:?}");
        }
    }

    #[test]
    fn an_invalid_step_neither_keeps_nor_breaks_them() {
        let mut late = step(200.0, 100.0, 999.0, 0);
        late.passes[0].invalid = Some("late".to_owned());
        assert_eq!(is_kept(&late), None);
    }

    /// The limits by hand: without the generator a rate may have been higher by the bound, and a
    /// time shorter.
    #[test]
    fn a_figure_of_a_step_is_judged_at_its_limits() {
        let refused = |value: f64, bound: f64| {
            let refused = Some(Refusal::Generator);
            Some(BoundedFigure { value, bound, interval: None, refused })
        };
        // 194 of 200 per second are wanted.
        for (rate, bound, kept) in
            [(195.0, 50.0, Some(true)), (100.0, 95.0, None), (100.0, 93.0, Some(false))]
        {
            let mut step = step(200.0, rate, 2.0, 0);
            step.passes[0].requests_per_s = refused(rate, bound);
            assert_eq!(is_kept(&step), kept, "{rate} + {bound}");
        }
        for (p99, bound, kept) in
            [(99.0, 50.0, Some(true)), (150.0, 60.0, None), (150.0, 40.0, Some(false))]
        {
            let mut step = step(200.0, 200.0, p99, 0);
            step.passes[0].p99_ms = refused(p99, bound);
            assert_eq!(is_kept(&step), kept, "{p99} - {bound}");
        }
    }
}
