//! `plimsoll knee` against a mock. How well a search finds a knee is tested by simulation.

use std::fs;

use serde_json::Value;

use crate::support::Fixture;

#[test]
fn a_load_that_is_kept_is_a_lower_bound_and_judged() {
    let fixture = Fixture::with("{other_models: {ttft: 1ms}, log: memory}");
    let target = fixture.target();
    // A profile without stages will do.
    let profile = "protocol: http\nhttp: {method: GET, path: /health}\n";
    fs::write(fixture.folder.path().join("own.yaml"), profile).unwrap();
    let args = ["knee", "own.yaml", "--target", &target, "--slo"];
    let search = ["response_time<9s : 60%", "--from", "20", "--to", "20", "--confirm", "0s", "-q"];
    let output = fixture.plimsoll(&[&args[..], &search, &["--at-least", "10"]].concat()).expect(0);
    assert!(output.expect_screen().starts_with("PASS: it carries 10.0/s: knee at 20.0/s or more"));
    let run = fixture.only_run();
    let json = fs::read_to_string(run.join("knee.json")).unwrap();
    let knee: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&knee["knee"]["kind"], &knee["at_least"]["state"]),
        (&"at_least".into(), &"kept".into())
    );
    // Every request that was counted reached the mock; the warm-up did, too, and is not counted.
    let counted: u64 = knee["probes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|probe| probe["requests"].as_u64().unwrap())
        .sum();
    let seen = fixture.mock.take_log().len() as u64;
    assert!((70..=90).contains(&counted) && seen > counted, "{counted} of {seen}");
    assert!(fs::read_to_string(run.join("report.txt")).unwrap().contains("20.0/s"));
}

#[test]
fn wrong_usage_names_the_fix() {
    let fixture = Fixture::with("{other_models: {ttft: 1ms}}");
    let target = fixture.target();
    for (slo, flags, says) in [
        ("speed<1s : 99%", &[][..], "a request has no `speed`"),
        ("ttft<1s", &[], "has no share of requests"),
        ("ttft<1s : 99%", &["--from", "9", "--to", "3"], "--to 3 is below --from 9"),
        ("ttft<1s : 99%", &["--budget", "10s"], "too short for a search"),
    ] {
        let args = ["knee", "minimal", "--target", &target, "--key", "k", "--slo", slo];
        let output = fixture.plimsoll(&[&args[..], flags].concat()).expect(2);
        assert!(output.stderr.contains(says), "{slo} {flags:?}: {}", output.stderr);
    }
    assert!(fixture.runs().is_empty());
}
