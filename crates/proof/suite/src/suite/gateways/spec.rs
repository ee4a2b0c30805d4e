//! The file of `suite gateways`: which gateways, in front of which upstream, under which loads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plimsoll_knee::Objective;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::SuiteError;

/// The gateways of a comparison and its loads.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GatewaysFile {
    /// Entries, or paths of files with one entry each.
    gateways: Vec<Value>,
    /// URL of the upstream; the mock provider without it.
    pub upstream: Option<String>,
    /// Settings of the mock provider, as in its configuration file.
    pub mock: Option<Value>,
    /// Requests per second to each gateway, half of them streamed.
    pub rates: Vec<f64>,
    /// Length of the load at each rate, in seconds, in each round.
    pub seconds: u64,
    /// The objective of a request within which the capacity is searched.
    pub objective: String,
    /// Time for the search of each capacity in each round, in seconds; 0 for none.
    pub capacity_seconds: u64,
    /// Number of rounds; every gateway is started again in each.
    pub rounds: u32,
    /// Number of starts from which the cold start is known.
    pub cold_starts: usize,
    /// Workers of each gateway, for `{workers}`.
    pub workers: u32,
    /// Input and output tokens of a request.
    pub tokens: (u32, u32),
    /// Seed of the order of the gateways in each round; random without it.
    pub seed: Option<u64>,
    /// All gateways at the same time, instead of one at a time.
    pub together: bool,
    /// Whether single requests with known answers are sent through each gateway first.
    pub fidelity: bool,
    #[serde(skip)]
    pub(crate) entries: Vec<Entry>,
    /// The names that were replaced: then versions, commands and configurations are left out of the
    /// result, too.
    #[serde(skip)]
    pub(crate) real_names: BTreeMap<String, String>,
}

impl Default for GatewaysFile {
    fn default() -> Self {
        Self {
            gateways: Vec::new(),
            upstream: None,
            mock: None,
            rates: vec![20.0, 100.0],
            seconds: 25,
            objective: "response_time<500ms : 99%".to_owned(),
            capacity_seconds: 30,
            rounds: 3,
            cold_starts: 5,
            workers: 1,
            tokens: (128, 20),
            seed: None,
            together: false,
            fidelity: true,
            entries: Vec::new(),
            real_names: BTreeMap::new(),
        }
    }
}

/// A gateway: how to start it, and what belongs to its result.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// The command that installs it. It is shown, and never run.
    #[serde(default)]
    pub(crate) install: String,
    /// The command that runs it in the foreground.
    pub(crate) start: String,
    /// Configuration files, written to `{run}` with placeholders filled in.
    #[serde(default)]
    pub(crate) files: Vec<PathBuf>,
    /// Variables of its environment.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// The command that prints its version.
    #[serde(default)]
    pub(crate) version: String,
    /// The command that prints the bytes of its image or package.
    #[serde(default)]
    pub(crate) size: String,
    /// The place at which it listens, if it cannot be told `{port}`.
    #[serde(default)]
    pub(crate) port: Option<u16>,
    /// The path of chats; it ends with [`CHATS`].
    #[serde(default = "chats")]
    pub(crate) path: String,
    /// The dialects that it offers: `openai`, `anthropic`.
    #[serde(default = "dialects")]
    pub(crate) dialects: Vec<String>,
    /// Headers of every request.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    #[serde(default = "mock")]
    pub(crate) model: String,
    /// The port whose listening process is watched, instead of everything that `start` started.
    #[serde(default)]
    pub(crate) watch: Option<u16>,
    /// Seconds until it must answer.
    #[serde(default = "ready")]
    pub(crate) ready_seconds: u64,
    /// The folder of its file, in which its commands run.
    #[serde(skip)]
    pub(crate) folder: PathBuf,
}

fn mock() -> String {
    "mock".to_owned()
}

fn chats() -> String {
    CHATS.to_owned()
}

fn dialects() -> Vec<String> {
    ["openai", "anthropic"].map(str::to_owned).into()
}

const fn ready() -> u64 {
    120
}

/// The path of chats.
pub(crate) const CHATS: &str = "/v1/chat/completions";

impl Entry {
    /// The path before [`CHATS`].
    pub(crate) fn prefix(&self) -> &str {
        self.path.strip_suffix(CHATS).unwrap_or_default()
    }

    fn check(&self) -> Result<(), String> {
        let name = &self.name;
        let letters = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        if name.is_empty() || !letters || name == crate::target::DIRECT {
            return Err(format!(
                "`{name}` cannot be the name of a gateway: write letters, digits, `-`, `_` and `.`"
            ));
        }
        let path = &self.path;
        if !path.ends_with(CHATS) {
            return Err(format!("the path of {name} is `{path}`: it must end with `{CHATS}`"));
        }
        Ok(())
    }
}

impl GatewaysFile {
    /// Reads the file, and those that it names. With `only`, the other gateways are left out.
    ///
    /// # Errors
    /// [`SuiteError::Usage`] with the file and the reason.
    pub fn read(path: &Path, only: &[String]) -> Result<Self, SuiteError> {
        let mut file: Self = parsed(path)?;
        let folder = path.parent().unwrap_or_else(|| Path::new(""));
        for value in std::mem::take(&mut file.gateways) {
            let entry = match value {
                Value::String(name) => {
                    let path = folder.join(name);
                    let own = path.parent().unwrap_or(folder).to_owned();
                    Entry { folder: own, ..parsed(&path)? }
                }
                value => {
                    let entry = serde_json::from_value(value);
                    let entry: Entry = entry.map_err(|error| unusable(path, &error.to_string()))?;
                    Entry { folder: folder.to_owned(), ..entry }
                }
            };
            entry.check().map_err(|why| unusable(path, &why))?;
            if file.entries.iter().any(|known| known.name == entry.name) {
                return Err(unusable(path, &format!("two gateways are named `{}`", entry.name)));
            }
            file.entries.push(entry);
        }
        if let Some(name) = only.iter().find(|name| file.entries.iter().all(|e| e.name != **name)) {
            let known: Vec<_> = file.entries.iter().map(|entry| &*entry.name).collect();
            return Err(unusable(path, &format!("no gateway `{name}`: {}", known.join(", "))));
        }
        file.entries.retain(|entry| only.is_empty() || only.contains(&entry.name));
        file.check().map_err(|why| unusable(path, &why))?;
        for entry in &mut file.entries {
            entry.folder = std::path::absolute(&entry.folder)
                .map_err(|error| unusable(&entry.folder, &error.to_string()))?;
        }
        Ok(file)
    }

    fn check(&self) -> Result<(), String> {
        let objective = self.objective.parse::<Objective>();
        objective.map_err(|error| format!("objective: {error}"))?;
        let checks = [
            (!self.entries.is_empty(), "gateways: list at least one"),
            (self.rounds >= 2, "rounds: at least 2, because starts differ"),
            (self.seconds >= 10, "seconds: at least 10, because intervals need 8 whole seconds"),
            (self.cold_starts >= 1, "cold_starts: at least 1"),
            (self.workers >= 1, "workers: at least 1"),
            (
                self.capacity_seconds == 0 || self.capacity_seconds >= 20,
                "capacity_seconds: 0, or at least 20",
            ),
            (self.rates.iter().all(|rate| *rate >= 1.0), "rates: at least 1 per second each"),
        ];
        checks.iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, why)| Err((*why).to_owned()))
    }

    /// Shorter and fewer loads, to see whether everything works.
    #[must_use]
    pub fn shortened(self) -> Self {
        let rates = self.rates.iter().copied().reduce(f64::min).into_iter().collect();
        Self { rates, seconds: 10, rounds: 2, cold_starts: 2, capacity_seconds: 0, ..self }
    }
}

impl GatewaysFile {
    /// Replaces the names of the gateways by letters in a random order, and leaves everything out
    /// of the result that tells which is which. Returns the names, for the user alone.
    pub fn anonymize(&mut self, started: &str) -> String {
        let order = super::shuffled(self.entries.len(), super::digits_of(started), u64::MAX);
        for (letter, at) in ('A'..='Z').cycle().zip(order) {
            let entry = &mut self.entries[at];
            let real = std::mem::replace(&mut entry.name, format!("gateway-{letter}"));
            self.real_names.insert(entry.name.clone(), real);
        }
        let names = self.real_names.iter().map(|(letter, name)| format!("{letter}: {name}"));
        names.collect::<Vec<_>>().join("\n")
    }
}

fn parsed<T: DeserializeOwned>(path: &Path) -> Result<T, SuiteError> {
    let text = plimsoll_input::read_text(path);
    let text = text.map_err(|error| SuiteError::Usage(format!("{}: {error}", path.display())))?;
    serde_saphyr::from_str(&text).map_err(|error| unusable(path, &error.to_string()))
}

fn unusable(path: &Path, why: &str) -> SuiteError {
    SuiteError::Usage(format!("{}: {why}", path.display()))
}
