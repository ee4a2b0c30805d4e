//! The lines of a file in which its keys stand, for error messages.

use std::collections::BTreeMap;

use crate::path::ConfigPath;

/// The lines of the keys of a file, from 1. Empty for JSON, whose reader does not tell them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines(BTreeMap<ConfigPath, u64>);

impl Lines {
    /// Notes the line of a key.
    pub(crate) fn note(&mut self, path: ConfigPath, line: u64) {
        self.0.insert(path, line);
    }

    /// The line of the value at a path: of its key, else of the first key inside it, else of what
    /// contains it. `None` for a key that is missing at the top.
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
