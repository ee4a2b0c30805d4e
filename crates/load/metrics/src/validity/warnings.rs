//! Warnings: limits of a measurement that a reader must know, even if the run is valid. Each is a
//! function from the measurements to a reason.

use super::bounds::{beyond_headroom, percent, reason, saturated};
use super::{ClosedStage, Evidence, Reason, StageOpenings};
use crate::health::InstrumentHealth;

/// Closed model: the generator may take this share of the mean service time between requests, a
/// third of the cycle, before a reader is told that the throughput is not the target's alone.
const CYCLE_SHARE: f64 = 0.5;
/// A single delay of the generator above this length gives a warning, in milliseconds.
const STALL_MS: f64 = 100.0;
/// Share of the gaps of streams that may be lost before a reader is told: more would change p99.
const GAPS_LOST: f64 = 0.01;
/// Share of a stage's requests that may open a connection before a reader is told.
const OPENINGS_SHARE: f64 = 0.01;
/// As many may in any case.
const FEW_OPENINGS: u64 = 10;

/// All warnings.
pub(super) fn warnings(health: &InstrumentHealth, evidence: &Evidence) -> Vec<Reason> {
    let mut reasons = Vec::new();
    reasons.extend(limited(health, evidence));
    reasons.extend(sampled_rows(health));
    reasons.extend(coalesced(health, evidence));
    reasons.extend(stall(health, evidence));
    reasons.extend(openings(health, evidence));
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

/// Gaps that were not measured, because several events came in one read.
///
/// Events that arrive while the generator is busy are read together, and the gaps between them are
/// lost: the generator is the limit. A target that sends several events at once is only described.
/// The two differ in how late the reads with several events were; and if half of the streams have a
/// read later than half a gap, the generator is the limit in any case.
fn coalesced(health: &InstrumentHealth, evidence: &Evidence) -> Option<Reason> {
    let lag = health.read_lag_ms?;
    let lost =
        |events: u64| events as f64 / (evidence.events_together + evidence.gaps).max(1) as f64;
    let [together, late] = [evidence.events_together, evidence.events_together_late].map(lost);
    let gap = evidence.gap_p50_ms.map_or_else(String::new, |gap| format!(", gaps p50 {gap:.3} ms"));
    let worst =
        format!("worst read of a stream p50 {:.3} ms late, p99 {:.3} ms{gap}", lag.p50, lag.p99);
    let generator_limits =
        late > GAPS_LOST || evidence.gap_p50_ms.is_some_and(|gap| lag.p50 > gap / 2.0);
    if generator_limits {
        let measured = format!("{} of tokens were read late; {worst}", percent(late));
        let bound = "at most 1 %, and the worst read at most half a gap late";
        let fix = "do not trust ITL: tokens that are read together lose the gap between them, and the \
                   measured gaps are too long. Give the generator more cores, or use fewer streams at \
                   once";
        return Some(reason("limited by the instrument", measured, bound, fix));
    }
    (together > GAPS_LOST).then(|| {
        let measured = format!(
            "{} of tokens came in one read with the token before, {} were read late; {worst}",
            percent(together),
            percent(late)
        );
        let fix = format!(
            "the target sent them together, or less than {:.3} ms apart, which cannot be resolved; the \
             reads were in time. If the target should send each token by itself, look for buffering \
             between it and Plimsoll",
            lag.p99
        );
        reason("content events came together", measured, "at most 1 %", &fix)
    })
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

/// Connections that are opened during the measurement cost the target time, which a client with a
/// warm pool would not cause. The ones that virtual users open first are left out, and so are few.
fn openings(health: &InstrumentHealth, evidence: &Evidence) -> Option<Reason> {
    if health.planned_reconnects == Some(true) {
        return None;
    }
    let share = |stage: &StageOpenings| stage.opened as f64 / stage.requests.max(1) as f64;
    let many = |stage: &&StageOpenings| {
        stage.opened > stage.needed + FEW_OPENINGS && share(stage) > OPENINGS_SHARE
    };
    let worst = evidence
        .openings
        .iter()
        .filter(many)
        .max_by(|one, other| share(one).total_cmp(&share(other)))?;
    let StageOpenings { name, requests, opened, .. } = worst;
    let measured = format!("{opened} of {requests} requests of {name} ({})", percent(share(worst)));
    let fix = "the service time of these requests contains the set-up of their connection. Look \
               whether the target closes connections; for a load with warm connections, add a \
               warm-up stage or raise `idle_limit`";
    Some(reason("requests that opened a connection", measured, "at most 1 %", fix))
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
