//! The command-line flags that override a profile.

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
    #[must_use]
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
