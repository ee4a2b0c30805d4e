//! Warnings: limits of a measurement that a reader must know, even if the run is valid. Each is a
//! function from the measurements to a reason.

use super::bounds::{beyond_headroom, percent, reason, saturated};
use super::{ClosedStage, Evidence, Reason};
use crate::health::InstrumentHealth;

/// Closed model: the generator may take this share of the mean service time between requests, a
/// third of the cycle, before a reader is told that the throughput is not the target's alone.
const CYCLE_SHARE: f64 = 0.5;
/// A single delay of the generator above this length gives a warning, in milliseconds.
const STALL_MS: f64 = 100.0;

/// All warnings.
pub(super) fn warnings(health: &InstrumentHealth, evidence: &Evidence) -> Vec<Reason> {
    let mut reasons = Vec::new();
    reasons.extend(limited(health, evidence));
    reasons.extend(sampled_rows(health));
    reasons.extend(stall(health, evidence));
    reasons.extend(ports(health));
    reasons.extend(calibration(health));
    reasons
}

/// A closed loop at full speed, as wrk runs it. The service time is still the target's, because it
/// ends with the kernel's time stamp of the response.
fn limited(health: &InstrumentHealth, evidence: &Evidence) -> Option<Reason> {
    let slow = |stage: &ClosedStage| stage.generator.mean > stage.target.mean * CYCLE_SHARE;
    let limited = saturated(health).is_some() || evidence.closed.iter().any(slow);
    let busy = health.highest_demand().filter(|_| limited && !evidence.closed.is_empty())?;
    let generator = evidence.closed.iter().map(|s| s.generator.mean).fold(0.0, f64::max);
    let target = evidence.closed.iter().map(|s| s.target.mean).fold(0.0, f64::max);
    let measured = format!(
        "a worker used or waited for its CPU {} of the time; \
         mean {generator:.3} ms between requests, {target:.3} ms in the target",
        percent(busy)
    );
    Some(reason(
        "limited by the instrument",
        measured,
        "at most 90 % of the time, and half of the service time",
        "throughput is that of generator and target together, and response time contains the \
         generator's share; service time, by the kernel's time stamps, is the target's. For more load, \
         give the generator more cores",
    ))
}

/// `results.jsonl` is a sample. Its rule does not look at what was measured.
fn sampled_rows(health: &InstrumentHealth) -> Option<Reason> {
    let left_out = health.sink_left_out.filter(|&left_out| left_out > 0)?;
    let (offered, one_in) = (health.sink_offered?, health.sink_least_share_one_in?);
    let share = percent(left_out as f64 / offered.max(1) as f64);
    let measured = format!(
        "{left_out} of {offered} rows ({share}) left out; at times all but one conversation in {one_in}"
    );
    Some(reason(
        "results.jsonl is a sample",
        measured,
        "every row",
        "the report counts every request; in the file, count each row `weight` times. To keep all rows, \
         give the writer a faster disk (--out) or its own core, or lower the load",
    ))
}

fn stall(health: &InstrumentHealth, evidence: &Evidence) -> Option<Reason> {
    let open = health.lateness().filter(|_| evidence.open_model).map(|lag| lag.max);
    let longest = evidence.closed.iter().map(|stage| stage.generator.max).chain(open);
    let longest = longest.fold(0.0, f64::max);
    (longest > STALL_MS).then(|| {
        let measured = format!("up to {longest:.0} ms late");
        let fix = "find what else ran on this machine; the delayed requests include the delay, so read \
                   the maximum with care";
        reason("the generator stood still", measured, "at most 100 ms", fix)
    })
}

fn ports(health: &InstrumentHealth) -> Option<Reason> {
    let (peak, limit) = (health.ports_peak?, health.ephemeral_ports?);
    beyond_headroom(peak, limit).then(|| {
        let fix = "widen net.ipv4.ip_local_port_range, or let connections be reused";
        reason("local ports", format!("up to {peak} of {limit} taken"), "at most 90 %", fix)
    })
}

fn calibration(health: &InstrumentHealth) -> Option<Reason> {
    let quote = health.calibration.as_ref().filter(|quote| quote.failed > 0)?;
    let measured = format!("{} on this host, {}", quote.failed_words(), quote.when);
    let fix = "`plimsoll calibrate --show` has their figures; run it again on an idle host";
    Some(reason("calibration", measured, "none", fix))
}
