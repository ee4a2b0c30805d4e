//! Warnings: limits of a measurement that a reader must know, even if the run is valid. Each is a
//! function from the measurements to a reason.

use super::Reason;
use super::bounds::{beyond_headroom, percent, reason};
use crate::health::InstrumentHealth;

/// All warnings.
pub(super) fn warnings(health: &InstrumentHealth) -> Vec<Reason> {
    let mut reasons = Vec::new();
    reasons.extend(sampled_rows(health));
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
    let measured = format!("{} on this host, {}", quote.failed_words(), quote.when);
    let fix = "`plimsoll calibrate --show` has their figures; run it again on an idle host";
    Some(reason("calibration", measured, "none", fix))
}
