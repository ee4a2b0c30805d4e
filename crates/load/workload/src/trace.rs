//! Traces of recorded traffic: arrival times, lengths and shared prefixes.

mod blocks;
mod mooncake;
mod timestamp;

use std::io::{self, BufRead, BufReader, Read as _};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use plimsoll_measure::Nanos;

use crate::error::{MAX_TOKENS, TraceFault, TraceProblem, WindowFault, WorkloadError};
use crate::spec::{TraceFormat, TraceSpec};
use crate::trace::mooncake::Unit;

/// A window of a recording, on the time axis on which it is played.
#[derive(Clone, Debug)]
pub struct Trace {
    offsets: Arc<[Nanos]>,
    recording: Recording,
}

impl Trace {
    /// Reads a file; a relative path starts at `base`.
    ///
    /// # Errors
    /// The file cannot be read, lines of it are not in the format, or no row lies in the window.
    pub fn load(spec: &TraceSpec, base: &Path) -> Result<Self, WorkloadError> {
        let file = base.join(&spec.file);
        let spec = TraceSpec { file, ..spec.clone() };
        let reader = plimsoll_input::open(&spec.file)
            .map_err(|source| WorkloadError::Read { file: spec.file.clone(), source })?;
        Self::parse(&spec, BufReader::new(reader))
    }

    /// Reads the text of a trace; `spec.file` is only used in errors.
    ///
    /// Times are relative to the earliest row. Rows in `from..to` are kept, and played at `(time -
    /// from) / time_scale`. Rows are sorted by time; rows of the same time keep the order of the
    /// file. Byte order marks, carriage returns and blank lines are ignored.
    ///
    /// # Errors
    /// As [`Trace::load`].
    pub fn parse(spec: &TraceSpec, reader: impl BufRead) -> Result<Self, WorkloadError> {
        let refuse = |fault| WorkloadError::Window { file: spec.file.clone(), fault };
        Window::check(spec).map_err(refuse)?;
        let mut recording = Recording::read(spec, reader)?;
        let window = Window::new(spec, &recording.records).map_err(refuse)?;
        recording.records.retain(|record| window.contains(record));
        if recording.records.is_empty() {
            return Err(refuse(window.outside()));
        }
        let offsets = recording.records.iter().map(|record| window.offset(record.at)).collect();
        Ok(Self { offsets, recording })
    }

    /// When each row is played, from the start of the window, in ascending order.
    pub fn offsets(&self) -> Arc<[Nanos]> {
        Arc::clone(&self.offsets)
    }

    /// The request of a row, by its position in [`Trace::offsets`].
    pub fn row(&self, row: u64) -> Option<TraceRow<'_>> {
        self.recording.row(usize::try_from(row).ok()?)
    }
}

/// A part of the recorded time, in nanoseconds, and the speed at which it is played.
struct Window {
    /// Recorded time of the first row.
    origin: u64,
    from: u64,
    to: u64,
    /// From the first row to just after the last.
    length: u64,
    scale: f64,
}

impl Window {
    fn check(spec: &TraceSpec) -> Result<(), WindowFault> {
        let (from, scale) = (spec.from.unwrap_or_default(), spec.time_scale);
        if !scale.is_finite() || scale <= 0.0 {
            return Err(WindowFault::Scale(scale));
        }
        match spec.to {
            Some(to) if to <= from => Err(WindowFault::EmptyWindow { from, to }),
            _ => Ok(()),
        }
    }

    /// Records must be in the order of time.
    fn new(spec: &TraceSpec, records: &[TraceRecord]) -> Result<Self, WindowFault> {
        let (Some(first), Some(last)) = (records.first(), records.last()) else {
            return Err(WindowFault::NoRows);
        };
        let length = last.at - first.at + 1;
        let from = spec.from.unwrap_or_default().as_u64();
        let to = spec.to.map_or_else(|| length.max(from), Nanos::as_u64);
        Ok(Self { origin: first.at, from, to, length, scale: spec.time_scale })
    }

    const fn contains(&self, record: &TraceRecord) -> bool {
        let time = record.at - self.origin;
        self.from <= time && time < self.to
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates at 584 years"
    )]
    fn offset(&self, at: u64) -> Nanos {
        let recorded = at - self.origin - self.from;
        Nanos::new((recorded as f64 / self.scale).round() as u64)
    }

    const fn outside(&self) -> WindowFault {
        WindowFault::Outside { from: Nanos::new(self.from), length: Nanos::new(self.length - 1) }
    }
}

/// The longest line that is read, in bytes. A row with 2 million tokens of cached blocks fits.
const MAX_LINE: u64 = 1 << 20;

/// The non-blank lines of a text, without line ends and byte order mark.
#[derive(Debug)]
pub(crate) struct LineReader<R> {
    reader: R,
    buffer: Vec<u8>,
    number: u64,
    at_end: bool,
}

impl<R: BufRead> LineReader<R> {
    pub(crate) const fn new(reader: R) -> Self {
        Self { reader, buffer: Vec::new(), number: 0, at_end: false }
    }

    /// The next line and its number, from 1.
    pub(crate) fn next(&mut self) -> io::Result<Option<(u64, Result<&str, TraceFault>)>> {
        while !self.at_end {
            self.buffer.clear();
            let read = (&mut self.reader).take(MAX_LINE + 1).read_until(b'\n', &mut self.buffer)?;
            self.number += 1;
            // A file with such a line is not a trace: the rest is not read.
            let long = self.buffer.len() as u64 > MAX_LINE;
            self.at_end = read == 0 || long;
            if long {
                return Ok(Some((self.number, Err(TraceFault::LongLine))));
            }
            if !self.buffer.trim_ascii().is_empty() {
                return Ok(Some((self.number, self.text())));
            }
        }
        Ok(None)
    }

    fn text(&self) -> Result<&str, TraceFault> {
        let text = str::from_utf8(&self.buffer).map_err(|_| TraceFault::NotText)?;
        let text = if self.number == 1 { text.trim_start_matches('\u{feff}') } else { text };
        Ok(text.trim_ascii())
    }
}

/// One row of a trace file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TraceRecord {
    /// Recorded time in nanoseconds, on the file's own axis.
    pub(crate) at: u64,
    pub(crate) input_tokens: u32,
    pub(crate) output_tokens: u32,
    /// The positions of its ids in the list of all ids.
    pub(crate) hash_ids: Range<usize>,
    /// The prompt, where the file has it.
    pub(crate) text: Option<Arc<str>>,
}

/// One request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRow<'a> {
    /// Tokens of the prompt; of a text about as many.
    pub input_tokens: u32,
    /// Tokens of the model's answer.
    pub output_tokens: u32,
    /// One id for every block of the prompt; equal ids stand for equal text. Empty if the trace
    /// has none.
    pub hash_ids: &'a [u64],
    /// Tokens of such a block, at most 512.
    pub block_tokens: u32,
    /// The prompt, where the trace has it.
    pub text: Option<&'a Arc<str>>,
}

/// Checks a number of tokens; `text` is what the file has in `column`.
pub(crate) fn check_tokens(
    column: &'static str,
    text: &str,
    count: Option<u64>,
) -> Result<u32, TraceFault> {
    let count = count.and_then(|count| u32::try_from(count).ok());
    count
        .filter(|count| *count <= MAX_TOKENS)
        .ok_or_else(|| TraceFault::Tokens { column, text: text.to_owned() })
}

/// Tokens that one of the ids stands for in the Qwen-Bailian traces.
const BAILIAN_BLOCK: u32 = 16;

/// Problems that are reported one by one; the others are counted.
const MAX_REPORTED: usize = 20;

/// All rows of a trace file, sorted by time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recording {
    pub(crate) records: Vec<TraceRecord>,
    /// The ids of all rows, one row after another.
    pub(crate) ids: Vec<u64>,
    /// Tokens that an id stands for.
    block_tokens: u32,
    /// Of a format with a header.
    table: Option<Table>,
}

impl Recording {
    /// # Errors
    /// The text cannot be read, or lines of it are not in the format.
    pub(crate) fn read(spec: &TraceSpec, reader: impl BufRead) -> Result<Self, WorkloadError> {
        let mut recording = Self::default();
        let mut problems = Problems::default();
        let mut lines = LineReader::new(reader);
        let mut header = !spec.format.has_blocks();
        let mut last = 0;
        while let Some((line, text)) = lines
            .next()
            .map_err(|source| WorkloadError::Read { file: spec.file.clone(), source })?
        {
            last = line;
            let result = match text {
                Err(fault) => Err(fault),
                Ok(text) if std::mem::take(&mut header) => recording.header(spec.format, text),
                Ok(text) => recording.push(spec.format, text),
            };
            if let Err(fault) = result {
                problems.add(spec, line, fault);
            }
        }
        problems.into_result()?;
        let size = match (spec.block_size, spec.format) {
            (Some(size), _) => Ok(Some(size)),
            (None, TraceFormat::Bailian) => Ok(Some(BAILIAN_BLOCK)),
            (None, _) => blocks::size(&recording.records),
        };
        let mut unclear = Problems::default();
        let size = size.unwrap_or_else(|fault| {
            unclear.add(spec, last, fault);
            None
        });
        unclear.into_result()?;
        if let Some(size) = size {
            let Self { records, ids, .. } = &mut recording;
            recording.block_tokens = blocks::complete(records, ids, size);
        }
        recording.records.sort_by_key(|record| record.at);
        Ok(recording)
    }

    /// Reads the first line of a table.
    fn header(&mut self, format: TraceFormat, text: &str) -> Result<(), TraceFault> {
        let format = if format == TraceFormat::Burstgpt { &BURSTGPT } else { &AZURE };
        self.table = Some(Table::new(format, text)?);
        Ok(())
    }

    fn push(&mut self, format: TraceFormat, text: &str) -> Result<(), TraceFault> {
        let record = match format {
            TraceFormat::Mooncake => {
                mooncake::parse_record(text, Unit::Milliseconds, &mut self.ids)
            }
            TraceFormat::Bailian => mooncake::parse_record(text, Unit::Seconds, &mut self.ids),
            TraceFormat::Azure | TraceFormat::Burstgpt => match &self.table {
                Some(table) => table.parse(text),
                None => return Ok(()),
            },
        }?;
        self.records.push(record);
        Ok(())
    }

    pub(crate) fn row(&self, row: usize) -> Option<TraceRow<'_>> {
        let record = self.records.get(row)?;
        Some(TraceRow {
            input_tokens: record.input_tokens,
            output_tokens: record.output_tokens,
            hash_ids: &self.ids[record.hash_ids.clone()],
            block_tokens: self.block_tokens,
            text: record.text.as_ref(),
        })
    }
}

#[derive(Default)]
struct Problems {
    reported: Vec<TraceProblem>,
    more: u64,
}

impl Problems {
    fn add(&mut self, spec: &TraceSpec, line: u64, fault: TraceFault) {
        if self.reported.len() < MAX_REPORTED {
            self.reported.push(TraceProblem { file: spec.file.clone(), line, fault });
        } else {
            self.more += 1;
        }
    }

    fn into_result(self) -> Result<(), WorkloadError> {
        let Self { reported: problems, more } = self;
        if problems.is_empty() { Ok(()) } else { Err(WorkloadError::Trace { problems, more }) }
    }
}

/// How a table is written.
///
/// Traces of Azure and `BurstGPT` are CSV tables. Further columns are ignored, and rows may be in
/// any order.
#[derive(Debug)]
pub(crate) struct TableFormat {
    /// The columns of time, input and output.
    columns: [&'static str; 3],
    /// How a time is written: an example.
    time_form: &'static str,
    /// Nanoseconds of a time.
    time: fn(&str) -> Option<u64>,
    tokens: fn(&str) -> Option<u64>,
}

/// The Azure LLM inference trace of 2023.
pub(crate) const AZURE: TableFormat = TableFormat {
    columns: ["TIMESTAMP", "ContextTokens", "GeneratedTokens"],
    time_form: "2023-11-16 18:15:46.6805900",
    time: timestamp::parse,
    tokens: digits,
};

/// `BurstGPT`, whose times are seconds.
pub(crate) const BURSTGPT: TableFormat = TableFormat {
    columns: ["Timestamp", "Request tokens", "Response tokens"],
    time_form: "5.25",
    time: |text| {
        number(text).filter(|seconds| *seconds < 1.8e10).map(|seconds| whole(seconds * 1e9))
    },
    tokens: |text| number(text).map(whole),
};

/// A table whose header has been read.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    format: &'static TableFormat,
    /// Where the columns of the format are.
    places: [usize; 3],
    /// Number of all columns.
    columns: usize,
}

impl Table {
    /// Reads the first line.
    pub(crate) fn new(format: &'static TableFormat, text: &str) -> Result<Self, TraceFault> {
        let names = cells(text);
        let places = format
            .columns
            .map(|wanted| names.iter().position(|name| name.eq_ignore_ascii_case(wanted)));
        let [Some(time), Some(input), Some(output)] = places else {
            return Err(TraceFault::Header { found: shortened(text), expected: format.columns });
        };
        Ok(Self { format, places: [time, input, output], columns: names.len() })
    }

    /// Reads any other line.
    pub(crate) fn parse(&self, text: &str) -> Result<TraceRecord, TraceFault> {
        let cells = cells(text);
        // A model's name or a kind of log has no comma.
        if cells.len() != self.columns {
            return Err(TraceFault::Columns { found: cells.len(), expected: self.columns });
        }
        let TableFormat { columns: [time_column, input_column, output_column], .. } = *self.format;
        let [time, input, output] = self.places.map(|place| cells[place]);
        let at = (self.format.time)(time).ok_or_else(|| TraceFault::Time {
            column: time_column,
            text: shortened(time),
            form: self.format.time_form,
        })?;
        let tokens = self.format.tokens;
        Ok(TraceRecord {
            at,
            input_tokens: check_tokens(input_column, &shortened(input), tokens(input))?,
            output_tokens: check_tokens(output_column, &shortened(output), tokens(output))?,
            hash_ids: 0..0,
            text: None,
        })
    }
}

fn cells(text: &str) -> Vec<&str> {
    text.split(',').map(|cell| cell.trim().trim_matches('"')).collect()
}

/// Only digits: `u64::from_str` would accept a plus sign.
fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked before")]
const fn whole(number: f64) -> u64 {
    number.round() as u64
}

/// The start of an invalid text, for an error message.
fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Vec<(u64, Result<String, TraceFault>)> {
        let mut lines = LineReader::new(bytes);
        let mut all = Vec::new();
        while let Some((number, text)) = lines.next().unwrap() {
            all.push((number, text.map(str::to_owned)));
        }
        all
    }

    #[test]
    fn lines_have_no_line_ends_and_blank_lines_are_skipped() {
        let line = |number, text: &str| (number, Ok(text.to_owned()));
        for (bytes, lines) in [
            (&b""[..], vec![]),
            (b"a\nb", vec![line(1, "a"), line(2, "b")]),
            (b"a\r\n\r\nb\r\n", vec![line(1, "a"), line(3, "b")]),
            (b"\xEF\xBB\xBFa\n \n", vec![line(1, "a")]),
            (b"\xFF\nb", vec![(1, Err(TraceFault::NotText)), line(2, "b")]),
        ] {
            assert_eq!(read(bytes), lines);
        }
    }

    #[test]
    fn nothing_is_read_after_a_line_that_is_too_long() {
        let mut bytes = vec![b'x'; 3 << 20];
        bytes.extend(b"\nb\n");
        assert_eq!(read(&bytes), [(1, Err(TraceFault::LongLine))]);
    }
}
