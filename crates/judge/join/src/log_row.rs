//! A row of a log, parsed according to the map.

use std::borrow::Cow;

use plimsoll_measure::CacheState;
use plimsoll_workload::marked_id;

use crate::cell::{Cell, Read};
use crate::id::IdHash;
use crate::json_row::Cells;
use crate::map::{FIELDS, Field, Map};
use crate::time::Unit;

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
    pub(crate) id: Option<Cow<'a, str>>,
    /// Request id found in the prompt.
    pub(crate) carried: Option<String>,
    pub(crate) at: Option<i64>,
    pub(crate) total: Option<i64>,
    pub(crate) upstream: Option<i64>,
    pub(crate) status: Option<u32>,
    pub(crate) stream: Option<bool>,
    pub(crate) prompt: Option<u32>,
    pub(crate) completion: Option<u32>,
    pub(crate) decision: Option<Cow<'a, str>>,
    pub(crate) cache: Option<CacheState>,
    pub(crate) attempt: Option<u32>,
}

impl<'a> LogRow<'a> {
    pub(crate) fn read(cells: &'a Cells<'a>, map: &Map, quality: &mut Quality) -> Self {
        let cell = |field: Field| &cells[field as usize];
        let mut take = |field, read: fn(&Cell<'_>, Unit) -> Read<i64>| {
            let unit = map.unit(field).unwrap_or(Unit::Ns);
            quality.note(field, cell(field), read(cell(field), unit))
        };
        let nanos: fn(&Cell<'_>, Unit) -> Read<i64> = |cell, unit| cell.nanos(unit);
        let (mut at, ended) = (take(Field::At, nanos), take(Field::Ended, nanos));
        let mut total = take(Field::Total, nanos);
        let sum: fn(&Cell<'_>, Unit) -> Read<i64> = |cell, unit| cell.sum_of_nanos(unit);
        let upstream = take(Field::Upstream, sum);
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
            carried: cell(Field::Text).text().and_then(|text| carried(&text, messages)),
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
        let sent = self.id.as_deref().map(IdHash::of);
        sent.into_iter().chain(self.carried.as_deref().map(IdHash::of))
    }
}

impl Quality {
    /// Uncertainty of the difference between a duration and an upstream time, from their
    /// resolutions.
    pub(crate) fn steps(&self) -> i64 {
        self.length_step.unwrap_or(0).saturating_add(self.upstream_step.unwrap_or(0))
    }

    fn note<T>(&mut self, field: Field, cell: &Cell<'_>, read: Read<T>) -> Option<T> {
        self.filled[field as usize] += u64::from(*cell != Cell::Missing);
        read.unwrap_or_else(|_| {
            let bad = &mut self.bad[field as usize];
            bad.rows += 1;
            if bad.example.is_empty() {
                bad.example = cell.shown();
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
