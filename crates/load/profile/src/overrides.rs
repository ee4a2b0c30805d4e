//! The command-line flags that override a profile.

/// Overrides from the command line, each as it was typed.
#[derive(Clone, Default)]
pub struct Overrides {
    /// Flags that set one key each; a later one wins.
    pub keys: Vec<KeyFlag>,
    /// `--header 'NAME: VALUE'`, added to those of the profile, or replacing one of the same name.
    pub headers: Vec<String>,
    /// `--set PATH=VALUE`, for every key: `--set scenarios.simple.weight=3`. They win over `keys`.
    pub sets: Vec<String>,
    /// `--run-id ID`: the id of the run, from which the ids of its requests follow. Left out: a
    /// random one.
    pub run_id: Option<String>,
    /// `--shard K/N`: the part of the run that this process runs, from 0.
    pub shard: Option<String>,
}

/// A flag that sets a key of the profile.
#[derive(Clone)]
pub struct KeyFlag {
    /// Its name without dashes, for messages.
    pub flag: String,
    /// The path of the key.
    pub key: String,
    /// The value, as it was typed.
    pub text: String,
}

impl Overrides {
    /// The same with a flag that sets a key.
    #[must_use]
    pub fn with(mut self, flag: &str, key: &str, text: impl Into<String>) -> Self {
        let (flag, key) = (flag.to_owned(), key.to_owned());
        self.keys.push(KeyFlag { flag, key, text: text.into() });
        self
    }

    /// What a flag sets a key to.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.keys.iter().rev().find(|own| own.key == key).map(|own| own.text.as_str())
    }
}
