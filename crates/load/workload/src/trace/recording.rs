//! Reads all rows of a trace file, sorted by time.

use std::io::BufRead;

use super::line_reader::LineReader;
use super::mooncake::Unit;
use super::record::{TraceRecord, TraceRow};
use super::table::{AZURE, BURSTGPT, Table};
use super::{blocks, mooncake};
use crate::error::{TraceFault, TraceProblem, WorkloadError};
use crate::spec::{TraceFormat, TraceSpec};

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
