//! The compared times of a turn, and their percentiles.

use plimsoll_measure::{Nanos, PairedTurn, named_enum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

named_enum! {
    /// A time of a turn.
    #[derive(
        Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
    )]
    #[serde(rename_all = "snake_case")]
    pub enum Figure {
        /// From dispatch to the first token.
        Ttft => "ttft",
        /// From the intended start on the target to the last byte.
        #[default]
        ResponseTime => "response_time",
        /// From dispatch to the last byte.
        ServiceTime => "service_time",
        /// Mean gap between the content events of a stream.
        MeanGap => "mean_gap",
        /// Longest gap between the content events of a stream.
        LongestGap => "longest_gap",
    }
}

impl Figure {
    /// Name in reports.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Ttft => "TTFT",
            Self::ResponseTime => "response time",
            Self::ServiceTime => "service time",
            Self::MeanGap => "mean gap (ITL)",
            Self::LongestGap => "longest gap",
        }
    }

    /// The time of a completed turn in nanoseconds; `None` if it has no such time.
    pub(crate) fn of(self, turn: &PairedTurn) -> Option<f64> {
        let nanos = match self {
            Self::Ttft => turn.ttft,
            Self::ResponseTime => turn.response,
            Self::ServiceTime => turn.service,
            Self::LongestGap => turn.longest_gap,
            Self::MeanGap => return mean_gap(turn),
        };
        nanos.map(as_f64)
    }
}

/// Percentiles of the differences.
pub(crate) const QUANTILES: [(&str, f64); 4] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)];

fn mean_gap(turn: &PairedTurn) -> Option<f64> {
    let streamed = turn.last_token?.saturating_sub(turn.ttft?);
    (turn.gaps > 0).then(|| as_f64(streamed) / f64::from(turn.gaps))
}

/// Exact up to 100 days.
pub(crate) fn as_f64(time: Nanos) -> f64 {
    time.as_u64() as f64
}
