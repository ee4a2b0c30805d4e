//! From what was found of each suspect to an answer, or to none.

use plimsoll_join::Join;
use plimsoll_metrics::{HostLoad, LoadModel, ProcessPlace, RunEnd, RunSummary};
use plimsoll_report::format::{percent, rate};

use crate::generator::{self, Beside};
use crate::growth::{self, Growth};
use crate::load::{Stage, deciding, stages};
use crate::own_word;
use crate::process::{self, HOST_FULL, ProcessState};
use crate::result::{Answer, Finding, Load, SCHEMA, Split, State, Suspect, Why};
use crate::role;
use crate::split::{has_direct, split};

/// Of a suspect whose processes nobody watches.
const NOT_WATCHED: &str = "not watched";
/// Requests that were refused or failed, from which on a reader is told.
const NOTABLE: f64 = 0.01;
/// Where more requests got no good answer, what limits the others is not the question.
const MOSTLY_FAILED: f64 = 0.5;
/// Rates that differ by less are one.
const SAME_RATE: f64 = 0.01;
/// The provider limits a load whose requests in flight wait for it by this share: the rest is then
/// at most a fifth of their time, whatever the gateway does.
const IN_PROVIDER: f64 = 0.8;

/// What limited the load of a run.
pub fn why(summary: &RunSummary) -> Why {
    why_with(summary, None)
}

/// The same, with what a join of the run with the gateway's own log tells.
pub fn why_with(summary: &RunSummary, join: Option<&Join>) -> Why {
    let stages = stages(summary);
    let run = summary.metadata.run.name.clone();
    let decides = deciding(&stages).filter(|_| summary.metadata.run.ended != RunEnd::Unfinished);
    let Some(stage) = decides else {
        let nothing = if stages.is_empty() {
            "nothing was measured outside of warm-up".to_owned()
        } else {
            "the run did not finish, and left no record of its health and of what was in flight"
                .to_owned()
        };
        return Why {
            schema: SCHEMA.to_owned(),
            run,
            sentence: format!("unknown: {nothing}"),
            split_refused: Some(nothing),
            ..Why::default()
        };
    };
    let (split, split_refused) = match split(summary, stage, join) {
        Ok(split) => (Some(split), None),
        Err(why) => (None, Some(why)),
    };
    let mut case = Case {
        load: stage.load(),
        host: stage.resources.and_then(|all| all.host.clone()),
        growth: growth::growth(&stages),
        findings: findings(summary, &stages, stage, join.is_some()),
        decides: is_highest(&stages, stage),
        without_answer: stage.without_answer(),
        in_provider: split.as_ref().and_then(in_provider),
    };
    let verdict = case.verdict();
    let takes = case.in_provider.zip(split.as_ref().and_then(|split| split.evidence.as_deref()));
    if let Some((share, evidence)) = takes {
        told_by_split(&mut case.findings, share, evidence, verdict.answer);
    }
    let (own_word, not_believed) = own_word::of_stage(stage);
    let notes = notes(summary, stage, join).chain(not_believed).collect();
    let Case { load, findings, .. } = case;
    Why {
        schema: SCHEMA.to_owned(),
        run,
        answer: verdict.answer,
        sentence: verdict.sentence,
        saturated: verdict.saturated,
        missing: verdict.missing,
        load: Some(load),
        findings,
        split,
        split_refused,
        own_word,
        notes,
    }
}

/// Whether a stage is the one of which most was asked.
fn is_highest(stages: &[Stage<'_>], stage: &Stage<'_>) -> bool {
    stages.iter().all(|other| other.asked() <= stage.asked())
}

/// What was found of each suspect, in the order of the way of a request.
fn findings(
    summary: &RunSummary,
    stages: &[Stage<'_>],
    stage: &Stage<'_>,
    is_joined: bool,
) -> Vec<Finding> {
    let watched = stage.resources.map_or(&[][..], |all| &all.processes);
    let front = role::front(watched, &summary.metadata.targets, is_joined);
    let mut processes = processes(summary, stage, front);
    let at_limit = stage.load().at_limit;
    if !at_limit {
        processes.iter_mut().for_each(carries_on);
    }
    let full_process = processes.iter().any(|finding: &Finding| finding.state == State::Saturated);
    // A provider at the target's address has nothing before it.
    let is_seen = watched.iter().any(|process| process.place == ProcessPlace::Target);
    for suspect in [front, Suspect::Provider] {
        let known = suspect == Suspect::Target && is_seen;
        if !known && processes.iter().all(|finding| finding.suspect != suspect) {
            processes.push(not_watched(summary, suspect, front));
        }
    }
    if let Some((state, words)) = growth::direct(summary, stages, stage) {
        let provider = processes.iter_mut().find(|found| found.suspect == Suspect::Provider);
        if let Some(provider) = provider {
            hears(provider, state, words, at_limit);
        }
    }
    processes.sort_by_key(|finding| finding.suspect);
    let beside = Beside { at_limit, full_process };
    std::iter::once(generator::finding(summary, stage, beside)).chain(processes).collect()
}

/// Adds what the direct target tells of the provider. A process that has CPU time left may be at
/// another limit, which shows in its times.
fn hears(provider: &mut Finding, state: State, words: String, at_limit: bool) {
    let limits = state == State::Saturated && at_limit;
    if limits {
        (provider.state, provider.missing) = (State::Saturated, None);
    } else if provider.state == State::Unknown {
        (provider.state, provider.missing) = (State::Clear, None);
    }
    provider.evidence.insert(0, words);
}

/// Adds what the split tells of a provider that nobody watches: how much of the time it takes.
fn told_by_split(findings: &mut [Finding], share: f64, evidence: &str, answer: Answer) {
    let unseen = findings.iter_mut().find(|found| {
        found.suspect == Suspect::Provider && found.process.is_none() && found.missing.is_some()
    });
    let Some(provider) = unseen else { return };
    let state = match answer {
        Answer::Provider => Some(State::Saturated),
        // The load was carried.
        Answer::NothingSaturated => Some(State::Clear),
        _ => None,
    };
    if let Some(state) = state {
        (provider.state, provider.missing) = (state, None);
    }
    let takes = format!("takes {} of the requests' time ({evidence})", percent(share));
    provider.evidence = vec![takes, format!("its CPU is {NOT_WATCHED}")];
}

/// A process that is busy under a load that was carried limits nothing.
fn carries_on(found: &mut Finding) {
    if found.state == State::Saturated {
        found.state = State::Clear;
        found.evidence.push("busy, and yet the load was carried".to_owned());
    }
}

fn processes(summary: &RunSummary, stage: &Stage<'_>, front: Suspect) -> Vec<Finding> {
    let Some(resources) = stage.resources else { return Vec::new() };
    let watched =
        resources.processes.iter().filter(|process| process.place != ProcessPlace::Plimsoll);
    watched
        .map(|load| {
            let ProcessState { state, because, used, figures } =
                process::judge(load, resources.host.as_ref());
            let missing = (state == State::Unknown).then(|| because.clone()).flatten();
            let figures = figures.into_iter().filter(|figure| because.as_ref() != Some(figure));
            let evidence = because.clone().into_iter().chain(figures).collect();
            Finding {
                suspect: role::of(load, &summary.metadata.targets, front),
                process: Some(load.name.clone()),
                state,
                evidence,
                used: Some(used),
                missing,
            }
        })
        .collect()
}

/// A suspect of which nothing is seen. Behind a target that is no known gateway there may be none.
fn not_watched(summary: &RunSummary, suspect: Suspect, front: Suspect) -> Finding {
    let name = suspect.name();
    let (port, may_be) = match (suspect, front) {
        (Suspect::Provider, Suspect::Gateway) => (port_of(summary, true).unwrap_or(9000), ""),
        (Suspect::Provider, _) => (9000, ", if the target has one behind it"),
        _ => (port_of(summary, false).unwrap_or(8080), ""),
    };
    Finding {
        suspect,
        process: None,
        state: State::Unknown,
        evidence: vec![format!("{NOT_WATCHED}{may_be}")],
        used: None,
        missing: Some(format!("--watch {name}=:{port}, if it runs on this host")),
    }
}

/// The port of the first target that is asked through a gateway, or `direct`ly.
fn port_of(summary: &RunSummary, direct: bool) -> Option<u16> {
    let target = summary.metadata.targets.iter().find(|target| target.direct == direct)?;
    port(&target.url)
}

/// The port that a URL names.
fn port(url: &str) -> Option<u16> {
    let authority = url.split_once("://")?.1.split(['/', '?']).next()?;
    authority.rsplit_once(':')?.1.parse().ok()
}

/// Everything on which the answer rests.
struct Case {
    load: Load,
    host: Option<HostLoad>,
    growth: Growth,
    findings: Vec<Finding>,
    /// Whether the stage is the one of which most was asked.
    decides: bool,
    /// Share of the requests that got no good answer.
    without_answer: f64,
    /// Share of the requests in flight that wait for the provider, where a split tells it.
    in_provider: Option<f64>,
}

/// The share of the requests in flight that wait for the provider.
fn in_provider(split: &Split) -> Option<f64> {
    let provider = split.parts.iter().filter(|part| part.place.starts_with("provider"));
    let waiting: f64 = provider.map(|part| part.in_flight).sum();
    (split.in_flight > 0.0).then(|| waiting / split.in_flight)
}

struct Verdict {
    answer: Answer,
    sentence: String,
    saturated: Vec<Suspect>,
    missing: Vec<String>,
}

impl Case {
    fn verdict(&self) -> Verdict {
        if self.load.throughput_per_s == 0.0 {
            let how = "look at the errors of the run first; or make the stage longer".to_owned();
            return unknown("no request was completed in the stage", vec![how]);
        }
        if self.without_answer > MOSTLY_FAILED {
            let how = "look at the errors of the run first".to_owned();
            let share = percent(self.without_answer);
            return unknown(&format!("{share} of the requests got no good answer"), vec![how]);
        }
        let saturated = self.saturated();
        match saturated.as_slice() {
            [] => self.nothing_found(),
            [one] => self.one(one),
            several => self.several(several),
        }
    }

    /// The suspects that are at their limits.
    fn saturated(&self) -> Vec<&Finding> {
        self.findings.iter().filter(|found| found.state == State::Saturated).collect()
    }

    fn at(&self) -> String {
        format!("{}/s", rate(Some(self.load.throughput_per_s)))
    }

    /// The rate that was carried. Answers of an open stage may come after its end, and are no fewer
    /// for that.
    fn carried(&self) -> String {
        let Load { model, sent_per_s, throughput_per_s, .. } = &self.load;
        let differs = (sent_per_s - throughput_per_s).abs() > SAME_RATE * sent_per_s;
        if *model == LoadModel::Open && differs {
            let sent = rate(Some(*sent_per_s));
            return format!("{sent}/s sent ({} answered within the stage)", self.at());
        }
        self.at()
    }

    fn one(&self, found: &Finding) -> Verdict {
        let main = found.evidence.first().map_or("", String::as_str);
        let Some(answer) = found.suspect.answer() else {
            let name = found.process.as_deref().unwrap_or_default();
            let how = format!("name `{name}` gateway, provider or store");
            return unknown(
                &format!("`{name}` is at its limit, whose part is not known"),
                vec![how],
            );
        };
        let name = found.suspect.name();
        // A generator that was late, or had errors, spoils also a load that was carried.
        let sentence = if self.load.at_limit {
            format!("the {name} limits at {}: {main}", self.at())
        } else {
            let sent = rate(Some(self.load.sent_per_s));
            let who = if found.suspect == Suspect::Generator {
                "Plimsoll itself".to_owned()
            } else {
                format!("the {name}")
            };
            format!("{who} limited this run at {sent}/s sent: {main}")
        };
        let (saturated, missing) = (vec![found.suspect], Vec::new());
        Verdict { answer, sentence, saturated, missing }
    }

    fn several(&self, found: &[&Finding]) -> Verdict {
        let mut suspects: Vec<_> = found.iter().map(|finding| finding.suspect).collect();
        suspects.dedup();
        if let ([_], Some(first)) = (suspects.as_slice(), found.first()) {
            return self.one(first);
        }
        let names: Vec<_> = suspects.iter().map(|suspect| suspect.name()).collect();
        let words = format!("{} are at their limits", names.join(" and "));
        let how = "give each CPUs of its own, or load them apart: what is seen at one moment does \
                   not separate them";
        Verdict { saturated: suspects, ..unknown(&words, vec![how.to_owned()]) }
    }

    fn nothing_found(&self) -> Verdict {
        if !self.load.at_limit {
            return self.nothing(&self.load.because);
        }
        if let Some(host) = self.host.as_ref().filter(|host| host.busy + host.stolen >= HOST_FULL) {
            let used = percent(host.busy + host.stolen);
            let how = "give each process CPUs of its own, or another host".to_owned();
            let words = format!("the CPUs of the host are {used} in use, by several processes");
            return unknown(&words, vec![how]);
        }
        let closed = self.load.model == LoadModel::Closed;
        if let (Growth::Flat(words), true, true) = (&self.growth, closed, self.decides) {
            return self.nothing(&format!("times do not grow with the load ({words})"));
        }
        if closed && self.load.users.is_some_and(|users| users <= 1.0) {
            return self.nothing("one user, whose requests cannot wait for each other");
        }
        if let Some(share) = self.in_provider.filter(|share| *share >= IN_PROVIDER) {
            return self.provider(share);
        }
        let missing: Vec<_> =
            self.findings.iter().filter_map(|finding| finding.missing.clone()).collect();
        if !missing.is_empty() {
            return unknown(&self.not_known(), missing);
        }
        self.nothing_full(closed)
    }

    /// Nearly all requests in flight wait for the provider. Their number is given, so that their
    /// time limits the rate (Little's law).
    fn provider(&self, share: f64) -> Verdict {
        let share = percent(share);
        Verdict {
            answer: Answer::Provider,
            sentence: format!(
                "the provider limits at {}: it takes {share} of the time, and nothing watched is full",
                self.at()
            ),
            saturated: Vec::new(),
            missing: Vec::new(),
        }
    }

    /// Everything is watched, and nothing is full. That is no proof: a limit of connections or a
    /// lock uses no CPU. Only times that do not grow show that nothing queues.
    fn nothing_full(&self, closed: bool) -> Verdict {
        let look = "look for a limit of connections or requests, a lock, a store, or the network";
        match &self.growth {
            Growth::Grows(words) if self.decides => {
                let words = format!("times grow with the load ({words}), nothing watched is full");
                unknown(&words, vec![look.to_owned()])
            }
            _ if closed => {
                let users = self.load.users.unwrap_or(1.0);
                let (few, many) = ((users / 4.0).ceil(), users);
                let how = format!(
                    "a stage with fewer users, like --stages {few:.0}:10s,{many:.0}:10s: do times \
                     grow between the two?"
                );
                unknown("nothing watched is full, and there is one level of load", vec![how])
            }
            _ => {
                let words = "the rate is missed, and nothing watched is full";
                unknown(words, vec![look.to_owned()])
            }
        }
    }

    /// Of whom nothing is known, where nobody of whom something is known is full.
    fn not_known(&self) -> String {
        let unknown = self.findings.iter().filter(|found| found.state == State::Unknown);
        let names: Vec<_> = unknown.map(|found| found.suspect.name()).collect();
        let is_seen = |found: &Finding| found.process.is_some() && found.state != State::Unknown;
        let seen = self.findings.iter().any(is_seen);
        let seen = if seen { "nothing watched is full, and " } else { "" };
        format!("{seen}nothing is known of the {}", names.join(" and the "))
    }

    fn nothing(&self, because: &str) -> Verdict {
        let busiest = self.findings.iter().filter(|found: &&Finding| found.used.is_some()).max_by(
            |one, other| one.used.unwrap_or_default().total_cmp(&other.used.unwrap_or_default()),
        );
        let busiest = busiest.map_or_else(String::new, |found| {
            let used = found.used.unwrap_or_default() * 100.0;
            format!("; busiest is the {}, {used:.0} % of its limit", found.suspect.name())
        });
        let waits = self.in_provider.filter(|share| *share >= IN_PROVIDER);
        let waits = waits.map_or_else(String::new, |share| {
            format!("; the provider takes {} of the time", percent(share))
        });
        Verdict {
            answer: Answer::NothingSaturated,
            sentence: format!("nothing saturated at {}: {because}{waits}{busiest}", self.carried()),
            saturated: Vec::new(),
            missing: Vec::new(),
        }
    }
}

fn unknown(words: &str, missing: Vec<String>) -> Verdict {
    Verdict {
        answer: Answer::CannotBeTold,
        sentence: format!("unknown: {words}"),
        saturated: Vec::new(),
        missing,
    }
}

/// What is no saturation, and yet keeps requests from being answered; and a join without use.
fn notes(
    summary: &RunSummary,
    stage: &Stage<'_>,
    join: Option<&Join>,
) -> impl Iterator<Item = String> {
    let counters = &stage.group.counters;
    let [refused, failed] = [
        (counters.rejected, "were refused (4xx): a limit by rule, not by capacity"),
        (counters.failed, "failed: see the report for the reasons"),
    ]
    .map(|(number, what)| {
        let share = number as f64 / counters.scheduled.max(1) as f64;
        (share > NOTABLE).then(|| format!("{} of the requests {what}", percent(share)))
    });
    let unused = (join.is_some() && has_direct(summary))
        .then(|| "the join is not used: the direct target tells the provider's part".to_owned());
    refused.into_iter().chain(failed).chain(unused)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_port_of_a_url_is_found_where_it_has_one() {
        for (url, port) in [
            ("http://127.0.0.1:8080/v1", Some(8080)),
            ("http://[::1]:9000", Some(9000)),
            ("https://gateway.example/v1", None),
            ("nonsense", None),
        ] {
            assert_eq!(super::port(url), port, "{url}");
        }
    }
}
