//! Merged shards equal one recorder, whatever their number and order.

use std::fmt::Write as _;

use plimsoll_measure::{Moment, Nanos, Sample, ScenarioId, Seed, StageId, TargetId};
use plimsoll_metrics::{GroupStats, Metric, Recorder, Snapshot};

use crate::support::completed;

const SAMPLES: u64 = 20_000;

/// Two to nine shards, merged in random order, against one recorder: bucket by bucket.
#[test]
fn merged_shards_are_one_recorder() {
    let samples = samples();
    let whole = fingerprint(&record(samples.iter()).total(|_| true));
    for shards in 2..=9 {
        let parts = (0..shards).map(|k| record(samples.iter().skip(k).step_by(shards))).collect();
        let merged = fingerprint(&merge(parts, shards as u64).total(|_| true));
        assert!(merged == whole, "{shards} shards");
    }
}

/// Times over nine orders of magnitude.
fn samples() -> Vec<Sample> {
    let mut rng = Seed(17).rng("samples", 0);
    (0..SAMPLES)
        .map(|index| {
            let at = Moment::EPOCH + Nanos::from_millis(index);
            completed(at, Nanos::from_secs_f64(10f64.powf(rng.uniform() * 9.0 - 6.0)))
        })
        .collect()
}

fn record<'s>(samples: impl Iterator<Item = &'s Sample>) -> Snapshot {
    let mut recorder = Recorder::new(vec![Moment::from_nanos(u64::MAX)]);
    for sample in samples {
        recorder.scheduled(StageId(0), ScenarioId(0), TargetId(0));
        recorder.record(sample, &[], &[]);
    }
    recorder.take()
}

/// Merges in an order drawn from `seed`, and in a tree drawn from it.
fn merge(mut parts: Vec<Snapshot>, seed: u64) -> Snapshot {
    let mut rng = Seed(seed).rng("order", 0);
    while parts.len() > 1 {
        let [mut one, other] = [0; 2].map(|_| {
            let index = rng.below(parts.len() as u64);
            parts.swap_remove(usize::try_from(index).unwrap())
        });
        one.merge(other);
        parts.push(one);
    }
    parts.pop().unwrap()
}

/// Everything in a group's statistics: its counts, and each histogram with its exact figures.
fn fingerprint(stats: &GroupStats) -> String {
    let mut text = format!("{:?}", stats.counters());
    for metric in Metric::ALL {
        if let Some(distribution) = stats.distribution(metric) {
            write!(
                text,
                "\n{metric:?} {} {} {:?} {:?} {}",
                distribution.count(),
                distribution.sum(),
                distribution.min(),
                distribution.max(),
                distribution.encode().unwrap()
            )
            .unwrap();
        }
    }
    text
}
