//! Shards of one and the same run.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use plimsoll_metrics::{FailureKind, RunEnd, RunMetadata, StageInfo};
use serde_json::Value;

use crate::shard::{MergeError, Shard};

/// Shards of one and the same run, in their order. Some may be missing.
#[derive(Clone, Debug)]
pub struct ShardSet {
    pub(crate) shards: Vec<Shard>,
    pub(crate) count: u64,
}

impl ShardSet {
    /// Checks that the shards are parts of one run: the same number of parts, version, seed, run
    /// id, launch, schedule, targets and plan, and no part twice. With `launch`, shards of any
    /// other one do not count: an earlier launch may have left them in the same folder.
    ///
    /// # Errors
    /// The first of these that does not hold, with the folders.
    pub fn new(
        mut shards: Vec<Shard>,
        expect: Option<u64>,
        launch: Option<&str>,
    ) -> Result<Self, MergeError> {
        let mut by_place: BTreeMap<u64, Shard> = BTreeMap::new();
        let mut first = shards.first().cloned().ok_or(MergeError::Nothing)?;
        if let Some(asked) = launch {
            shards.retain(|shard| shard.planned.run.launch == asked);
            let found = quoted(&first.planned.run.launch, NO_LAUNCH);
            let why = format!(
                "its launch is {found}, and no shard belongs to launch `{asked}`: check the output of that launch for the reason"
            );
            let other = MergeError::NotAShard { folder: first.files.folder, why };
            first = shards.first().cloned().ok_or(other)?;
        }
        let count = first.place.count();
        for shard in shards {
            same_run(&first, &shard)?;
            match by_place.entry(shard.place.index()) {
                Entry::Vacant(free) => drop(free.insert(shard)),
                Entry::Occupied(taken) => {
                    let folders =
                        Box::new([taken.get().folder().to_owned(), shard.folder().to_owned()]);
                    return Err(MergeError::Twice { shard: shard.name(), folders });
                }
            }
        }
        if let Some(expected) = expect.filter(|expected| *expected != count) {
            return Err(MergeError::Expected {
                expected,
                found: count,
                folder: first.files.folder,
            });
        }
        Ok(Self { shards: by_place.into_values().collect(), count })
    }

    /// Whether a signal ended every shard, and so the whole run.
    pub(crate) fn was_interrupted(&self) -> bool {
        let status = self.shards.iter().filter_map(|shard| shard.status.as_ref());
        status.filter(|status| status.interrupted.is_some()).count() as u64 == self.count
    }

    /// The shards that are there.
    pub fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// `plan.json` of the whole run.
    pub fn plan_document(&self) -> Value {
        let whole = Value::from("0/1");
        let mut document = self.shards.first().map_or(Value::Null, |shard| shard.document.clone());
        for place in ["/plan/shard", "/metadata/run/shard"] {
            if let Some(shard) = document.pointer_mut(place) {
                *shard = whole.clone();
            }
        }
        document
    }
}

/// Refuses two shards that are parts of different runs.
fn same_run(first: &Shard, other: &Shard) -> Result<(), MergeError> {
    let [a, b] = [first, other].map(|shard| &shard.planned.run);
    let facts = [
        ("the number of shards", first.place.count().to_string(), other.place.count().to_string()),
        ("the version of plimsoll", a.tool_version.clone(), b.tool_version.clone()),
        ("the build of plimsoll", a.build.clone(), b.build.clone()),
        ("the seed", a.seed.to_string(), b.seed.to_string()),
        ("the run id", quoted(&a.run_id, NO_ID), quoted(&b.run_id, NO_ID)),
        ("the launch", quoted(&a.launch, NO_LAUNCH), quoted(&b.launch, NO_LAUNCH)),
        ("the hash of the schedule", first.fingerprint.clone(), other.fingerprint.clone()),
    ];
    let plans = [first, other].map(|shard| shard.document.get("plan").unwrap_or(&Value::Null));
    let differs = facts.into_iter().find(|(_, a, b)| a != b);
    let differs = differs.map(|(what, a, b)| (what.to_owned(), [a, b]));
    let Some((what, values)) = differs.or_else(|| difference("the plan's", plans)) else {
        return Ok(());
    };
    let folders = Box::new([first, other].map(|shard| shard.folder().to_owned()));
    Err(MergeError::Mixed { what, folders, values: Box::new(values) })
}

const NO_ID: &str = "not given (--run-id)";
const NO_LAUNCH: &str = "not given (--launch)";

fn quoted(name: &str, none: &str) -> String {
    if name.is_empty() { none.to_owned() } else { format!("`{name}`") }
}

/// Keys of a plan that differ between shards of one run.
const FREE: [&str; 3] = ["shard", "notes", "bind"];

/// The first key in which two plans differ, with both values.
fn difference(path: &str, values: [&Value; 2]) -> Option<(String, [String; 2])> {
    if let [Value::Object(a), Value::Object(b)] = values {
        let null = Value::Null;
        let keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
        let mut keys = keys.filter(|key| !FREE.contains(&key.as_str()));
        return keys.find_map(|key: &String| {
            let values = [a, b].map(|map| map.get(key).unwrap_or(&null));
            difference(&format!("{path} {key}"), values)
        });
    }
    (values[0] != values[1])
        .then(|| (path.to_owned(), values.map(|value| shortened(&value.to_string()))))
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

// Names, stages and notes of the whole.

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

/// Cuts the stages where the counts end: no shard has their real length, and rates over their
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
