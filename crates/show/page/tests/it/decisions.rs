//! Expected and actual policy decisions.

use plimsoll_measure::PolicyDecision;

use crate::pages::{html_of, run_of};
use crate::support::{charts, rows};

#[test]
fn decisions_are_counted_by_what_was_expected_and_what_came() {
    // Of 240 requests the odd ones are to be blocked, and of these every fourth is let through.
    let made = run_of(1, 6, &["gateway"], 40, |sample| {
        let number = sample.conversation.0 % 1_000 / 25;
        let (expected, actual) = match (number % 2, number % 8) {
            (1, 1) => (PolicyDecision::Block, PolicyDecision::Allow),
            (1, _) => (PolicyDecision::Block, PolicyDecision::Block),
            _ => (PolicyDecision::Allow, PolicyDecision::Allow),
        };
        (sample.expected, sample.policy_decision) = (Some(expected), Some(actual));
    });
    let html = html_of(&made, None);
    let json = serde_json::to_value(&made.0.results.by_target[0].policy_decisions).unwrap();
    let shown = rows(&html, "decisions");
    assert!(!shown.is_empty());
    for row in &shown {
        assert_eq!(json[&row[1]][&row[2]].to_string(), row[3], "{row:?} in {json}");
    }
    let total: u64 = shown.iter().map(|row| row[3].parse::<u64>().unwrap()).sum();
    assert_eq!(total, 240);
    let svg = &charts(&html).into_iter().find(|(id, _)| id == "decisions").unwrap().1;
    // Two as expected, and one that is not: block, but allowed.
    assert_eq!(svg.split("</svg>").next().unwrap().matches("class=\"right\"").count(), 2);
    assert_eq!(svg.split("</svg>").next().unwrap().matches("class=\"wrong\"").count(), 1);
    for row in &shown {
        assert!(svg.contains(&format!(">{}</text>", row[3])), "{row:?}");
    }
    expect_test::expect_file![format!(
        "{}/tests/golden/decisions.svg.txt",
        env!("CARGO_MANIFEST_DIR")
    )]
    .assert_eq(&format!("{}\n", svg.replace("><", ">\n<")));
}

#[test]
fn a_run_without_expectations_has_no_such_chart() {
    let made = run_of(1, 3, &["gateway"], 40, |_| {});
    assert!(!html_of(&made, None).contains("<section id=\"decisions\""));
}
