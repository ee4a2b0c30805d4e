//! Interference between targets: the overhead measured beside the others, minus the overhead
//! measured alone.

use plimsoll_report::format;
use plimsoll_rules::Finding;
use plimsoll_stats::{Estimate, Looks};

use crate::facts::Facts;
use crate::figure::Figure;
use crate::pairs::{Run, Two};
use crate::result::{Disturbance, Versus};

/// Interference is reported from this share of the target's overhead.
const MATTERS: f64 = 0.1;

/// The interference on each compared target; empty if no target was loaded alone for comparison.
pub(crate) fn disturbances(facts: &Facts, run: Run<'_>, figure: Figure) -> Vec<Disturbance> {
    let reference = facts.reference();
    let pairs = facts.compared().into_iter().map(|target| Two { target, reference });
    let pairs = pairs.filter(|two| run.added_alone(*two, figure).count() > 0);
    pairs.map(|two| of_target(facts, run, two, figure)).collect()
}

fn of_target(facts: &Facts, run: Run<'_>, two: Two, figure: Figure) -> Disturbance {
    let beside = run.added(two, figure).estimate(0.5);
    let alone = run.added_alone(two, figure).estimate(0.5);
    let empty =
        Disturbance { target: facts.targets[two.target].name.clone(), ..Disturbance::default() };
    let found = beside.and_then(|beside| Ok((beside, alone?)));
    match found {
        Ok((beside, alone)) => {
            let (value, half) = difference(&beside, &alone, run.batching.looks);
            let (low, high) = (value - half, value + half);
            Disturbance {
                value_ns: Some(value),
                low_ns: Some(low),
                high_ns: Some(high),
                matters: matters(value, low, high, beside.value),
                ..empty
            }
        }
        Err(why) => Disturbance { refused: Some(run.words(why)), ..empty },
    }
}

/// Whether interference is significant, and large relative to the target's overhead.
pub(crate) fn matters(value: f64, low: f64, high: f64, added: f64) -> bool {
    (low > 0.0 || high < 0.0) && value.abs() > MATTERS * added.abs()
}

/// The difference of two independent estimates, and half of its 95 % interval (Welch, 1947).
fn difference(beside: &Estimate, alone: &Estimate, looks: Looks) -> (f64, f64) {
    let (mine, theirs) = (variance(beside, looks), variance(alone, looks));
    let squares =
        mine * mine / beside.degrees_of_freedom + theirs * theirs / alone.degrees_of_freedom;
    let freedom = if squares > 0.0 {
        (mine + theirs).powi(2) / squares
    } else {
        beside.degrees_of_freedom.min(alone.degrees_of_freedom)
    };
    let critical = looks.critical(beside.batches.min(alone.batches), freedom);
    (beside.value - alone.value, critical * (mine + theirs).sqrt())
}

fn variance(estimate: &Estimate, looks: Looks) -> f64 {
    let critical = looks.critical(estimate.batches, estimate.degrees_of_freedom);
    (estimate.interval.half_width() / critical).powi(2)
}

/// The findings on targets with interference. A difference that 40 ms stalls explain is not blamed
/// on other targets.
pub(crate) fn findings(versus: &Versus) -> impl Iterator<Item = Finding> {
    let reference = versus.reference();
    let found = versus.disturbance.iter().filter(|found| found.matters);
    found
        .filter(move |found| {
            ![&found.target, reference].into_iter().any(|name: &str| {
                let target = versus.targets.iter().find(|target| target.name == name);
                target.and_then(|target| target.streams).is_some_and(|streams| streams.has_stalls())
            })
        })
        .filter_map(|found| {
            let [value, low, high] =
                [found.value_ns?, found.low_ns?, found.high_ns?].map(|nanos| nanos / 1e6);
            let (word, low, high) =
                if value > 0.0 { ("slower", low, high) } else { ("faster", -high, -low) };
            let expected = versus.same_host.then_some("expected on one host");
            Some(
                Finding::new(407)
                    .with("target", &found.target)
                    .with("by", format::with_interval(value.abs(), low, high))
                    .with("word", word)
                    .with_some("expected", expected),
            )
        })
}
