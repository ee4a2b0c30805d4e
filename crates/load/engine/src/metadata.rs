//! The metadata of a run: all data about it except its measurements.

use std::collections::BTreeMap;

use plimsoll_measure::{Moment, MonotonicClock, StageId};
use plimsoll_metrics::{Expectation, LoadModel, RunInfo, RunMetadata, StageInfo, TargetInfo};
use plimsoll_schedule::{Load, StagePlan};
use plimsoll_workload::{Content, LengthSpec, ScenarioSpec};

use crate::prepared::PreparedRun;

/// The metadata of a run that has not begun. Its stages start at offsets from the start of the run.
pub(crate) fn planned(run: &PreparedRun, clock: &MonotonicClock) -> RunMetadata {
    let plan = &run.plan;
    let shard = format!("{}/{}", plan.shard.index(), plan.shard.count());
    RunMetadata {
        run: RunInfo {
            name: plan.name.clone(),
            tool_version: plan.tool_version.clone(),
            seed: plan.seed.0,
            run_id: plan.run_id.as_ref().map(ToString::to_string).unwrap_or_default(),
            shard,
            started_unix_ns: clock.unix_nanos(Moment::EPOCH),
            ..RunInfo::default()
        },
        stages: stages(run),
        scenarios: plan.scenarios.iter().map(|scenario| scenario.name.clone()).collect(),
        targets: plan
            .targets
            .iter()
            .map(|target| TargetInfo {
                name: target.name.clone(),
                url: target.url.to_string(),
                model: target.model.clone(),
                direct: target.direct,
                server: None,
                failure: None,
                addresses: BTreeMap::new(),
                tls: BTreeMap::new(),
            })
            .collect(),
        expectations: expectations(&plan.scenarios),
        cache_busting: plan
            .scenarios
            .iter()
            .filter(|scenario| plan.busts_caches(scenario))
            .map(|scenario| scenario.name.clone())
            .collect(),
        labels: plan.labels.clone(),
        max_requests: plan.limits.max_requests,
        allow_failures: plan.limits.allow_failures,
        goodput: plan.goodput.as_ref().map(ToString::to_string),
        // The rows of a trace have lengths of their own.
        input_tokens_asked: tokens_asked(&plan.scenarios, input_tokens)
            .filter(|_| plan.trace.is_none()),
        output_tokens_asked: tokens_asked(&plan.scenarios, |scenario| {
            scenario.max_tokens.map(f64::from)
        }),
        ignores_eos: plan.scenarios.iter().all(|scenario| {
            scenario.parameters.get("ignore_eos").is_some_and(|value| value == true)
        }),
        unique_prompts: plan.scenarios.iter().all(|scenario| {
            let begins_alike = scenario.system.is_some() || scenario.prefix_pool.is_some();
            plan.busts_caches(scenario) && scenario.turns == 1 && !begins_alike
        }),
        server_parts: run.headers.part_names(),
        ..RunMetadata::default()
    }
}

/// The number of tokens that every scenario asks for.
fn tokens_asked(
    scenarios: &[ScenarioSpec],
    of: impl Fn(&ScenarioSpec) -> Option<f64>,
) -> Option<f64> {
    let asked = of(scenarios.first()?)?;
    scenarios.iter().all(|scenario| of(scenario) == Some(asked)).then_some(asked)
}

/// The input tokens of a turn, where they are its only ones and their mean is stated.
fn input_tokens(scenario: &ScenarioSpec) -> Option<f64> {
    let has_more =
        scenario.turns > 1 || scenario.system.is_some() || scenario.prefix_pool.is_some();
    match &scenario.content {
        Content::Sized { .. } if has_more => None,
        Content::Sized { approx_input_tokens: LengthSpec::Fixed(0) } => None,
        Content::Sized { approx_input_tokens: LengthSpec::Fixed(tokens) } => Some((*tokens).into()),
        Content::Sized { approx_input_tokens: LengthSpec::Drawn(lengths) } => lengths.mean,
        _ => None,
    }
}

/// The policy decision that each scenario expects; empty where none expects any.
fn expectations(scenarios: &[ScenarioSpec]) -> Vec<Expectation> {
    let all: Vec<_> = scenarios
        .iter()
        .map(|scenario: &ScenarioSpec| Expectation {
            policy_decision: scenario.expect.map(Into::into),
            category: scenario.category.clone(),
        })
        .collect();
    if all.iter().all(|own| *own == Expectation::default()) { Vec::new() } else { all }
}

/// The stages as planned, named by their notation; the second of the same name is `NAME#2`.
fn stages(run: &PreparedRun) -> Vec<StageInfo> {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    let specs = run.plan.stages.0.iter().map(ToString::to_string);
    let name = specs.map(|notation| {
        let count = counts.entry(notation.clone()).or_default();
        *count += 1;
        if *count == 1 { notation } else { format!("{notation}#{count}") }
    });
    run.schedule.stages().iter().zip(name).map(|(stage, name)| info(run, stage, name)).collect()
}

/// How many targets have virtual users at the same time.
fn targets_at_once(run: &PreparedRun, stage: StageId) -> f64 {
    let beside = run.pairs.as_ref().filter(|pairs| pairs.gap(stage).is_some());
    beside.map_or(1.0, |pairs| pairs.targets().into())
}

fn info(run: &PreparedRun, stage: &StagePlan, name: String) -> StageInfo {
    StageInfo {
        name,
        model: if matches!(stage.load, Load::Closed { .. }) {
            LoadModel::Closed
        } else {
            LoadModel::Open
        },
        warmup: stage.warmup,
        start_s: stage.start.as_secs_f64(),
        duration_s: (stage.end.saturating_sub(stage.start)).as_secs_f64(),
        arrivals: (run.pairs.is_none() && run.plan.limits.max_requests.is_none())
            .then(|| run.schedule.planned(stage.id))
            .filter(|planned| *planned > 0),
        users: match stage.load {
            Load::Closed { from, to } => {
                Some(f64::midpoint(from.into(), to.into()) * targets_at_once(run, stage.id))
            }
            _ => None,
        },
        ..StageInfo::default()
    }
}
