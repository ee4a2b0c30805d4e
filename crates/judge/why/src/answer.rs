//! Finds the bottleneck of a run from the evidence of each process.

use plimsoll_join::Join;
use plimsoll_metrics::{HostLoad, LoadModel, ProcessPlace, RunEnd, RunSummary};
use plimsoll_report::format::{digits, percent, rate};
use plimsoll_rules::Finding;

use crate::load::{Stage, deciding, is_flat, stages};
use crate::result::{Answer, Observed, SCHEMA, Split, State, Suspect, Why};
use crate::split::{split, stated_timing};
use crate::{cpu, role};

/// Share of failed requests above which the load has a fault rather than a bottleneck.
const MOSTLY_FAILED: f64 = 0.5;
/// Share of the requests' time spent in the upstream from which the upstream is the bottleneck: the
/// gateway takes at most a fifth.
const IN_UPSTREAM: f64 = 0.8;
/// Share of its speed at which a link is full; frames and headers take the rest.
const LINK_FULL: f64 = 0.9;
/// Share of the time below which a thread counts as idle.
const IDLE: f64 = 0.005;

/// Finds the bottleneck of a run.
pub fn why(summary: &RunSummary) -> Why {
    why_with(summary, None)
}

/// Like [`why`], with a join of the run with the gateway's own log.
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
    let case = Evidence { summary, stage, at_limit: load.at_limit, observed: &observed };
    let found = case.bottleneck(split.as_ref());
    let answer = found.as_ref().map_or(Answer::None, |(answer, _)| *answer);
    let finding = found.map(|(_, finding)| finding);
    let own_word = stated_timing(stage);
    Why { answer, finding, load: Some(load), observed, split, no_split, own_word, ..none }
}

/// The evidence of each process, in the order in which requests pass them.
fn observed(summary: &RunSummary, stage: &Stage<'_>, is_joined: bool) -> Vec<Observed> {
    let watched = stage.resources.map_or(&[][..], |all| &all.processes);
    let host = stage.resources.and_then(|all| all.host.as_ref());
    let front = role::front(watched, &summary.metadata.targets, is_joined);
    let mut all: Vec<_> = watched
        .iter()
        .map(|process| {
            let suspect = role::of(process, &summary.metadata.targets, front);
            let mut seen = process.clone();
            // Each worker has its own connections, so one saturated worker is enough.
            let main_part = if suspect == Suspect::Generator { 0.0 } else { cpu::MAIN_PART };
            seen.threads.retain(|thread| thread.cores >= IDLE);
            let (state, evidence) = cpu::judge(&seen, host, main_part);
            Observed { suspect, state, evidence, process: Some(seen) }
        })
        .collect();
    // A provider at the target's address has no gateway in front of it.
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

/// All evidence for the answer.
struct Evidence<'a> {
    summary: &'a RunSummary,
    stage: &'a Stage<'a>,
    at_limit: bool,
    observed: &'a [Observed],
}

impl Evidence<'_> {
    /// The only saturated part, if the load is at its limit too.
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

    /// All saturated parts, with their evidence.
    fn full(&self, split: Option<&Split>) -> Vec<(Answer, String)> {
        // A busy generator that sends on time does not limit the load.
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

    /// A process that lacked CPU time, if no process is at its own limit.
    fn starved(&self) -> Option<String> {
        let starved = self.observed.iter().find(|observed| observed.state == State::Starved)?;
        Some(format!("the {} {}", starved.suspect.name(), starved.evidence))
    }

    /// A link that this load alone saturates.
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
        let none = "no monitored process is at its limit".to_owned();
        (Answer::Unknown, if all.is_empty() { none } else { all.join("; ") })
    }

    /// The measurement to add next.
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
    /// The answer if only this part is at its limit, with the evidence.
    fn claim(&self) -> (Answer, String) {
        let name = self.process.as_ref().filter(|_| self.suspect == Suspect::Other);
        let name = name.map_or_else(String::new, |process| format!("`{}` ", process.name));
        (self.suspect.answer(), format!("{name}{}", self.evidence))
    }
}
