//! `plimsoll run --smoke`: the first look at a target.

use std::fs;

use crate::support::Fixture;

const PROFILE: &str = "target: http://127.0.0.1:1\n\
    model: right\n\
    stages: '@5:30s'\n\
    content: {mode: pool, prompts: [hi]}\n\
    scenarios: [{name: rare, weight: 0.001}, {name: chat, turns: 2, weight: 9}, {name: other, model: MODEL}]\n\
    thresholds: {response_time: ['p(99)<1s'], error_rate: ['<1%']}\n";

fn fixture(model: &str) -> Fixture {
    let faults = "models: {wrong: {faults: [{fault: '503', share: 1.0}]}}";
    let fixture = Fixture::with(faults);
    let profile = fixture.folder.path().join("my.yaml");
    fs::write(profile, PROFILE.replace("MODEL", model)).unwrap();
    fixture
}

#[test]
fn a_smoke_says_whether_each_scenario_was_answered() {
    let fixture = fixture("right");
    let output = fixture.run(&["my.yaml", "--smoke"]).expect(0);
    let verdict = output.expect_screen();
    assert_eq!(verdict, "PASS: 30 of 30 requests ok");
    // Neither the time that it might have taken, nor thresholds that so few requests cannot show.
    assert!(!output.stdout.contains("1:10m"), "{}", output.stdout);
    assert!(!output.stdout.contains("p(99)"), "{}", output.stdout);
    let summary = fixture.summary();
    for group in &summary.results.by_scenario {
        let (name, counters) = (group.scenario.clone().unwrap(), group.counters);
        assert!(counters.scheduled >= 3, "{name}: {}", counters.scheduled);
        let row = format!("{} of {}", counters.completed, counters.scheduled);
        let mut lines = output.stdout.lines().filter(|line| line.starts_with(&name));
        assert!(lines.any(|line| line.contains(&row)), "{name} {row}: {}", output.stdout);
    }
    // The requests of the load, and the probe.
    assert_eq!(fixture.mock.stats().requests, 30 + 1);
}

#[test]
fn a_scenario_that_is_not_answered_fails_the_smoke_and_is_named() {
    let fixture = fixture("wrong");
    let output = fixture.run(&["my.yaml", "--smoke"]).expect(1);
    let verdict = output.expect_screen();
    let group = fixture.summary().results.by_scenario;
    let wrong = group.iter().find(|group| group.scenario.as_deref() == Some("other")).unwrap();
    let of = format!("other 0 of {}", wrong.counters.scheduled);
    assert_eq!(verdict, format!("FAIL: not every request was ok: {of}"));
    assert!(output.stdout.contains("requests returned 503"), "why: {}", output.stdout);
}
