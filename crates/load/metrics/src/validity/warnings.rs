//! Warnings: limits of a measurement that a reader must know, even if the run is valid. Each is a
//! function from the measurements to a reason.

use super::bounds::{beyond_headroom, percent, reason};
use super::{Evidence, Reason, StageOpenings};
use crate::health::InstrumentHealth;

/// Share of a stage's requests that may open a connection before a reader is told.
const OPENINGS_SHARE: f64 = 0.01;
/// As many may in any case.
const FEW_OPENINGS: f64 = 10.0;

/// All warnings.
pub(super) fn warnings(health: &InstrumentHealth, evidence: &Evidence) -> Vec<Reason> {
    let mut reasons = Vec::new();
    reasons.extend(sampled_rows(health));
    reasons.extend(descriptors(health));
    reasons.extend(openings(health, evidence));
    reasons.extend(ports(health));
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

/// Connections that are opened during the measurement cost the target time, which a client with a
/// warm pool would not cause. The ones that virtual users open first are left out, and so are few,
/// and stages without an answer.
fn openings(health: &InstrumentHealth, evidence: &Evidence) -> Option<Reason> {
    if health.planned_reconnects == Some(true) {
        return None;
    }
    let worst = evidence
        .openings
        .iter()
        .filter(|stage: &&StageOpenings| {
            stage.answered > 0
                && stage.opened as f64 > stage.needed + FEW_OPENINGS
                && stage.share() > OPENINGS_SHARE
        })
        .max_by(|one, other| one.share().total_cmp(&other.share()))?;
    let StageOpenings { name, requests, opened, cut_off, peak, .. } = worst;
    let share = percent(worst.share());
    let measured = format!("{opened} of {requests} requests of {name} ({share})");
    let why = if cut_off * 2 >= *opened {
        format!(
            "{cut_off} requests failed, timed out or were given up, which ends their connection, \
             and the next request opens another"
        )
    } else if opened <= peak {
        format!(
            "up to {peak} were in flight at once, more than connections were open; a warm-up stage \
             with as much load opens them before"
        )
    } else {
        "look whether the target closes connections; for a load with warm connections, add a \
         warm-up stage or raise `idle_limit`"
            .to_owned()
    };
    let fix = format!(
        "the service time of these requests contains the set-up of their connection: {why}"
    );
    Some(reason("requests that opened a connection", measured, "at most 1 %", &fix))
}

fn ports(health: &InstrumentHealth) -> Option<Reason> {
    let (peak, limit) = (health.ports_peak?, health.ephemeral_ports?);
    beyond_headroom(peak, limit).then(|| {
        let fix = "widen net.ipv4.ip_local_port_range, or let connections be reused";
        let taken =
            if peak < limit { format!("{peak} of {limit}") } else { format!("all {limit}") };
        reason("local ports", format!("up to {taken} taken"), "at most 90 %", fix)
    })
}
