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
        let place = |wanted: &str| names.iter().position(|name| name.eq_ignore_ascii_case(wanted));
        let found =
            (place("Timestamp"), place("Request tokens"), place("Response tokens"), names.len());
        match found {
            (Some(time), Some(input), Some(output), count) => {
                Ok(Self { time, input, output, count })
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
        let number = |place: usize| {
            let number = cells[place].parse().ok();
            number.filter(|number: &f64| number.is_finite() && *number >= 0.0)
        };
        let seconds = number(self.time).filter(|seconds| *seconds < 1.8e10);
        let seconds = seconds
            .ok_or_else(|| TraceFault::Seconds(cells[self.time].chars().take(60).collect()))?;
        let tokens =
            |column, place: usize| check_tokens(column, cells[place], number(place).map(whole));
        Ok(TraceRecord {
            at: whole(seconds * 1e9),
            input_tokens: tokens("Request tokens", self.input)?,
            output_tokens: tokens("Response tokens", self.output)?,
            hash_ids: 0..0,
        })
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked before")]
const fn whole(number: f64) -> u64 {
    number.round() as u64
}
