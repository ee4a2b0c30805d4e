//! `plimsoll profile`: check, show, init, schema, list.

use std::fs;

use crate::support::{FAST, Fixture};

#[test]
fn all_problems_of_all_files_are_printed_at_once() {
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
    let output = fixture
        .plimsoll(&["profile", "check", "good.yaml", "bad.yaml", "worse.yaml", "absent"])
        .expect(2);
    assert_eq!(output.stdout, "good.yaml: ok\n");
    let lines: Vec<_> = output.stderr.lines().collect();
    let starts = |line: &&&str, start: &str| line.starts_with(start);
    for (start, count) in
        [("error: bad.yaml:", 3), ("error: worse.yaml: ", 1), ("error: absent: ", 1)]
    {
        assert_eq!(
            lines.iter().filter(|line| starts(line, start)).count(),
            count,
            "{start}\n{}",
            output.stderr
        );
    }
    assert!(output.stderr.contains("did you mean `stages`"), "{}", output.stderr);
}

#[test]
fn a_misspelled_profile_name_gets_a_suggestion() {
    let fixture = Fixture::with(FAST);
    let output = fixture.plimsoll(&["run", "realstic"]).expect(2);
    assert!(output.stderr.contains("did you mean `realistic`"), "{}", output.stderr);
}

#[test]
fn every_listed_profile_is_valid_and_can_be_shown() {
    let fixture = Fixture::with(FAST);
    let list = fixture.plimsoll(&["profile", "list"]).expect(0).stdout;
    let names: Vec<_> = list.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert!(names.contains(&"realistic") && names.len() >= 11, "{list}");
    let checked = fixture.plimsoll(&[&["profile", "check"], &names[..]].concat()).expect(0);
    assert_eq!(checked.stdout.matches(": ok\n").count(), names.len());
    let shown =
        fixture.plimsoll(&["profile", "show", "realistic", "--stages", "7:9s"]).expect(0).stdout;
    assert!(shown.contains("7:9s") && shown.contains("max_in_flight"), "{shown}");
    // The printed text is a valid profile.
    fs::write(fixture.folder.path().join("shown.yaml"), &shown).unwrap();
    fixture.plimsoll(&["profile", "check", "shown.yaml"]).expect(0);
}

#[test]
fn a_created_profile_runs_with_a_key_and_without_and_is_never_overwritten() {
    let fixture = Fixture::with(FAST);
    fixture.plimsoll(&["profile", "init", "--kind", "minimal", "mine.yaml"]).expect(0);
    fixture.plimsoll(&["profile", "check", "mine.yaml"]).expect(0);
    let target = fixture.target();
    let run = ["run", "mine.yaml", "--target", &target, "--stages", "1:200ms", "-q"];
    fixture.plimsoll(&[&run[..], &["--allow-invalid"]].concat()).expect(0);
    fixture.plimsoll(&[&run[..], &["--key", "any", "--allow-invalid"]].concat()).expect(0);
    // A placeholder is never sent.
    let placeholder =
        ["run", "mine.yaml", "--set", "key=REPLACE_WITH_VK", "--target", &target, "-q"];
    let unset = fixture.plimsoll(&placeholder).expect(2);
    assert!(unset.stderr.contains("key: is still the placeholder"), "{}", unset.stderr);
    let again = fixture.plimsoll(&["profile", "init", "mine.yaml"]).expect(2);
    assert!(again.stderr.contains("exists already"), "{}", again.stderr);
    let unknown = fixture.plimsoll(&["profile", "init", "--kind", "nonsense"]).expect(2);
    assert!(unknown.stderr.contains("realistic"), "{}", unknown.stderr);
}

#[test]
fn the_schema_is_valid_json() {
    let fixture = Fixture::with(FAST);
    let schema = fixture.plimsoll(&["profile", "schema"]).expect(0).stdout;
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    assert!(schema["properties"]["scenarios"].is_object());
}
