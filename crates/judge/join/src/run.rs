//! The requests of a run, in about 240 bytes each including their id and its table entry.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};

use plimsoll_measure::{CacheState, Nanos, Outcome, PolicyDecision, TokenSource};
use plimsoll_run_files::{
    BoundedLines, ParsedRow, changed_since, find_rows, open_rows, parse_row, row_time,
};
use serde::Deserialize;

use crate::error::{JoinError, quoted, unreadable};

/// Share of duplicated id headers above which the header is not an id. A cache may repeat a
/// response with its headers.
const SHARED: f64 = 0.01;

/// Name of the total time that a target reports (`server_time_ms` of its row).
const SERVER_TIME: &str = "server_time";

/// Values of a log's row that the run knows too.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LogValues {
    pub(crate) status: Option<u32>,
    pub(crate) prompt: Option<u32>,
    pub(crate) completion: Option<u32>,
    pub(crate) stream: Option<bool>,
    pub(crate) decision: Option<PolicyDecision>,
    pub(crate) cache: Option<CacheState>,
}

/// A time that the target reports in the response headers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerTiming {
    pub(crate) request: u32,
    /// Index of its name in [`Run::stated_names`].
    pub(crate) name: u16,
    pub(crate) nanos: i64,
}

/// How far a request came, as seen by a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Answered, so the log must have it.
    Answered,
    /// Sent without an answer; it may not have arrived.
    Unanswered,
    /// In flight when the run ended.
    InFlight,
    /// Never sent.
    NeverSent,
}

/// A request of the run, and its values in the log.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Time of sending by the run's clock, in nanoseconds since 1970.
    pub(crate) sent: i64,
    /// Time from sent to finished, in nanoseconds.
    pub(crate) service: Option<i64>,
    /// Time from sent to the first byte, in nanoseconds.
    pub(crate) ttfb: Option<i64>,
    pub(crate) prompt: Option<u32>,
    pub(crate) completion: Option<u32>,
    pub(crate) status: u16,
    /// Index of its scenario and outcome.
    pub(crate) group: u16,
    pub(crate) stage: u16,
    pub(crate) fate: Fate,
    pub(crate) decision: Option<PolicyDecision>,
    /// Cache state in the response headers.
    pub(crate) cache: Option<CacheState>,
    pub(crate) completed: bool,
    pub(crate) stream: bool,
    pub(crate) warmup: bool,
    /// Whether the client or the gateway retried it.
    pub(crate) retried: bool,
    /// Whether the target answered it without the upstream: from its cache, or by rejecting it.
    pub(crate) kept: bool,
    /// Whether the response has the requested id header with a unique value.
    pub(crate) named: bool,
    /// Rows of the log with its id.
    pub(crate) rows: u32,
    /// Attempt of the log's values.
    pub(crate) attempt: u32,
    pub(crate) log_at: Option<i64>,
    pub(crate) log_total: Option<i64>,
    pub(crate) log_upstream: Option<i64>,
    /// Other values in the log, of the same attempt.
    pub(crate) log: LogValues,
    /// Offset of its id in `Run::ids`.
    id: usize,
}

const _: () = assert!(size_of::<Request>() <= 200, "a million of them take 200 MB");

/// A scenario and an outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupName {
    pub(crate) scenario: String,
    pub(crate) outcome: &'static str,
}

/// The requests of a run.
#[derive(Debug, Default)]
pub(crate) struct Run {
    pub(crate) requests: Vec<Request>,
    ids: String,
    pub(crate) table: IdTable,
    pub(crate) groups: Vec<GroupName>,
    /// Names of its stages.
    pub(crate) stages: Vec<String>,
    targets: Vec<String>,
    /// Whether rows represent more than one request each.
    pub(crate) sampled: bool,
    /// Whether the last row is truncated because the run was killed.
    pub(crate) cut: bool,
    /// Requests without the requested id header.
    pub(crate) without_header: u64,
    /// Requests whose id header repeats an earlier value.
    pub(crate) shared_header: u64,
    /// Times reported by targets, in the order of the requests.
    pub(crate) stated: Vec<ServerTiming>,
    /// Names of the reported times.
    pub(crate) stated_names: Vec<String>,
    /// Names of recorded headers, from the first request that has any.
    pub(crate) recorded: Vec<String>,
}

/// Selects the requests of a run, and their id in the log.
#[derive(Clone, Debug, Default)]
pub struct RunChoice {
    /// The target whose log it is, if the run has several.
    pub target: Option<String>,
    /// A recorded response header with the log's id, for gateways that generate their own ids.
    pub id_header: Option<String>,
}

/// Length of a conversation's id.
const FULL_ID: usize = 36;
/// Length of its beginning, which a prompt's marker encodes.
const SHORT_ID: usize = 11;

impl Run {
    /// Reads a folder's `results.jsonl`, plain or compressed with zstd or gzip.
    pub(crate) fn read(
        folder: &Path,
        choice: &RunChoice,
        progress: &mut Progress<'_>,
    ) -> Result<Self, JoinError> {
        let path = rows_of(folder)?;
        if let Some(how) = changed_since(&path) {
            let path = path.display();
            return Err(JoinError::Unjudged(format!("{path} {how}: copy the run's folder again")));
        }
        let file = open_rows(&path).map_err(|error| unreadable(&path, &error))?;
        let mut lines = BoundedLines::new(file);
        let mut run = Self::default();
        let mut next = lines.next();
        let mut number = 0;
        while let Some(line) = next {
            next = lines.next();
            number += 1;
            match parse_row(&line) {
                _ if line.trim_ascii().is_empty() => {}
                Ok(row) => run.add(&row, choice)?,
                // A killed run leaves a truncated line.
                Err(_) if next.is_none() => run.cut = true,
                Err(error) => {
                    return Err(JoinError::Usage(format!(
                        "line {number} of {} is not a row of a run: {error}",
                        path.display()
                    )));
                }
            }
            progress.run(number);
        }
        if let Some(error) = lines.failure() {
            return Err(unreadable(&path, error));
        }
        lines.check().map_err(|error| JoinError::Usage(format!("{}: {error}", path.display())))?;
        run.check(&path, choice)?;
        Ok(run)
    }

    fn check(&self, path: &Path, choice: &RunChoice) -> Result<(), JoinError> {
        let path = path.display();
        let names: Vec<_> = self.targets.iter().map(|name| quoted(name)).collect();
        let names = names.join(", ");
        match &choice.target {
            None if self.targets.len() > 1 => Err(JoinError::Usage(format!(
                "the run has the targets {names}: choose the log's target with --target"
            ))),
            Some(name) if !self.targets.contains(name) => {
                Err(JoinError::Usage(format!("the run has no target `{name}`; it has {names}")))
            }
            _ if self.requests.is_empty() => {
                Err(JoinError::Unjudged(format!("{path} has no requests to match")))
            }
            _ => self.check_header(choice),
        }
    }

    fn check_header(&self, choice: &RunChoice) -> Result<(), JoinError> {
        let Some(header) = &choice.id_header else { return Ok(()) };
        let with = self.requests.len() as u64 - self.without_header;
        if self.shared_header as f64 > with as f64 * SHARED {
            return Err(JoinError::Usage(format!(
                "the header `{header}` is not a request id: {} of {with} responses repeat an earlier value",
                self.shared_header
            )));
        }
        if with > 0 {
            return Ok(());
        }
        let recorded = if self.recorded.is_empty() {
            "none".to_owned()
        } else {
            self.recorded.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")
        };
        Err(JoinError::Usage(format!(
            "no response of the run has the header `{header}` (recorded: {recorded}): name it in the \
             profile, `response_headers: {{record: [{header}]}}`, and run again"
        )))
    }

    fn add(&mut self, row: &ParsedRow, choice: &RunChoice) -> Result<(), JoinError> {
        let target = usize::from(position(&mut self.targets, &row.target)?);
        let name = self.targets.get(target);
        if choice.target.is_some() && choice.target.as_ref() != name {
            return Ok(());
        }
        if self.recorded.is_empty() {
            self.recorded = row.response_headers.keys().cloned().collect();
        }
        self.sampled |= row.weight > 1;
        let index = u32::try_from(self.requests.len())
            .map_err(|_| JoinError::usage("the run has more than 4 billion rows"))?;
        let mut request = self.request(row)?;
        let header = choice.id_header.as_ref().map(|name| {
            row.response_headers
                .iter()
                .find(|(key, _): &(&String, &String)| key.eq_ignore_ascii_case(name))
                .map(|(_, value)| value.trim())
        });
        self.without_header += u64::from(header == Some(None));
        request.named = header != Some(None);
        if let Some(id) = header.flatten() {
            match self.table.entry(IdHash::of(id)) {
                Entry::Vacant(free) => {
                    free.insert(index);
                }
                Entry::Occupied(_) => {
                    self.shared_header += 1;
                    request.named = false;
                }
            }
        }
        self.add_stated(row, index)?;
        self.requests.push(request);
        self.ids.push_str(&row.request_id);
        // The upstream may know the sent id, from the header, or its beginning, from the prompt.
        self.table.insert(IdHash::of(&row.request_id), index);
        if let Some((start, turn)) =
            row.request_id.get(..SHORT_ID).zip(row.request_id.get(FULL_ID..))
        {
            self.table.entry(IdHash::of(&format!("{start}{turn}"))).or_insert(index);
        }
        Ok(())
    }

    fn add_stated(&mut self, row: &ParsedRow, request: u32) -> Result<(), JoinError> {
        let whole = row.server_time_ms.map(|ms| (SERVER_TIME, ms));
        let parts = row.server_parts_ms.iter().map(|(name, ms): (&String, &f64)| (&**name, *ms));
        for (name, ms) in whole.into_iter().chain(parts) {
            let name = position(&mut self.stated_names, name)?;
            let nanos = i64::try_from(Nanos::from_secs_f64(ms / 1e3).as_u64()).unwrap_or(i64::MAX);
            self.stated.push(ServerTiming { request, name, nanos });
        }
        Ok(())
    }

    fn request(&mut self, row: &ParsedRow) -> Result<Request, JoinError> {
        let outcome = row.outcome().map_err(|error| JoinError::usage(error.to_string()))?;
        let intended = i64::try_from(row.intended_unix_ns).unwrap_or(i64::MAX);
        let fate = match outcome {
            Outcome::NeverSent => Fate::NeverSent,
            Outcome::InFlight => Fate::InFlight,
            _ if row.status > 0 => Fate::Answered,
            _ => Fate::Unanswered,
        };
        let refused = matches!(
            row.policy_decision,
            Some(PolicyDecision::Block | PolicyDecision::RateLimited)
        );
        let scenario = GroupName { scenario: row.scenario.clone(), outcome: outcome.name() };
        Ok(Request {
            sent: intended
                .saturating_add(row_time(row.dispatch_lag_ms).and_then(signed_nanos).unwrap_or(0)),
            service: row_time(row.service_time_ms).and_then(signed_nanos),
            ttfb: row_time(row.ttfb_ms).and_then(signed_nanos),
            prompt: reported(row.prompt_tokens, row.prompt_tokens_source),
            completion: reported(row.completion_tokens, row.completion_tokens_source),
            status: row.status,
            group: position(&mut self.groups, &scenario)?,
            stage: position(&mut self.stages, &row.stage)?,
            fate,
            decision: row.policy_decision,
            cache: row.cache,
            completed: outcome == Outcome::Completed,
            stream: row.stream,
            warmup: row.warmup,
            retried: row.retried_after_ms.is_some() || row.upstream_retries > 0,
            kept: row.cache == Some(CacheState::Hit)
                || refused
                || matches!(outcome, Outcome::Rejected(_)),
            named: true,
            rows: 0,
            attempt: 0,
            log_at: None,
            log_total: None,
            log_upstream: None,
            log: LogValues::default(),
            id: self.ids.len(),
        })
    }

    /// The id sent with a request.
    pub(crate) fn id(&self, index: usize) -> &str {
        let start = self.requests.get(index).map_or(0, |request| request.id);
        let end = self.requests.get(index + 1).map_or(self.ids.len(), |request| request.id);
        self.ids.get(start..end).unwrap_or_default()
    }

    /// The time at which the first request was sent, and the time at which the last one finished.
    pub(crate) fn span(&self) -> (i64, i64) {
        let sent = self.requests.iter().map(|request| request.sent);
        let over = self.requests.iter().map(|r| r.sent.saturating_add(r.service.unwrap_or(0)));
        (sent.min().unwrap_or(0), over.max().unwrap_or(0))
    }
}

fn signed_nanos(length: Nanos) -> Option<i64> {
    i64::try_from(length.as_u64()).ok()
}

/// Token count, if the provider reported it.
fn reported(count: u32, source: TokenSource) -> Option<u32> {
    (source == TokenSource::Reported).then_some(count)
}

/// Id of the run from its plan.json; `None` without such a file.
pub(crate) fn run_id(folder: &Path) -> Option<String> {
    #[derive(Deserialize)]
    struct Plan {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        run: Info,
    }
    #[derive(Deserialize)]
    struct Info {
        run_id: String,
    }
    let plan = plimsoll_input::read(&folder.join("plan.json")).ok()?;
    Some(serde_json::from_slice::<Plan>(&plan).ok()?.metadata.run.run_id)
}

/// Path of the file with the rows.
fn rows_of(folder: &Path) -> Result<PathBuf, JoinError> {
    find_rows(folder, "results.jsonl").ok_or_else(|| {
        let cause = if folder.join("plan.json").is_file() {
            "has no rows: repeat the run without --no-jsonl"
        } else {
            "is not a run folder: pass the path that `plimsoll run` printed after `files:`"
        };
        JoinError::Usage(format!("{} {cause}", folder.display()))
    })
}

/// The index of a name in a list, which grows if needed. The lists are short.
fn position<N: PartialEq<S>, S: ToOwned<Owned = N> + ?Sized>(
    names: &mut Vec<N>,
    name: &S,
) -> Result<u16, JoinError> {
    let known = names.iter().rposition(|known| known == name);
    let index = known.unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    });
    u16::try_from(index).map_err(|_| JoinError::usage("the run has more than 65,536 scenarios"))
}

// Ids hashed to 128 bits, so that a million of them need little memory.

/// 128-bit hash of an id. A collision within a run has a probability below 1e-26 (for a million
/// ids), unless somebody constructs one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct IdHash(u128);

impl IdHash {
    /// 128-bit FNV-1a.
    pub(crate) fn of(id: &str) -> Self {
        const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        Self(
            id.as_bytes().iter().fold(OFFSET, |hash: u128, byte: &u8| {
                (hash ^ u128::from(*byte)).wrapping_mul(PRIME)
            }),
        )
    }
}

/// Requests by the hash of their id.
pub(crate) type IdTable = HashMap<IdHash, u32>;

// Reports the progress of reading.

/// The file that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Rows of the run.
    Run,
    /// Rows of the log.
    Log,
}

/// Rows between two reports.
const EVERY: u64 = 20_000;

/// Reports the progress every 20,000 rows.
pub(crate) struct Progress<'a> {
    tell: &'a mut dyn FnMut(Reading, u64),
}

impl<'a> Progress<'a> {
    pub(crate) fn new(tell: &'a mut dyn FnMut(Reading, u64)) -> Self {
        Self { tell }
    }

    pub(crate) fn run(&mut self, rows: u64) {
        self.rows(Reading::Run, rows);
    }

    pub(crate) fn log(&mut self, rows: u64) {
        self.rows(Reading::Log, rows);
    }

    fn rows(&mut self, reading: Reading, rows: u64) {
        if rows.is_multiple_of(EVERY) {
            (self.tell)(reading, rows);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test vectors published with FNV-1a.
    #[test]
    fn ids_are_hashed_by_fnv_1a() {
        assert_eq!(IdHash::of("").0, 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(IdHash::of("a").0, 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }
}
