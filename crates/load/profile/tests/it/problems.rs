//! The exact messages for invalid profiles: see `tests/golden/problems.txt`.

use plimsoll_profile::Overrides;

use crate::support::{base_with, resolve};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/problems.txt");

/// Replaces the message of a paragraph with an example by the current one; other paragraphs stay
/// unchanged.
fn with_present_message(paragraph: &str) -> String {
    let Some((example, _)) = paragraph.split_once("\n=>\n") else { return paragraph.to_owned() };
    let (_, lines) = example.split_once('\n').unwrap();
    let result = resolve(&base_with(lines), &[], &Overrides::default());
    let message = result.map_or_else(|problems| problems.to_string(), |_| "nothing".to_owned());
    format!("{example}\n=>\n{message}")
}

#[test]
fn every_problem_has_the_message_of_the_golden_file() {
    let golden = std::fs::read_to_string(GOLDEN).unwrap();
    let paragraphs = golden.trim_end().split("\n\n").map(with_present_message);
    expect_test::expect_file![GOLDEN]
        .assert_eq(&(paragraphs.collect::<Vec<_>>().join("\n\n") + "\n"));
}

#[test]
fn an_empty_profile_lacks_the_keys_without_a_default() {
    let nothing = resolve("", &[], &Overrides::default()).unwrap_err();
    let paths: Vec<_> = nothing.iter().map(|problem| problem.path.to_string()).collect();
    assert_eq!(paths, ["content", "model", "stages", "target"]);
}

/// Each invalid value of a mapping with free keys is reported with its line.
#[test]
fn no_problem_hides_another_and_each_has_its_line() {
    let text = "target: http://127.0.0.1:9000\nmodel: m\nstages: 1:1s\ntimeout: 30\ncontent:\n  mode: sized\n  \
        approx_input_tokens: lots\nthresholds:\n  response_time: 5\n  nonsense: ['<1%']\n  ttfb: ['p(95)<1']\n\
        headers:\n  x-a: 7\n  'b d': x\nscenarios:\n  - name: a\n    weight: -1\n    headers:\n      c: [1]\n      \
        content-length: '5'\n  - {}\n";
    let problems = resolve(text, &[], &Overrides::default()).unwrap_err();
    let mut seen: Vec<_> =
        problems.iter().map(|problem| (problem.line.unwrap(), problem.path.to_string())).collect();
    seen.sort();
    assert_eq!(
        seen,
        [
            (4, "timeout".to_owned()),
            (7, "content.approx_input_tokens".to_owned()),
            (9, "thresholds.response_time".to_owned()),
            (10, "thresholds.nonsense[0]".to_owned()),
            (11, "thresholds.ttfb[0]".to_owned()),
            (13, "headers.x-a".to_owned()),
            (14, "headers.b d".to_owned()),
            (17, "scenarios[0].weight".to_owned()),
            (19, "scenarios[0].headers.c".to_owned()),
            (20, "scenarios[0].headers.content-length".to_owned()),
        ],
        "{problems}"
    );
    assert!(problems.to_string().contains("p.yaml:4: timeout: is a number"), "{problems}");
}

#[test]
fn texts_that_are_not_a_profile_name_line_and_column() {
    let fix = "correct it there (quotes are needed around texts with `: ` or ` #` in them, or a sign like `@` at their start)";
    for (text, expected) in [
        ("stages: @5:1s", format!("p.yaml: is not YAML that can be used: unexpected character: `@' at line 1, column 9; {fix}")),
        ("a: 1\na: 2", "p.yaml: is not YAML that can be used: the key `a` is given twice at line 2, column 1; leave one out".to_owned()),
        ("a: *x", format!("p.yaml: is not YAML that can be used: reference to unknown value at line 1, column 4; {fix}")),
        ("- a", "p.yaml: is not a mapping of keys to values; write lines like `target: http://127.0.0.1:9000`".to_owned()),
        ("{\"a\": 1,}", "p.yaml: is not JSON that can be used: trailing comma at line 1 column 9; correct it there".to_owned()),
        ("{\"a\": 1, \"a\": 2}", "p.yaml: is not JSON that can be used: the key `a` is given twice at line 1 column 12; correct it there".to_owned()),
        ("{} {}", "p.yaml: is not JSON that can be used: trailing characters at line 1 column 4; correct it there".to_owned()),
    ] {
        assert_eq!(resolve(text, &[], &Overrides::default()).unwrap_err().to_string(), expected, "{text}");
    }
}
