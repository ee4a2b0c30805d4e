//! `plimsoll profile`: check, show, init, schema, list.

use std::fs;

use crate::support::{FAST, Fixture};

#[test]
fn every_problem_of_every_file_is_told_in_one_go() {
    let fixture = Fixture::with(FAST);
    let write = |name: &str, text: &str| fs::write(fixture.folder.path().join(name), text).unwrap();
    write(
        "good.yaml",
        "target: http://127.0.0.1:9000\nmodel: m\nstages: 1:1s\ncontent: {mode: pool, prompts: [hi]}\n",
    );
    write(
        "bad.yaml",
        "target: http://127.0.0.1:9000\nmodel: m\nstags: 1:1s\ncontent: {mode: pool, prompts: []}\n",
    );
    write("worse.yaml", "{");
    let ran = fixture
        .plimsoll(&["profile", "check", "good.yaml", "bad.yaml", "worse.yaml", "absent"])
        .expect(2);
    assert_eq!(ran.stdout, "good.yaml: ok\n");
    let lines: Vec<_> = ran.stderr.lines().collect();
    let starts = |line: &&&str, start: &str| line.starts_with(start);
    for (start, count) in
        [("error: bad.yaml: ", 3), ("error: worse.yaml: ", 1), ("error: absent: ", 1)]
    {
        assert_eq!(
            lines.iter().filter(|line| starts(line, start)).count(),
            count,
            "{start}\n{}",
            ran.stderr
        );
    }
    assert!(ran.stderr.contains("did you mean `stages`"), "{}", ran.stderr);
}

#[test]
fn names_that_are_nearly_right_are_suggested() {
    let fixture = Fixture::with(FAST);
    let ran = fixture.plimsoll(&["run", "realstic"]).expect(2);
    assert!(ran.stderr.contains("did you mean `realistic`"), "{}", ran.stderr);
}

#[test]
fn every_listed_profile_checks_and_shows() {
    let fixture = Fixture::with(FAST);
    let list = fixture.plimsoll(&["profile", "list"]).expect(0).stdout;
    let names: Vec<_> = list.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert!(names.contains(&"realistic") && names.len() >= 11, "{list}");
    let checked = fixture.plimsoll(&[&["profile", "check"], &names[..]].concat()).expect(0);
    assert_eq!(checked.stdout.lines().count(), names.len());
    let shown =
        fixture.plimsoll(&["profile", "show", "realistic", "--stages", "7:9s"]).expect(0).stdout;
    assert!(shown.contains("7:9s") && shown.contains("max_in_flight"), "{shown}");
}

#[test]
fn a_written_profile_runs_when_its_key_is_set_and_is_never_overwritten() {
    let fixture = Fixture::with(FAST);
    fixture.plimsoll(&["profile", "init", "--kind", "minimal", "mine.yaml"]).expect(0);
    fixture.plimsoll(&["profile", "check", "mine.yaml"]).expect(0);
    let target = fixture.target();
    let run = ["run", "mine.yaml", "--target", &target, "--stages", "1:200ms", "-q"];
    let unset = fixture.plimsoll(&run).expect(2);
    assert!(unset.stderr.contains("mine.yaml: key: is still the placeholder"), "{}", unset.stderr);
    fixture.plimsoll(&[&run[..], &["--key", "any"]].concat()).expect(0);
    let again = fixture.plimsoll(&["profile", "init", "mine.yaml"]).expect(2);
    assert!(again.stderr.contains("exists already"), "{}", again.stderr);
    let unknown = fixture.plimsoll(&["profile", "init", "--kind", "nonsense"]).expect(2);
    assert!(unknown.stderr.contains("realistic"), "{}", unknown.stderr);
}

#[test]
fn the_schema_is_json() {
    let fixture = Fixture::with(FAST);
    let schema = fixture.plimsoll(&["profile", "schema"]).expect(0).stdout;
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    assert!(schema["properties"]["scenarios"].is_object());
}
