//! The bottleneck of a run, by the evidence of each process alone.

use plimsoll_join::Join;
use plimsoll_metrics::{HostLoad, LoadModel, ProcessPlace, RunEnd, RunSummary};
use plimsoll_report::format::{digits, percent, rate};
use plimsoll_rules::Finding;

use crate::cpu;
use crate::load::{Stage, deciding, is_flat, stages};
use crate::own_word;
use crate::result::{Answer, Observed, SCHEMA, Split, State, Suspect, Why};
use crate::role;
use crate::split::split;

/// With more requests without a good answer, the load has no bottleneck, but a fault.
const MOSTLY_FAILED: f64 = 0.5;
/// The upstream limits a load whose requests wait for it for this share of their time: the gateway
/// has a fifth of the time at most.
const IN_UPSTREAM: f64 = 0.8;
/// A link is full at this share of its speed: frames and headers take the rest.
const LINK_FULL: f64 = 0.9;
/// A thread that ran for less of the time has no work.
const IDLE: f64 = 0.005;

/// The bottleneck of a run.
pub fn why(summary: &RunSummary) -> Why {
    why_with(summary, None)
}

/// The same, with a join of the run with the gateway's own log.
pub fn why_with(summary: &RunSummary, join: Option<&Join>) -> Why {
    let run = summary.metadata.run.name.clone();
    let none = Why { schema: SCHEMA.to_owned(), run, ..Why::default() };
    let stages = stages(summary);
    let ended = summary.metadata.run.ended != RunEnd::Unfinished;
    let Some(stage) = deciding(&stages).filter(|_| ended) else { return none };
    let mut load = stage.load();
    load.at_limit &= load.model == LoadModel::Open || !is_flat(&stages);
    let (split, no_split) = match split(summary, stage, join) {
        Ok(split) => (Some(split), None),
        Err(why) => (None, Some(why)),
    };
    let observed = observed(summary, stage, join.is_some());
    let case = Case { summary, stage, at_limit: load.at_limit, observed: &observed };
    let found = case.bottleneck(split.as_ref());
    let answer = found.as_ref().map_or(Answer::None, |(answer, _)| *answer);
    let finding = found.map(|(_, finding)| finding);
    let own_word = own_word::of_stage(stage);
    Why { answer, finding, load: Some(load), observed, split, no_split, own_word, ..none }
}

/// The evidence of each process, in the order in which a request passes them.
fn observed(summary: &RunSummary, stage: &Stage<'_>, is_joined: bool) -> Vec<Observed> {
    let watched = stage.resources.map_or(&[][..], |all| &all.processes);
    let host = stage.resources.and_then(|all| all.host.as_ref());
    let front = role::front(watched, &summary.metadata.targets, is_joined);
    let mut all: Vec<_> = watched
        .iter()
        .map(|process| {
            let suspect = role::of(process, &summary.metadata.targets, front);
            let mut seen = process.clone();
            // Each worker has connections of its own, so that one that always has work is enough.
            let main_part = if suspect == Suspect::Generator { 0.0 } else { cpu::MAIN_PART };
            seen.threads.retain(|thread| thread.cores >= IDLE);
            let (state, evidence) = cpu::judge(&seen, host, main_part);
            Observed { suspect, state, evidence, process: Some(seen) }
        })
        .collect();
    // A provider at the target's address has nothing before it.
    let is_seen = watched.iter().any(|process| process.place == ProcessPlace::Target);
    for suspect in [Suspect::Generator, front, Suspect::Upstream] {
        let known = suspect == Suspect::Target && is_seen;
        if !known && all.iter().all(|observed| observed.suspect != suspect) {
            let evidence = "not watched".to_owned();
            all.push(Observed { suspect, state: State::Unknown, evidence, process: None });
        }
    }
    all.sort_by_key(|observed| observed.suspect);
    all
}

/// Everything on which the answer rests.
struct Case<'a> {
    summary: &'a RunSummary,
    stage: &'a Stage<'a>,
    at_limit: bool,
    observed: &'a [Observed],
}

impl Case<'_> {
    /// The only part that is at its limit, if the load is at its limit too.
    fn bottleneck(&self, split: Option<&Split>) -> Option<(Answer, Finding)> {
        let is_failing = self.stage.without_answer() > MOSTLY_FAILED;
        if is_failing || self.stage.throughput() == 0.0 {
            return None;
        }
        let full = self.full(split);
        let (answer, evidence) = match full.as_slice() {
            [(answer, evidence)] => (*answer, evidence.clone()),
            _ if !self.at_limit => return None,
            [] => self.starved().map_or_else(|| self.unknown(), |who| (Answer::Host, who)),
            several => {
                let names: Vec<_> = several.iter().map(|(answer, _)| answer.name()).collect();
                let both = format!("{} are at their limits", names.join(" and "));
                let host = self.host().is_some_and(cpu::is_full);
                (if host { Answer::Host } else { Answer::Unknown }, both)
            }
        };
        let finding = Finding::new(answer.rule()?)
            .with("rate", format!("{}/s", rate(Some(self.stage.throughput()))))
            .with("who", answer.name())
            .with("evidence", evidence)
            .with("missing", self.missing());
        Some((answer, finding))
    }

    fn host(&self) -> Option<&HostLoad> {
        self.stage.resources.and_then(|all| all.host.as_ref())
    }

    /// The parts that are at a limit of their own, with their evidence.
    fn full(&self, split: Option<&Split>) -> Vec<(Answer, String)> {
        // A busy generator that sends on time limits nothing.
        let is_open = self.stage.info.model == LoadModel::Open;
        let generator = if is_open { self.stage.is_late() } else { self.at_limit };
        let full = self.observed.iter().filter(|observed| {
            let is_own = observed.suspect == Suspect::Generator;
            observed.state == State::Full && if is_own { generator } else { self.at_limit }
        });
        let mut all: Vec<_> = full.map(Observed::claim).collect();
        all.dedup_by_key(|(answer, _)| *answer);
        if self.at_limit {
            let waits = split.map(|split| split.in_upstream).filter(|share| *share >= IN_UPSTREAM);
            let waits = waits.filter(|_| all.iter().all(|(answer, _)| *answer != Answer::Upstream));
            let words = |share| format!("{} of the requests' time", percent(share));
            all.extend(waits.map(|share| (Answer::Upstream, words(share))));
            all.extend(self.link().map(|used| (Answer::Network, used)));
        }
        all
    }

    /// A process that lacked CPU time, where none is at a limit of its own.
    fn starved(&self) -> Option<String> {
        let starved = self.observed.iter().find(|observed| observed.state == State::Starved)?;
        Some(format!("the {} {}", starved.suspect.name(), starved.evidence))
    }

    /// A link that the bytes of this load alone fill.
    fn link(&self) -> Option<String> {
        let mbit = self.summary.metadata.environment.link_mbit?;
        let is_local = |url: &str| {
            ["://127.", "://localhost", "://[::1]"].iter().any(|host| url.contains(host))
        };
        if self.summary.metadata.targets.iter().any(|target| is_local(&target.url)) {
            return None;
        }
        let counters = &self.stage.group.counters;
        let bytes = counters.bytes_in.max(counters.bytes_out) as f64;
        let used = bytes * 8.0 / 1e6 / self.stage.info.duration_s;
        (used >= LINK_FULL * mbit).then(|| format!("{} of {} Mbit/s", digits(used), digits(mbit)))
    }

    fn unknown(&self) -> (Answer, String) {
        let unknown = self.observed.iter().filter(|observed| observed.state == State::Unknown);
        let all: Vec<_> = unknown
            .map(|observed| format!("{}: {}", observed.suspect.name(), observed.evidence))
            .collect();
        let none = "no watched process is at its limit".to_owned();
        (Answer::Unknown, if all.is_empty() { none } else { all.join("; ") })
    }

    /// The next measurement that would show more.
    fn missing(&self) -> String {
        let mut all = self.observed.iter();
        if all.any(|one| one.suspect == Suspect::Other && one.state == State::Full) {
            return "--watch {gateway|upstream|store}=:PORT".to_owned();
        }
        self.observed
            .iter()
            .find(|one: &&Observed| one.process.is_none() && one.suspect != Suspect::Generator)
            .map_or_else(
                || "`plimsoll versus --direct URL`".to_owned(),
                |observed| format!("--watch {}=:PORT", observed.suspect.name()),
            )
    }
}

impl Observed {
    /// The answer, if it alone is at its limit, with the evidence.
    fn claim(&self) -> (Answer, String) {
        let name = self.process.as_ref().filter(|_| self.suspect == Suspect::Other);
        let name = name.map_or_else(String::new, |process| format!("`{}` ", process.name));
        (self.suspect.answer(), format!("{name}{}", self.evidence))
    }
}
