//! Whether the generator limited the load.

use plimsoll_metrics::{Lag, Level, ProcessPlace, RunSummary, ThreadLoad, samples_needed};
use plimsoll_report::format::time;

use crate::load::Stage;
use crate::process::{self, FULL};
use crate::result::{Finding, State, Suspect};

/// What a stage shows besides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beside {
    /// Whether the load was at its limit.
    pub(crate) at_limit: bool,
    /// Whether a process of the chain was full.
    pub(crate) full_process: bool,
}

/// Judges Plimsoll itself: by what it falsified, and by its workers. Each worker has connections of
/// its own, so that one that always has work is enough.
///
/// Lateness alone limits nothing beside a full process: that one always had work, so that an
/// earlier request would only have waited longer (utilisation law).
pub(crate) fn finding(summary: &RunSummary, stage: &Stage<'_>, beside: Beside) -> Finding {
    let own = stage.resources.and_then(|all| {
        all.processes.iter().find(|process| process.place == ProcessPlace::Plimsoll)
    });
    let host = stage.resources.and_then(|all| all.host.as_ref());
    let own = own.filter(|own| !own.gone);
    // A thread that hardly runs, as one of the allocator, keeps nobody waiting.
    let busiest = own.and_then(|own| own.threads.iter().find(|thread| thread.cores >= IDLE));
    let late = falsified(summary, stage.info.name.as_str());
    // A busy generator that kept up has spoilt nothing.
    let full = worker(summary, busiest).filter(|_| beside.at_limit);
    let broken = errors(summary);
    let limits = broken.is_some() || full.is_some() || (late.is_some() && !beside.full_process);
    let known = own.is_some() || summary.health.lateness().is_some();
    let state = match (limits, known) {
        (true, _) => State::Saturated,
        (false, true) => State::Clear,
        (false, false) => State::Unknown,
    };
    let mut evidence: Vec<String> = broken.into_iter().chain(full).collect();
    if !limits && late.is_some() {
        evidence.push("late, but a full process had work all the time".to_owned());
    }
    evidence.extend(late);
    evidence.extend(own.into_iter().flat_map(|own| process::judge(own, host).figures));
    let sent = stage.group.counters.dispatched_in_stage;
    evidence.extend(summary.health.lateness().map(|lag| late_by(lag, sent)));
    let used = busiest.map(|thread| thread.cores + thread.waiting);
    let used = used.or_else(|| summary.health.highest_demand());
    let missing =
        (state == State::Unknown).then(|| "the run left no record of its own health".to_owned());
    Finding { suspect: Suspect::Generator, process: None, state, evidence, used, missing }
}

/// How late it sent: the 99th percentile where it sent enough for one, else the most.
fn late_by(lag: Lag, sent: u64) -> String {
    if sent >= samples_needed(0.99) {
        format!("late by {} at p99", time(lag.p99))
    } else {
        format!("late by {} at most", time(lag.max))
    }
}

/// A thread that ran for less of the time has no work.
const IDLE: f64 = 0.005;

/// The first figure of the stage that the generator falsified.
fn falsified(summary: &RunSummary, stage: &str) -> Option<String> {
    let mut invalid = summary.of_level(Level::Invalid);
    let found = invalid.find(|finding| {
        matches!(finding.code, 101 | 102)
            && finding.values.get("stage").is_some_and(|own| own == stage)
    });
    found.map(|finding| finding.text().trim_end_matches('.').to_owned())
}

/// The most frequent error on its side.
fn errors(summary: &RunSummary) -> Option<String> {
    let errors = &summary.health.generator_errors;
    let (class, number) = errors.iter().max_by_key(|(_, number)| **number)?;
    Some(format!("{class} x {number}"))
}

fn worker(summary: &RunSummary, busiest: Option<&ThreadLoad>) -> Option<String> {
    if let Some(ThreadLoad { name, cores, waiting }) = busiest {
        return (cores + waiting >= FULL).then(|| {
            format!("its thread `{name}` ran {cores:.2} of the time and waited {waiting:.2}")
        });
    }
    let demand = summary.health.highest_demand().filter(|demand| *demand >= FULL)?;
    Some(format!("a worker ran or waited for its CPU {demand:.2} of the time"))
}
