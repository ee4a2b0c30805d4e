//! How the streams of a target came, counted over all rounds.

use plimsoll_metrics::StreamDiagnosis;
use plimsoll_report::format;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The streams of a target by their shape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Streams {
    /// Streams that began.
    pub begun: u64,
    /// Broke off, or ended without a sign of their end.
    pub cut: u64,
    /// Stood still once, much longer than otherwise.
    pub paused: u64,
    /// Stood still for 40 ms: Nagle's algorithm with delayed acknowledgements.
    pub stalled: u64,
    /// Events came in lumps.
    pub merged: u64,
    /// All events came in one piece, at the end.
    pub buffered_whole: u64,
    /// Read late by the generator, so that their shape is unknown.
    pub read_late: u64,
    /// Whole streams with enough events to judge.
    pub judged: u64,
}

impl From<&StreamDiagnosis> for Streams {
    fn from(found: &StreamDiagnosis) -> Self {
        Self {
            begun: found.begun,
            cut: found.cut + found.no_end + found.no_finish_reason,
            paused: found.paused,
            stalled: found.stalled,
            merged: found.merged,
            buffered_whole: found.buffered_whole,
            read_late: found.read_late,
            judged: found.judged,
        }
    }
}

impl Streams {
    /// The streams of each shape, by its name.
    pub fn shapes(&self) -> [(&'static str, u64); 6] {
        [
            ("cut", self.cut),
            ("paused", self.paused),
            ("stalled", self.stalled),
            ("merged", self.merged),
            ("buffered", self.buffered_whole),
            ("read late", self.read_late),
        ]
    }

    /// The most frequent fault in a cell: `40 stalled`; `intact` without one.
    pub(crate) fn cell(&self) -> String {
        let most = self.shapes().into_iter().rev().max_by_key(|(_, count)| *count);
        match most.filter(|(_, count)| *count > 0) {
            Some((shape, count)) => format!("{} {shape}", format::count(count)),
            None => "intact".to_owned(),
        }
    }

    /// Whether stalls of 40 ms are a trait of the target. They come and go with the pace of a
    /// connection, so they differ beside other targets and alone.
    pub(crate) const fn has_stalls(&self) -> bool {
        self.stalled * 4 >= self.judged.saturating_sub(self.read_late)
            && self.stalled > self.merged + self.buffered_whole
    }

    /// Those of several rounds.
    pub(crate) fn combine(rounds: impl Iterator<Item = Self>) -> Option<Self> {
        rounds.reduce(|sum, round| Self {
            begun: sum.begun + round.begun,
            cut: sum.cut + round.cut,
            paused: sum.paused + round.paused,
            stalled: sum.stalled + round.stalled,
            merged: sum.merged + round.merged,
            buffered_whole: sum.buffered_whole + round.buffered_whole,
            read_late: sum.read_late + round.read_late,
            judged: sum.judged + round.judged,
        })
    }
}
