//! Shards of one and the same run.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

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
                "its launch is {found}, and no shard is of launch `{asked}`: see in the output of that launch why it left none"
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
