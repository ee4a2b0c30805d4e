//! The corpus and every rule's evasions, scanned with the built-in rules.

use std::collections::BTreeSet;

use plimsoll_gateway_policy::{Action, Actions, Category, InputKind, Policy, PolicyDecision};

use super::examples::{Example, Tag, examples};

fn scan<'e>(policy: &Policy, example: &'e Example) -> PolicyDecision<'e> {
    policy.scan(&example.text, example.kind, &Actions::default())
}

/// The decisive category: the expected one if it is among the matches.
fn found(decision: &PolicyDecision<'_>, expected: Option<Category>) -> Option<Category> {
    let wanted = decision.matches.iter().find(|found| Some(found.category) == expected);
    let cause = decision.matches.iter().find(|found| found.action == decision.action);
    wanted.or(cause).map(|found| found.category)
}

fn column(category: Option<Category>) -> usize {
    Category::ALL.iter().position(|known| Some(*known) == category).map_or(0, |at| at + 1)
}

#[expect(clippy::print_stdout, reason = "the figures are read in the output of the test")]
fn print_matrix(policy: &Policy) {
    let names = |at: usize| if at == 0 { "normal" } else { Category::ALL[at - 1].into() };
    let mut counts = [[0_usize; 6]; 6];
    for example in examples().iter().filter(|example| example.tag != Tag::Evasion) {
        let seen = found(&scan(policy, example), example.category);
        counts[column(example.category)][column(seen)] += 1;
    }
    let row = |name: &str, cells: [String; 6]| {
        println!("{name:>17} {}", cells.map(|cell| format!("{cell:>17}")).concat());
    };
    row("is \\ found", std::array::from_fn(|at| names(at).to_owned()));
    for (at, counted) in counts.iter().enumerate() {
        row(names(at), counted.map(|count| count.to_string()));
    }
}

#[test]
fn every_example_gets_the_expected_decision() {
    let policy = Policy::builtin().unwrap();
    print_matrix(&policy);
    let wrong: Vec<String> = examples()
        .iter()
        .filter(|example| example.tag != Tag::Evasion)
        .filter_map(|example| {
            let decision = scan(&policy, example);
            let right = decision.action == example.expected
                && found(&decision, example.category) == example.category;
            let rules: Vec<_> = decision.matches.iter().map(|found| &*found.rule_id).collect();
            (!right).then(|| {
                format!("{} {:?}: {} {rules:?}", example.id, example.text, decision.action)
            })
        })
        .collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_share_of_evasions_that_is_caught_does_not_shrink() {
    let policy = Policy::builtin().unwrap();
    let evasions: Vec<_> =
        examples().iter().filter(|example| example.tag == Tag::Evasion).collect();
    let caught =
        |example: &&&Example| found(&scan(&policy, example), example.category) == example.category;
    let missed: Vec<_> =
        evasions.iter().filter(|example| !caught(example)).map(|example| &example.text).collect();
    let share = 100 * (evasions.len() - missed.len()) / evasions.len();
    println!("corpus evasions caught: {share} % of {}; missed {missed:#?}", evasions.len());
    assert!(share >= 55, "{share} %");
}

#[test]
fn the_corpus_has_the_documented_size_and_mix() {
    let lines = include_str!("../../corpus/corpus.tsv").lines().count() - 1;
    assert_eq!(examples().len(), lines, "a line is invalid");
    let count = |tag: Tag| examples().iter().filter(|example| example.tag == tag).count();
    assert!(lines >= 400, "{lines}");
    assert!(count(Tag::Hard) * 3 >= lines - count(Tag::Evasion), "{}", count(Tag::Hard));
    assert!(count(Tag::Evasion) >= 60);
    assert_eq!(count(Tag::Suite), 20);
    let texts: BTreeSet<_> = examples()
        .iter()
        .map(|example| (&example.text, example.kind == InputKind::Query))
        .collect();
    assert_eq!(texts.len(), lines, "a text occurs twice");
    let normal = examples().iter().filter(|example| example.category.is_none());
    assert!(normal.into_iter().all(|example| example.expected == Action::Allow));
}
