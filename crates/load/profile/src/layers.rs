//! The layers of a profile: the file's values, overridden by the environment and then by flags.
//! Each value keeps its source for error messages.

use serde_json::{Map, Value};

use crate::env_vars::EnvVars;
use crate::error::{Fault, Lines, Problem, ProblemCollector, Problems, ValueSource};
use crate::parser::parse_scalar;
use crate::path::{self, ConfigPath, Step};
use crate::schema::{self, Kind, Node};
use crate::schema_check;
use crate::spec::default_name;

/// The untyped values of a profile, and the problems so far.
#[derive(Debug)]
pub(crate) struct LayeredValues {
    root: Value,
    file: ValueSource,
    /// Lines of the file's values.
    lines: Lines,
    /// Paths set by the environment or a flag, in order.
    written: Vec<(ConfigPath, ValueSource)>,
    problems: Vec<Problem>,
    /// Paths with an invalid value.
    invalid: Vec<ConfigPath>,
    notes: Vec<String>,
}

impl LayeredValues {
    /// Creates the layer of a file's values.
    pub(crate) const fn new(root: Value, lines: Lines, file: ValueSource) -> Self {
        Self {
            root,
            file,
            lines,
            written: Vec::new(),
            problems: Vec::new(),
            invalid: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds notes for the user.
    pub(crate) fn with_notes(mut self, notes: Vec<String>) -> Self {
        self.notes.extend(notes);
        self
    }

    /// Adds lines to problems of the file's values.
    pub(crate) fn locate(&self, problems: Problems) -> Problems {
        problems.with_lines(&self.file, &self.lines)
    }

    /// The source of the value at `path`: of the whole value, or otherwise of its latest part.
    pub(crate) fn source(&self, path: &ConfigPath) -> &ValueSource {
        let mut latest = self.written.iter().rev();
        let around = latest.clone().find(|(written, _)| path.is_within(written));
        let found = around.or_else(|| latest.find(|(written, _)| written.is_within(path)));
        found.map_or(&self.file, |(_, source)| source)
    }

    /// The path of the behaviour `key` of scenario `index`: in the scenario or at the top level.
    pub(crate) fn behaviour_path(&self, index: usize, key: &str) -> ConfigPath {
        let own = ConfigPath::root().key("scenarios").index(index).key(key);
        let scenario_has_it = own.find(&self.root).is_some_and(|value| !value.is_null());
        let top = ConfigPath::root().key(key);
        let top_has_it = top.find(&self.root).is_some_and(|value| !value.is_null());
        let scenarios = self.root.get("scenarios").and_then(Value::as_array);
        let implicit = scenarios.is_none_or(Vec::is_empty);
        if implicit || (top_has_it && !scenario_has_it) { top } else { own }
    }

    /// Reports an invalid value.
    fn report(&mut self, path: ConfigPath, fault: Fault) {
        let source_name = self.source(&path).clone();
        self.invalid.push(path.clone());
        self.problems.push(Problem::new(source_name, path, fault));
    }

    /// Applies `PLIMSOLL_...` variables.
    pub(crate) fn apply_environment(&mut self, environment: &EnvVars) {
        let known: Vec<_> =
            schema::forms(schema::top()).into_iter().flat_map(Node::members).collect();
        for (name, path, text) in environment.overrides() {
            // Other variables with that prefix, such as PLIMSOLL_SHARD_INDEX, are not keys of the
            // profile.
            let first = path.split('.').next().unwrap_or_default();
            if known.iter().any(|(key, _)| *key == first) {
                self.set(&path, text, ValueSource::Environment(name.to_owned()));
            }
        }
    }

    /// Applies flags; later ones win, and `--set` overrides all others.
    pub(crate) fn apply_flags(&mut self, overrides: &Overrides) {
        for KeyFlag { flag, key, text } in &overrides.keys {
            let source = ValueSource::Flag(format!("--{flag}"));
            self.set(key, text, source.clone());
            if key == "protocol" {
                self.set_everywhere(key, text, &source);
            }
        }
        for header in &overrides.headers {
            self.apply_header(header);
        }
        let first = self.written.len();
        for assignment in &overrides.sets {
            self.apply_assignment(assignment);
        }
        let written = self.written[first..].iter();
        let effects: Vec<_> = written.map(|(path, source)| self.effect(path, source)).collect();
        for effect in effects {
            match effect {
                Ok(note) => self.notes.extend(note),
                Err(problem) => self.problems.push(problem),
            }
        }
    }

    /// Rejects a flag whose default no scenario would use. If only some scenarios use it, a note
    /// names the others.
    fn effect(&self, path: &ConfigPath, source: &ValueSource) -> Result<Option<String>, Problem> {
        let scenarios = self.root.get("scenarios").and_then(Value::as_array);
        let (Some(scenarios), [Step::Key(key), ..]) = (scenarios, path.steps()) else {
            return Ok(None);
        };
        if !schema::inherited().any(|inherited| inherited == key) {
            return Ok(None);
        }
        let own = scenarios.iter().enumerate().filter(|(_, scenario)| scenario.get(key).is_some());
        let names: Vec<_> = own.map(|(index, scenario)| name_of(index, scenario)).collect();
        match names.first() {
            None => Ok(None),
            Some(first) if names.len() == scenarios.len() => {
                let cause = "has no effect, because every scenario has its own";
                let fix = format!("set that one, like `--set scenarios.{first}.{path}=VALUE`");
                Err(Problem::new(source.clone(), path.clone(), Fault::new(cause, fix)))
            }
            Some(_) => {
                let names = names.join(", ");
                Ok(Some(format!("{source}: has no effect on {names}, which set `{key}`")))
            }
        }
    }

    /// Sets `key` in every scenario that has it.
    fn set_everywhere(&mut self, key: &str, text: &str, source: &ValueSource) {
        let scenarios = self.root.get("scenarios").and_then(Value::as_array).map_or(0, Vec::len);
        for index in 0..scenarios {
            let path = ConfigPath::root().key("scenarios").index(index).key(key);
            if path.find(&self.root).is_some() {
                self.write(path, text, source.clone());
            }
        }
    }

    fn apply_header(&mut self, header: &str) {
        let source = ValueSource::Flag("--header".to_owned());
        let headers = ConfigPath::root().key("headers");
        let Some((name, value)) = header.split_once(':') else {
            let fault = Fault::new("has no colon", "write --header 'NAME: VALUE'");
            self.problems.push(Problem::new(source, headers, fault));
            return;
        };
        let path = header_path(&headers, &self.root, name.trim());
        self.write(path, value.trim(), source);
    }

    fn apply_assignment(&mut self, assignment: &str) {
        match assignment.split_once('=') {
            Some((path, text)) => {
                self.set(path.trim(), text, ValueSource::Flag(format!("--set {}", path.trim())));
            }
            None => self.problems.push(Problem::new(
                ValueSource::Flag("--set".to_owned()),
                ConfigPath::root(),
                Fault::new("has no equals sign", "write --set PATH=VALUE, like `--set turns=3`"),
            )),
        }
    }

    fn set(&mut self, path: &str, text: &str, source: ValueSource) {
        match locate(&self.root, path) {
            Ok(path) => self.write(path, text, source),
            Err((path, fault)) => {
                self.problems.push(Problem::new(source, path, fault));
            }
        }
    }

    fn write(&mut self, path: ConfigPath, text: &str, source: ValueSource) {
        let value = value_of_text(&path, text);
        match insert(&mut self.root, path.steps(), value) {
            Ok(()) => self.written.push((path, source)),
            Err(fault) => self.problems.push(Problem::new(source, path, fault)),
        }
    }

    /// Expands variables in the texts of the file. Texts from the environment and flags stay
    /// unchanged, because the shell has already expanded them.
    pub(crate) fn expand(&mut self, environment: &EnvVars) {
        let mut texts = Vec::new();
        collect_dollars(&self.root, &ConfigPath::root(), &mut texts);
        texts.retain(|(path, _)| *self.source(path) == self.file);
        for (path, text) in texts {
            let expanded = environment.expand(&text);
            if let Ok(text) = &expanded {
                self.replace(&path, value_of_text(&path, text));
            }
            for fault in expanded.err().into_iter().flatten() {
                self.report(path.clone(), fault);
            }
        }
    }

    fn replace(&mut self, path: &ConfigPath, value: Value) {
        if let Some(old) = path.find_mut(&mut self.root) {
            *old = value;
        }
    }

    /// Checks the values against the schema. Invalid values are removed, so that the rest can be
    /// typed and checked further. Returns the problems so far.
    pub(crate) fn check_schema(&mut self) -> ProblemCollector {
        let reported = self.invalid.clone();
        for (path, fault) in schema_check::faults(&self.root) {
            if !reported.contains(&path) {
                self.report(path, fault);
            }
        }
        let removed: Vec<_> = self.invalid.iter().map(enclosing_key).collect();
        for path in &removed {
            self.replace(path, Value::Null);
        }
        ProblemCollector::new(std::mem::take(&mut self.problems), removed)
    }

    /// The values with every scenario complete; see [`inherit`].
    pub(crate) fn inherit(&self) -> Value {
        inherit(&self.root)
    }

    /// Notes on flags that some scenarios ignore.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// Name of a scenario in a path.
fn name_of(index: usize, scenario: &Value) -> String {
    let name = scenario.get("name").and_then(Value::as_str);
    name.map_or_else(|| index.to_string(), str::to_owned)
}

/// Keys with independent members: one can be removed while the others are checked.
const FREE_MEMBERS: [&str; 5] = ["thresholds", "bands", "gate", "labels", "headers"];

/// The smallest removable value that includes `path`: a key of the profile or of a scenario, or a
/// member of a mapping with free keys.
fn enclosing_key(path: &ConfigPath) -> ConfigPath {
    let steps = path.steps();
    if let Some(at) = steps
        .iter()
        .position(|step| matches!(step, Step::Key(key) if FREE_MEMBERS.contains(&&**key)))
        .filter(|at| at + 1 < steps.len())
    {
        return steps[..at + 2].iter().fold(ConfigPath::root(), |path, step| match step {
            Step::Key(key) => path.key(key),
            Step::Index(index) => path.index(*index),
        });
    }
    match steps {
        [Step::Key(list), Step::Index(index)] if list == "scenarios" => {
            ConfigPath::root().key(list).index(*index)
        }
        [Step::Key(list), Step::Index(index), Step::Key(key), ..] if list == "scenarios" => {
            ConfigPath::root().key(list).index(*index).key(key)
        }
        [Step::Key(key), ..] => ConfigPath::root().key(key),
        _ => ConfigPath::root().key(""),
    }
}

fn collect_dollars(value: &Value, path: &ConfigPath, texts: &mut Vec<(ConfigPath, String)>) {
    match value {
        Value::String(text) if text.contains('$') => texts.push((path.clone(), text.clone())),
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, item)| collect_dollars(item, &path.index(index), texts));
        }
        Value::Object(map) => {
            map.iter().for_each(|(key, member)| collect_dollars(member, &path.key(key), texts));
        }
        _ => {}
    }
}

/// Parses a text from outside the file: unchanged if the schema expects a text, otherwise as YAML.
fn value_of_text(path: &ConfigPath, text: &str) -> Value {
    let forms = schema::at(path);
    let literal = || Value::String(text.to_owned());
    let allows = |kind| forms.iter().any(|form| form.allows(kind));
    let others = [Kind::Bool, Kind::Fraction, Kind::Integer, Kind::List, Kind::Mapping];
    if allows(Kind::Text) && !others.into_iter().any(allows) {
        return literal();
    }
    parse_scalar(text)
        .filter(|value| forms.is_empty() || allows(Kind::from_value(value)) || !allows(Kind::Text))
        .unwrap_or_else(literal)
}

// Completes scenarios with the profile's top-level defaults.

/// The values with every scenario complete: missing keys are taken from the top level, and a
/// profile without scenarios gets one. Keys without a value are removed. The profile's `model`
/// applies to targets without their own; copied into a scenario, it would override theirs.
fn inherit(values: &Value) -> Value {
    let mut root = values.clone();
    drop_nulls(&mut root);
    let defaults: Map<_, _> = schema::inherited()
        .filter(|key| *key != "model")
        .filter_map(|key| Some((key.to_owned(), root.get(key)?.clone())))
        .collect();
    let written = values.get("scenarios").and_then(Value::as_array).cloned().unwrap_or_default();
    let scenarios = if written.is_empty() {
        vec![Value::Object(defaults)]
    } else {
        written.into_iter().map(|scenario| overlay(&defaults, scenario)).collect()
    };
    if let Value::Object(map) = &mut root {
        map.insert("scenarios".to_owned(), Value::Array(scenarios));
    }
    root
}

fn overlay(defaults: &Map<String, Value>, scenario: Value) -> Value {
    let Value::Object(own) = scenario else { return Value::Object(defaults.clone()) };
    let mut all = defaults.clone();
    all.extend(own);
    let mut all = Value::Object(all);
    drop_nulls(&mut all);
    all
}

/// Removes keys without a value. Inside `parameters` and `arguments`, which are sent to the target,
/// `null` stays.
pub(crate) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, member| !member.is_null());
            map.iter_mut()
                .filter(|(key, _)| !matches!(key.as_str(), "parameters" | "arguments"))
                .for_each(|(_, member)| drop_nulls(member));
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

// Finds and sets values by a user's path, such as `scenarios.simple.weight`.

/// Resolves a user's path against the values of a profile, such as `scenarios.simple.weight` or
/// `scenarios[0].weight`.
///
/// # Errors
/// The part that could be resolved, and the fault of the step after it.
fn locate(root: &Value, text: &str) -> Result<ConfigPath, (ConfigPath, Fault)> {
    let text = text.replace('[', ".").replace(']', "");
    let mut path = ConfigPath::root();
    for name in text.split('.') {
        if name.is_empty() {
            let fault = Fault::new(
                "has an empty step in its path",
                "write a path like `scenarios.0.weight`",
            );
            return Err((path, fault));
        }
        path = match path.find(root) {
            None | Some(Value::Null) if path == ConfigPath::root().key("scenarios") => {
                only_scenario(name).map_err(|fault| (path, fault))?
            }
            Some(Value::Array(items)) => {
                let index = item_index(items, name).map_err(|fault| (path.clone(), fault))?;
                path.index(index)
            }
            _ if path == ConfigPath::root().key("headers") => header_path(&path, root, name),
            _ => path.key(name),
        };
    }
    Ok(path)
}

/// The path of the scenario in a profile without a list of scenarios, whose only one is described
/// at the top level.
fn only_scenario(name: &str) -> Result<ConfigPath, Fault> {
    if name == "0" || name == default_name(0) {
        return Ok(ConfigPath::root().key("scenarios").index(0));
    }
    let cause = format!("has no scenario `{name}`: its only one is described at the top level");
    let own = default_name(0);
    Err(Fault::new(
        cause,
        format!("write its keys without `scenarios.{name}.`, or call it `{own}`"),
    ))
}

fn item_index(items: &[Value], name: &str) -> Result<usize, Fault> {
    let by_number = name.parse().ok().filter(|&index: &usize| index < items.len());
    by_number
        .or_else(|| items.iter().position(|item| item.get("name").is_some_and(|own| own == name)))
        .or_else(|| {
            items.iter().enumerate().position(|(index, item)| {
                item.get("name").is_none_or(Value::is_null) && name == default_name(index)
            })
        })
        .ok_or_else(|| {
            let names: Vec<_> =
                items.iter().filter_map(|item| item.get("name")?.as_str()).collect();
            let fix = match items.len() {
                0 => "it is empty: write it in the profile".to_owned(),
                _ if names.is_empty() => format!("write a number from 0 to {}", items.len() - 1),
                count => {
                    format!("write a number from 0 to {}, or {}", count - 1, path::one_of(&names))
                }
            };
            Fault::new(format!("has no item `{name}`"), fix)
        })
}

/// The path of a header. Existing headers are matched case-insensitively.
fn header_path(headers: &ConfigPath, root: &Value, name: &str) -> ConfigPath {
    let map = headers.find(root).and_then(Value::as_object);
    let same = map.and_then(|map| map.keys().find(|key| key.eq_ignore_ascii_case(name)));
    headers.key(same.map_or(name, String::as_str))
}

/// Sets the value at a path, and creates any missing mappings.
///
/// # Errors
/// The path leads into a value that is neither a mapping nor a list.
fn insert(root: &mut Value, steps: &[Step], value: Value) -> Result<(), Fault> {
    let Some((step, rest)) = steps.split_first() else {
        *root = value;
        return Ok(());
    };
    if root.is_null() {
        *root = Value::Object(Map::new());
    }
    if *step == Step::Index(0) && root.as_object().is_some_and(Map::is_empty) {
        // The only scenario of a profile without a list.
        *root = Value::Array(vec![Value::Object(Map::new())]);
    }
    let kind = Kind::from_value(root);
    match (step, root) {
        (Step::Key(key), Value::Object(map)) => {
            insert(map.entry(key.as_str()).or_insert(Value::Null), rest, value)
        }
        (Step::Index(index), Value::Array(items)) if *index < items.len() => {
            insert(&mut items[*index], rest, value)
        }
        _ => Err(Fault::new(format!("lies inside of {}", kind.name()), "set the whole value")),
    }
}

// The command-line flags that override a profile.

/// Overrides from the command line, as typed.
#[derive(Clone, Default)]
pub struct Overrides {
    /// Flags that set one key each; later ones win.
    pub keys: Vec<KeyFlag>,
    /// `--header 'NAME: VALUE'`: added to the profile's headers, or replaces one with the same
    /// name.
    pub headers: Vec<String>,
    /// `--set PATH=VALUE`, for any key: `--set scenarios.simple.weight=3`. They override `keys`.
    pub sets: Vec<String>,
    /// `--run-id ID`: id of the run, from which the ids of its requests are derived. Random by
    /// default.
    pub run_id: Option<String>,
    /// `--shard K/N`: the part of the run that this process executes, from 0.
    pub shard: Option<String>,
}

/// A flag that sets a key of the profile.
#[derive(Clone)]
pub struct KeyFlag {
    /// Name of the flag without dashes, for messages.
    pub flag: String,
    /// Path of the key.
    pub key: String,
    /// Value, as typed.
    pub text: String,
}

impl Overrides {
    /// Adds a flag that sets a key.
    pub fn with(mut self, flag: &str, key: &str, text: impl Into<String>) -> Self {
        let (flag, key) = (flag.to_owned(), key.to_owned());
        self.keys.push(KeyFlag { flag, key, text: text.into() });
        self
    }

    /// The value that a flag sets for a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.keys.iter().rev().find(|own| own.key == key).map(|own| own.text.as_str())
    }
}
