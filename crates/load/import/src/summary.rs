//! Counts of an import.

use std::collections::BTreeMap;

/// Counts of an import, and its unused members.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Name and title of the format.
    pub format: String,
    /// Why the file is of this format.
    pub why: String,
    /// Other formats that fit as well.
    pub also: Vec<&'static str>,
    /// The stages of a file that contains a load and no requests.
    pub stages: Option<String>,
    /// Sessions; a request without one counts as one.
    pub sessions: u64,
    /// Requests.
    pub requests: u64,
    /// The most requests of a session.
    pub most_turns: u64,
    /// Input tokens that the file states.
    pub in_tokens: Tokens,
    /// Output tokens that the file states.
    pub out_tokens: Tokens,
    /// Time from the first to the last request, if the file has times.
    pub span_ms: Option<f64>,
    /// Requests whose recorded status is 400 or higher.
    pub failed: u64,
    /// Members and rows that are not used, with reason and count.
    pub unused: BTreeMap<String, u64>,
    /// Rows that were skipped as broken.
    pub skipped: u64,
    /// The first of them.
    pub skipped_first: Vec<String>,
}

impl Summary {
    /// The unused members with their counts; empty if every member is used.
    pub fn unused_members(&self) -> String {
        let unused = self.unused.iter().map(|(name, count)| format!("{name} ({count})"));
        unused.collect::<Vec<_>>().join(", ")
    }
}

/// Tokens of all requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// The sum.
    pub stated: u64,
    /// Requests whose number is unknown.
    pub unknown: u64,
}

impl Tokens {
    pub(crate) fn add(&mut self, tokens: Option<u64>) {
        self.stated += tokens.unwrap_or(0);
        self.unknown += u64::from(tokens.is_none());
    }
}
