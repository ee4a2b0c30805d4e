//! Bad profiles, and the exact words that are said about them: see `problems.golden`.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod support;

use std::path::Path;

use plimsoll_profile::Overrides;
use support::{base_with, resolve};

const GOLDEN: &str = "tests/problems.golden";

/// An example with what is said about it now; anything else as it is.
fn told_anew(paragraph: &str) -> String {
    let Some((example, _)) = paragraph.split_once("\n=>\n") else { return paragraph.to_owned() };
    let (_, lines) = example.split_once('\n').unwrap();
    let result = resolve(&base_with(lines), &[], &Overrides::default());
    let said = result.map_or_else(|problems| problems.to_string(), |_| "nothing".to_owned());
    format!("{example}\n=>\n{said}")
}

#[test]
fn every_problem_is_told_in_the_words_of_the_golden_file() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(GOLDEN);
    let golden = std::fs::read_to_string(&path).unwrap();
    let paragraphs = golden.trim_end().split("\n\n").map(told_anew);
    let anew = paragraphs.collect::<Vec<_>>().join("\n\n") + "\n";
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &anew).unwrap();
        return;
    }
    for (old, new) in golden.lines().zip(anew.lines()) {
        assert_eq!(old, new, "refresh {GOLDEN} with UPDATE_GOLDEN=1 if this is meant");
    }
    assert_eq!(golden.lines().count(), anew.lines().count());
}

#[test]
fn an_empty_profile_lacks_what_has_no_default() {
    let nothing = resolve("", &[], &Overrides::default()).unwrap_err();
    let places: Vec<_> = nothing.iter().map(|problem| problem.place.to_string()).collect();
    assert_eq!(places, ["content", "model", "stages", "target"]);
}

#[test]
fn texts_that_are_not_a_profile_name_line_and_column() {
    let mend = "correct it there (quotes are needed around texts with `: ` or ` #` in them, or a sign like `@` at their start)";
    for (text, expected) in [
        ("stages: @5:1s", format!("p.yaml: is not YAML that can be used: unexpected character: `@' at line 1, column 9; {mend}")),
        ("a: 1\na: 2", "p.yaml: is not YAML that can be used: the key `a` is given twice at line 2, column 1; leave one out".to_owned()),
        ("a: *x", format!("p.yaml: is not YAML that can be used: reference to unknown value at line 1, column 4; {mend}")),
        ("- a", "p.yaml: is not a mapping of keys to values; write lines like `target: http://127.0.0.1:9000`".to_owned()),
        ("{\"a\": 1,}", "p.yaml: is not JSON that can be used: trailing comma at line 1 column 9; correct it there".to_owned()),
        ("{\"a\": 1, \"a\": 2}", "p.yaml: is not JSON that can be used: the key `a` is given twice at line 1 column 12; correct it there".to_owned()),
        ("{} {}", "p.yaml: is not JSON that can be used: trailing characters at line 1 column 4; correct it there".to_owned()),
    ] {
        assert_eq!(resolve(text, &[], &Overrides::default()).unwrap_err().to_string(), expected, "{text}");
    }
}
