//! Shards that are missing, apart, or unlike the others.

use plimsoll_rules::number::{count, percent, seconds, time};
use plimsoll_rules::{Finding, Level};

use super::share_of;
use crate::run_metadata::RunEnd;
use crate::shard_part::{Interruption, Losses, ShardPart, ShardState};
use crate::summary::RunSummary;

/// Starts further apart than this, in seconds, are named.
const NAMED_SPREAD_S: f64 = 0.1;
/// The part of the load's length by which starts may lie apart.
const MOST_SPREAD: f64 = 0.02;
/// Factor by which a figure of a shard must lie outside the range of the others.
const UNLIKE: f64 = 1.5;
/// Shares of failures that differ by less are not named.
const FAILURES: f64 = 0.01;
/// Shards that are named one by one.
const NAMED: usize = 8;
/// Requests of which a figure is compared.
const LEAST: u64 = 100;

pub(super) fn findings(summary: &RunSummary) -> Vec<Finding> {
    let parts = &summary.shards;
    let mut found: Vec<_> = incomplete(summary).into_iter().chain(apart(summary)).collect();
    let done: Vec<_> = parts.iter().filter(|part| part.state == ShardState::Done).collect();
    let judged: Vec<_> = done.iter().copied().filter(|part| part.scheduled >= LEAST).collect();
    if judged.len() >= 3 {
        found.extend(judged.iter().flat_map(|part| unlike(part, &judged)));
    }
    let invalid = done.iter().filter(|part| part.valid == Some(false));
    found.extend(invalid.map(|part| {
        of_shard(part, "state").with("value", "invalid").with("low", "valid").with("high", "valid")
    }));
    found
}

fn incomplete(summary: &RunSummary) -> Option<Finding> {
    let parts = &summary.shards;
    let lost: Vec<_> = parts.iter().filter(|part| part.state != ShardState::Done).collect();
    // A run that was interrupted as a whole is one that its user ended.
    let is_stopped = summary.metadata.run.ended == RunEnd::Interrupted;
    (!lost.is_empty() && !is_stopped).then(|| {
        let losses = Losses::of(parts.iter());
        let is_accepted = losses.are_within(summary.lost_at_most);
        let mut names: Vec<_> = lost.iter().take(NAMED).map(|part| describe(part)).collect();
        if lost.len() > NAMED {
            names.push(format!("{} more", lost.len() - NAMED));
        }
        Finding::new(109)
            .at(if is_accepted { Level::Warning } else { Level::Invalid })
            .with("done", count((parts.len() - lost.len()) as u64))
            .with("all", count(parts.len() as u64))
            .with("share", percent(losses.below))
            .with("names", names.join("; "))
    })
}

/// How a shard ended, in words.
fn describe(part: &ShardPart) -> String {
    let what = match (part.state, part.interrupted, part.counted_s) {
        _ if !part.damaged.is_empty() => format!("has damaged files ({})", part.damaged.join(", ")),
        (_, Some(Interruption { at_s, of_s }), _) => {
            format!("got a signal at {} of {}", seconds(at_s), seconds(of_s))
        }
        (ShardState::Missing, ..) => "is missing".to_owned(),
        (ShardState::Late, ..) => {
            let late = part.late_by_s.map(|late| seconds(late) + " ").unwrap_or_default();
            format!("was ready {late}late and sent nothing")
        }
        _ if part.counted_all => {
            "sent its whole load, but not all of its files are there".to_owned()
        }
        (.., Some(until)) => format!("left counts up to {}", seconds(until)),
        (.., None) => "left no counts".to_owned(),
    };
    format!("shard {} {what}", part.shard)
}

fn apart(summary: &RunSummary) -> Option<Finding> {
    let starts = summary.shards.iter().filter(|part| part.start_s.is_some());
    let spread = starts.clone().filter_map(|part| part.start_s).fold(0.0, f64::max);
    let load_s: f64 = summary.metadata.stages.iter().map(|stage| stage.duration_s).sum();
    // Both clocks contribute their uncertainty to a difference.
    let uncertainty = starts.map(|part| part.clock_uncertainty_s.map(|own| 2.0 * own));
    let uncertainty = uncertainty.collect::<Option<Vec<f64>>>();
    let uncertainty = uncertainty.map(|all| all.into_iter().fold(0.0, f64::max));
    let is_invalid = spread > load_s * MOST_SPREAD;
    let is_known = spread > NAMED_SPREAD_S && spread > uncertainty.unwrap_or_default();
    is_known.then(|| {
        Finding::new(110)
            .at(if is_invalid { Level::Invalid } else { Level::Note })
            .with("spread", time(spread * 1e3))
            .with_some("uncertainty", uncertainty.map(|most| time(most * 1e3)))
    })
}

fn of_shard(part: &ShardPart, figure: &str) -> Finding {
    Finding::new(111).with("k", &part.shard).with("figure", figure)
}

/// A figure of a shard: its name, its value, and how it is printed.
type Figure<'f> = (&'f str, &'f dyn Fn(&ShardPart) -> Option<f64>, fn(f64) -> String);

/// Differences between a shard and the others. With two shards, the odd one cannot be determined.
fn unlike(part: &ShardPart, all: &[&ShardPart]) -> Vec<Finding> {
    let figures: [Figure<'_>; 3] = [
        ("p50", &|part| part.p50_ms, time),
        ("p99", &|part| part.p99_ms, time),
        ("failures", &|part| Some(share_of(part.unexpected, part.scheduled)), percent),
    ];
    let found = figures.into_iter().filter_map(|(name, figure, shown)| {
        let others = all.iter().filter(|other| other.shard != part.shard);
        let others = others.map(|other| figure(other)).collect::<Option<Vec<f64>>>()?;
        let low = others.iter().copied().fold(f64::INFINITY, f64::min);
        let high = others.iter().copied().fold(0.0, f64::max);
        let own = figure(part)?;
        let is_odd = match name {
            "failures" => own > high * UNLIKE && own - high > FAILURES,
            _ => own > high * UNLIKE || own * UNLIKE < low,
        };
        is_odd.then(|| {
            of_shard(part, name)
                .with("value", shown(own))
                .with("low", shown(low))
                .with("high", shown(high))
        })
    });
    found.collect()
}
