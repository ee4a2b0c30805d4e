//! Violations of the accounting and of what every figure rests on. Each is a function from the
//! measurements to a reason. The figures themselves are judged in [`super::headline`].

use super::bounds::reason;
use super::{Evidence, Reason};
use crate::health::InstrumentHealth;
use crate::run_metadata::RunEnd;

/// Steps of the clock, in nanoseconds: twice the resolution of the histograms.
const CLOCK_STEP_NS: u64 = 1_000;

const REPORT_IT: &str = "this is a fault of Plimsoll: report it, with the run's folder";

/// All violations.
pub(super) fn violations(health: &InstrumentHealth, evidence: &Evidence) -> Vec<Reason> {
    let mut reasons = Vec::new();
    reasons.extend(end(evidence));
    reasons.extend(balance(evidence));
    reasons.extend(lost_rows(health));
    reasons.extend(rows(health, evidence));
    reasons.extend(health.generator_errors.iter().map(|(class, n)| generator_error(class, *n)));
    reasons.extend(clock(health));
    reasons
}

fn end(evidence: &Evidence) -> Option<Reason> {
    let (measured, fix) = match evidence.ended {
        RunEnd::Complete | RunEnd::Interrupted | RunEnd::TooManyErrors | RunEnd::Decided => {
            return None;
        }
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
    let (what, fix) = match class {
        "gen_port_exhaustion" => (
            "ran out of local ports",
            "widen net.ipv4.ip_local_port_range, or let connections be reused: see `plimsoll doctor`",
        ),
        "gen_fd_exhaustion" => (
            "ran out of file descriptors",
            "raise the limit on open files (ulimit -n): see `plimsoll doctor`",
        ),
        "gen_no_buffers" => {
            ("ran out of socket buffers", "give the generator more memory, or lower the load")
        }
        other => {
            (other, "see `plimsoll doctor`, and the rows of this error class in results.jsonl")
        }
    };
    reason(what, format!("{count} requests"), "none", fix)
}

fn clock(health: &InstrumentHealth) -> Option<Reason> {
    let step = health.clock_step_ns.filter(|&step| step > CLOCK_STEP_NS)?;
    let fix = "use a better clock source (tsc): see `plimsoll doctor`";
    Some(reason("clock", format!("steps of {step} ns"), "at most 1000 ns", fix))
}
