//! The bounds. Each is a function from what was measured to what is wrong with it.

use super::{ClosedStage, Evidence, Reason};
use crate::facts::RunEnd;
use crate::health::InstrumentHealth;

/// Lateness below this is never held against a run, in milliseconds: what a scheduler does to an idle
/// process once in a while.
const LAG_FLOOR_MS: f64 = 1.0;
/// Open model: lateness may be this share of the median service time.
const LAG_SHARE: f64 = 0.1;
/// Closed model: 99 % of the turns may be this late whatever the target does, in milliseconds: some
/// time slices of the scheduler.
const TURN_FLOOR_MS: f64 = 10.0;
/// Closed model: the generator may take this share of the mean service time between requests, a third
/// of the cycle, before a reader is told that the throughput is not the target's alone.
const CYCLE_SHARE: f64 = 0.5;
/// A generator that stood still for so long has a warning, in milliseconds, however rarely.
const STALL_MS: f64 = 100.0;
/// Share of the gaps of streams that may be lost before a reader is told: p99 would be another one.
const GAPS_LOST: f64 = 0.01;
/// Share of the planned arrivals that must be released in their stage.
const ACHIEVED_SHARE: f64 = 0.99;
/// A worker that had or wanted its CPU for more than this share of the time is saturated.
const BUSY_SHARE: f64 = 0.9;
/// A saturated worker may wait so many times as long for its CPU as it has it.
const WAIT_RATIO: f64 = 2.0;
/// Share of a limit that may be used: peaks are looked for once a second, and may be missed.
const HEADROOM_SHARE: f64 = 0.9;
/// Share of CPU time that a hypervisor may withhold: it hits target and generator alike, and cannot be
/// told from slowness.
const STEAL_SHARE: f64 = 0.05;
/// Share of the time that a CPU quota may hold the process up: more would be seen in p99.
const THROTTLED_SHARE: f64 = 0.01;
/// Steps of the clock, in nanoseconds: twice the resolution of the histograms.
const CLOCK_STEP_NS: u64 = 1_000;
/// By how much Little's law may be off, and in stages of which length, in seconds.
const LITTLE_ERROR: f64 = 0.02;
const LITTLE_LENGTH_S: f64 = 5.0;
/// Share of requests without an end up to which it is known how long requests were under way.
const LITTLE_UNFINISHED: f64 = 0.01;

const REPORT_IT: &str = "this is a fault of Plimsoll: report it, with the run's folder";
const MORE_GENERATOR: &str = "give the generator more or idler cores, lower the load, or divide it over several processes with --shard";

/// Whatever makes a run invalid.
pub(super) fn violations(health: &InstrumentHealth, evidence: &Evidence) -> Vec<Reason> {
    let mut reasons = Vec::new();
    reasons.extend(end(evidence));
    reasons.extend(balance(evidence));
    reasons.extend(sink(health));
    reasons.extend(rows(health, evidence));
    reasons.extend(health.generator_errors.iter().map(|(class, n)| generator_error(class, *n)));
    reasons.extend(descriptors(health));
    reasons.extend(lag(health, evidence));
    reasons.extend(arrivals(health));
    reasons.extend(saturation(health, evidence));
    reasons.extend(squeezed(health));
    reasons.extend(evidence.closed.iter().filter_map(generator_slower_than_target));
    reasons.extend(evidence.closed.iter().filter_map(late_turns));
    reasons.extend(blind_saturation(health, evidence));
    reasons.extend(withheld(health));
    reasons.extend(clock(health));
    reasons.extend(littles_law(health, evidence));
    reasons
}

/// Whatever a reader must know of a valid run.
pub(super) fn warnings(health: &InstrumentHealth, evidence: &Evidence) -> Vec<Reason> {
    let mut reasons = Vec::new();
    reasons.extend(limited(health, evidence));
    reasons.extend(thinned(health));
    reasons.extend(coalesced(health, evidence));
    reasons.extend(stall(health, evidence));
    reasons.extend(ports(health));
    reasons.extend(calibration(health));
    reasons
}

fn reason(what: &str, measured: String, bound: impl Into<String>, mend: &str) -> Reason {
    Reason { what: what.to_owned(), measured, bound: bound.into(), mend: mend.to_owned() }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn end(evidence: &Evidence) -> Option<Reason> {
    let (measured, mend) = match evidence.ended {
        RunEnd::Complete | RunEnd::Interrupted => return None,
        RunEnd::Aborted => ("aborted", "mend what the notes say, and run again"),
        RunEnd::Unfinished => ("never finished", "run again; instrument health was not recorded"),
    };
    Some(reason("end of the run", measured.to_owned(), "complete or interrupted", mend))
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

fn sink(health: &InstrumentHealth) -> Option<Reason> {
    let lost = health.sink_overflowed.filter(|&lost| lost > 0)?;
    let mend = "write to a faster disk (--out), or lower the load";
    Some(reason("results.jsonl", format!("{lost} rows lost"), "none", mend))
}

/// Each planned request has its row, or is known not to have one.
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

/// A file that is a selection, by a rule that does not look at what was measured.
fn thinned(health: &InstrumentHealth) -> Option<Reason> {
    let left_out = health.sink_left_out.filter(|&left_out| left_out > 0)?;
    let (offered, one_in) = (health.sink_offered?, health.sink_least_share_one_in?);
    let share = percent(left_out as f64 / offered.max(1) as f64);
    Some(reason(
        "results.jsonl is a sample",
        format!(
            "{left_out} of {offered} rows ({share}) left out; at times all but one conversation in {one_in}"
        ),
        "every row",
        "the report counts every request; in the file, count each row `weight` times. For all rows give the writer a \
         faster disk (--out) or a core of its own, or lower the load",
    ))
}

fn generator_error(class: &str, count: u64) -> Reason {
    let mend = match class {
        "gen_port_exhaustion" => {
            "widen net.ipv4.ip_local_port_range, or let connections be reused: see `plimsoll doctor`"
        }
        "gen_fd_exhaustion" => "raise the limit on open files (ulimit -n): see `plimsoll doctor`",
        "gen_no_buffers" => "give the generator more memory, or lower the load",
        _ => "see `plimsoll doctor`, and the rows of this error class in results.jsonl",
    };
    reason(class, format!("{count} requests"), "none", mend)
}

fn descriptors(health: &InstrumentHealth) -> Option<Reason> {
    let (peak, limit) = (health.fd_peak?, health.fd_limit?);
    beyond_headroom(peak, limit).then(|| {
        let mend = "raise the limit on open files (ulimit -n): see `plimsoll doctor`";
        reason("file descriptors", format!("{peak} of {limit}"), "at most 90 %", mend)
    })
}

fn beyond_headroom(peak: u64, limit: u64) -> bool {
    peak as f64 > limit as f64 * HEADROOM_SHARE
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

fn saturated(health: &InstrumentHealth) -> Option<f64> {
    health.most_wanted().filter(|&share| share > BUSY_SHARE)
}

fn saturation(health: &InstrumentHealth, evidence: &Evidence) -> Option<Reason> {
    let busy = saturated(health).filter(|_| evidence.open_model)?;
    let late = health.lateness().filter(|lag| lag.p99 > LAG_FLOOR_MS)?;
    let measured =
        format!("had or wanted its CPU {} of the time, p99 {:.3} ms late", percent(busy), late.p99);
    Some(reason(
        "saturated worker",
        measured,
        "at most 90 % while more than 1 ms late",
        MORE_GENERATOR,
    ))
}

/// A worker that wanted its CPU nearly always and got it for less than a third of that time: the figures
/// are those of the scheduler.
fn squeezed(health: &InstrumentHealth) -> Option<Reason> {
    let workers = health.worker_cpu_shares.iter().zip(&health.worker_wait_shares);
    let (cpu, wait) = workers
        .filter(|&(cpu, wait)| cpu + wait > BUSY_SHARE && *wait > cpu * WAIT_RATIO)
        .max_by(|a, b| a.1.total_cmp(b.1))?;
    let measured =
        format!("had its CPU {} of the time and waited for it {}", percent(*cpu), percent(*wait));
    let bound = "waits at most twice as long as it runs, when it wants more than 90 %";
    Some(reason("squeezed worker", measured, bound, MORE_GENERATOR))
}

/// More than half of each cycle of a virtual user passed in the generator: the throughput is its own.
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

/// The generator's lateness is what the high percentiles of response time show.
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

/// Without the kernel's time stamps nobody can tell how much of the service time was the generator's.
fn blind_saturation(health: &InstrumentHealth, evidence: &Evidence) -> Option<Reason> {
    let busy = saturated(health).filter(|_| health.kernel_timestamps == Some(false))?;
    (!evidence.closed.is_empty()).then(|| {
        reason(
            "saturated worker",
            format!("had or wanted its CPU {} of the time, without the kernel's time stamps", percent(busy)),
            "at most 90 % without them",
            "turn the kernel's time stamps on, give the generator more cores, or use fewer virtual users",
        )
    })
}

/// CPU time that others withheld from the process.
fn withheld(health: &InstrumentHealth) -> Vec<Reason> {
    let steal = health.steal_share.filter(|&share| share > STEAL_SHARE).map(|share| {
        let mend =
            "use a machine of your own, or a quieter hour: the hypervisor gave the CPU to others";
        reason("steal", percent(share), "at most 5 %", mend)
    });
    let throttled = health.throttled_share.filter(|&share| share > THROTTLED_SHARE).map(|share| {
        let mend = "raise the CPU quota of the container or control group, or lower the load";
        reason("CPU quota", format!("held up {} of the time", percent(share)), "at most 1 %", mend)
    });
    steal.into_iter().chain(throttled).collect()
}

fn clock(health: &InstrumentHealth) -> Option<Reason> {
    let step = health.clock_step_ns.filter(|&step| step > CLOCK_STEP_NS)?;
    let mend = "use a better clock source (tsc): see `plimsoll doctor`";
    Some(reason("clock", format!("steps of {step} ns"), "at most 1000 ns", mend))
}

/// What was watched and what the samples say of the same stage must agree.
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

/// A closed loop as fast as it can go: what wrk measures. The service time is still the target's,
/// because the kernel stamps the answer and nothing of ours lies in between.
fn limited(health: &InstrumentHealth, evidence: &Evidence) -> Option<Reason> {
    let slow = |stage: &ClosedStage| stage.generator.mean > stage.target.mean * CYCLE_SHARE;
    let limited = saturated(health).is_some() || evidence.closed.iter().any(slow);
    let busy = health.most_wanted().filter(|_| limited && !evidence.closed.is_empty())?;
    let generator = evidence.closed.iter().map(|s| s.generator.mean).fold(0.0, f64::max);
    let target = evidence.closed.iter().map(|s| s.target.mean).fold(0.0, f64::max);
    Some(reason(
        "limited by the instrument",
        format!(
            "a worker had or wanted its CPU {} of the time; mean {generator:.3} ms between requests, {target:.3} ms in the target",
            percent(busy)
        ),
        "at most 90 % of the time, and half of the service time",
        "throughput is that of generator and target together, and response time contains the generator's share; \
         service time, by the kernel's time stamps, is the target's. For more, give the generator more cores",
    ))
}

/// Gaps that were not measured, because events came in one read.
///
/// Events that arrive while the generator is busy are read together, and the gap between them is lost: then it is the
/// generator that limits. A target that sends several at once is only described. The two are told apart by how late
/// the reads were that brought several; and by the worst read of each stream, of which half a gap in the median is
/// too much in any case.
fn coalesced(health: &InstrumentHealth, evidence: &Evidence) -> Option<Reason> {
    let lag = health.read_lag_ms?;
    let lost =
        |events: u64| events as f64 / (evidence.events_together + evidence.gaps).max(1) as f64;
    let [together, late] = [evidence.events_together, evidence.events_together_late].map(lost);
    let gap = evidence.gap_p50_ms.map_or_else(String::new, |gap| format!(", gaps p50 {gap:.3} ms"));
    let measured = format!(
        "{} of the content events came in one read with the one before them, {} in reads that were late; worst read \
         of a stream p50 {:.3} ms late, p99 {:.3} ms{gap}",
        percent(together),
        percent(late),
        lag.p50,
        lag.p99
    );
    let ours = late > GAPS_LOST || evidence.gap_p50_ms.is_some_and(|gap| lag.p50 > gap / 2.0);
    if ours {
        let mend = "gaps between events of one read are lost, and the ones measured are too long: give the generator \
                    more cores, or use fewer streams at once";
        let bound = "at most 1 % in late reads, and the worst read at most half a gap late";
        return Some(reason("limited by the instrument", measured, bound, mend));
    }
    (together > GAPS_LOST).then(|| {
        let mend = format!(
            "sent together, or less than {:.3} ms apart: shorter gaps cannot be told. The reads were in time: if the \
             target is to send each event on its own, look for buffering between it and here",
            lag.p99
        );
        reason("content events came together", measured, "at most 1 %", &mend)
    })
}

fn stall(health: &InstrumentHealth, evidence: &Evidence) -> Option<Reason> {
    let open = health.lateness().filter(|_| evidence.open_model).map(|lag| lag.max);
    let longest = evidence.closed.iter().map(|stage| stage.generator.max).chain(open);
    let longest = longest.fold(0.0, f64::max);
    (longest > STALL_MS).then(|| {
        let measured = format!("up to {longest:.0} ms late");
        let mend = "find what else ran on this machine; the requests that it hit are charged with it, so read the maximum with care";
        reason("the generator stood still", measured, "at most 100 ms", mend)
    })
}

fn ports(health: &InstrumentHealth) -> Option<Reason> {
    let (peak, limit) = (health.ports_peak?, health.ephemeral_ports?);
    beyond_headroom(peak, limit).then(|| {
        let mend = "widen net.ipv4.ip_local_port_range, or let connections be reused";
        reason("local ports", format!("up to {peak} of {limit} taken"), "at most 90 %", mend)
    })
}

fn calibration(health: &InstrumentHealth) -> Option<Reason> {
    let quote = health.calibration.as_ref().filter(|quote| quote.failed > 0)?;
    let measured = format!("{} tests failed on this host ({})", quote.failed, quote.when);
    Some(reason(
        "calibration",
        measured,
        "none",
        "see `plimsoll calibrate` for which, and what it means",
    ))
}
