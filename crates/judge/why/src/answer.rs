//! Finds the bottleneck of a run from the evidence of each process.

use plimsoll_join::Join;
use plimsoll_metrics::{
    HostLoad, LoadModel, ProcessLoad, ProcessPlace, RunEnd, RunSummary, TargetInfo,
};
use plimsoll_report::format::{digits, percent, rate};
use plimsoll_rules::Finding;

use crate::cpu;
use crate::result::{Answer, Observed, SCHEMA, Split, State, Suspect, Why};
use crate::split::{Stage, deciding, split, stages, stated_timing, times_grow};

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
    let grows = if load.model == LoadModel::Open { Some(true) } else { times_grow(&stages) };
    load.at_limit &= grows != Some(false);
    let (split, no_split) = match split(summary, stage, join) {
        Ok(split) => (Some(split), None),
        Err(why) => (None, Some(why)),
    };
    let observed = observed(summary, stage, join.is_some());
    let (at_limit, queues) = (load.at_limit, grows == Some(true));
    let case = Evidence { summary, stage, at_limit, queues, observed: &observed };
    let (answer, finding) = case.bottleneck(split.as_ref());
    load.at_limit &= answer == Answer::None || finding.is_some();
    let own_word = stated_timing(stage);
    Why { answer, finding, load: Some(load), observed, split, no_split, own_word, ..none }
}

/// The evidence of each process, in the order in which requests pass them.
fn observed(summary: &RunSummary, stage: &Stage<'_>, is_joined: bool) -> Vec<Observed> {
    let watched = stage.resources.map_or(&[][..], |all| &all.processes);
    let host = stage.resources.and_then(|all| all.host.as_ref());
    let front = front(watched, &summary.metadata.targets, is_joined);
    let mut all: Vec<_> = watched
        .iter()
        .map(|process| {
            let suspect = role_of(process, &summary.metadata.targets, front);
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
            let evidence = "not monitored".to_owned();
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
    /// Whether users wait for responses, or an open stage fell behind.
    at_limit: bool,
    /// Whether requests are known to queue: users of one level also wait for a server with room.
    queues: bool,
    observed: &'a [Observed],
}

impl Evidence<'_> {
    /// The only saturated part, if the load is at its limit too.
    fn bottleneck(&self, split: Option<&Split>) -> (Answer, Option<Finding>) {
        let is_failing = self.stage.without_answer() > MOSTLY_FAILED;
        if is_failing || self.stage.throughput() == 0.0 {
            return (Answer::None, None);
        }
        let full = self.full(split);
        let (answer, evidence) = match (full.as_slice(), self.starved()) {
            ([(answer, evidence)], _) => (*answer, evidence.clone()),
            _ if !self.at_limit => return (Answer::None, None),
            ([], Some(starved)) => (Answer::Host, starved),
            ([], None) if !self.queues => return (Answer::Unknown, None),
            ([], None) => self.unknown(),
            (several, _) => {
                let names: Vec<_> = several.iter().map(|(answer, _)| answer.name()).collect();
                let both = format!("{} are at their limits", names.join(" and "));
                let host = self.host().is_some_and(cpu::is_full);
                (if host { Answer::Host } else { Answer::Unknown }, both)
            }
        };
        let finding = answer.rule().map(|rule| {
            Finding::new(rule)
                .with("rate", format!("{}/s", rate(Some(self.stage.throughput()))))
                .with("who", answer.name())
                .with("evidence", evidence)
                .with("missing", self.missing())
        });
        (answer, finding)
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
            let waits = split.filter(|_| self.queues).map(|split| split.in_upstream);
            let waits = waits.filter(|share| *share >= IN_UPSTREAM);
            let waits = waits.filter(|_| all.iter().all(|(answer, _)| *answer != Answer::Upstream));
            let words = |part| format!("{} of the response time, network included", percent(part));
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
        let shown = unknown.map(|one| format!("{}: {}", one.suspect.name(), one.evidence));
        let all: Vec<_> = shown.collect();
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

// Determines the role of a monitored process.

/// Role of the process at the target's address: a gateway, if a process has that name or an
/// upstream is known; otherwise it may be the provider itself.
pub(crate) fn front(processes: &[ProcessLoad], targets: &[TargetInfo], is_joined: bool) -> Suspect {
    let is_gateway = is_joined
        || targets.iter().any(|target| target.direct)
        || processes.iter().any(|process: &ProcessLoad| match by_name(&process.name) {
            Some(Suspect::Gateway) => true,
            Some(Suspect::Upstream | Suspect::Store) => process.place == ProcessPlace::Elsewhere,
            _ => false,
        });
    if is_gateway { Suspect::Gateway } else { Suspect::Target }
}

/// Role of a process: by its name if that is a known word; `front` if it listens at the target's
/// address; otherwise by the target it belongs to.
pub(crate) fn role_of(process: &ProcessLoad, targets: &[TargetInfo], front: Suspect) -> Suspect {
    if process.place == ProcessPlace::Plimsoll {
        return Suspect::Generator;
    }
    let named = by_name(&process.name);
    let named = named.map(|named| if named == Suspect::Target { front } else { named });
    let at_target = (process.place == ProcessPlace::Target).then_some(front);
    named
        .or(at_target)
        .or_else(|| {
            let own = targets.iter().find(|target| target.name == process.name)?;
            let suspect = if own.direct { Suspect::Upstream } else { Suspect::Gateway };
            (targets.len() > 1).then_some(suspect)
        })
        .unwrap_or(Suspect::Other)
}

/// Matches `target`, `gateway`, `upstream`, `provider` and `store`, optionally followed by a number
/// or a name: `gateway-2`.
fn by_name(name: &str) -> Option<Suspect> {
    let name = name.to_ascii_lowercase();
    let known = [
        ("target", Suspect::Target),
        ("gateway", Suspect::Gateway),
        ("upstream", Suspect::Upstream),
        ("provider", Suspect::Upstream),
        ("store", Suspect::Store),
    ];
    let begins = known.into_iter().find(|(word, _)| {
        let rest = name.strip_prefix(word);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphabetic()))
    });
    begins.map(|(_, suspect)| suspect)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_name_its_place_or_its_target() {
        let target = |name: &str, direct| {
            let name = name.to_owned();
            TargetInfo { name, direct, ..TargetInfo::default() }
        };
        let one = [target("main", false)];
        let two = [target("upstream", true), target("kong", false)];
        for (name, at_target, targets, suspect) in [
            ("gateway", false, &one[..], Suspect::Gateway),
            ("Gateway-2", false, &one, Suspect::Gateway),
            ("provider", true, &one, Suspect::Upstream),
            ("store", false, &one, Suspect::Store),
            ("nginx", true, &one, Suspect::Gateway),
            ("nginx", false, &one, Suspect::Other),
            ("storefront", false, &one, Suspect::Other),
            ("main", false, &one, Suspect::Other),
            ("kong", false, &two, Suspect::Gateway),
            ("upstream", false, &two, Suspect::Upstream),
            ("direct", false, &two, Suspect::Other),
        ] {
            let place = if at_target { ProcessPlace::Target } else { ProcessPlace::Elsewhere };
            let process = ProcessLoad { name: name.to_owned(), place, ..ProcessLoad::default() };
            assert_eq!(role_of(&process, targets, Suspect::Gateway), suspect, "{name}");
        }
        let own = ProcessLoad { place: ProcessPlace::Plimsoll, ..ProcessLoad::default() };
        assert_eq!(role_of(&own, &one, Suspect::Gateway), Suspect::Generator);
    }

    #[test]
    fn what_answers_is_a_gateway_only_where_something_says_so() {
        let process = |name: &str, place| ProcessLoad {
            name: name.to_owned(),
            place,
            ..ProcessLoad::default()
        };
        let target = process("target", ProcessPlace::Target);
        let provider = |place| process("provider", place);
        let one = [TargetInfo::default()];
        let direct = [TargetInfo { direct: true, ..TargetInfo::default() }];
        let gateway = process("gateway-2", ProcessPlace::Target);
        for (processes, targets, is_joined, suspect) in [
            (vec![target.clone()], &one, false, Suspect::Target),
            (vec![], &one, false, Suspect::Target),
            (vec![provider(ProcessPlace::Target)], &one, false, Suspect::Target),
            (
                vec![target.clone(), provider(ProcessPlace::Elsewhere)],
                &one,
                false,
                Suspect::Gateway,
            ),
            (vec![gateway], &one, false, Suspect::Gateway),
            (vec![target.clone()], &one, true, Suspect::Gateway),
            (vec![target.clone()], &direct, false, Suspect::Gateway),
        ] {
            assert_eq!(front(&processes, targets, is_joined), suspect, "{processes:?}");
        }
        assert_eq!(role_of(&target, &one, Suspect::Target), Suspect::Target);
        assert_eq!(role_of(&target, &one, Suspect::Gateway), Suspect::Gateway);
    }
}
