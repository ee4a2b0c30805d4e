//! Conditions for two runs to be comparable.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use plimsoll_metrics::{Environment, RunSummary};
use plimsoll_report::format::{DASH, bytes};
use plimsoll_run_files::read_summary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::CompareError;
use crate::plan;

/// A property in which runs must not differ.
struct Item {
    /// Name in `--allow-different`.
    name: &'static str,
    /// Source of the value.
    of: Of,
}

/// Source of a property's value, which is absent if a run does not state it.
enum Of {
    /// The run.
    Run(fn(&StoredRun) -> Option<String>),
    /// The description of the machine and the build.
    Machine(fn(&Environment) -> Option<String>),
}

impl Item {
    const fn run(name: &'static str, of: fn(&StoredRun) -> Option<String>) -> Self {
        Self { name, of: Of::Run(of) }
    }

    const fn machine(name: &'static str, of: fn(&Environment) -> Option<String>) -> Self {
        Self { name, of: Of::Machine(of) }
    }

    fn value(&self, run: &StoredRun) -> String {
        let value = match self.of {
            Of::Run(of) => of(run),
            Of::Machine(of) => of(&run.summary.metadata.environment),
        };
        value.unwrap_or_else(|| DASH.to_owned())
    }
}

/// Run label that names the provider behind the target, which the run cannot see.
const PROVIDER_LABEL: &str = "mock";

/// All properties except the plan.
const ITEMS: [Item; 13] = [
    Item::run("model", |run| joined(run.summary.metadata.targets.iter().map(|t| &t.model))),
    Item::run("features", |run| run.summary.metadata.environment.versions.get("features").cloned()),
    Item::run("version", |run| Some(run.summary.metadata.run.tool_version.clone())),
    Item::run("mock", |run| run.summary.metadata.labels.get(PROVIDER_LABEL).cloned()),
    Item::machine("build", |machine| machine.versions.get("build").cloned()),
    Item::machine("cpu", |machine| machine.cpu_model.clone()),
    Item::machine("count", |machine| number(machine.cpu_count)),
    Item::machine("quota", |machine| number(machine.cpu_quota)),
    Item::machine("affinity", |machine| machine.cpu_affinity.clone()),
    Item::machine("governor", |machine| machine.cpu_governor.clone()),
    Item::machine("kernel", |machine| machine.kernel.clone()),
    // Kernels of the same version reserve slightly different amounts, so three digits suffice.
    Item::machine("memory", |machine| machine.memory_bytes.map(|size| bytes(size as f64))),
    Item::machine("clock", |machine| machine.clock_source.clone()),
];

/// The name of the plan in `--allow-different`.
const PLAN: &str = "plan";

/// A property in which the runs differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Name in `--allow-different`: `plan`, `cpu`, `kernel` and so on.
    pub name: String,
    /// Key of the plan that differs, such as `limits.timeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The different values, in the order of the runs; `-` if a run does not state one.
    pub values: Vec<String>,
    /// Whether the user allowed the difference.
    pub allowed: bool,
}

impl Difference {
    /// The name, with the key of the plan.
    pub fn title(&self) -> String {
        match &self.key {
            Some(key) => format!("{} ({key})", self.name),
            None => self.name.clone(),
        }
    }

    /// The difference in words: `kernel: 6.1
    /// 6.2`.
    pub fn words(&self) -> String {
        format!("{}: {}", self.title(), self.values.join(" / "))
    }
}

/// Checks the names given to `--allow-different`.
///
/// # Errors
/// [`CompareError::UnknownDifference`].
pub fn check_names(allowed: &[String]) -> Result<(), CompareError> {
    let unknown = allowed
        .iter()
        .find(|name| *name != PLAN && ITEMS.iter().all(|item| item.name != name.as_str()));
    match unknown {
        Some(name) => Err(CompareError::UnknownDifference { name: name.clone(), known: names() }),
        None => Ok(()),
    }
}

/// Allowed names, for messages.
fn names() -> String {
    let items = ITEMS.iter().map(|item| item.name);
    std::iter::once(PLAN).chain(items).collect::<Vec<_>>().join(", ")
}

/// All differences between the runs, the plan first.
pub(crate) fn differences(runs: &[&StoredRun], allowed: &[String]) -> Vec<Difference> {
    let allowed: BTreeSet<&str> = allowed.iter().map(String::as_str).collect();
    let mut found = of_plans(runs, allowed.contains(PLAN));
    found.extend(ITEMS.iter().filter_map(|item: &Item| {
        let values = runs.iter().map(|run| item.value(run));
        Some(Difference {
            name: item.name.to_owned(),
            key: None,
            values: distinct(values).filter(|values| values.len() > 1)?,
            allowed: allowed.contains(item.name),
        })
    }));
    found
}

/// All differences between two machines or builds, for results other than runs.
pub fn of_machines(old: &Environment, new: &Environment) -> Vec<Difference> {
    ITEMS
        .iter()
        .filter_map(|item: &Item| {
            let Of::Machine(of) = item.of else { return None };
            let values = [old, new].map(|machine| of(machine).unwrap_or_else(|| DASH.to_owned()));
            (values[0] != values[1]).then(|| Difference {
                name: item.name.to_owned(),
                key: None,
                values: values.to_vec(),
                allowed: false,
            })
        })
        .collect()
}

fn of_plans(runs: &[&StoredRun], allowed: bool) -> Vec<Difference> {
    let name = PLAN.to_owned();
    let plans: Option<Vec<_>> = runs.iter().map(|run| run.plan.as_ref()).collect();
    if let Some(plans) = plans {
        let found = plan::differences(&plans).into_iter();
        return found
            .map(|(key, values)| {
                let values = distinct(values.into_iter()).unwrap_or_default();
                Difference { name: name.clone(), key: Some(key), values, allowed }
            })
            .collect();
    }
    // Without the plans themselves, the hashes show that they differ, but not where.
    let hashes =
        distinct(runs.iter().map(|run| run.plan_hash().unwrap_or_else(|| DASH.to_owned())));
    match hashes {
        Some(values) if values.len() > 1 => vec![Difference { name, key: None, values, allowed }],
        _ => Vec::new(),
    }
}

/// The distinct values in order of first occurrence; `None` if empty.
fn distinct(values: impl Iterator<Item = String>) -> Option<Vec<String>> {
    let mut distinct = Vec::new();
    for value in values {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    (!distinct.is_empty()).then_some(distinct)
}

fn number(value: Option<impl ToString>) -> Option<String> {
    value.map(|value| value.to_string())
}

fn joined<'a>(texts: impl Iterator<Item = &'a String>) -> Option<String> {
    Some(texts.map(String::as_str).collect::<Vec<_>>().join(", ")).filter(|text| !text.is_empty())
}

// A stored run: its summary and its plan.

/// A stored run.
#[derive(Clone, Debug)]
pub struct StoredRun {
    /// Path of the folder, as given.
    pub path: PathBuf,
    /// Summary of the run.
    pub summary: RunSummary,
    /// The plan without the parts that may differ between compared runs; `None` if there is only a
    /// summary.
    pub plan: Option<Value>,
    /// Gates of its profile.
    pub gates: Vec<(String, String)>,
}

/// The parts of `plan.json` that are read.
#[derive(Deserialize)]
struct PlanFile {
    plan: Value,
}

impl StoredRun {
    /// Reads the folder of a run, or its `summary.json` alone.
    ///
    /// # Errors
    /// Each names the file, the problem and the remedy.
    pub fn read(path: &Path) -> Result<Self, CompareError> {
        let is_file = path.is_file();
        let folder = if is_file { path.parent().unwrap_or(path) } else { path };
        let summary_path = if is_file { path.to_owned() } else { folder.join("summary.json") };
        let plan_path = folder.join("plan.json");
        let Some(bytes) = read(&summary_path)? else {
            return Err(missing(path, &plan_path));
        };
        let summary = read_summary(&bytes)
            .map_err(|error| CompareError::Summary { path: summary_path, error })?;
        let plan = read(&plan_path)?.map(|bytes| serde_json::from_slice::<PlanFile>(&bytes));
        let plan =
            plan.transpose().map_err(|error| CompareError::Plan { path: plan_path, error })?;
        Ok(Self::new(path.to_owned(), summary, plan.map(|file| file.plan)))
    }

    /// Creates a run from its parts; `plan` is the content of `plan.json`.
    pub fn new(path: PathBuf, summary: RunSummary, plan: Option<Value>) -> Self {
        let gates = plan.as_ref().and_then(|plan| plan.get("gate")?.as_object().cloned());
        let gates = gates.into_iter().flatten();
        let gates = gates.filter_map(|(name, margin)| Some((name, margin.as_str()?.to_owned())));
        Self {
            path,
            summary,
            gates: gates.collect(),
            plan: plan.map(|plan| plan::comparable(&plan)),
        }
    }

    /// Unique id of the run.
    pub fn id(&self) -> String {
        let run = &self.summary.metadata.run;
        format!("{}-{}", run.started_unix_ns, run.run_id)
    }

    /// Hash of the plan; `None` for a run of an earlier version without a plan.
    pub fn plan_hash(&self) -> Option<String> {
        let stored = &self.summary.metadata.run.plan_hash;
        if !stored.is_empty() {
            return Some(stored.clone());
        }
        self.plan.as_ref().map(plan::hash_of_comparable)
    }
}

/// The content of a file, or `None` if it does not exist.
fn read(path: &Path) -> Result<Option<Vec<u8>>, CompareError> {
    match plimsoll_input::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(CompareError::Unreadable { path: path.to_owned(), error }),
    }
}

/// The error for a folder without a summary.
fn missing(path: &Path, plan: &Path) -> CompareError {
    if path.join("suite.json").exists() {
        CompareError::Suite(path.to_owned())
    } else if path.join("comparison.json").exists() {
        CompareError::IsComparison(path.to_owned())
    } else if plan.exists() {
        CompareError::Killed(path.to_owned())
    } else {
        CompareError::NotARun(path.to_owned())
    }
}
