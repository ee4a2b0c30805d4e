//! What each target adds in each scenario: worth a look, never a verdict.
//!
//! Whether a scenario differs from all together is tested for every target and scenario, so p
//! values are adjusted by Benjamini and Hochberg: of those that are pointed out, about one in
//! twenty is chance.

use std::collections::BTreeMap;

use plimsoll_measure::ScenarioId;
use plimsoll_stats::multiple::benjamini_hochberg;

use crate::facts::Facts;
use crate::figure::Figure;
use crate::pairs::{Run, Two, value};
use crate::result::ScenarioDifference;

/// What each compared target adds to the reference in each scenario; none of a single scenario.
pub(crate) fn scenarios(facts: &Facts, run: Run<'_>, figure: Figure) -> Vec<ScenarioDifference> {
    let reference = facts.reference();
    let compared = facts.compared().into_iter();
    let tested: Vec<(ScenarioDifference, f64)> = compared
        .flat_map(|target| of_target(facts, run, Two { target, reference }, figure))
        .collect();
    let p: Vec<f64> = tested.iter().map(|(_, p)| *p).collect();
    adjusted(tested.into_iter().map(|(found, _)| found).collect(), &p)
}

/// With the p values adjusted.
pub(crate) fn adjusted(found: Vec<ScenarioDifference>, p: &[f64]) -> Vec<ScenarioDifference> {
    let q = benjamini_hochberg(p).into_iter().map(|q| Some(q).filter(|q| !q.is_nan()));
    found.into_iter().zip(q).map(|(found, q)| ScenarioDifference { q, ..found }).collect()
}

/// Each scenario with the p value of "it adds as much there as in all together".
fn of_target(
    facts: &Facts,
    run: Run<'_>,
    two: Two,
    figure: Figure,
) -> Vec<(ScenarioDifference, f64)> {
    let mut scenarios: BTreeMap<ScenarioId, Vec<Vec<Vec<f64>>>> = BTreeMap::new();
    for (stage, batch, block, (target, reference)) in run.blocks_of_both(two) {
        let Some((target, reference)) = value(target, figure).zip(value(reference, figure)) else {
            continue;
        };
        let batches = scenarios.entry(block.scenario).or_insert_with(|| run.batching.by_batch());
        batches[stage][batch].push(target - reference);
    }
    let all = run.added(two, figure).value(0.5);
    let Some(all) = all.filter(|_| scenarios.len() > 1) else { return Vec::new() };
    scenarios
        .into_iter()
        .map(|(scenario, batches)| of_scenario(facts, run, two, scenario, batches, all))
        .collect()
}

fn of_scenario(
    facts: &Facts,
    run: Run<'_>,
    two: Two,
    scenario: ScenarioId,
    mut batches: Vec<Vec<Vec<f64>>>,
    all: f64,
) -> (ScenarioDifference, f64) {
    let known = facts.scenarios.get(scenario.index()).cloned();
    let added = run.batched(batches.clone());
    let empty = ScenarioDifference {
        scenario: known.unwrap_or_else(|| format!("#{}", scenario.0)),
        target: facts.name(two.target).to_owned(),
        reference: facts.name(two.reference).to_owned(),
        pairs: added.count() as u64,
        ..ScenarioDifference::default()
    };
    let estimate = match added.estimate(0.5) {
        Ok(estimate) => estimate,
        Err(why) => {
            return (ScenarioDifference { refused: Some(run.words(why)), ..empty }, f64::NAN);
        }
    };
    for difference in batches.iter_mut().flatten().flatten() {
        *difference -= all;
    }
    let p = run.batched(batches).estimate(0.5).map_or(f64::NAN, |estimate| estimate.p_zero);
    let found = ScenarioDifference {
        value_ns: Some(estimate.value),
        low_ns: Some(estimate.interval.low),
        high_ns: Some(estimate.interval.high),
        ..empty
    };
    (found, p)
}
