//! Traces that are tables in CSV: those of Azure, and `BurstGPT`. Further columns are ignored, and
//! the order is any.

use super::record::{TraceRecord, check_tokens};
use super::timestamp;
use crate::error::TraceFault;

/// How a table is written.
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
