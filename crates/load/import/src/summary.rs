//! Counts of an import.

use std::collections::BTreeMap;

/// What was imported, and what was left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Name and title of the format.
    pub format: String,
    /// Why the file is of this format.
    pub why: String,
    /// Other formats that fit as well.
    pub also: Vec<&'static str>,
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
    /// Hosts of the URLs, with their counts.
    pub hosts: BTreeMap<String, u64>,
    /// Members and rows that are not used, with reason and count.
    pub unused: BTreeMap<String, u64>,
    /// Rows that were skipped as broken.
    pub skipped: u64,
    /// The first of them.
    pub skipped_first: Vec<String>,
}

/// Tokens of all requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// As the file states them.
    pub stated: u64,
    /// Four bytes of text for each, where the file states none.
    pub estimated: u64,
    /// Requests of which neither is known.
    pub unknown: u64,
}

impl Tokens {
    pub(crate) fn add(&mut self, stated: Option<u64>, bytes: Option<usize>) {
        match (stated, bytes) {
            (Some(stated), _) => self.stated += stated,
            (None, Some(bytes)) => self.estimated += (bytes as u64).div_ceil(4),
            (None, None) => self.unknown += 1,
        }
    }
}
