//! The corpus and every rule's evasions, judged by the built-in rules.

use std::collections::BTreeSet;

use plimsoll_gateway_policy::corpus::{Entry, Tag, entries};
use plimsoll_gateway_policy::{Action, Actions, Category, Policy, PolicyDecision};

fn judge<'e>(policy: &Policy, entry: &'e Entry) -> PolicyDecision<'e> {
    policy.scan(&entry.text, entry.reading, &Actions::default())
}

/// The category that decided: the one expected if it is among the matches.
fn found(verdict: &PolicyDecision<'_>, expected: Option<Category>) -> Option<Category> {
    let wanted = verdict.matches.iter().find(|found| Some(found.category) == expected);
    wanted.or_else(|| verdict.cause()).map(|found| found.category)
}

fn column(category: Option<Category>) -> usize {
    Category::ALL.iter().position(|known| Some(*known) == category).map_or(0, |at| at + 1)
}

#[expect(clippy::print_stdout, reason = "the figures are read in the output of the test")]
fn print_matrix(policy: &Policy) {
    let names = |at: usize| if at == 0 { "normal" } else { Category::ALL[at - 1].name() };
    let mut counts = [[0_usize; 6]; 6];
    for entry in entries().iter().filter(|entry| entry.tag != Tag::Evasion) {
        let seen = found(&judge(policy, entry), entry.category);
        counts[column(entry.category)][column(seen)] += 1;
    }
    let row = |name: &str, cells: [String; 6]| {
        println!("{name:>17} {}", cells.map(|cell| format!("{cell:>17}")).concat());
    };
    row("is \\ judged", std::array::from_fn(|at| names(at).to_owned()));
    for (at, counted) in counts.iter().enumerate() {
        row(names(at), counted.map(|count| count.to_string()));
    }
}

#[test]
fn every_example_gets_its_verdict() {
    let policy = Policy::builtin().unwrap();
    print_matrix(&policy);
    let wrong: Vec<String> = entries()
        .iter()
        .filter(|entry| entry.tag != Tag::Evasion)
        .filter_map(|entry| {
            let verdict = judge(&policy, entry);
            let right = verdict.action == entry.expected
                && found(&verdict, entry.category) == entry.category;
            let rules: Vec<_> = verdict.matches.iter().map(|found| &*found.rule_id).collect();
            (!right).then(|| format!("{} {:?}: {} {rules:?}", entry.id, entry.text, verdict.action))
        })
        .collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_share_of_evasions_that_is_caught_does_not_shrink() {
    let policy = Policy::builtin().unwrap();
    let disguised: Vec<_> = entries().iter().filter(|entry| entry.tag == Tag::Evasion).collect();
    let caught = |entry: &&&Entry| found(&judge(&policy, entry), entry.category) == entry.category;
    let missed: Vec<_> =
        disguised.iter().filter(|entry| !caught(entry)).map(|entry| &entry.text).collect();
    let share = 100 * (disguised.len() - missed.len()) / disguised.len();
    println!("corpus evasions caught: {share} % of {}; missed {missed:#?}", disguised.len());
    let listed: Vec<_> = policy.evasions().collect();
    let known = listed.iter().filter(|evasion| evasion.caught).count();
    println!("rules' evasions caught: {known} of {}", listed.len());
    assert!(share >= 55, "{share} %");
}

#[test]
fn the_corpus_is_as_large_and_as_mixed_as_it_says() {
    let lines = include_str!("../corpus/corpus.tsv").lines().count() - 1;
    assert_eq!(entries().len(), lines, "a line is not understood");
    let count = |tag: Tag| entries().iter().filter(|entry| entry.tag == tag).count();
    assert!(lines >= 400, "{lines}");
    assert!(count(Tag::Hard) * 3 >= lines - count(Tag::Evasion), "{}", count(Tag::Hard));
    assert!(count(Tag::Evasion) >= 60);
    assert_eq!(count(Tag::Suite), 20);
    let texts: BTreeSet<_> = entries()
        .iter()
        .map(|entry| (&entry.text, entry.reading == plimsoll_gateway_policy::Reading::Query))
        .collect();
    assert_eq!(texts.len(), lines, "a text is there twice");
    let normal = entries().iter().filter(|entry| entry.category.is_none());
    assert!(normal.into_iter().all(|entry| entry.expected == Action::Allow));
}
