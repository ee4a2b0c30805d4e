//! Warnings: limits of a measurement that a reader must know, even if the run is valid. Each is a
//! function from the measurements to a reason.

use super::bounds::{beyond_headroom, percent, reason};
use super::{Evidence, Reason};
use crate::health::InstrumentHealth;

/// Share of the gaps of streams that may be lost before a reader is told: more would change p99.
const GAPS_LOST: f64 = 0.01;

/// All warnings.
pub(super) fn warnings(health: &InstrumentHealth, evidence: &Evidence) -> Vec<Reason> {
    let mut reasons = Vec::new();
    reasons.extend(sampled_rows(health));
    reasons.extend(coalesced(health, evidence));
    reasons.extend(descriptors(health));
    reasons.extend(ports(health));
    reasons.extend(calibration(health));
    reasons
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

/// A target that sends several events at once. Those that the generator read together because it
/// was late are in the bounds of ITL.
fn coalesced(health: &InstrumentHealth, evidence: &Evidence) -> Option<Reason> {
    let lag = health.read_lag_ms?;
    let sent_together = evidence.events_together.saturating_sub(evidence.events_together_late);
    let events = (evidence.events_together + evidence.gaps).max(1);
    let share = sent_together as f64 / events as f64;
    (share > GAPS_LOST).then(|| {
        let measured = format!(
            "{} of tokens came in one read with the token before, and the read was in time",
            percent(share)
        );
        let fix = format!(
            "the target sent them together, or less than {:.3} ms apart, which cannot be resolved. If it \
             should send each token by itself, look for buffering between it and Plimsoll",
            lag.p99
        );
        reason("content events came together", measured, "at most 1 %", &fix)
    })
}

fn descriptors(health: &InstrumentHealth) -> Option<Reason> {
    let (peak, limit) = (health.fd_peak?, health.fd_limit?);
    beyond_headroom(peak, limit).then(|| {
        let fix = "raise the limit on open files (ulimit -n): see `plimsoll doctor`";
        reason("file descriptors", format!("{peak} of {limit}"), "at most 90 %", fix)
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
    let measured = format!("{} tests failed on this host ({})", quote.failed, quote.when);
    let fix = "see `plimsoll calibrate` for which tests, and what they mean";
    Some(reason("calibration", measured, "none", fix))
}
