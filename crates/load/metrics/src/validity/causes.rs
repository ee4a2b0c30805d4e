//! What may have held the generator up. A cause never judges: its effect does, in the bounds of the
//! figures.

use super::bounds::percent;
use crate::health::InstrumentHealth;

/// A worker that ran or waited for its CPU for more than this share of the time is saturated.
const BUSY_SHARE: f64 = 0.9;
/// Steal, CPU quota and waiting for a CPU are named from this share of the time on.
const NOTABLE_SHARE: f64 = 0.01;

/// The causes, in words, the most telling first.
pub fn causes(health: &InstrumentHealth) -> Vec<String> {
    let mut causes = Vec::new();
    let windows = &health.disturbed_windows;
    if !windows.is_empty() {
        let seconds: f64 = windows.iter().map(|window| window.length_s).sum();
        let times = if windows.len() == 1 { "once" } else { "in disturbed windows" };
        causes.push(format!("Plimsoll was paused {times}, for {seconds:.2} s in all"));
    }
    if let Some(share) = health.steal_share.filter(|share| *share >= NOTABLE_SHARE) {
        causes.push(format!("steal {}", percent(share)));
    }
    if let Some(share) = health.throttled_share.filter(|share| *share >= NOTABLE_SHARE) {
        causes.push(format!("a CPU quota stopped the process {} of the time", percent(share)));
    }
    if let Some(share) = health.highest_demand().filter(|share| *share > BUSY_SHARE) {
        causes.push(format!("a worker used or waited for a CPU {} of the time", percent(share)));
    }
    if health.kernel_timestamps == Some(false) {
        causes.push("no receive times by the kernel".to_owned());
    }
    causes
}
