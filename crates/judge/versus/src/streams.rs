//! Shapes of a target's streams, counted over all rounds.

use plimsoll_metrics::StreamDiagnosis;
use plimsoll_report::format;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Streams of a target by shape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Streams {
    /// Streams that began.
    pub begun: u64,
    /// Streams that broke off, or ended without an end marker.
    pub cut: u64,
    /// Streams that paused once, much longer than usual.
    pub paused: u64,
    /// Streams that stalled for 40 ms: Nagle's algorithm combined with delayed acknowledgements.
    pub stalled: u64,
    /// Streams whose events came several at a time.
    pub merged: u64,
    /// Streams whose events all came in one piece, at the end.
    pub buffered_whole: u64,
    /// Streams that the generator read late, so that their shape is unknown.
    pub read_late: u64,
    /// Complete streams with enough events to judge.
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
    /// The number of streams of each shape, by its name in rules and reports.
    pub fn shapes(&self) -> [(&'static str, u64); 6] {
        [
            ("cut", self.cut),
            ("paused", self.paused),
            ("stalled 40ms", self.stalled),
            ("merged", self.merged),
            ("buffered whole", self.buffered_whole),
            ("read late", self.read_late),
        ]
    }

    /// The most frequent fault as a table cell, such as `40 merged`; `intact` without faults.
    pub(crate) fn cell(&self) -> String {
        let most = self.shapes().into_iter().rev().max_by_key(|(_, count)| *count);
        match most.filter(|(_, count)| *count > 0) {
            Some((shape, count)) => format!("{} {shape}", format::count(count)),
            None => "intact".to_owned(),
        }
    }

    /// Whether 40 ms stalls are a property of the target. They depend on the pace of a connection,
    /// so they occur differently beside other targets and alone.
    pub(crate) const fn has_stalls(&self) -> bool {
        self.stalled * 4 >= self.judged.saturating_sub(self.read_late)
            && self.stalled > self.merged + self.buffered_whole
    }

    /// Combines the counts of several rounds.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// `paused` was shown as "stalled", and `stalled` as "waited 40ms".
    #[test]
    fn a_shape_has_the_name_of_its_field() {
        let streams = Streams {
            cut: 1,
            paused: 2,
            stalled: 3,
            merged: 4,
            buffered_whole: 5,
            read_late: 6,
            ..Streams::default()
        };
        let json = serde_json::to_value(streams).unwrap();
        for (shape, count) in streams.shapes() {
            let field = shape.trim_end_matches(" 40ms").replace(' ', "_");
            assert_eq!(json[&field], count, "{shape}");
        }
    }
}
