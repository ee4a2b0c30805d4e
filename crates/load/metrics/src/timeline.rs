//! Time series of a run, as in `timeline.json`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::bounded_figure::Refusal;
use crate::catalog::{COUNTERS, Counters};
use crate::distribution::Distribution;
use crate::health::Lag;

/// Version of the layout of `timeline.json`.
pub const SCHEMA: &str = "plimsoll.timeline/1";

/// Time series of a run: consecutive intervals of equal length, without gaps.
///
/// An interval is 1 s long. Runs of more than 600 s have intervals of 2 s, beyond 1,200 s of 4 s,
/// and so on: at most 600 intervals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunTimeline {
    /// Version of the layout: `plimsoll.timeline/1`.
    pub schema: String,
    /// Name of the run.
    pub name: String,
    /// Id of the run.
    pub run_id: String,
    /// Wall-clock time of the start of the load, in nanoseconds since 1970 UTC.
    pub started_unix_ns: u64,
    /// Length of an interval, in seconds; the last one may be shorter.
    pub interval_s: f64,
    /// Stages, in their order.
    pub stages: Vec<TimelineStage>,
    /// Names of the targets.
    pub targets: Vec<String>,
    /// The intervals.
    pub intervals: Vec<TimelineInterval>,
}

/// A stage, in seconds from the start of the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineStage {
    /// Its name.
    pub name: String,
    /// Whether it is a warm-up.
    #[serde(default)]
    pub warmup: bool,
    /// Its start.
    pub start_s: f64,
    /// Its length.
    pub duration_s: f64,
}

/// One interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineInterval {
    /// Its start, in seconds from the start of the load.
    pub start_s: f64,
    /// Its length in seconds.
    pub length_s: f64,
    /// Requests in flight at its end, by target, in the order of `targets`.
    pub in_flight: Vec<u64>,
    /// By how much the generator delayed the arrivals that ended in it; left out without such
    /// arrivals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_lag_ms: Option<Lag>,
    /// Seconds of it in which Plimsoll was paused: of the windows that
    /// `summary.json` lists in `health.disturbed_windows`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub disturbed_s: f64,
    /// CPU time divided by time of each watched process, and of Plimsoll itself.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cores: BTreeMap<String, f64>,
    /// The figures of servers by their own metrics (`--server-metrics`): those of `servers` in
    /// `summary.json`, by name and key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub servers: BTreeMap<String, BTreeMap<String, f64>>,
    /// Results by stage and target; groups without requests are left out.
    pub groups: Vec<TimelineGroup>,
}

/// The requests of one stage and target in an interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineGroup {
    /// Name of the stage in which they were due.
    pub stage: String,
    /// Name of the target.
    pub target: String,
    /// Requests whose intended start is in the interval.
    pub due: u64,
    /// Requests that were dispatched in it.
    pub sent: u64,
    /// The counters of `metrics.md` for the requests that ended in it; those that are 0 are left
    /// out. `scheduled` counts when the generator took the request up.
    #[serde(serialize_with = "without_zeros")]
    pub counters: Counters,
    /// Failures by error class.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
    /// Responses by HTTP status.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub statuses: BTreeMap<String, u64>,
    /// Times of the requests that completed in it: `response_time_ms`, `service_time_ms`, `ttft_ms`
    /// and `itl_ms`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub times: BTreeMap<String, TimelineTimes>,
}

/// Times in milliseconds. A figure is `null` if there are too few values for it (fewer than 10
/// beyond it).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineTimes {
    /// Number of values.
    pub count: u64,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Largest value.
    pub max: Option<f64>,
    /// The figures whose value alone proves nothing, with the reason, as in `summary.json`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, Refusal>,
    /// A coarse histogram: pairs of bin and count. There are 16 bins of equal width for each power
    /// of two of nanoseconds: bin `b` begins at `(16 + b % 16) * 2^(b / 16 - 1)` ns, below 16 at
    /// `b` ns.
    pub bins: Vec<(u32, u64)>,
    /// The median of any number of values, for findings.
    #[serde(skip)]
    pub median_ms: Option<f64>,
}

/// The bins of a distribution, ascending.
pub(crate) fn bins(distribution: &Distribution) -> Vec<(u32, u64)> {
    let mut bins: Vec<(u32, u64)> = Vec::new();
    distribution.for_each_value(&mut |nanos, n| match (bins.last_mut(), bin(nanos)) {
        (Some((last, count)), bin) if *last == bin => *count += n,
        (_, bin) => bins.push((bin, n)),
    });
    bins
}

/// Bins of each power of two.
const SUB_BINS: u64 = 16;
const SUB_BITS: u32 = SUB_BINS.ilog2();

/// The bin of a time in nanoseconds.
pub(crate) fn bin(nanos: u64) -> u32 {
    let shift = (u64::BITS - nanos.leading_zeros()).saturating_sub(SUB_BITS + 1);
    let within = u32::try_from(nanos >> shift).unwrap_or(u32::MAX);
    (shift << SUB_BITS) + within
}

fn without_zeros<S: Serializer>(counters: &Counters, to: S) -> Result<S::Ok, S::Error> {
    let named = COUNTERS.iter().map(|counter| (counter.name, (counter.of)(counters)));
    to.collect_map(named.filter(|(_, count)| *count > 0))
}

fn is_zero(seconds: &f64) -> bool {
    *seconds <= 0.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The start of a bin, in milliseconds.
    fn bin_start_ms(bin: u32) -> f64 {
        let shift = (bin >> SUB_BITS).saturating_sub(1);
        f64::from(bin - (shift << SUB_BITS)) * 2f64.powi(shift.try_into().unwrap()) / 1e6
    }

    proptest! {
        #[test]
        fn a_time_lies_in_its_bin(bits in 0u32..44, value in any::<u64>()) {
            let nanos = value >> 20 >> bits;
            let ms = nanos as f64 / 1e6;
            prop_assert!(bin_start_ms(bin(nanos)) <= ms && ms < bin_start_ms(bin(nanos) + 1));
        }
    }

    #[test]
    fn bins_are_a_sixteenth_of_a_power_of_two() {
        // 2^20 ns = 1.048576 ms; the next bin begins a sixteenth of that later.
        let at = bin(1 << 20);
        assert!((bin_start_ms(at) - 1.048_576).abs() < 1e-12);
        assert!((bin_start_ms(at + 1) - 1.114_112).abs() < 1e-12);
        assert!((bin_start_ms(at + 16) - 2.097_152).abs() < 1e-12);
    }
}
