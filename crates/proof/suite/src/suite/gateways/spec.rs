//! The file of `suite gateways`: which gateways, in front of which upstream, under which loads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plimsoll_knee::Objective;
use plimsoll_measure::Seed;
use plimsoll_plan::names_credential;
use plimsoll_runner::Secrets;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
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
    /// The model of the upstream.
    pub model: String,
    /// Settings of the mock provider, as in its configuration file.
    pub mock: Option<Value>,
    /// Requests per second to each gateway, half of them streamed.
    pub rates: Vec<f64>,
    /// Length of the load at each rate, in seconds, in each round.
    pub seconds: u64,
    /// The objective of a request within which the capacity is searched.
    pub objective: String,
    /// Time for the search of each capacity, before the rounds, in seconds; 0 for none.
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
    /// The upstream's key.
    #[serde(skip)]
    pub(crate) key: Option<String>,
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
            model: "mock".to_owned(),
            mock: None,
            rates: vec![20.0, 100.0],
            seconds: 22,
            objective: "response_time<500ms : 95%".to_owned(),
            capacity_seconds: 150,
            rounds: 3,
            cold_starts: 5,
            workers: 1,
            tokens: (128, 20),
            seed: None,
            together: false,
            fidelity: true,
            key: None,
            entries: Vec::new(),
            real_names: BTreeMap::new(),
        }
    }
}

/// A gateway: how to start it, and what belongs to its result.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// The command that installs it. It is shown, and never run.
    pub(crate) install: String,
    /// The command that runs it in the foreground.
    pub(crate) start: String,
    /// Configuration files, written to `{run}` with placeholders filled in.
    pub(crate) files: Vec<PathBuf>,
    /// Variables of its environment.
    #[serde(deserialize_with = "texts")]
    pub(crate) env: BTreeMap<String, String>,
    /// The command that prints its version.
    pub(crate) version: String,
    /// The command that prints the bytes of its image or package.
    pub(crate) size: String,
    /// The place at which it listens, if it cannot be told `{port}`.
    pub(crate) port: Option<u16>,
    /// The path of chats; it ends with [`CHATS`].
    pub(crate) path: String,
    /// The dialects that it offers: `openai`, `anthropic`.
    pub(crate) dialects: Vec<String>,
    /// Headers of every request.
    #[serde(deserialize_with = "texts")]
    pub(crate) headers: BTreeMap<String, String>,
    /// The model to ask for.
    pub(crate) model: String,
    /// The port whose listening process is watched, instead of everything that `start` started.
    pub(crate) watch: Option<u16>,
    /// Seconds until it must answer.
    pub(crate) ready_seconds: u64,
    /// The folder of its file, in which its commands run.
    #[serde(skip)]
    pub(crate) folder: PathBuf,
}

/// Reads values that are texts, or numbers and booleans as YAML knows them.
fn texts<'de, D: Deserializer<'de>>(input: D) -> Result<BTreeMap<String, String>, D::Error> {
    let values = BTreeMap::<String, Value>::deserialize(input)?;
    let texts = values.into_iter().map(|(name, value)| match value {
        Value::String(text) => Ok((name, text)),
        Value::Number(_) | Value::Bool(_) => Ok((name, value.to_string())),
        _ => Err(D::Error::custom(format!("`{name}` has neither a text nor a number"))),
    });
    texts.collect()
}

/// The dialects that an entry may offer, in the order of the fidelity matrix.
pub(crate) const DIALECTS: [&str; 2] = ["openai", "anthropic"];

/// The path of chats.
pub(crate) const CHATS: &str = "/v1/chat/completions";

impl Entry {
    /// The path before [`CHATS`].
    pub(crate) fn prefix(&self) -> &str {
        self.path.strip_suffix(CHATS).unwrap_or_default()
    }

    /// Fills in the defaults.
    fn complete(mut self, folder: &Path, model: &str) -> Result<Self, String> {
        let (name, start) = (&self.name, &self.start);
        let letters = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        if name.is_empty() || !letters || name == crate::target::DIRECT {
            return Err(format!(
                "`{name}` cannot be the name of a gateway: write letters, digits, `-`, `_` and `.`"
            ));
        }
        if start.is_empty() {
            return Err(format!("{name} has no `start`, the command that runs it"));
        }
        if !self.path.is_empty() && !self.path.ends_with(CHATS) {
            let path = &self.path;
            return Err(format!("the path of {name} is `{path}`: it must end with `{CHATS}`"));
        }
        for (value, usual) in [(&mut self.path, CHATS), (&mut self.model, model)] {
            if value.is_empty() {
                usual.clone_into(value);
            }
        }
        if let Some(other) = self.dialects.iter().find(|own| !DIALECTS.contains(&own.as_str())) {
            return Err(format!("the dialect of {name} is `{other}`: write openai or anthropic"));
        }
        if self.dialects.is_empty() {
            self.dialects = DIALECTS.map(str::to_owned).into();
        }
        if self.ready_seconds == 0 {
            self.ready_seconds = READY_SECONDS;
        }
        self.folder =
            std::path::absolute(Path::new(".").join(folder)).map_err(|error| error.to_string())?;
        Ok(self)
    }
}

/// Time limit until a gateway answers: some load many modules.
const READY_SECONDS: u64 = 120;

impl GatewaysFile {
    /// Reads the file, and those that it names. With `only`, the other gateways are left out.
    ///
    /// # Errors
    /// [`SuiteError::Usage`] with the file and the reason.
    pub fn read(path: &Path, only: &[String]) -> Result<Self, SuiteError> {
        let mut file: Self = parsed(path)?;
        let folder = path.parent().unwrap_or_else(|| Path::new(""));
        for value in std::mem::take(&mut file.gateways) {
            let (path, entry): (_, Entry) = match value {
                Value::String(name) => (folder.join(&name), parsed(&folder.join(name))?),
                value => {
                    let name = value["name"].as_str().unwrap_or("without a name").to_owned();
                    let entry = serde_json::from_value(value);
                    let entry =
                        entry.map_err(|error| unusable(path, &format!("gateway {name}: {error}")));
                    (path.to_owned(), entry?)
                }
            };
            let entry = entry.complete(path.parent().unwrap_or(folder), &file.model);
            let entry = entry.map_err(|why| unusable(&path, &why))?;
            if file.entries.iter().any(|known| known.name == entry.name) {
                return Err(unusable(&path, &format!("two gateways are named `{}`", entry.name)));
            }
            file.entries.push(entry);
        }
        if let Some(name) = only.iter().find(|name| file.entries.iter().all(|e| e.name != **name)) {
            let known: Vec<_> = file.entries.iter().map(|entry| &*entry.name).collect();
            return Err(unusable(path, &format!("no gateway `{name}`: {}", known.join(", "))));
        }
        file.entries.retain(|entry| only.is_empty() || only.contains(&entry.name));
        file.check().map_err(|why| unusable(path, &why))?;
        Ok(file)
    }

    /// A text without the credentials in the headers of the file.
    pub fn shown(&self, text: &str) -> String {
        let headers = self.entries.iter().flat_map(|entry| &entry.headers);
        let named = headers.filter(|(name, _)| names_credential(name));
        Secrets::new(named.map(|(_, value)| &**value), std::iter::empty()).redact(text)
    }

    /// Sends the key of the user's upstream, unless the entry of a gateway has one of its own.
    pub fn with_key(mut self, key: Option<String>) -> Self {
        let Some(key) = key.filter(|_| self.upstream.is_some()) else { return self };
        for Entry { headers, .. } in &mut self.entries {
            if !headers.keys().any(|name| name.eq_ignore_ascii_case("authorization")) {
                headers.insert("authorization".to_owned(), format!("Bearer {key}"));
            }
        }
        Self { key: Some(key), ..self }
    }

    fn check(&self) -> Result<(), String> {
        let objective = self.objective.parse::<Objective>();
        objective.map_err(|error| format!("objective: {error}"))?;
        let checks = [
            (
                self.upstream.as_deref().is_none_or(has_port_alone),
                "upstream: a URL with a port and without a path, such as http://127.0.0.1:8000",
            ),
            (
                self.upstream.is_none() || self.mock.is_none(),
                "mock: these are settings of the mock, and `upstream` replaces it",
            ),
            (!self.entries.is_empty(), "gateways: list at least one"),
            (self.rounds >= 2, "rounds: at least 2, because starts differ"),
            (self.seconds >= 10, "seconds: at least 10, because intervals need 8 whole seconds"),
            (self.cold_starts >= 1, "cold_starts: at least 1"),
            (self.workers >= 1, "workers: at least 1"),
            (
                self.capacity_seconds == 0 || self.capacity_seconds >= 60,
                "capacity_seconds: 0, or at least 60",
            ),
            (self.rates.iter().all(|rate| *rate >= 1.0), "rates: at least 1 per second each"),
            (
                (1..self.rates.len()).all(|at| !self.rates[..at].contains(&self.rates[at])),
                "rates: each of them once",
            ),
        ];
        checks.iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, why)| Err((*why).to_owned()))
    }

    /// The loads in a line.
    pub(crate) fn loads(&self) -> String {
        let Self { rates, seconds, rounds, workers, capacity_seconds, together, .. } = self;
        let rates: Vec<_> = rates.iter().map(|rate| format!("{rate}/s")).collect();
        let ((input, output), rates) = (self.tokens, rates.join(" and "));
        format!(
            "{rounds} rounds of {seconds} s at {rates}, half of the requests streamed, Poisson arrivals; {input} input \
             and {output} output tokens; workers: {workers}; all gateways at once: {together}; fidelity: {}; search of \
             each capacity: {capacity_seconds} s, even arrivals; cold starts: {}; upstream: {}",
            self.fidelity,
            self.cold_starts,
            if self.upstream.is_some() { "of the file" } else { "the mock" }
        )
    }

    /// Shorter and fewer loads, to see whether everything works.
    pub fn shortened(self) -> Self {
        let rates = self.rates.iter().copied().reduce(f64::min).into_iter().collect();
        Self { rates, seconds: 10, rounds: 2, cold_starts: 2, capacity_seconds: 0, ..self }
    }
}

/// A number from the time of the start, as good as a random one.
pub(super) fn digits_of(time: &str) -> u64 {
    time.bytes().filter(u8::is_ascii_digit).fold(0_u64, |n, digit| n * 10 + u64::from(digit - b'0'))
}

/// A random order of a number of gateways (Fisher and Yates).
pub(super) fn shuffled(count: usize, seed: u64, round: u64) -> Vec<usize> {
    let mut rng = Seed(seed).rng("gateways", round);
    let mut order: Vec<_> = (0..count).collect();
    for last in (1..count).rev() {
        let other = usize::try_from(rng.below(last as u64 + 1)).unwrap_or(last);
        order.swap(last, other);
    }
    order
}

fn parsed<T: DeserializeOwned>(path: &Path) -> Result<T, SuiteError> {
    let text = plimsoll_input::read_text(path);
    let text = text.map_err(|error| SuiteError::Usage(format!("{}: {error}", path.display())))?;
    serde_saphyr::from_str(&text).map_err(|error| unusable(path, &error.to_string()))
}

fn unusable(path: &Path, why: &str) -> SuiteError {
    SuiteError::Usage(format!("{}: {why}", path.display()))
}

/// Whether a URL has a port and no path: `{upstream}` stands for host and port alone.
fn has_port_alone(url: &str) -> bool {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let port = rest.and_then(|rest| rest.trim_end_matches('/').rsplit_once(':'));
    port.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every folder of the examples is a gateway with an entry, whose files exist.
    #[test]
    fn the_examples_are_entries() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/gateways");
        let file = GatewaysFile::read(&folder.join("gateways.yaml"), &[]).unwrap();
        let files = file.entries.iter().flat_map(|entry| &entry.files);
        for name in files.clone() {
            assert!(folder.join(name).is_file(), "{}", name.display());
        }
        for entry in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap()) {
            let name = entry.file_name().into_string().unwrap();
            let is_entry = file.entries.iter().any(|entry| entry.name == name);
            assert_eq!(is_entry, entry.path().is_dir(), "{name}");
        }
        let only = GatewaysFile::read(&folder.join("gateways.yaml"), &["nginx".to_owned()]);
        assert_eq!(only.unwrap().entries.len(), 1);
    }

    #[test]
    fn numbers_are_texts_and_a_key_reaches_every_gateway_without_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gateways.yaml");
        let text = "upstream: http://127.0.0.1:9\ngateways:
  - {name: a, start: a, env: {A: 1, B: true, C: c}}
  - {name: b, start: b, headers: {Authorization: mine, n: 2}}\n";
        std::fs::write(&path, text).unwrap();
        let file = GatewaysFile::read(&path, &[]).unwrap().with_key(Some("k".to_owned()));
        let values: Vec<_> = file.entries[0].env.values().collect();
        assert_eq!(values, ["1", "true", "c"]);
        let headers = file.entries.iter().flat_map(|entry| &entry.headers);
        let headers: Vec<_> = headers.map(|(name, value)| format!("{name}: {value}")).collect();
        assert_eq!(headers, ["authorization: Bearer k", "Authorization: mine", "n: 2"]);
        let shown = GatewaysFile::read(&path, &[]).unwrap().shown(text);
        assert!(!shown.contains("mine") && shown.contains("headers: {Authorization: "), "{shown}");
        // A word of three letters is no key, and occurs in other words.
        let dummy =
            "gateways: [{name: a, start: a, headers: {Authorization: Bearer any}}] # company";
        std::fs::write(&path, dummy).unwrap();
        let shown = GatewaysFile::read(&path, &[]).unwrap().shown(dummy);
        assert!(shown.ends_with("}}] # company"), "{shown}");
        std::fs::write(&path, "gateways: [{name: a, start: a, env: {A: [1]}}]").unwrap();
        let error = GatewaysFile::read(&path, &[]).unwrap_err().to_string();
        assert!(error.contains("`A` has neither a text nor a number"), "{error}");
    }

    /// The entry of the guide has at most 12 lines, and is accepted as it is.
    #[test]
    fn the_entry_of_the_guide_is_accepted() {
        let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/gateways.md");
        let guide = std::fs::read_to_string(guide).unwrap();
        let (_, rest) = guide.split_once("```\ngateways:\n").unwrap();
        let (entry, _) = rest.split_once("```").unwrap();
        assert!(entry.lines().count() <= 12, "{entry}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.yaml");
        std::fs::write(&path, format!("gateways:\n{entry}")).unwrap();
        let file = GatewaysFile::read(&path, &[]).unwrap();
        assert_eq!(file.entries[0].name, "mine");
        assert!(file.entries[0].start.contains("{port}"));
    }

    #[test]
    fn an_order_has_every_gateway_once_and_depends_on_round_and_seed() {
        let orders: Vec<_> = (0..40).map(|round| shuffled(5, 7, round)).collect();
        for order in &orders {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3, 4]);
        }
        assert!((0..5).all(|first| orders.iter().any(|order| order[0] == first)));
        assert_eq!(shuffled(5, 7, 3), orders[3]);
        assert_ne!((0..40).map(|round| shuffled(5, 8, round)).collect::<Vec<_>>(), orders);
    }
}
