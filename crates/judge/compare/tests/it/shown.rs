//! Texts of comparisons.

use std::path::Path;

use plimsoll_compare::{Comparison, Options, compare};
use plimsoll_report::Style;
use plimsoll_report::screen::Screen;
use serde_json::Value;

use crate::support::{Figures, Noise, PLAIN, options, turns};

const GATES: [(&str, &str); 4] =
    [("ttft.p50", "3%"), ("ttft.p99", "10%"), ("throughput", "2%"), ("error_rate", "0.1pp")];

/// The guide's example: p99 is 17 % longer, and throughput varies by 3 %.
fn example() -> Comparison {
    let (mut old, mut new) = (Noise(21), Noise(22));
    let figures = |noise: &mut Noise, p99| Figures {
        ttft: [noise.around(20.3, 0.004), noise.around(p99, 0.03)],
        throughput: noise.around(1_744.0, 0.03),
        errors: 0,
    };
    let (base, new) = turns(6, || figures(&mut old, 41.0), || figures(&mut new, 47.9));
    compare(&base, &new, &options(&GATES)).unwrap()
}

fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    expect_test::expect_file![path].assert_eq(text);
}

#[track_caller]
fn screens(name: &str, screen: &Screen) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/screens");
    let at = |width| Style::plain(width);
    let whole = screen.whole(at(10_000));
    plimsoll_test_support::check_screens(path, name, &whole, |width| screen.text(at(width)));
}

#[test]
fn the_screens_fit_every_terminal() {
    screens("comparison", &example().screen());
    let (base, new) = turns(6, || PLAIN, || PLAIN);
    let gates: Vec<_> = (1..=40).map(|n| (format!("ttft.p{}", 50 + n), "3%".to_owned())).collect();
    let options = Options { gates, ..Options::default() };
    let many = compare(&base, &new, &options).unwrap().screen();
    screens("many-gates", &many);
    let (mut base, new) = turns(1, || PLAIN, || PLAIN);
    base[0].summary.metadata.environment.cpu_model = Some("\x1b[2Jbetter".to_owned());
    let other = compare(&base, &new, &Options::default()).unwrap().screen();
    screens("other-machine", &other);
    let text = other.text(Style::plain(80));
    assert!(text.contains("\\u{1b}[2Jbetter") && !text.contains('\x1b'), "{text}");
    assert!(text.lines().last().unwrap().starts_with("INVALID: these runs must"), "{text}");
}

#[test]
fn the_texts_equal_the_stored_ones() {
    let example = example();
    golden("comparison.txt", &example.text(110));
    golden("comparison.md", &example.markdown());
    golden("comparison.xml", &example.junit(false).unwrap());
    let json = rounded(serde_json::to_value(&example).unwrap());
    golden("comparison.json", &(serde_json::to_string_pretty(&json).unwrap() + "\n"));
}

/// However narrow the screen is, each gate has its verdict next to its name, in a single table.
#[test]
fn the_verdict_is_never_in_a_second_table() {
    let simple = Options { regress: Some(0.1), ..Options::default() };
    let (base, new) = turns(1, || PLAIN, || PLAIN);
    let simple = compare(&base, &new, &simple).unwrap();
    for (name, found) in [("example", example()), ("simple", simple)] {
        for width in 60..=120 {
            let text = found.screen().text(Style::plain(width));
            let heads: Vec<_> =
                text.lines().filter(|l| l.split_whitespace().next() == Some("gate")).collect();
            assert_eq!(heads.len(), 1, "{name}, {width}:\n{text}");
            assert!(heads[0].contains("verdict"), "{name}, {width}:\n{text}");
        }
    }
}

/// Rounds away the last digits, which depend on the order of summation.
fn rounded(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let text = format!("{:.8e}", number.as_f64().unwrap());
            Value::from(text.parse::<f64>().unwrap())
        }
        Value::Array(items) => items.into_iter().map(rounded).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(key, value)| (key, rounded(value))).collect()
        }
        other => other,
    }
}

#[test]
fn the_first_and_the_last_line_are_short_and_the_verdict_heads_the_markdown() {
    let example = example();
    let text = example.text(110);
    for line in [text.lines().next().unwrap(), text.lines().last().unwrap()] {
        assert!(line.chars().count() <= 80, "{line}");
    }
    for width in 60..=200 {
        let text = example.text(width);
        assert!(text.lines().all(|line| line.chars().count() <= width), "{width}:\n{text}");
    }
    assert!(example.markdown().starts_with("**FAIL"), "{}", example.markdown());
    assert_eq!(example.markdown(), self::example().markdown(), "the order is stable");
}

#[test]
fn a_stored_comparison_is_read_back() {
    let example = example();
    let json = serde_json::to_string(&example).unwrap();
    assert_eq!(serde_json::from_str::<Comparison>(&json).unwrap(), example);
}

#[test]
fn junit_counts_failures_errors_and_skipped_gates() {
    let example = example();
    let strict = example.junit(false).unwrap();
    assert!(strict.contains(r#"tests="5" skipped="0" errors="1" failures="1">"#), "{strict}");
    let lenient = example.junit(true).unwrap();
    assert!(lenient.contains(r#"tests="5" skipped="1" errors="0" failures="1">"#), "{lenient}");
}

#[test]
fn the_simple_rule_is_labelled_as_what_it_is() {
    let slow = Figures { ttft: [20.0, 60.0], throughput: 1_700.0, errors: 9 };
    let (base, new) = turns(1, || PLAIN, || slow);
    let simple = Options { regress: Some(0.1), ..Options::default() };
    let found = compare(&base, &new, &simple).unwrap();
    golden("simple.txt", &found.text(110));
    screens("simple", &found.screen());
    let failed: Vec<_> = found
        .gates
        .iter()
        .filter(|gate| gate.judged.judgement == plimsoll_metrics::Judgement::Fail)
        .map(|gate| gate.name.as_str())
        .collect();
    assert_eq!(failed, ["service_time.p99{stage:32:60s}", "ttft.p99{stage:32:60s}"]);
}

#[test]
fn markdown_of_hostile_and_of_many_names_is_safe_and_below_the_limit() {
    let (mut base, new) = turns(300, || PLAIN, || PLAIN);
    base[0].path = "a`|<script>\n# @all".into();
    let gates: Vec<(String, String)> = (1..=900)
        .map(|tenth| (format!("ttft.p{}", f64::from(tenth) / 10.0), "3%".to_owned()))
        .collect();
    let long = Options { gates, ..Options::default() };
    let text = compare(&base, &new, &long).unwrap().markdown();
    assert!(text.len() < 60_000, "{}", text.len());
    assert!(text.matches("<script>").count() == text.matches("`a |<script> # @all`").count());
}
