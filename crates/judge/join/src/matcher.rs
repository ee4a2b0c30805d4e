//! Matches the rows of a log with the requests of a run, one by one. The values of a row are stored
//! in its request; rows without a request are only counted.

use plimsoll_measure::{CacheState, PolicyDecision};
use plimsoll_workload::marked_id;

use crate::cell::{Cell, Cells, Read};
use crate::error::quoted;
use crate::map::{FIELDS, Field, LogOf, Map};
use crate::run::{Fate, IdHash, LogValues, Progress, Request, Run};
use crate::time::Unit;
use crate::times::{Disagreement, Examples, MatchCounts};

/// Number of example ids kept of each kind.
const EXAMPLES: usize = 5;

/// Attempt of a row without an attempt number.
const FIRST: u32 = 1;

/// State of a join while the log is read.
pub(crate) struct Joiner<'r, 'p> {
    pub(crate) run: &'r mut Run,
    pub(crate) map: &'r Map,
    progress: Progress<'p>,
    pub(crate) quality: Quality,
    pub(crate) books: MatchCounts,
    pub(crate) disagreements: Vec<Disagreement>,
    pub(crate) examples: Examples,
    /// First and last time of the log.
    pub(crate) span: Option<(i64, i64)>,
    /// An unreadable line, for the error message.
    pub(crate) unreadable: Option<String>,
    pub(crate) without_id: u64,
}

impl<'r, 'p> Joiner<'r, 'p> {
    pub(crate) fn new(run: &'r mut Run, map: &'r Map, progress: Progress<'p>) -> Self {
        Self {
            run,
            map,
            progress,
            quality: Quality::default(),
            books: MatchCounts::default(),
            disagreements: Vec::new(),
            examples: Examples::default(),
            span: None,
            unreadable: None,
            without_id: 0,
        }
    }

    /// Counts a line that is not a valid row.
    pub(crate) fn add_unreadable(&mut self, why: &str) {
        self.books.unreadable += 1;
        self.unreadable.get_or_insert_with(|| quoted(why));
    }

    /// Adds a row.
    pub(crate) fn add(&mut self, cells: &Cells) {
        self.books.in_log += 1;
        self.progress.log(self.books.in_log);
        let row = LogRow::read(cells, self.map, &mut self.quality);
        if let Some(at) = row.at {
            let (first, last) = self.span.unwrap_or((at, at));
            self.span = Some((first.min(at), last.max(at)));
        }
        let index = row.ids().find_map(|id| self.run.table.get(&id).copied());
        let Some(index) = index.and_then(|index| usize::try_from(index).ok()) else {
            self.foreign(&row);
            return;
        };
        let Some(request) = self.run.requests.get_mut(index) else { return };
        request.rows = request.rows.saturating_add(1);
        let attempt = row.attempt.unwrap_or(FIRST);
        let again = request.rows > 1;
        // A row with another attempt number is a retry by the gateway; the last attempt counts.
        if again && row.attempt.is_some() && attempt != request.attempt {
            request.retried = true;
        }
        if again && attempt <= request.attempt {
            return;
        }
        request.attempt = attempt;
        request.log_at = row.at;
        request.log_total = row.total;
        request.log_upstream = row.upstream;
        request.log = LogValues {
            status: row.status,
            prompt: row.prompt,
            completion: row.completion,
            stream: row.stream,
            decision: row.decision.and_then(decision_of),
            cache: row.cache,
        };
    }

    fn foreign(&mut self, row: &LogRow<'_>) {
        self.books.foreign += 1;
        self.without_id += u64::from(row.id.is_none() && row.carried.is_none());
        if let Some(id) = row.id
            && self.examples.foreign.len() < EXAMPLES
        {
            self.examples.foreign.push(quoted(id));
        }
    }

    /// Computes the counts that are final only at the end of the log.
    pub(crate) fn close(&mut self) {
        let Self { run, books, examples, disagreements, map, .. } = self;
        books.in_run = run.requests.len() as u64;
        for (index, request) in run.requests.iter().enumerate() {
            if request.rows == 0 {
                missing(request, map.log_of, books, || {
                    if examples.lost.len() < EXAMPLES {
                        examples.lost.push(quoted(run.id(index)));
                    }
                });
                continue;
            }
            books.matched += 1;
            let found = differences(request, map.log_of);
            books.disagreeing += u64::from(!found.is_empty());
            for difference in found {
                note(disagreements, difference, || quoted(run.id(index)));
            }
            books.never_sent_in_log += u64::from(request.fate == Fate::NeverSent);
            if request.rows > 1 {
                books.rows_twice += u64::from(request.rows) - 1;
                let count = if request.retried { &mut books.retried } else { &mut books.twice };
                *count += 1;
                if !request.retried && examples.twice.len() < EXAMPLES {
                    examples.twice.push(quoted(run.id(index)));
                }
            }
        }
    }
}

/// Counts a request without a row in the log.
fn missing(request: &Request, log_of: LogOf, books: &mut MatchCounts, lost: impl FnOnce()) {
    match request.fate {
        Fate::NeverSent => {}
        Fate::InFlight => books.in_flight += 1,
        Fate::Unanswered => books.unanswered += 1,
        Fate::Answered if log_of == LogOf::Upstream && request.kept => books.kept += 1,
        Fate::Answered if !request.named => books.unnamed += 1,
        Fate::Answered => {
            books.lost += 1;
            lost();
        }
    }
}

/// A value that differs between run and log.
struct Found {
    field: String,
    run: String,
    log: String,
}

fn found(field: &str, run: &impl ToString, log: &impl ToString) -> Found {
    Found { field: field.to_owned(), run: run.to_string(), log: log.to_string() }
}

/// Counts a difference, and keeps the first few as examples.
fn note(all: &mut Vec<Disagreement>, found: Found, id: impl FnOnce() -> String) {
    let Found { field, run, log } = found;
    let known = all.iter().position(|known| known.field == field);
    let index = known.unwrap_or_else(|| {
        all.push(Disagreement { field, count: 0, examples: Vec::new() });
        all.len() - 1
    });
    let Some(entry) = all.get_mut(index) else { return };
    entry.count += 1;
    if entry.examples.len() < EXAMPLES {
        entry.examples.push(format!("{}: the run {run}, the log {log}", id()));
    }
}

/// Values that differ between run and log. Tokens are compared only if the target itself reported
/// them to the client and the answer is complete; decisions only with the target's own log.
fn differences(request: &Request, log_of: LogOf) -> Vec<Found> {
    let (log, mut all) = (&request.log, Vec::new());
    let status = (request.status > 0).then_some(u32::from(request.status));
    let [input, output] =
        [request.prompt, request.completion].map(|count| count.filter(|_| request.completed));
    for (field, run, log) in [
        ("status", status, log.status),
        ("input tokens", input, log.prompt),
        ("output tokens", output, log.completion),
    ] {
        if let Some((run, log)) = run.zip(log).filter(|(run, log)| run != log) {
            all.push(found(field, &run, &log));
        }
    }
    if let Some(log) = log.stream.filter(|log| *log != request.stream) {
        let [run, log] =
            [request.stream, log].map(|stream| if stream { "a stream" } else { "no stream" });
        all.push(found("stream", &run, &log));
    }
    let decision = log.decision.filter(|_| log_of == LogOf::Gateway);
    if let Some((run, log)) = request.decision.zip(decision).filter(|(run, log)| run != log) {
        all.push(found("decision", &run.name(), &log.name()));
    }
    all
}

/// Parses a decision; unknown names are ignored.
fn decision_of(name: &str) -> Option<PolicyDecision> {
    let name = name.to_ascii_lowercase();
    PolicyDecision::ALL.into_iter().find(|decision| decision.name() == name)
}

// A row of a log, parsed according to the map.

/// Unreadable values of a field.
#[derive(Clone, Debug, Default)]
pub(crate) struct BadValues {
    pub(crate) rows: u64,
    pub(crate) example: String,
}

/// Values that could not be read, and where times end, by field.
#[derive(Debug, Default)]
pub(crate) struct Quality {
    pub(crate) bad: [BadValues; FIELDS],
    /// Rows with a value.
    pub(crate) filled: [u64; FIELDS],
    /// Resolution of the log's durations in nanoseconds.
    pub(crate) length_step: Option<i64>,
    /// Resolution of its upstream times in nanoseconds.
    pub(crate) upstream_step: Option<i64>,
}

/// A row of a log.
#[derive(Debug)]
pub(crate) struct LogRow<'a> {
    pub(crate) id: Option<&'a str>,
    /// Request id found in the prompt.
    pub(crate) carried: Option<String>,
    pub(crate) at: Option<i64>,
    pub(crate) total: Option<i64>,
    pub(crate) upstream: Option<i64>,
    pub(crate) status: Option<u32>,
    pub(crate) stream: Option<bool>,
    pub(crate) prompt: Option<u32>,
    pub(crate) completion: Option<u32>,
    pub(crate) decision: Option<&'a str>,
    pub(crate) cache: Option<CacheState>,
    pub(crate) attempt: Option<u32>,
}

impl<'a> LogRow<'a> {
    pub(crate) fn read(cells: &'a Cells, map: &Map, quality: &mut Quality) -> Self {
        let cell = |field: Field| &cells[field as usize];
        let mut take = |field, read: fn(&Cell, Unit) -> Read<i64>| {
            let unit = map.unit(field).unwrap_or(Unit::Ns);
            quality.note(field, cell(field), read(cell(field), unit))
        };
        let (mut at, ended) = (take(Field::At, Cell::nanos), take(Field::Ended, Cell::nanos));
        let mut total = take(Field::Total, Cell::nanos);
        let upstream = take(Field::Upstream, Cell::sum_of_nanos);
        // Any two of start, duration and end determine the third.
        match (at, total, ended) {
            (Some(at), None, Some(ended)) => total = Some(ended.saturating_sub(at)),
            (None, Some(total), Some(ended)) => at = Some(ended.saturating_sub(total)),
            _ => {}
        }
        let step = |field| map.unit(field).and_then(|unit| cell(field).step(unit));
        smallest(&mut quality.length_step, step(Field::Total).or_else(|| step(Field::Ended)));
        smallest(&mut quality.upstream_step, step(Field::Upstream));
        let mut count = |field| quality.note(field, cell(field), cell(field).count());
        let (status, attempt) = (count(Field::Status), count(Field::Attempt));
        let (prompt, completion) = (count(Field::Prompt), count(Field::Completion));
        let messages = count(Field::Messages);
        let stream = quality.note(Field::Stream, cell(Field::Stream), cell(Field::Stream).flag());
        let cache = quality.note(Field::Cache, cell(Field::Cache), cell(Field::Cache).cache());
        Self {
            id: cell(Field::Id).text(),
            carried: cell(Field::Text).text().and_then(|text| carried(text, messages)),
            at,
            total,
            upstream,
            status: status.filter(|status| *status > 0),
            stream,
            prompt,
            completion,
            decision: cell(Field::Decision).text(),
            cache,
            attempt,
        }
    }

    /// Candidates for the request's id, the id sent in the header first.
    pub(crate) fn ids(&self) -> impl Iterator<Item = IdHash> {
        let sent = self.id.map(IdHash::of);
        sent.into_iter().chain(self.carried.as_deref().map(IdHash::of))
    }
}

impl Quality {
    /// Uncertainty of the difference between a duration and an upstream time, from their
    /// resolutions.
    pub(crate) fn steps(&self) -> i64 {
        self.length_step.unwrap_or(0).saturating_add(self.upstream_step.unwrap_or(0))
    }

    fn note<T>(&mut self, field: Field, cell: &Cell, read: Read<T>) -> Option<T> {
        self.filled[field as usize] += u64::from(cell.0.is_some());
        read.unwrap_or_else(|_| {
            let bad = &mut self.bad[field as usize];
            bad.rows += 1;
            if bad.example.is_empty() {
                bad.example = quoted(cell.text().unwrap_or_default());
            }
            None
        })
    }
}

fn smallest(known: &mut Option<i64>, step: Option<i64>) {
    if let Some(step) = step {
        *known = Some(known.map_or(step, |known| known.min(step)));
    }
}

/// Derives the short id of a request from its prompt. The prompt's marker encodes the beginning of
/// the conversation's id, and turn `n` of a conversation has `2 n + 1` messages, or one more with a
/// system prompt.
fn carried(text: &str, messages: Option<u32>) -> Option<String> {
    let turn = messages.unwrap_or(1).saturating_sub(1) / 2;
    marked_id(text).map(|id| format!("{id}-{turn}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_carries_the_conversation_and_its_length_the_turn() {
        // Words 0, 1, 2, 3 and 4 of the vocabulary.
        let text = "the and for are but --- hello";
        for (messages, turn) in [(None, 0), (Some(1), 0), (Some(2), 0), (Some(3), 1), (Some(6), 2)]
        {
            assert_eq!(carried(text, messages), Some(format!("00010203-04-{turn}")));
        }
        let shared = "tug won sip saw vet --- shared the and for are but --- hello";
        assert_eq!(carried(shared, None), Some("00010203-04-0".to_owned()));
        assert_eq!(carried("hello", Some(1)), None);
        assert_eq!(carried("for are but --- hello", Some(1)), None);
        assert_eq!(carried("a markdown text of words --- hello", Some(1)), None);
    }
}
