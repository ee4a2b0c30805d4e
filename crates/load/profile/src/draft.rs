//! A profile on its way to a plan: the file's values, changed by the environment and the flags, each
//! with the memory of where it was written.

use serde_json::{Map, Value};

use crate::environment::Environment;
use crate::error::{Fault, Problem, Problems, Source};
use crate::overrides::Overrides;
use crate::place::{ConfigPath, Step};
use crate::schema::{self, Kind, Node};
use crate::{shape, suggest, tree};

/// The values of a profile before they are typed, and what was found wrong so far.
#[derive(Debug)]
pub(crate) struct Draft {
    root: Value,
    file: Source,
    /// Places that the environment or a flag has written, the latest last.
    written: Vec<(ConfigPath, Source)>,
    problems: Vec<Problem>,
    /// Places whose values cannot be used.
    unusable: Vec<ConfigPath>,
}

impl Draft {
    /// The values of a file.
    pub(crate) const fn new(root: Value, file: Source) -> Self {
        Self { root, file, written: Vec::new(), problems: Vec::new(), unusable: Vec::new() }
    }

    /// Where the value at `place` was written: as a whole, or else the latest part of it.
    pub(crate) fn source(&self, place: &ConfigPath) -> &Source {
        let latest = |holds: fn(&ConfigPath, &ConfigPath) -> bool| {
            self.written.iter().rev().find(|(written, _)| holds(place, written))
        };
        let found = latest(ConfigPath::is_within)
            .or_else(|| latest(|place, written| written.is_within(place)));
        found.map_or(&self.file, |(_, source)| source)
    }

    /// Where the behaviour `key` of scenario `index` was written: there, or at the top of the profile.
    pub(crate) fn place_of(&self, index: usize, key: &str) -> ConfigPath {
        let own = ConfigPath::top().key("scenarios").index(index).key(key);
        let scenario_has_it = own.find(&self.root).is_some_and(|value| !value.is_null());
        let top = ConfigPath::top().key(key);
        let top_has_it = top.find(&self.root).is_some_and(|value| !value.is_null());
        let scenarios = self.root.get("scenarios").and_then(Value::as_array);
        let implicit = scenarios.is_none_or(Vec::is_empty);
        if implicit || (top_has_it && !scenario_has_it) { top } else { own }
    }

    /// Reports a value that cannot be used.
    fn report(&mut self, place: ConfigPath, fault: Fault) {
        let source_name = self.source(&place).clone();
        self.unusable.push(place.clone());
        self.problems.push(Problem { source_name, place, fault });
    }

    /// Applies `PLIMSOLL_...` variables.
    pub(crate) fn apply_environment(&mut self, environment: &Environment) {
        let known: Vec<_> =
            schema::forms(schema::top()).into_iter().flat_map(Node::members).collect();
        for (name, path, text) in environment.overrides() {
            // Other variables of that prefix, like PLIMSOLL_SHARD_INDEX, are not about the profile.
            let first = path.split('.').next();
            if known.iter().any(|(key, _)| Some(*key) == first) {
                self.set(&path, text, Source::Environment(name.to_owned()));
            }
        }
    }

    /// Applies flags; later ones win, and `--set` wins over all others.
    pub(crate) fn apply_flags(&mut self, overrides: &Overrides) {
        for (flag, path, text) in overrides.keys() {
            let source = Source::Flag(flag.to_owned());
            self.set(path, text, source.clone());
            if path == "protocol" {
                self.set_everywhere(path, text, &source);
            }
        }
        for header in &overrides.headers {
            self.apply_header(header);
        }
        for assignment in &overrides.sets {
            self.apply_assignment(assignment);
        }
    }

    /// Sets `key` in every scenario that has its own.
    fn set_everywhere(&mut self, key: &str, text: &str, source: &Source) {
        let scenarios = self.root.get("scenarios").and_then(Value::as_array).map_or(0, Vec::len);
        for index in 0..scenarios {
            let place = ConfigPath::top().key("scenarios").index(index).key(key);
            if place.find(&self.root).is_some() {
                self.write(place, text, source.clone());
            }
        }
    }

    fn apply_header(&mut self, header: &str) {
        let source = Source::Flag("--header".to_owned());
        let headers = ConfigPath::top().key("headers");
        let Some((name, value)) = header.split_once(':') else {
            let fault = Fault::new("has no colon", "write --header 'NAME: VALUE'");
            self.problems.push(Problem { source_name: source, place: headers, fault });
            return;
        };
        let place = header_place(&headers, &self.root, name.trim());
        self.write(place, value.trim(), source);
    }

    fn apply_assignment(&mut self, assignment: &str) {
        match assignment.split_once('=') {
            Some((path, text)) => {
                self.set(path.trim(), text, Source::Flag(format!("--set {}", path.trim())));
            }
            None => self.problems.push(Problem {
                source_name: Source::Flag("--set".to_owned()),
                place: ConfigPath::top(),
                fault: Fault::new(
                    "has no equals sign",
                    "write --set PATH=VALUE, like `--set turns=3`",
                ),
            }),
        }
    }

    fn set(&mut self, path: &str, text: &str, source: Source) {
        match locate(&self.root, path) {
            Ok(place) => self.write(place, text, source),
            Err((place, fault)) => {
                self.problems.push(Problem { source_name: source, place, fault });
            }
        }
    }

    fn write(&mut self, place: ConfigPath, text: &str, source: Source) {
        let value = read_text(&place, text);
        match insert(&mut self.root, place.steps(), value) {
            Ok(()) => self.written.push((place, source)),
            Err(fault) => self.problems.push(Problem { source_name: source, place, fault }),
        }
    }

    /// Replaces variables in the texts of the file. What came from the environment or a flag was
    /// expanded by the shell, or not on purpose.
    pub(crate) fn expand(&mut self, environment: &Environment) {
        let mut texts = Vec::new();
        collect_dollars(&self.root, &ConfigPath::top(), &mut texts);
        texts.retain(|(place, _)| *self.source(place) == self.file);
        for (place, text) in texts {
            let expanded = environment.expand(&text);
            if let Ok(text) = &expanded {
                self.replace(&place, read_text(&place, text));
            }
            for fault in expanded.err().into_iter().flatten() {
                self.report(place.clone(), fault);
            }
        }
    }

    fn replace(&mut self, place: &ConfigPath, value: Value) {
        if let Some(old) = place.find_mut(&mut self.root) {
            *old = value;
        }
    }

    /// Compares the values with the schema. What is wrong is taken out, so that the rest can be typed
    /// and checked further; the problems so far are handed over with the places taken out.
    pub(crate) fn check_shape(&mut self) -> Found {
        let unexpanded = self.unusable.clone();
        for (place, fault) in shape::faults(&self.root) {
            if !unexpanded.contains(&place) {
                self.report(place, fault);
            }
        }
        let removed: Vec<_> = self.unusable.iter().map(unit_of).collect();
        for place in &removed {
            self.replace(place, Value::Null);
        }
        Found { problems: std::mem::take(&mut self.problems), removed }
    }

    /// The values with every scenario complete: what it leaves out is taken from the top of the profile,
    /// and a profile without scenarios gets its one. Keys without a value are gone.
    pub(crate) fn inherit(&self) -> Value {
        let mut root = self.root.clone();
        drop_nulls(&mut root);
        let defaults: Map<_, _> = schema::inherited()
            .filter_map(|key| Some((key.to_owned(), root.get(key)?.clone())))
            .collect();
        let written =
            self.root.get("scenarios").and_then(Value::as_array).cloned().unwrap_or_default();
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
}

/// What was found wrong with the shape of a draft.
#[derive(Debug)]
pub(crate) struct Found {
    problems: Vec<Problem>,
    removed: Vec<ConfigPath>,
}

impl Found {
    /// Adds a problem, unless it only says that something is missing that was taken out as wrong.
    pub(crate) fn add(&mut self, problem: Problem) {
        if !self.removed.iter().any(|removed| concerns(&problem.place, removed)) {
            self.problems.push(problem);
        }
    }

    /// Everything that was found.
    pub(crate) fn into_problems(self) -> Problems {
        self.problems.into_iter().collect()
    }
}

/// Is `place` inside of `removed`, or inherited from there?
fn concerns(place: &ConfigPath, removed: &ConfigPath) -> bool {
    let inherited = match place.steps() {
        [Step::Key(list), Step::Index(_), Step::Key(key), ..] if list == "scenarios" => {
            Some(ConfigPath::top().key(key))
        }
        _ => None,
    };
    place.is_within(removed) || inherited.as_ref() == Some(removed)
}

/// The key of the profile or of a scenario that `place` lies in: what can be left out as a whole.
fn unit_of(place: &ConfigPath) -> ConfigPath {
    match place.steps() {
        [Step::Key(list), Step::Index(index)] if list == "scenarios" => {
            ConfigPath::top().key(list).index(*index)
        }
        [Step::Key(list), Step::Index(index), Step::Key(key), ..] if list == "scenarios" => {
            ConfigPath::top().key(list).index(*index).key(key)
        }
        [Step::Key(key), ..] => ConfigPath::top().key(key),
        _ => ConfigPath::top().key(""),
    }
}

fn overlay(defaults: &Map<String, Value>, scenario: Value) -> Value {
    let Value::Object(own) = scenario else { return Value::Object(defaults.clone()) };
    let mut all = defaults.clone();
    all.extend(own);
    let mut all = Value::Object(all);
    drop_nulls(&mut all);
    all
}

/// Takes out keys without a value; inside `parameters`, which is the target's business, `null` stays.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, member| !member.is_null());
            map.iter_mut()
                .filter(|(key, _)| *key != "parameters")
                .for_each(|(_, member)| drop_nulls(member));
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

fn collect_dollars(value: &Value, place: &ConfigPath, texts: &mut Vec<(ConfigPath, String)>) {
    match value {
        Value::String(text) if text.contains('$') => texts.push((place.clone(), text.clone())),
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, item)| collect_dollars(item, &place.index(index), texts));
        }
        Value::Object(map) => {
            map.iter().for_each(|(key, member)| collect_dollars(member, &place.key(key), texts));
        }
        _ => {}
    }
}

/// Reads a text from outside the file: as it is where the schema wants a text, else as YAML.
fn read_text(place: &ConfigPath, text: &str) -> Value {
    let forms = schema::at(place);
    let literal = || Value::String(text.to_owned());
    let allows = |kind| forms.iter().any(|form| form.allows(kind));
    let others = [Kind::Truth, Kind::Fraction, Kind::Whole, Kind::List, Kind::Mapping];
    if allows(Kind::Text) && !others.into_iter().any(allows) {
        return literal();
    }
    tree::scalar(text)
        .filter(|value| forms.is_empty() || allows(Kind::of(value)) || !allows(Kind::Text))
        .unwrap_or_else(literal)
}

/// Finds the place that a path like `scenarios.simple.weight` or `scenarios[0].weight` means.
fn locate(root: &Value, path: &str) -> Result<ConfigPath, (ConfigPath, Fault)> {
    let path = path.replace('[', ".").replace(']', "");
    let mut place = ConfigPath::top();
    for name in path.split('.') {
        if name.is_empty() {
            let fault = Fault::new(
                "has an empty step in its path",
                "write a path like `scenarios.0.weight`",
            );
            return Err((place, fault));
        }
        place = match place.find(root) {
            Some(Value::Array(items)) => {
                let index = item_called(items, name).map_err(|fault| (place.clone(), fault))?;
                place.index(index)
            }
            _ if place == ConfigPath::top().key("headers") => header_place(&place, root, name),
            _ => place.key(name),
        };
    }
    Ok(place)
}

fn item_called(items: &[Value], name: &str) -> Result<usize, Fault> {
    let by_number = name.parse().ok().filter(|&index: &usize| index < items.len());
    let by_name = || items.iter().position(|item| item.get("name").is_some_and(|own| own == name));
    by_number.or_else(by_name).ok_or_else(|| {
        let names: Vec<_> = items.iter().filter_map(|item| item.get("name")?.as_str()).collect();
        let mend = match items.len() {
            0 => "it is empty: write it in the profile".to_owned(),
            _ if names.is_empty() => format!("write a number from 0 to {}", items.len() - 1),
            count => {
                format!("write a number from 0 to {}, or {}", count - 1, suggest::one_of(&names))
            }
        };
        Fault::new(format!("has no item `{name}`"), mend)
    })
}

/// The place of a header, whose name may be written there in other letters.
fn header_place(headers: &ConfigPath, root: &Value, name: &str) -> ConfigPath {
    let map = headers.find(root).and_then(Value::as_object);
    let same = map.and_then(|map| map.keys().find(|key| key.eq_ignore_ascii_case(name)));
    headers.key(same.map_or(name, String::as_str))
}

/// Puts a value at a place, and makes the mappings on the way there.
fn insert(root: &mut Value, steps: &[Step], value: Value) -> Result<(), Fault> {
    let inside =
        |kind: Kind| Fault::new(format!("lies inside of {}", kind.name()), "set the whole value");
    let Some((step, rest)) = steps.split_first() else {
        *root = value;
        return Ok(());
    };
    if root.is_null() {
        *root = Value::Object(Map::new());
    }
    let kind = Kind::of(root);
    match (step, root) {
        (Step::Key(key), Value::Object(map)) => {
            insert(map.entry(key.as_str()).or_insert(Value::Null), rest, value)
        }
        (Step::Index(index), Value::Array(items)) => items
            .get_mut(*index)
            .map_or_else(|| Err(inside(kind)), |item| insert(item, rest, value)),
        _ => Err(inside(kind)),
    }
}
