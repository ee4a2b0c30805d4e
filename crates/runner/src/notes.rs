//! The notes of a report: facts besides the numbers that a reader must know.

use plimsoll_engine::{Cause, FOLLOWED_REDIRECTS, ProbeFinding, ProbeReport, REFUSED_USAGE};
use plimsoll_measure::TargetId;
use plimsoll_metrics::{FailureKind, TargetInfo};
use plimsoll_plan::Plan;

use crate::secrets::Secrets;

/// The most characters of a target's message.
const MAX_MESSAGE: usize = 200;

/// Notes on the results of the probe.
pub(crate) fn for_probe(probe: &ProbeReport, plan: &Plan, secrets: &Secrets) -> Vec<String> {
    let findings = probe.findings.iter();
    findings.map(|finding| format!("probe: {}", describe_finding(finding, plan, secrets))).collect()
}

/// A finding of the probe: the target, the cause and the fix. The scenario is named where there are
/// several.
pub(crate) fn describe_finding(finding: &ProbeFinding, plan: &Plan, secrets: &Secrets) -> String {
    let message = secrets.redact(&finding.message);
    match plan.scenarios.len() {
        // A target without a name of its own is named by its host, which the URL shows.
        1 if message.contains(&format!("//{}", finding.target)) => message,
        1 => format!("{}: {message}", finding.target),
        _ => format!("{} (scenario {}): {message}", finding.target, finding.scenario),
    }
}

/// Redirects that were followed.
pub(crate) fn for_redirects(causes: &[Cause], secrets: &Secrets) -> Option<String> {
    let cause = causes.iter().find(|cause| cause.kind == FOLLOWED_REDIRECTS)?;
    let first = shorten(&secrets.redact(cause.message()?));
    let s = if cause.count == 1 { "" } else { "s" };
    Some(format!("{} redirect{s} followed, the first to {first}", cause.count))
}

/// Why requests did not complete, with the first message of each target.
pub(crate) fn failures(
    causes: &[Cause],
    targets: &[TargetInfo],
    secrets: &Secrets,
) -> Vec<FailureKind> {
    let failures = causes.iter().filter(|cause| cause.kind != FOLLOWED_REDIRECTS);
    failures
        .map(|cause: &Cause| {
            let messages = cause.first.iter().filter_map(|(id, first)| {
                let target = targets.get(id.index())?;
                Some((target.name.clone(), shorten(&secrets.redact(first))))
            });
            FailureKind {
                kind: cause.kind.clone(),
                count: cause.count,
                messages: messages.collect(),
            }
        })
        .collect()
}

/// The message of each target whose requests failed: the first message of its most frequent kind of
/// failure in the run.
pub(crate) fn messages_of_targets(targets: &mut [TargetInfo], causes: &[Cause], secrets: &Secrets) {
    let failures =
        causes.iter().filter(|cause| ![FOLLOWED_REDIRECTS, REFUSED_USAGE].contains(&&*cause.kind));
    for (id, target) in (0..).map(TargetId).zip(targets) {
        let message = failures.clone().find_map(|cause| cause.message_of(id));
        target.failure = message.map(|message| shorten(&secrets.redact(message)));
    }
}

/// Where the connections went, for each target whose name has several addresses.
pub(crate) fn for_addresses(targets: &[TargetInfo]) -> Vec<String> {
    let several = targets.iter().filter(|target: &&TargetInfo| target.addresses.len() > 1);
    several
        .map(|target| {
            let of_each: Vec<_> = target
                .addresses
                .iter()
                .map(|(address, connections)| format!("{address} x {connections}"))
                .collect();
            let (name, count, list) = (&target.name, of_each.len(), of_each.join(", "));
            let silent = target.addresses.values().filter(|connections| **connections == 0).count();
            let gone = if silent > 0 { "; those with none did not answer" } else { "" };
            format!("{name} has {count} addresses, connections: {list}{gone}")
        })
        .collect()
}

/// The message on one line, cut after [`MAX_MESSAGE`] characters.
fn shorten(message: &str) -> String {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_profile::{EnvVars, Overrides, Profile, Purpose, load};

    fn secrets() -> Secrets {
        Secrets::of(&plan_with_key("minimal", "sk-1234"))
    }

    #[test]
    fn each_kind_of_failure_shows_its_first_message_on_one_line_without_keys() {
        let cause = |kind: &str, first: &str| Cause {
            kind: kind.to_owned(),
            count: 3,
            first: if first.is_empty() {
                Vec::new()
            } else {
                vec![(TargetId(0), first.to_owned())]
            },
        };
        let causes = [cause("status 401", "bad\nkey sk-1234"), cause("reset", "")];
        let targets = [TargetInfo { name: "gw".to_owned(), ..TargetInfo::default() }];
        let found = failures(&causes, &targets, &secrets());
        let messages: Vec<_> = found.iter().map(|kind| kind.messages.get("gw")).collect();
        assert_eq!(messages, [Some(&"bad key <redacted>".to_owned()), None]);
        assert_eq!((found[0].kind.as_str(), found[0].count), ("status 401", 3));
        let redirects = [cause(FOLLOWED_REDIRECTS, "http://there/")];
        assert!(failures(&redirects, &targets, &secrets()).is_empty());
        let note = for_redirects(&redirects, &secrets());
        assert_eq!(note.as_deref(), Some("3 redirects followed, the first to http://there/"));
    }

    #[test]
    fn each_target_has_its_own_message() {
        let cause = |kind: &str, first: &[(u16, &str)]| Cause {
            kind: kind.to_owned(),
            count: 3,
            first: first.iter().map(|(id, text)| (TargetId(*id), (*text).to_owned())).collect(),
        };
        let causes = [
            cause(FOLLOWED_REDIRECTS, &[(0, "http://there/")]),
            cause("reset", &[(2, "broken sk-1234")]),
            cause("status 401", &[(1, "bad key"), (2, "no key")]),
        ];
        let mut targets = vec![TargetInfo::default(); 3];
        messages_of_targets(&mut targets, &causes, &secrets());
        let said: Vec<_> = targets.iter().map(|target| target.failure.as_deref()).collect();
        assert_eq!(said, [None, Some("bad key"), Some("broken <redacted>")]);
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        let note = shorten(&"é".repeat(300));
        assert_eq!(note.chars().count(), MAX_MESSAGE + 3);
    }

    fn plan(name: &str) -> Plan {
        plan_with_key(name, "any")
    }

    fn plan_with_key(name: &str, key: &str) -> Plan {
        let overrides = Overrides::default().with("key", "key", key);
        let profile = Profile::open(name).unwrap();
        load(&profile, &EnvVars::default(), &overrides, Purpose::Run).unwrap()
    }

    #[test]
    fn findings_of_the_probe_are_notes() {
        let finding = ProbeFinding {
            target: "a:1".to_owned(),
            scenario: "s".to_owned(),
            message: "429 (sk-1234)".to_owned(),
            fatal: false,
        };
        let probe = ProbeReport { requests: 1, findings: vec![finding], answers: Vec::new() };
        for (profile, note) in [
            ("minimal", "probe: a:1: 429 (<redacted>)"),
            ("realistic", "probe: a:1 (scenario s): 429 (<redacted>)"),
        ] {
            let notes = for_probe(&probe, &plan(profile), &secrets());
            assert_eq!(notes, [note]);
        }
    }
}
