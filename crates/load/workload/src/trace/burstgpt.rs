//! `BurstGPT`: CSV with `Timestamp` (seconds), `Request tokens` and `Response tokens`, and others
//! in any order.

use super::record::{TraceRecord, check_tokens};
use crate::error::TraceFault;

/// Where the columns are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Columns {
    time: usize,
    input: usize,
    output: usize,
    count: usize,
}

impl Columns {
    /// Reads the first line.
    pub(crate) fn read(text: &str) -> Result<Self, TraceFault> {
        let names: Vec<_> = text.split(',').map(|name| name.trim().trim_matches('"')).collect();
        let places = ["Timestamp", "Request tokens", "Response tokens"]
            .map(|wanted| names.iter().position(|name| name.eq_ignore_ascii_case(wanted)));
        match places {
            [Some(time), Some(input), Some(output)] => {
                Ok(Self { time, input, output, count: names.len() })
            }
            _ => Err(TraceFault::BurstHeader(text.chars().take(80).collect())),
        }
    }

    pub(crate) fn parse(self, text: &str) -> Result<TraceRecord, TraceFault> {
        let cells: Vec<_> = text.split(',').map(|cell| cell.trim().trim_matches('"')).collect();
        // A model's name or a kind of log has no comma.
        if cells.len() != self.count {
            return Err(TraceFault::BurstColumns { found: cells.len(), expected: self.count });
        }
        let seconds = number(cells[self.time]).filter(|seconds| *seconds < 1.8e10);
        let seconds = seconds
            .ok_or_else(|| TraceFault::Seconds(cells[self.time].chars().take(60).collect()))?;
        let (input, output) = (cells[self.input], cells[self.output]);
        Ok(TraceRecord {
            at: whole(seconds * 1e9),
            input_tokens: check_tokens("Request tokens", input, number(input).map(whole))?,
            output_tokens: check_tokens("Response tokens", output, number(output).map(whole))?,
            hash_ids: 0..0,
            text: None,
        })
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked before")]
const fn whole(number: f64) -> u64 {
    number.round() as u64
}
