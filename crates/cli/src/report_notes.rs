//! What a reader of the report must know besides the numbers.

use plimsoll_engine::{Cause, ProbeFinding, ProbeReport};
use plimsoll_measure::Stripe;
use plimsoll_profile::{Plan, Scheme};

use crate::secrets::Secrets;

/// Causes of failure that are told; the counts of all are in the tables.
const CAUSES: usize = 5;
/// Characters of a target's message that are told.
const MESSAGE: usize = 200;

/// What is known before the load.
pub(crate) fn before(plan: &Plan) -> Vec<String> {
    let mut notes = plan.notes.clone();
    if cfg!(debug_assertions) {
        notes.push(
            "DEBUG BUILD: the generator is many times slower than it should be; build with --release".to_owned(),
        );
    }
    let tls = plan.targets.iter().any(|target| target.url.scheme() == Scheme::Https);
    if tls && plan.tls.insecure {
        notes.push("TLS VERIFICATION IS OFF (--insecure): the target may be anybody".to_owned());
    }
    if plan.shard != Stripe::WHOLE {
        let (index, count) = (plan.shard.index(), plan.shard.count());
        notes
            .push(format!("this is shard {index} of {count} (counted from 0), not the whole load"));
    }
    notes
}

/// How the probe went.
pub(crate) fn of_probe(probe: Option<&ProbeReport>, plan: &Plan, secrets: &Secrets) -> Vec<String> {
    let Some(probe) = probe else {
        return vec!["no probe request was sent before the load (--no-probe)".to_owned()];
    };
    let s = if probe.requests == 1 { "" } else { "s" };
    let sent = format!("{} probe request{s} before the load, not counted", probe.requests);
    let told = |finding| format!("probe of {}", of_finding(finding, plan, secrets));
    std::iter::once(sent).chain(probe.findings.iter().map(told)).collect()
}

/// What the probe found: where, and what to do. One scenario need not be told from others.
pub(crate) fn of_finding(finding: &ProbeFinding, plan: &Plan, secrets: &Secrets) -> String {
    let said = secrets.hide(&finding.message);
    match plan.scenarios.len() {
        1 => format!("{}: {said}", finding.target),
        _ => format!("{} (scenario {}): {said}", finding.target, finding.scenario),
    }
}

/// Why requests did not complete, in the words of the first of each kind.
pub(crate) fn of_causes(causes: &[Cause], secrets: &Secrets) -> Vec<String> {
    let told = causes.iter().filter(|cause| !cause.first.is_empty()).take(CAUSES);
    told.map(|cause| {
        let first = shorten(&secrets.hide(&cause.first));
        format!("{} x {}; the first said: {first}", cause.count, cause.kind)
    })
    .collect()
}

/// One line of bounded length.
fn shorten(message: &str) -> String {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MESSAGE) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_profile::{Environment, Overrides, Profile, Purpose, load};

    fn secrets() -> Secrets {
        std::iter::once("sk-1234").collect()
    }

    #[test]
    fn the_first_message_of_each_kind_is_told_on_one_line_without_keys() {
        let cause = |kind: &str, first: &str| Cause {
            kind: kind.to_owned(),
            count: 3,
            first: first.to_owned(),
        };
        let causes = [cause("status 401", "bad\nkey sk-1234"), cause("reset", "")];
        let notes = of_causes(&causes, &secrets());
        assert_eq!(notes, ["3 x status 401; the first said: bad key <redacted>"]);
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        let note = shorten(&"é".repeat(300));
        assert_eq!(note.chars().count(), MESSAGE + 3);
    }

    fn plan(name: &str) -> Plan {
        let overrides = Overrides { key: Some("any".to_owned()), ..Overrides::default() };
        let profile = Profile::open(name).unwrap();
        load(&profile, &Environment::default(), &overrides, Purpose::Run).unwrap()
    }

    #[test]
    fn the_probe_is_always_mentioned() {
        assert!(of_probe(None, &plan("minimal"), &secrets())[0].contains("--no-probe"));
        let finding = ProbeFinding {
            target: "a:1".to_owned(),
            scenario: "s".to_owned(),
            message: "429 (sk-1234)".to_owned(),
            fatal: false,
        };
        let probe = ProbeReport { requests: 1, findings: vec![finding] };
        for (profile, told) in [
            ("minimal", "probe of a:1: 429 (<redacted>)"),
            ("realistic", "probe of a:1 (scenario s): 429 (<redacted>)"),
        ] {
            let notes = of_probe(Some(&probe), &plan(profile), &secrets());
            assert_eq!(notes, ["1 probe request before the load, not counted", told]);
        }
    }
}
