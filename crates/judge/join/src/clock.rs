//! How far the log's clock is from the run's: bounds, and never an estimate.
//!
//! Let `c(t)` be the log's clock minus the run's at time `t`. A request arrives after it was sent:
//! `c(t) <= at - sent`. It is over for the gateway before the client has its last byte:
//! `c(t) >= at + total - finished`. Every line `c(t) = a + b t` that keeps all these bounds is
//! possible; the reported ones are the least and the greatest of them. Slopes follow from pairs of
//! bounds: a line from below one to above another, later one has a slope of at least what joins
//! them. At a given time, the least and the greatest `c` are convex and concave functions of the
//! slope, and are found by a search.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the end of a request may be noted too late by: a thread that wrote the last byte reads its
/// clock after that.
const LATE: i64 = 100_000;

/// Parts of the run. In each, only the tightest bound of either side is kept, which can only widen
/// the result.
const PARTS: usize = 256;

/// Bounds of the log's clock minus the run's. They hold if the log's time is that of the arrival
/// and its total ends before the client had the last byte, within 0.1 ms, and if the clock neither
/// jumped nor was slewed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockBounds {
    /// At the middle of the run, in milliseconds: at least.
    pub offset_low_ms: f64,
    /// At most.
    pub offset_high_ms: f64,
    /// Drift in millionths: at least.
    pub drift_low_ppm: f64,
    /// At most.
    pub drift_high_ppm: f64,
    /// The smallest step of the log's times, in milliseconds.
    pub step_ms: f64,
}

/// A bound at a time, both in nanoseconds.
type Bound = (f64, f64);

/// Collects bounds.
#[derive(Debug)]
pub(crate) struct Clocks {
    start: i64,
    length: i64,
    step: i64,
    /// By part: the least of the upper bounds.
    upper: Vec<Option<Bound>>,
    /// The greatest of the lower bounds.
    lower: Vec<Option<Bound>>,
}

impl Clocks {
    /// For requests sent between two times, and a log whose times have this step.
    pub(crate) fn new(start: i64, end: i64, step: i64) -> Self {
        let length = end.saturating_sub(start).max(1);
        Self { start, length, step, upper: vec![None; PARTS], lower: vec![None; PARTS] }
    }

    /// Adds a request: when it was sent and how long it took, and what the log says of that.
    pub(crate) fn add(&mut self, sent: i64, service: Option<i64>, at: i64, total: Option<i64>) {
        let part = self.part(sent);
        let upper = at.saturating_sub(sent).saturating_add(self.step + LATE);
        let bound = ((sent - self.start) as f64, upper as f64);
        if let Some(kept) = self.upper.get_mut(part) {
            *kept = Some(kept.filter(|kept| kept.1 <= bound.1).unwrap_or(bound));
        }
        // What took the gateway longer than the client waited is no bound.
        let Some((service, total)) = service.zip(total).filter(|(s, t)| t <= s) else { return };
        let over = sent.saturating_add(service);
        let lower = at.saturating_add(total).saturating_sub(over) - self.step - LATE;
        let bound = ((over - self.start) as f64, lower as f64);
        if let Some(kept) = self.lower.get_mut(part) {
            *kept = Some(kept.filter(|kept| kept.1 >= bound.1).unwrap_or(bound));
        }
    }

    fn part(&self, sent: i64) -> usize {
        let share = sent.saturating_sub(self.start) as f64 / self.length as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below 256")]
        let part = (share.clamp(0.0, 0.999_999) * PARTS as f64) as usize;
        part
    }

    /// The bounds; `None` where no clock without a jump keeps them, or the log has no lengths.
    pub(crate) fn bounds(&self) -> Option<ClockBounds> {
        let upper: Vec<Bound> = self.upper.iter().flatten().copied().collect();
        let lower: Vec<Bound> = self.lower.iter().flatten().copied().collect();
        let (low, high) = slopes(&lower, &upper)?;
        let middle = self.length as f64 / 2.0;
        Some(ClockBounds {
            offset_low_ms: least(low, high, |slope: f64| {
                lower
                    .iter()
                    .map(|(t, c)| c + slope * (middle - t))
                    .fold(f64::NEG_INFINITY, f64::max)
            }) / 1e6,
            offset_high_ms: -least(low, high, |slope: f64| {
                let most = upper.iter().map(|(t, c)| c + slope * (middle - t));
                -most.fold(f64::INFINITY, f64::min)
            }) / 1e6,
            drift_low_ppm: low * 1e6,
            drift_high_ppm: high * 1e6,
            step_ms: self.step as f64 / 1e6,
        })
    }
}

/// The least and the greatest slope of a line above all lower and below all upper bounds.
fn slopes(lower: &[Bound], upper: &[Bound]) -> Option<(f64, f64)> {
    // No clock of a computer drifts by a tenth.
    let (mut low, mut high) = (-0.1_f64, 0.1_f64);
    if lower.is_empty() || upper.is_empty() {
        return None;
    }
    for (lower_at, at_least) in lower {
        for (upper_at, at_most) in upper {
            let (room, time) = (at_most - at_least, upper_at - lower_at);
            if time > 0.0 {
                high = high.min(room / time);
            } else if time < 0.0 {
                low = low.max(room / time);
            } else if room < 0.0 {
                return None;
            }
        }
    }
    (low <= high).then_some((low, high))
}

/// The least value of a convex function.
fn least(mut low: f64, mut high: f64, of: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..100 {
        let third = (high - low) / 3.0;
        let (left, right) = (low + third, high - third);
        if of(left) <= of(right) {
            high = right;
        } else {
            low = left;
        }
    }
    of(low).min(of(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests every millisecond for 100 s, 20 ms each of which the gateway has all but the ways,
    /// which take 50 to 900 us each.
    fn clocks(offset: f64, drift: f64, step: i64) -> Clocks {
        let start = 1_795_000_000_000_000_000_i64;
        let mut clocks = Clocks::new(start, start + 100_000_000_000, step);
        for n in 0..100_000_i64 {
            let (sent, there) = (start + n * 1_000_000, 50_000 + n * 7_919 % 850_000);
            let back = 50_000 + n * 104_729 % 850_000;
            let total = 20_000_000 - there - back;
            #[expect(clippy::cast_possible_truncation, reason = "seconds in nanoseconds")]
            let apart = (offset + drift * (sent + there - start) as f64).round() as i64;
            let at = (sent + there + apart) / step * step;
            clocks.add(sent, Some(20_000_000), at, Some(total));
        }
        clocks
    }

    #[test]
    fn the_bounds_hold_the_planted_offset_and_drift() {
        for step in [1, 1_000_000] {
            let bounds = clocks(3.7e9, 50e-6, step).bounds().unwrap();
            // 50 ppm of the 50 s to the middle are 2.5 ms.
            let middle = 3_702.5;
            assert!(
                bounds.offset_low_ms <= middle && middle <= bounds.offset_high_ms,
                "{bounds:?}"
            );
            assert!(bounds.drift_low_ppm <= 50.0 && 50.0 <= bounds.drift_high_ppm, "{bounds:?}");
            let wide = if step == 1 { 0.5 } else { 2.6 };
            assert!(bounds.offset_high_ms - bounds.offset_low_ms < wide, "{bounds:?}");
            assert!(bounds.drift_high_ppm - bounds.drift_low_ppm < 60.0, "{bounds:?}");
        }
    }

    #[test]
    fn a_clock_that_jumps_has_no_bounds() {
        let mut clocks = clocks(0.0, 0.0, 1);
        let start = clocks.start;
        for n in 0..50_000_i64 {
            let sent = start + n * 1_000_000;
            clocks.add(sent, Some(20_000_000), sent + 2_000_000_000, Some(19_000_000));
        }
        assert_eq!(clocks.bounds(), None);
    }
}
