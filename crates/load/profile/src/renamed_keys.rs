//! Keys of the profile that have been renamed. Their old names go on working, with a note.

use serde_json::Value;

use crate::error::{Fault, ValueSource};
use crate::path::{ConfigPath, Step};

/// The position of a renamed key in a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// In a scenario, or at the top of the profile as the default of all scenarios.
    Scenario,
    /// As the scope of a metric in `thresholds` or `bands`: `ttft{OLD:NAME}`.
    MetricScope,
}

/// A key that has a new name.
#[derive(Debug)]
struct RenamedKey {
    position: Position,
    old: &'static str,
    new: &'static str,
}

/// All renamed keys. The old names are those of version 0.1.0.
const RENAMED: [RenamedKey; 2] = [
    RenamedKey { position: Position::Scenario, old: "verdict", new: "policy_decision" },
    RenamedKey { position: Position::MetricScope, old: "lane", new: "target" },
];

impl RenamedKey {
    /// The key by its new name, and whether `key` is its old one; `None` if `key` is neither.
    fn translate(&self, key: &str) -> Option<(String, bool)> {
        let (name, renamed) = match self.position {
            Position::Scenario => (key, self.new.to_owned()),
            Position::MetricScope => {
                let (metric, tag) = key.split_once('{')?;
                let (scope, value) = tag.split_once(':')?;
                (scope.trim(), format!("{metric}{{{}:{value}", self.new))
            }
        };
        if name == self.old {
            return Some((renamed, true));
        }
        (name == self.new).then(|| (key.to_owned(), false))
    }

    fn display(&self, name: &str) -> String {
        match self.position {
            Position::Scenario => format!("`{name}`"),
            Position::MetricScope => format!("`{{{name}:NAME}}`"),
        }
    }

    fn note(&self, source: &ValueSource) -> String {
        let [old, new] = [self.old, self.new].map(|name| self.display(name));
        format!("{source}: {old} is now called {new}")
    }

    fn fault(&self) -> Fault {
        let [old, new] = [self.old, self.new].map(|name| self.display(name));
        Fault::new(
            format!("is given twice, as {new} and by its old name {old}"),
            format!("keep {new}"),
        )
    }
}

/// A renamed key as somebody has written it, by its old or its new name.
#[derive(Debug)]
pub(crate) struct Spelling {
    renamed: &'static RenamedKey,
    parent: ConfigPath,
    key: String,
    is_old: bool,
}

impl Spelling {
    /// The path of the key by its new name.
    pub(crate) fn path(&self) -> ConfigPath {
        self.parent.key(&self.key)
    }
}

/// Recognises a renamed key in the mapping at `parent`; `None` for every other key.
pub(crate) fn spelling(parent: &ConfigPath, key: &str) -> Option<Spelling> {
    let position = match parent.steps() {
        [] => Position::Scenario,
        [Step::Key(list), Step::Index(_)] if list == "scenarios" => Position::Scenario,
        [Step::Key(bounds)] if bounds == "thresholds" || bounds == "bands" => Position::MetricScope,
        _ => return None,
    };
    RENAMED.iter().filter(|renamed| renamed.position == position).find_map(|renamed| {
        let (key, is_old) = renamed.translate(key)?;
        Some(Spelling { renamed, parent: parent.clone(), key, is_old })
    })
}

/// The renamed keys in the layers of a profile: the file, the environment and the flags.
#[derive(Debug, Default)]
pub(crate) struct RenamedKeyLog {
    written: Vec<(ConfigPath, ValueSource, bool)>,
    notes: Vec<String>,
}

impl RenamedKeyLog {
    /// Records a key.
    ///
    /// # Errors
    /// One layer has the key by its old and by its new name.
    pub(crate) fn record(
        &mut self,
        spelling: &Spelling,
        source: &ValueSource,
    ) -> Result<(), Fault> {
        let path = spelling.path();
        let conflicts = |(other, layer, is_old): &(ConfigPath, ValueSource, bool)| {
            *other == path && layer.same_layer(source) && *is_old != spelling.is_old
        };
        if self.written.iter().any(conflicts) {
            return Err(spelling.renamed.fault());
        }
        self.written.push((path, source.clone(), spelling.is_old));
        let note = spelling.is_old.then(|| spelling.renamed.note(source));
        self.notes.extend(note.filter(|note| !self.notes.contains(note)));
        Ok(())
    }

    /// Gives old keys in the values of a file their new names. Returns the keys that are there by
    /// both names.
    pub(crate) fn rename_in(
        &mut self,
        root: &mut Value,
        file: &ValueSource,
    ) -> Vec<(ConfigPath, Fault)> {
        let mut faults = Vec::new();
        for parent in parents(root) {
            let Some(Value::Object(map)) = parent.find_mut(root) else { continue };
            let found: Vec<_> =
                map.keys().filter_map(|key| Some((key.clone(), spelling(&parent, key)?))).collect();
            for (key, spelling) in found {
                let result = self.record(&spelling, file);
                let value = map.remove(&key).filter(|_| result.is_ok() || !spelling.is_old);
                map.extend(value.map(|value| (spelling.key.clone(), value)));
                faults.extend(result.err().map(|fault| (spelling.path(), fault)));
            }
        }
        faults
    }

    /// One note for each old name in each source, like ``p.yaml: `verdict` is now called ...``.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// The mappings in which renamed keys can stand.
fn parents(root: &Value) -> Vec<ConfigPath> {
    let top = ConfigPath::root();
    let scenarios = root.get("scenarios").and_then(Value::as_array).map_or(0, Vec::len);
    let scenarios = (0..scenarios).map(|index| top.key("scenarios").index(index));
    [top.clone(), top.key("thresholds"), top.key("bands")].into_iter().chain(scenarios).collect()
}
