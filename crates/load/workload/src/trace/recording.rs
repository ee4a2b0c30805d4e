//! All rows of a file, in the order of time.

use std::io::BufRead;
use std::ops::Range;

use super::lines::Lines;
use super::{TraceRow, azure, mooncake};
use crate::error::{MAX_TOKENS, TraceFault, TraceProblem, WorkloadError};
use crate::spec::{TraceFormat, TraceSpec};

/// Problems that are told one by one.
const TOLD: usize = 20;

/// One row as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Recorded time in nanoseconds, on the file's own axis.
    pub(crate) at: u64,
    pub(crate) input: u32,
    pub(crate) output: u32,
    /// Its ids among all ids.
    pub(crate) ids: Range<usize>,
}

/// All rows of a file, in the order of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recording {
    pub(crate) records: Vec<Record>,
    /// The ids of all rows, one row after another.
    pub(crate) ids: Vec<u64>,
}

impl Recording {
    /// # Errors
    /// The text cannot be read, or lines of it are not in the format.
    pub(crate) fn read(spec: &TraceSpec, reader: impl BufRead) -> Result<Self, WorkloadError> {
        let mut recording = Self::default();
        let mut problems = Problems::default();
        let mut lines = Lines::new(reader);
        let mut header = spec.format == TraceFormat::Azure;
        let unread = |source| WorkloadError::Read { file: spec.file.clone(), source };
        while let Some((line, text)) = lines.next().map_err(unread)? {
            let read = match text {
                Err(fault) => Err(fault),
                Ok(text) if std::mem::take(&mut header) => azure::header(text),
                Ok(text) => recording.push(spec.format, text),
            };
            if let Err(fault) = read {
                problems.add(spec, line, fault);
            }
        }
        problems.into_result()?;
        recording.records.sort_by_key(|record| record.at);
        Ok(recording)
    }

    fn push(&mut self, format: TraceFormat, text: &str) -> Result<(), TraceFault> {
        let record = match format {
            TraceFormat::Azure => azure::record(text),
            TraceFormat::Mooncake => mooncake::record(text, &mut self.ids),
        }?;
        self.records.push(record);
        Ok(())
    }

    pub(crate) fn row(&self, row: usize) -> Option<TraceRow<'_>> {
        let record = self.records.get(row)?;
        Some(TraceRow {
            input_tokens: record.input,
            output_tokens: record.output,
            hash_ids: &self.ids[record.ids.clone()],
        })
    }
}

/// Is this a number of tokens that a request can carry?
pub(crate) fn tokens(
    column: &'static str,
    text: &str,
    count: Option<u64>,
) -> Result<u32, TraceFault> {
    let count = count.and_then(|count| u32::try_from(count).ok());
    let refuse = || TraceFault::Tokens { column, text: text.to_owned() };
    count.filter(|count| *count <= MAX_TOKENS).ok_or_else(refuse)
}

#[derive(Default)]
struct Problems {
    told: Vec<TraceProblem>,
    more: u64,
}

impl Problems {
    fn add(&mut self, spec: &TraceSpec, line: u64, fault: TraceFault) {
        if self.told.len() < TOLD {
            self.told.push(TraceProblem { file: spec.file.clone(), line, fault });
        } else {
            self.more += 1;
        }
    }

    fn into_result(self) -> Result<(), WorkloadError> {
        let Self { told, more } = self;
        if told.is_empty() { Ok(()) } else { Err(WorkloadError::Trace { problems: told, more }) }
    }
}
