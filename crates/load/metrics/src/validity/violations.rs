//! Violations: bounds that make a run invalid when they are broken. Each is a function from the
//! measurements to a reason.

use super::bounds::{BUSY_SHARE, LAG_FLOOR_MS, beyond_headroom, percent, reason, saturated};
use super::{ClosedStage, Evidence, Reason};
use crate::health::InstrumentHealth;
use crate::run_metadata::RunEnd;

/// Open model: lateness may be this share of the median service time.
const LAG_SHARE: f64 = 0.1;
/// Closed model: 99 % of the turns may be this late whatever the target does, in milliseconds: a
/// few time slices of the scheduler.
const TURN_FLOOR_MS: f64 = 10.0;
/// Share of the planned arrivals that must be released in their stage.
const ACHIEVED_SHARE: f64 = 0.99;
/// A saturated worker may wait for its CPU this many times as long as it runs.
const WAIT_RATIO: f64 = 2.0;
/// Share of CPU time that a hypervisor may withhold: it slows target and generator alike, and looks
/// like a slow target.
const STEAL_SHARE: f64 = 0.05;
/// Share of the time that a CPU quota may stop the process: more would show in p99.
const THROTTLED_SHARE: f64 = 0.01;
/// Steps of the clock, in nanoseconds: twice the resolution of the histograms.
const CLOCK_STEP_NS: u64 = 1_000;
/// The largest relative error of Little's law.
const LITTLE_ERROR: f64 = 0.02;
/// The shortest stage on which Little's law is judged, in seconds.
const LITTLE_LENGTH_S: f64 = 5.0;
/// The largest share of requests without an end with which Little's law is judged.
const LITTLE_UNFINISHED: f64 = 0.01;

const REPORT_IT: &str = "this is a fault of Plimsoll: report it, with the run's folder";
const MORE_GENERATOR: &str = "give the generator more or idler cores, lower the load, or divide it over several \
                              processes with --shard";

/// All violations.
pub(super) fn violations(health: &InstrumentHealth, evidence: &Evidence) -> Vec<Reason> {
    let mut reasons = Vec::new();
    reasons.extend(end(evidence));
    reasons.extend(balance(evidence));
    reasons.extend(lost_rows(health));
    reasons.extend(rows(health, evidence));
    reasons.extend(health.generator_errors.iter().map(|(class, n)| generator_error(class, *n)));
    reasons.extend(descriptors(health));
    reasons.extend(lag(health, evidence));
    reasons.extend(arrivals(health));
    reasons.extend(saturation(health, evidence));
    reasons.extend(squeezed(health));
    reasons.extend(evidence.closed.iter().filter_map(generator_slower_than_target));
    reasons.extend(evidence.closed.iter().filter_map(late_turns));
    reasons.extend(saturation_without_timestamps(health, evidence));
    reasons.extend(withheld_cpu(health));
    reasons.extend(clock(health));
    reasons.extend(littles_law(health, evidence));
    reasons
}

fn end(evidence: &Evidence) -> Option<Reason> {
    let (measured, fix) = match evidence.ended {
        RunEnd::Complete | RunEnd::Interrupted | RunEnd::TooManyErrors => return None,
        RunEnd::Aborted => ("aborted", "fix what the notes say, and run again"),
        RunEnd::Unfinished => ("never finished", "run again; instrument health was not recorded"),
    };
    Some(reason("end of the run", measured.to_owned(), "complete or interrupted", fix))
}

fn balance(evidence: &Evidence) -> Option<Reason> {
    let (cell, accounting) = evidence.unbalanced.first()?;
    let others = match evidence.unbalanced.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let measured = format!("{cell}: {accounting}{others}");
    Some(reason("accounting", measured, "scheduled = sum of all outcomes", REPORT_IT))
}

fn lost_rows(health: &InstrumentHealth) -> Option<Reason> {
    let lost = health.sink_overflowed.filter(|&lost| lost > 0)?;
    let fix = "write to a faster disk (--out), or lower the load";
    Some(reason("results.jsonl", format!("{lost} rows lost"), "none", fix))
}

/// Each planned request has a row, or is counted as left out or lost.
fn rows(health: &InstrumentHealth, evidence: &Evidence) -> Option<Reason> {
    let (offered, scheduled) = (health.sink_offered?, evidence.scheduled?);
    let (written, left_out) = (health.sink_written?, health.sink_left_out?);
    let lost = health.sink_overflowed?;
    (offered != scheduled || written + left_out + lost != offered).then(|| {
        let measured = format!(
            "{scheduled} requests; of {offered} rows {written} written, {left_out} left out, {lost} lost"
        );
        let bound = "requests = rows written + left out + lost";
        reason("accounting of results.jsonl", measured, bound, REPORT_IT)
    })
}

fn generator_error(class: &str, count: u64) -> Reason {
    let fix = match class {
        "gen_port_exhaustion" => {
            "widen net.ipv4.ip_local_port_range, or let connections be reused: see `plimsoll doctor`"
        }
        "gen_fd_exhaustion" => "raise the limit on open files (ulimit -n): see `plimsoll doctor`",
        "gen_no_buffers" => "give the generator more memory, or lower the load",
        _ => "see `plimsoll doctor`, and the rows of this error class in results.jsonl",
    };
    reason(class, format!("{count} requests"), "none", fix)
}

fn descriptors(health: &InstrumentHealth) -> Option<Reason> {
    let (peak, limit) = (health.fd_peak?, health.fd_limit?);
    beyond_headroom(peak, limit).then(|| {
        let fix = "raise the limit on open files (ulimit -n): see `plimsoll doctor`";
        reason("file descriptors", format!("{peak} of {limit}"), "at most 90 %", fix)
    })
}

fn lag(health: &InstrumentHealth, evidence: &Evidence) -> Option<Reason> {
    let measured = health.lateness().filter(|_| evidence.open_model)?.p99;
    let share = evidence.service_time_p50_ms.unwrap_or_default() * LAG_SHARE;
    let bound = share.max(LAG_FLOOR_MS);
    (measured > bound).then(|| {
        let bound = format!(
            "p99 at most {bound:.3} ms (the larger of 1 ms and 10 % of the median service time)"
        );
        reason("lateness of the generator", format!("p99 {measured:.3} ms"), bound, MORE_GENERATOR)
    })
}

fn arrivals(health: &InstrumentHealth) -> Option<Reason> {
    let (planned, achieved) = (health.planned_arrivals?, health.achieved_arrivals?);
    ((achieved as f64) < planned as f64 * ACHIEVED_SHARE).then(|| {
        let measured = format!("{achieved} of {planned} planned");
        reason("arrivals in time", measured, "at least 99 %", MORE_GENERATOR)
    })
}

fn saturation(health: &InstrumentHealth, evidence: &Evidence) -> Option<Reason> {
    let busy = saturated(health).filter(|_| evidence.open_model)?;
    let late = health.lateness().filter(|lag| lag.p99 > LAG_FLOOR_MS)?;
    let measured = format!(
        "used or waited for its CPU {} of the time, p99 {:.3} ms late",
        percent(busy),
        late.p99
    );
    let bound = "at most 90 % while more than 1 ms late";
    Some(reason("saturated worker", measured, bound, MORE_GENERATOR))
}

/// A worker that nearly always wanted its CPU and got it for less than a third of that time: the
/// figures are those of the scheduler.
fn squeezed(health: &InstrumentHealth) -> Option<Reason> {
    let workers = health.worker_cpu_shares.iter().zip(&health.worker_wait_shares);
    let (cpu, wait) = workers
        .filter(|&(cpu, wait)| cpu + wait > BUSY_SHARE && *wait > cpu * WAIT_RATIO)
        .max_by(|a, b| a.1.total_cmp(b.1))?;
    let measured =
        format!("used its CPU {} of the time and waited for it {}", percent(*cpu), percent(*wait));
    let bound = "waits at most twice as long as it runs, if it wants more than 90 %";
    Some(reason("squeezed worker", measured, bound, MORE_GENERATOR))
}

/// More than half of each cycle of a virtual user passed in the generator: the throughput is its
/// own.
fn generator_slower_than_target(stage: &ClosedStage) -> Option<Reason> {
    let bound = stage.target.mean.max(LAG_FLOOR_MS);
    (stage.generator.mean > bound).then(|| {
        let measured = format!(
            "stage {}: {:.3} ms between requests, {:.3} ms in the target",
            stage.name, stage.generator.mean, stage.target.mean
        );
        let bound =
            format!("mean at most {bound:.3} ms (the larger of 1 ms and the mean service time)");
        reason("limited by the instrument", measured, bound, MORE_GENERATOR)
    })
}

/// The high percentiles of response time show the generator's lateness.
fn late_turns(stage: &ClosedStage) -> Option<Reason> {
    let bound = stage.target.p99.max(TURN_FLOOR_MS);
    (stage.generator.p99 > bound).then(|| {
        let measured =
            format!("stage {}: p99 {:.3} ms between requests", stage.name, stage.generator.p99);
        let bound =
            format!("at most {bound:.3} ms (the larger of 10 ms and p99 of the service time)");
        reason("lateness of the generator", measured, bound, MORE_GENERATOR)
    })
}

/// Without the kernel's time stamps the generator's part of the service time is not known.
fn saturation_without_timestamps(health: &InstrumentHealth, evidence: &Evidence) -> Option<Reason> {
    let busy = saturated(health).filter(|_| health.kernel_timestamps == Some(false))?;
    (!evidence.closed.is_empty()).then(|| {
        let measured = format!(
            "used or waited for its CPU {} of the time, without the kernel's time stamps",
            percent(busy)
        );
        let fix = "turn the kernel's time stamps on, give the generator more cores, or use fewer virtual \
                   users";
        reason("saturated worker", measured, "at most 90 % without them", fix)
    })
}

/// CPU time that the hypervisor or the control group withheld from the process.
fn withheld_cpu(health: &InstrumentHealth) -> Vec<Reason> {
    let steal = health.steal_share.filter(|&share| share > STEAL_SHARE).map(|share| {
        let fix =
            "use a dedicated machine, or a quieter hour: the hypervisor gave the CPU to others";
        reason("steal", percent(share), "at most 5 %", fix)
    });
    let throttled = health.throttled_share.filter(|&share| share > THROTTLED_SHARE).map(|share| {
        let fix = "raise the CPU quota of the container or control group, or lower the load";
        reason("CPU quota", format!("stopped {} of the time", percent(share)), "at most 1 %", fix)
    });
    steal.into_iter().chain(throttled).collect()
}

fn clock(health: &InstrumentHealth) -> Option<Reason> {
    let step = health.clock_step_ns.filter(|&step| step > CLOCK_STEP_NS)?;
    let fix = "use a better clock source (tsc): see `plimsoll doctor`";
    Some(reason("clock", format!("steps of {step} ns"), "at most 1000 ns", fix))
}

/// The requests in flight that the engine watched must agree with the samples of the same stage.
fn littles_law(health: &InstrumentHealth, evidence: &Evidence) -> Option<Reason> {
    let steady = |stage: &&ClosedStage| {
        evidence.ended == RunEnd::Complete
            && stage.duration_s >= LITTLE_LENGTH_S
            && stage.unfinished <= LITTLE_UNFINISHED
    };
    let judged: Vec<_> = evidence.closed.iter().filter(steady).map(|stage| &stage.name).collect();
    let laws = health.littles_law.iter().filter(|law| judged.contains(&&law.stage));
    let law = laws.max_by(|a, b| a.error().total_cmp(&b.error()))?;
    (law.error() > LITTLE_ERROR).then(|| {
        let measured = format!(
            "stage {}: N {:.3}, X R {:.3}, off by {}",
            law.stage,
            law.in_flight,
            law.rate_times_time,
            percent(law.error())
        );
        reason("Little's law", measured, "at most 2 %", REPORT_IT)
    })
}
