//! 2xx: behaviour of the target.

use std::collections::BTreeMap;

use plimsoll_measure::{ErrorClass, Side};
use plimsoll_rules::number::{count, digits, percent, seconds, share, time};
use plimsoll_rules::{Finding, Level};

use super::outcomes::{self, words_of_failure};
use super::{by_target, measured, share_of, stage_name};
use crate::catalog::Counters;
use crate::results::Group;
use crate::run_metadata::{RunEnd, TargetInfo};
use crate::server_load::ServerLoad;
use crate::summary::RunSummary;
use crate::time_facts::TIMED_OUT;

/// Share of a stage's requests that may open a connection.
const OPENINGS_SHARE: f64 = 0.01;
/// This many may open a connection in any case.
const FEW_OPENINGS: f64 = 10.0;
/// Requests in a server's queue on average from which it is saturated.
const QUEUED: f64 = 1.0;
/// The used share of a KV cache from which it is full.
const CACHE_FULL: f64 = 0.95;

/// Whether the target failed: 45 % of the requests or more, which allows for chance in a target
/// that fails half of them.
pub const fn half_failed(failed: u64, all: u64) -> bool {
    failed > 0 && 20 * failed >= 9 * all
}

/// The action where only the target knows the cause.
pub(super) const CHECK_LOG: &str = "check the log of the target";

/// The requests to one target, or to all.
pub(super) struct Seen<'s> {
    pub(super) summary: &'s RunSummary,
    pub(super) name: Option<&'s str>,
    pub(super) group: &'s Group,
}

pub(super) fn findings(summary: &RunSummary) -> Vec<Finding> {
    let mut found = Vec::new();
    for (name, group) in by_target(summary) {
        let seen = Seen { summary, name, group };
        found.extend(seen.down());
        found.extend(outcomes::findings(&seen));
        found.extend(seen.wrong_decisions());
        found.extend(seen.silences());
    }
    found.extend(overload(summary));
    found.extend(changes(summary));
    found.extend(reopened(summary));
    found.extend(saturated(summary));
    found
}

impl Seen<'_> {
    pub(super) fn finding(&self, code: u16) -> Finding {
        Finding::new(code).of(self.name)
    }

    /// A finding with its number of requests.
    pub(super) fn of_all(&self, code: u16, n: u64) -> Finding {
        self.finding(code).with("n", count(n)).with("all", count(self.group.counters.scheduled))
    }

    pub(super) fn has_models(&self) -> bool {
        self.summary.metadata.targets.iter().any(|target: &TargetInfo| !target.model.is_empty())
    }

    /// The first message of a kind of failure.
    pub(super) fn message(&self, kind: &str) -> Option<&str> {
        let mut failures = self.summary.metadata.failures.iter();
        let found = failures.find(|failure| failure.kind == kind)?;
        let (words, _) = words_of_failure(kind, true);
        let own = self.name.and_then(|name| found.messages.get(name));
        let message =
            own.or_else(|| found.messages.values().next().filter(|_| self.name.is_none()));
        // `Connection refused (os error 111)` only repeats the class.
        message
            .filter(|message| !message.to_lowercase().contains(&words))
            .map(|message| message.trim_end_matches(['.', '!']))
    }

    /// Adds the time span of the failures of these kinds, unless they span the whole load. For
    /// failures that have ended, the only advice is to find the cause.
    pub(super) fn with_span(&self, finding: Finding, kinds: impl Fn(&str) -> bool) -> Finding {
        let (since, until) = self.summary.time_facts.span(self.name, kinds);
        let has_ended = until.is_some() && finding.values.contains_key("action");
        let when = match (since.map(seconds), until.map(seconds)) {
            (Some(since), Some(until)) => Some(format!("between {since} and {until}")),
            (Some(since), None) => Some(format!("since {since}")),
            (None, Some(until)) => Some(format!("until {until}")),
            (None, None) => None,
        };
        let finding = finding.with_some("when", when.map(|when| format!("{when} of the run")));
        if has_ended { finding.with("action", CHECK_LOG) } else { finding }
    }

    /// The measured requests, or the warm-up's if the target hung before a measured request was
    /// sent: the requests of the warm-up then hold all slots.
    fn load(&self) -> &Group {
        let was_sent = |counters: &Counters| counters.scheduled > counters.never_sent;
        let mut stages = self.summary.results.by_stage.iter();
        let held = stages.find(|stage| stage.warmup && was_sent(&stage.counters));
        held.filter(|_| self.name.is_none() && !was_sent(&self.group.counters))
            .unwrap_or(self.group)
    }

    /// Whether most requests failed, or all of the last ones.
    fn down(&self) -> Option<Finding> {
        if self.summary.metadata.allow_failures {
            return None;
        }
        let Group { counters, errors, .. } = self.load();
        let classes = ErrorClass::ALL.into_iter().filter(|class| class.side() == Side::Generator);
        let own: u64 = classes.filter_map(|class| errors.get(class.name())).sum();
        let mut outages = self.summary.time_facts.outages.iter();
        let outage = outages.find(|outage| self.name.is_none_or(|name| name == outage.target));
        // Those without an end are failures of a target that answers no more, or never did.
        let is_mute =
            counters.answered() == 0 && self.summary.metadata.run.ended != RunEnd::Interrupted;
        let open = if outage.is_some() || is_mute { counters.in_flight } else { 0 };
        let failed = (open + counters.failures()).saturating_sub(own + counters.wrongly_decided());
        let all = (open + counters.answered()).saturating_sub(own);
        let is_single = self.name.is_none();
        (half_failed(failed, all) || (outage.is_some() && failed > 0)).then(|| {
            let (kind, key, most) = self.main_failure();
            let (class, action) = words_of_failure(&kind, self.has_models());
            let mostly = if most > 0 && most < failed { "mostly " } else { "" };
            let finding = self.finding(201).with("action", action);
            let finding = match outage {
                Some(outage) => finding.with("since", seconds(outage.since_s)),
                None => self.with_span(finding, |found| key.ends_with(found)),
            };
            finding
                .at(if is_single { Level::Fail } else { Level::Warning })
                .with("n", count(failed))
                .with("all", count(all))
                .with("share", share(share_of(failed, all)))
                .with_some("rejected", (counters.refused() > 0).then_some("were rejected"))
                .with_some("message", self.message(&key))
                .with("class", format!("{mostly}{class}"))
        })
    }

    /// The most frequent status of a range, and its number.
    fn main_status(&self, range: std::ops::Range<u16>) -> Option<(u16, u64)> {
        let statuses = self.group.statuses.range(range);
        statuses.max_by_key(|(_, number)| **number).map(|(status, number)| (*status, *number))
    }

    /// The most frequent kind of failure, the key of its messages, and its number.
    fn main_failure(&self) -> (String, String, u64) {
        let counters = &self.group.counters;
        let classes = ErrorClass::ALL.into_iter().filter(|class| class.side() != Side::Generator);
        let counted =
            classes.filter_map(|class| Some((*self.group.errors.get(class.name())?, class)));
        let class = counted.max_by_key(|(number, _)| *number).map(|(number, class)| {
            let status = self.main_status(500..600).filter(|_| class == ErrorClass::ServerError);
            let kind = status.map(|(status, number)| (format!("status {status}"), number));
            let (kind, number) = kind.unwrap_or_else(|| (class.name().to_owned(), number));
            (kind, class.name().to_owned(), number)
        });
        let status = self.main_status(400..500).map(|(status, number)| {
            let kind = format!("status {status}");
            (kind.clone(), kind, number.min(counters.refused()))
        });
        let unanswered = counters.timed_out + counters.in_flight;
        let unanswered = (TIMED_OUT.to_owned(), TIMED_OUT.to_owned(), unanswered);
        // Of equal numbers the last one is taken.
        let all = [Some(unanswered), class, status].into_iter().flatten();
        all.max_by_key(|(.., number)| *number).unwrap_or_default()
    }

    fn wrong_decisions(&self) -> Option<Finding> {
        let counters = &self.group.counters;
        // A rate limit decides nothing about the policy; 207 has it.
        let rows = ["allow", "block", "redact"].into_iter();
        let limited: u64 = rows.map(|expected| self.decided(expected, &["rate_limited"])).sum();
        let wrong = counters.judged.saturating_sub(counters.as_expected + limited);
        let missed = self.decided("block", &["allow", "redact"]);
        let extra = self.decided("allow", &["block"]) + self.decided("redact", &["block"]);
        let is_most = 2 * wrong > counters.judged && !self.summary.metadata.allow_failures;
        let level = if is_most { Level::Fail } else { Level::Warning };
        (wrong > 0).then(|| {
            self.finding(213)
                .at(level)
                .with("wrong", count(wrong))
                .with("judged", count(counters.judged))
                .with_some("missed", (missed > 0).then(|| count(missed)))
                .with_some("extra", (extra > 0).then(|| count(extra)))
        })
    }

    /// The responses with one of these decisions, of those that expect this one.
    fn decided(&self, expected: &str, actual: &[&str]) -> u64 {
        let row = self.group.policy_decisions.get(expected);
        row.map_or(0, |row| actual.iter().filter_map(|actual| row.get(*actual)).sum())
    }

    fn silences(&self) -> Vec<Finding> {
        let all = self.summary.time_facts.silences.iter();
        let own = all.filter(|silence| self.name.is_none_or(|name| name == silence.target));
        own.map(|silence| {
            self.finding(211)
                .with("length", time(silence.length_s * 1e3))
                .with("start", seconds(silence.start_s))
                .with("n", count(silence.in_flight))
        })
        .collect()
    }
}

fn overload(summary: &RunSummary) -> impl Iterator<Item = Finding> {
    let is_single = summary.metadata.targets.len() < 2;
    summary.time_facts.backlogs.iter().map(move |backlog| {
        Finding::new(209)
            .with("stage", &backlog.stage)
            .with("done", digits(backlog.done_per_s))
            .with("planned", digits(backlog.planned_per_s))
            .with("backlog", count(backlog.in_flight))
            .of((!is_single).then_some(backlog.target.as_str()))
    })
}

fn changes(summary: &RunSummary) -> impl Iterator<Item = Finding> {
    let is_single = summary.metadata.targets.len() < 2;
    summary.time_facts.changes.iter().map(move |change| {
        Finding::new(210)
            .with("stage", &change.stage)
            .with("before", time(change.before_ms))
            .with("after", time(change.after_ms))
            .with("second", seconds(change.at_s))
            .of((!is_single).then_some(change.target.as_str()))
    })
}

/// Servers that queued or preempted requests or filled their KV cache, each in the last such stage.
fn saturated(summary: &RunSummary) -> Vec<Finding> {
    let found = summary.servers.iter().map(|server| (server, saturation(server).join(", ")));
    let found = found.filter(|(_, evidence)| !evidence.is_empty());
    let found = found.map(|(server, evidence)| {
        let finding = Finding::new(214).with("server", &server.name).with("stage", &server.stage);
        (&server.name, finding.with("evidence", evidence))
    });
    found.collect::<BTreeMap<_, _>>().into_values().collect()
}

/// Evidence of a saturated server in its own metrics.
fn saturation(server: &ServerLoad) -> Vec<String> {
    let most = server.figure("requests_waiting_max").unwrap_or_default();
    let waiting = server
        .at_least("requests_waiting", QUEUED)
        .map(|mean| format!("{} requests waiting on average (at most {most:.0})", digits(mean)));
    let full = server
        .at_least("kv_cache_used_max", CACHE_FULL)
        .map(|used| format!("KV cache up to {} full", percent(used)));
    let preempted =
        server.at_least("preemptions", 1.0).map(|n| format!("{n:.0} requests preempted"));
    [waiting, full, preempted].into_iter().flatten().collect()
}

/// Connections that were opened in a measured stage cost the target time, which a client with warm
/// connections does not cause.
fn reopened(summary: &RunSummary) -> Option<Finding> {
    if summary.health.planned_reconnects == Some(true) {
        return None;
    }
    let worst = measured(summary)
        .filter(|stage| {
            let counters = &stage.counters;
            let cut_off = counters.failed + counters.timed_out + counters.cancelled;
            let mut infos = summary.metadata.stages.iter();
            let info = infos.find(|info| Some(&info.name) == stage.stage.as_ref());
            // Twice the mean, for a ramp.
            let users = info.and_then(|info| info.users).unwrap_or_default();
            let peak = info.and_then(|info| info.peak_in_flight).unwrap_or_default();
            let needed = 2.0 * users * summary.metadata.targets.len() as f64;
            let needed = needed.max(peak as f64);
            counters.completed + counters.rejected > 0
                && counters.connections_opened as f64 > needed + FEW_OPENINGS
                && 2 * cut_off < counters.connections_opened
        })
        .max_by(|one, other| opened_share(one).0.total_cmp(&opened_share(other).0))?;
    let (part, sent) = opened_share(worst);
    (part > OPENINGS_SHARE).then(|| {
        Finding::new(212)
            .with("n", count(worst.counters.connections_opened))
            .with("all", count(sent))
            .with("share", share(part))
            .with("stage", stage_name(worst))
    })
}

/// The share of the requests sent in a stage that opened a connection, and all that were sent.
fn opened_share(stage: &Group) -> (f64, u64) {
    let counters = &stage.counters;
    let sent = counters.scheduled - counters.never_sent.min(counters.scheduled);
    (share_of(counters.connections_opened, sent), sent)
}
