//! Names, stages and notes of the whole.

use std::collections::BTreeMap;

use plimsoll_metrics::{FailureKind, RunEnd, RunMetadata, StageInfo};

use crate::shard::Shard;
use crate::shard_set::ShardSet;

/// The metadata of the whole, with the parts of times that `server_parts` names.
pub(crate) fn merge(set: &ShardSet, server_parts: Vec<String>) -> RunMetadata {
    let Some(first) = base(set) else { return RunMetadata::default() };
    let mut merged = first.metadata().clone();
    "0/1".clone_into(&mut merged.run.shard);
    merged.run.ended = ended(set);
    merged.server_parts = server_parts;
    let origin = merged.stages.first().map_or(0.0, |stage| stage.start_s);
    for (index, stage) in merged.stages.iter_mut().enumerate() {
        merge_stage(stage, set, index, origin);
    }
    for (index, target) in merged.targets.iter_mut().enumerate() {
        let of_shards = set.shards.iter().map(|shard| shard.metadata().targets.get(index));
        let of_shards: Vec<_> = of_shards.flatten().collect();
        target.server = of_shards.iter().find_map(|target| target.server.clone());
        target.failure = of_shards.iter().find_map(|target| target.failure.clone());
        target.addresses = sums(of_shards.iter().map(|target| &target.addresses));
        target.tls = sums(of_shards.iter().map(|target| &target.tls));
    }
    merged.notes = notes(set);
    merged.failures = failures(set);
    merged
}

/// Counts of all shards by the same names.
fn sums<'s>(of_shards: impl Iterator<Item = &'s BTreeMap<String, u64>>) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (name, count) in of_shards.flatten() {
        *sums.entry(name.clone()).or_default() += count;
    }
    sums
}

/// The shard whose clock and machine represent the whole: the first that ended.
pub(crate) fn base(set: &ShardSet) -> Option<&Shard> {
    let ended = set.shards.iter().find(|shard| shard.summary.is_some());
    ended.or_else(|| set.shards.first())
}

/// The common end; of several the worst. With one shard interrupted, the others went on.
fn ended(set: &ShardSet) -> RunEnd {
    let ends: Vec<_> = set.shards.iter().map(|shard| shard.metadata().run.ended).collect();
    if let Some(first) = ends.first()
        && ends.iter().all(|end| end == first)
    {
        return *first;
    }
    let worst = [RunEnd::Aborted, RunEnd::TooManyErrors];
    worst.into_iter().find(|end| ends.contains(end)).unwrap_or(RunEnd::Unfinished)
}

/// A stage lasts from its first start in a shard to its last end; the run began at `origin`. The
/// sum of the peaks in flight is an upper bound of the common peak.
fn merge_stage(stage: &mut StageInfo, set: &ShardSet, index: usize, origin: f64) {
    let shards = set.shards.iter();
    let stages: Vec<_> = shards.filter_map(|shard| shard.metadata().stages.get(index)).collect();
    let spans = set.shards.iter().filter_map(|shard| {
        let stages = &shard.metadata().stages;
        let (own, first) = (stages.get(index)?, stages.first()?);
        let begin = own.start_s - first.start_s;
        Some([begin, begin + own.duration_s])
    });
    let span = spans.reduce(|one: [f64; 2], other| [one[0].min(other[0]), one[1].max(other[1])]);
    let [begin, end] = span.unwrap_or_default();
    (stage.start_s, stage.duration_s) = (origin + begin, end - begin);
    stage.peak_in_flight = stages.iter().map(|other| other.peak_in_flight).sum();
    stage.mean_in_flight = stages.iter().map(|other| other.mean_in_flight).sum();
}

/// Cuts the stages where the counts end: no shard tells how long they lasted, and rates over their
/// planned length would be too low.
pub(crate) fn cut(metadata: &mut RunMetadata, counted_s: f64) {
    for stage in &mut metadata.stages {
        stage.duration_s = stage.duration_s.min((counted_s - stage.start_s).max(0.0));
    }
}

/// Notes that all shards share, then notes of single shards with their name.
fn notes(set: &ShardSet) -> Vec<String> {
    let all: Vec<_> =
        set.shards.iter().map(|shard| (shard.name(), &shard.metadata().notes)).collect();
    let shared = |note: &String| all.iter().all(|(_, notes)| notes.contains(note));
    let common = all.first().map(|(_, notes)| notes.iter().filter(|note| shared(note)).cloned());
    let own = all.iter().flat_map(|(name, notes)| {
        let own = notes.iter().filter(|note| !shared(note));
        own.map(move |note| format!("shard {name}: {note}"))
    });
    common.into_iter().flatten().chain(own).collect()
}

/// The failures of all shards by kind, the most frequent first.
fn failures(set: &ShardSet) -> Vec<FailureKind> {
    let mut kinds: BTreeMap<&str, FailureKind> = BTreeMap::new();
    for failure in set.shards.iter().flat_map(|shard| &shard.metadata().failures) {
        let sum = kinds.entry(&failure.kind).or_default();
        sum.kind.clone_from(&failure.kind);
        sum.count += failure.count;
        for (target, message) in &failure.messages {
            sum.messages.entry(target.clone()).or_insert_with(|| message.clone());
        }
    }
    let mut all: Vec<_> = kinds.into_values().collect();
    all.sort_by_key(|failure| std::cmp::Reverse(failure.count));
    all
}
