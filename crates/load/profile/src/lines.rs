//! Lines of the keys of a file, for error messages.

use std::collections::BTreeMap;

use crate::path::ConfigPath;

/// Lines of a file's keys, from 1. Empty for JSON, whose parser does not report them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines(BTreeMap<ConfigPath, u64>);

impl Lines {
    /// Records the line of a key.
    pub(crate) fn note(&mut self, path: ConfigPath, line: u64) {
        self.0.insert(path, line);
    }

    /// The line of the value at a path: of its key, or else of the first key inside it, or else of
    /// the enclosing value. `None` for a missing top-level key.
    pub(crate) fn find(&self, path: &ConfigPath) -> Option<u64> {
        if path.steps().is_empty() {
            return None;
        }
        self.0
            .get(path)
            .copied()
            .or_else(|| {
                let within = self.0.iter().filter(|(known, _)| known.is_within(path));
                within.map(|(_, line)| *line).min()
            })
            .or_else(|| {
                let around = self.0.iter().filter(|(known, _)| path.is_within(known));
                around.map(|(_, line)| *line).max()
            })
    }
}
