//! Profiles and flags of comparisons.

use std::path::Path;

use plimsoll_measure::Nanos;
use plimsoll_plan::{Plan, Replies, TargetRole};
use plimsoll_profile::{EnvVars, Overrides, Problems, Profile, Purpose, load, show};
use plimsoll_schedule::PairMode;

use crate::support::base_with;

fn compared(text: &str, overrides: &Overrides) -> Result<Plan, Problems> {
    let profile = Profile::new(Path::new("p.yaml"), text.as_bytes().to_vec());
    let environment = EnvVars::from_iter([("A_KEY".to_owned(), "sk-of-a".to_owned())]);
    load(&profile, &environment, overrides, Purpose::Versus)
}

const TARGETS: &str = "\
key: sk-shared
headers: {x-team: blue, accept: a/b}
stages: '@10:60s'
stream: true
targets:
  - {name: a, url: 'https://a.example', key: '${A_KEY}', model: big, headers: {X-Team: red}, watch: 'pid:4711'}
  - {name: direct, url: 'http://127.0.0.1:9000', role: direct}
  - {name: b, url: 'http://127.0.0.1:8080/v2?x=secret', protocol: anthropic-messages}
versus: {schedule: turns, gap: 5ms, margin: 0.05, rounds: 3, every: 10m, replies: live}
thresholds: {'added.ttft{target:a}': ['p(50)<200us', 'p(99)<2ms'], ttft: ['p(95)<1s']}";

fn named(plan: &Plan) -> Vec<(&str, TargetRole)> {
    plan.targets.iter().map(|target| (target.name.as_str(), target.role)).collect()
}

#[test]
fn targets_are_resolved_with_what_they_share_and_a_control() {
    use TargetRole::{Candidate, Control, Reference};
    let sets = vec!["versus.control=true".to_owned()];
    let plan = compared(&base_with(TARGETS), &Overrides { sets, ..Overrides::default() }).unwrap();
    let names = [("direct", Reference), ("direct'", Control), ("a", Candidate), ("b", Candidate)];
    assert_eq!(named(&plan), names);
    let reaches_it: Vec<_> = plan.targets.iter().map(|target| target.direct).collect();
    assert_eq!(reaches_it, [true, true, false, false]);
    let [direct, control, a, b] = plan.targets.as_slice() else { panic!("{:?}", plan.targets) };
    let keys = [direct, control, a, b].map(|target| target.key.as_ref().unwrap().reveal());
    assert_eq!(keys, ["sk-shared", "sk-shared", "sk-of-a", "sk-shared"]);
    let models = [direct, control, a, b].map(|target| target.model.as_str());
    assert_eq!(models, ["m", "m", "big", "m"]);
    // A model of its own would be requested from every target.
    assert_eq!(plan.scenarios[0].model, None);
    assert_eq!(direct.url, control.url);
    assert_eq!(a.headers.len(), 2);
    assert_eq!(a.headers["X-Team"].reveal(), "red");
    assert_eq!(b.headers["x-team"].reveal(), "blue");
    assert_eq!((a.watch.as_deref(), control.watch.as_deref()), (Some("pid:4711"), None));
    let versus = plan.versus.unwrap();
    assert_eq!((versus.schedule, versus.replies), (PairMode::Turns, Replies::Live));
    assert_eq!((versus.gap, versus.rounds), (Nanos::from_millis(5), 3));
    assert_eq!((versus.margin, versus.every), (Some(0.05), Some(Nanos::from_secs(600))));
    let bounds: Vec<_> = versus.thresholds.iter().collect();
    assert_eq!(bounds.len(), 1);
    assert_eq!((bounds[0].0.as_str(), bounds[0].1.len()), ("added.ttft{target:a}", 2));
    assert_eq!(plan.thresholds.keys().collect::<Vec<_>>(), ["ttft"]);
}

#[test]
fn the_reference_is_loaded_twice_only_on_request() {
    for url in ["http://127.0.0.1:9000", "http://10.1.2.3", "https://api.example"] {
        let text =
            format!("targets: [{{name: d, url: '{url}'}}, {{name: a, url: 'http://a.example'}}]");
        let text = base_with(&format!("stages: '@5:20s'\n{text}"));
        let targets = |set: &str| {
            let sets = if set.is_empty() { vec![] } else { vec![format!("versus.control={set}")] };
            let plan = compared(&text, &Overrides { sets, ..Overrides::default() }).unwrap();
            // Its first target is the reference, and is a gateway like the other.
            assert!(plan.targets.iter().all(|target| !target.direct));
            plan.targets.len()
        };
        assert_eq!((targets(""), targets("true"), targets("false")), (2, 3, 2), "{url}");
    }
}

#[test]
fn a_control_can_be_a_target_of_its_own() {
    use TargetRole::{Candidate, Control, Reference};
    let text = "stages: '@5:20s'\ntargets:\n  - {name: a, url: 'http://127.0.0.1:1'}\n  \
                - {name: c, url: 'http://127.0.0.1:2', role: control, watch: ':2'}\n  \
                - {name: d, url: 'http://127.0.0.1:3', role: direct}";
    let plan = compared(&base_with(text), &Overrides::default()).unwrap();
    // There is only one control.
    assert_eq!(named(&plan), [("d", Reference), ("c", Control), ("a", Candidate)]);
    assert_eq!(
        plan.targets.iter().map(|target| target.direct).collect::<Vec<_>>(),
        [true, true, false]
    );
    assert_eq!(plan.targets[1].watch.as_deref(), Some(":2"));
    // The control may have the URL of the reference, but needs another target to compare.
    let same = text.replace("127.0.0.1:2", "127.0.0.1:3");
    assert!(compared(&base_with(&same), &Overrides::default()).is_ok());
    for (text, part) in [
        (
            text.replace(
                "name: a, url: 'http://127.0.0.1:1'",
                "name: a, url: 'http://h', role: control",
            ),
            "is `control`, like an earlier target's",
        ),
        (format!("{text}\nversus: {{reference: c}}"), "is a control: it cannot be a reference"),
        (text.replace("  - {name: a, url: 'http://127.0.0.1:1'}\n", ""), "too few targets"),
    ] {
        let error = compared(&base_with(&text), &Overrides::default()).unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn a_margin_needs_two_targets_besides_the_upstream() {
    let direct = "{name: d, url: 'http://h', role: direct}";
    let (a, b) = ("{name: a, url: 'http://i'}", "{name: b, url: 'http://j'}");
    let control = "{name: c, url: 'http://k', role: control}";
    for (targets, refused) in [
        (vec![direct, a], Some("needs two targets besides the upstream")),
        (vec![direct, a, control], Some("needs two targets besides the upstream")),
        (vec![a, control], Some("too few targets")),
        (vec![direct, a, b], None),
        (vec![a, b], None),
    ] {
        let all = targets.join(", ");
        let text = base_with(&format!("targets: [{all}]\nversus: {{margin: 0.05}}"));
        let found = compared(&text, &Overrides::default()).err();
        let found = found.map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(found.contains("margin"), refused.is_some_and(|r| r.starts_with("needs")));
        assert!(refused.map_or(found.is_empty(), |part| found.contains(part)), "{all}: {found}");
    }
}

#[test]
fn only_one_round_of_targets_beside_each_other_can_end_when_it_is_decided() {
    let targets = "targets: [{name: d, url: 'http://h'}, {name: a, url: 'http://i'}]";
    for (stages, versus, refused) in [
        ("@5:60s", "decide: true", None),
        ("w5:9s,@5:60s", "decide: true, schedule: together", None),
        ("@5:60s", "decide: true, rounds: 2", Some("combined with `rounds`")),
        ("@5:60s", "decide: true, schedule: turns", Some("schedule: turns")),
        ("5:60s", "decide: true", None),
        ("5:60s", "decide: false, rounds: 2, schedule: turns", None),
    ] {
        let text = base_with(&format!("stages: '{stages}'\n{targets}\nversus: {{{versus}}}"));
        let found = compared(&text, &Overrides::default());
        match refused {
            None => assert_eq!(found.unwrap().versus.unwrap().decide, versus.contains("true")),
            Some(part) => {
                let error = found.unwrap_err().to_string();
                assert!(error.contains(part) && error.contains("leave "), "{error}");
            }
        }
    }
}

#[test]
fn a_comparison_is_divided_unless_its_shards_would_not_end_together() {
    let run_id = Some("nightly-42".to_owned());
    for (versus, refused) in [
        ("{}", None),
        ("{schedule: turns}", None),
        ("{decide: true}", Some("--for")),
        ("{rounds: 2}", Some("for each round")),
    ] {
        let targets = "targets: [{name: d, url: 'http://h'}, {name: a, url: 'http://i'}]";
        let text = base_with(&format!("stages: '@5:60s'\n{targets}\nversus: {versus}"));
        assert!(compared(&text, &shard(run_id.as_ref(), "0/1")).is_ok());
        match (compared(&text, &shard(run_id.as_ref(), "0/2")), refused) {
            (Ok(plan), None) => assert_eq!(plan.shard.count(), 2),
            (Err(error), Some(fix)) => {
                let error = error.to_string();
                assert!(error.contains("--shard") && error.contains(fix), "{error}");
            }
            (found, _) => panic!("{versus}: {found:?}"),
        }
    }
}

fn shard(run_id: Option<&String>, shard: &str) -> Overrides {
    Overrides { run_id: run_id.cloned(), shard: Some(shard.to_owned()), ..Overrides::default() }
}

#[test]
fn flags_give_the_targets_and_nothing_in_them_is_expanded() {
    let targets = r#"[{"name":"direct","url":"http://127.0.0.1:9","role":"direct"},{"name":"a","url":"http://127.0.0.1:8","key":"a$b${C}"}]"#;
    let overrides = Overrides::default().with("target", "targets", targets);
    let plan = compared(&base_with("stages: '@5:20s'"), &overrides).unwrap();
    assert_eq!(plan.targets[1].key.as_ref().unwrap().reveal(), "a$b${C}");
}

#[test]
fn a_comparison_that_makes_no_sense_is_refused_with_a_fix() {
    let one = "{name: d, url: 'http://127.0.0.1:9'}";
    let two = "{name: a, url: 'http://127.0.0.1:8'}";
    for (lines, part) in [
        (String::new(), "too few targets"),
        (format!("targets: [{one}]"), "too few targets"),
        (
            format!("targets: [{one}, {{name: a, url: 'http://127.0.0.1:9'}}]"),
            "the same target as `d`",
        ),
        (format!("targets: [{one}, {{name: d, url: 'http://127.0.0.1:8'}}]"), "different name"),
        (
            format!("targets: [{one}, {{name: \"a'\", url: 'http://127.0.0.1:8'}}]"),
            "name of a target",
        ),
        (format!("targets: [{one}, {{name: a, url: '127.0.0.1'}}]"), "has no scheme"),
        (format!("targets: [{one}, {{name: a, url: 'http://h', watch: me}}]"), "pid:4711"),
        (format!("targets: [{one}, {two}]\nversus: {{reference: dd}}"), "no target has that name"),
        (format!("targets: [{one}, {two}]\nversus: {{schedule: random}}"), "spread"),
        (
            format!(
                "targets: [{one}, {two}]\nthresholds: {{'added.ttft{{target:z}}': ['p(50)<1ms']}}"
            ),
            "no target is named `z`",
        ),
        // Two windows of 5 s each; three with the control.
        (
            format!("targets: [{one}, {two}]\nstages: 5:9s\nversus: {{schedule: turns}}"),
            "make it 10s or longer",
        ),
        (
            format!(
                "targets: [{one}, {two}]\nstages: '@5:14s'\n\
                 versus: {{schedule: turns, control: true}}"
            ),
            "make it 15s or longer",
        ),
    ] {
        let problems = compared(&base_with(&lines), &Overrides::default()).unwrap_err().to_string();
        assert!(problems.contains(part), "{lines}: {problems}");
    }
    // The same URL with another model is a different target.
    let other = format!(
        "targets: [{one}, {{name: a, url: 'http://127.0.0.1:9', model: big}}]\nstages: '@5:20s'"
    );
    assert!(compared(&base_with(&other), &Overrides::default()).is_ok());
}

#[test]
fn a_profile_with_targets_is_checked_and_shown_without_credentials_and_run_only_with_one() {
    let text = base_with(TARGETS).replace("target: http://127.0.0.1:9000\n", "");
    let profile = Profile::new(Path::new("p.yaml"), text.into_bytes());
    let environment = EnvVars::from_iter([("A_KEY".to_owned(), "sk-of-a".to_owned())]);
    let plan = load(&profile, &environment, &Overrides::default(), Purpose::Check).unwrap();
    assert_eq!(plan.targets.len(), 3);
    let shown = show(&profile, &environment, &Overrides::default()).unwrap();
    for secret in ["sk-", "secret", "red\n", "blue"] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
    let text = format!("{plan:?} {}", serde_json::to_string(&plan).unwrap());
    assert!(!text.contains("sk-") && !text.contains("secret"), "{text}");
    let run = load(&profile, &environment, &Overrides::default(), Purpose::Run).unwrap_err();
    assert!(run.to_string().contains("plimsoll versus"), "{run}");
    let one = Overrides::default().with("target", "target", "http://127.0.0.1:1");
    let plan = load(&profile, &environment, &one, Purpose::Run).unwrap();
    assert_eq!((plan.targets.len(), plan.versus), (1, None));
    assert!(plan.notes.iter().any(|note| note.contains("only by `plimsoll versus`")));
}
