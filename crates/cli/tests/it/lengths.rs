//! Goodput, tokens per second of a user and lengths of a run, recomputed from its rows by a script
//! in Python that shares no code with the program.

use std::process::Command;

use crate::support::Fixture;

const MOCK: &str = "{models: {m: {ttft: {uniform: {min: 20ms, max: 90ms}}, gap: {uniform: {min: 4ms, max: 12ms}}, \
                    output: {uniform: {min: 2, max: 60}}, reasoning_share: 0.25}}}";

const PROFILE: &str = "
model: m
stages: w4:500ms,8:2s,12:2s
stream: true
goodput: ttft<60ms, tpot<9ms
scenarios:
  - {name: short, content: {mode: sized, approx_input_tokens: {min: 5, max: 40}}}
  - {name: long, content: {mode: sized, approx_input_tokens: {mean: 700, stddev: 300}}}
";

#[test]
fn a_script_in_python_finds_the_same_in_the_rows() {
    let fixture = Fixture::with(MOCK);
    std::fs::write(fixture.folder.path().join("p.yaml"), PROFILE).unwrap();
    fixture.run(&["p.yaml", "--no-probe"]).expect(0);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/recompute.py");
    let output = Command::new("python3").arg(script).arg(fixture.only_run()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let counts: Vec<u64> = said.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let [requests, good] = counts[..] else { panic!("{said}") };
    assert!(requests > 50 && good > 0 && good < requests, "some are good and some are not: {said}");
    let report = std::fs::read_to_string(fixture.only_run().join("report.txt")).unwrap();
    for part in
        ["  Input tokens ", "  Reasoning tokens ", "  Answer tokens ", "  Tokens/s per user "]
    {
        // Two stages, their total, and two scenarios; and the warm-up.
        assert_eq!(report.matches(part).count(), 6, "{part}: {report}");
    }
}
