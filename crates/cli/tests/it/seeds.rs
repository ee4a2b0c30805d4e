//! `docs/seeds.md`: every command in its short form, and the labels of its excerpt in the report.

use std::fs;

use crate::support::{FAST, Fixture};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/seeds.md");
/// Settings for the shortest run: the test checks labels, not figures.
const SHORT: [&str; 7] =
    ["--full", "--short", "--duration", "300ms", "--passes", "1", "--allow-invalid"];

/// A command of the page, and the labels below it.
struct Excerpt {
    command: String,
    labels: Vec<String>,
}

fn excerpts() -> Vec<Excerpt> {
    let page = fs::read_to_string(PAGE).unwrap();
    let blocks = page.split("```\n$ plimsoll ").skip(1);
    blocks
        .map(|block| {
            let block = block.split("```").next().unwrap();
            let (command, rest) = block.split_once('\n').unwrap();
            let labels = rest.lines().flat_map(|line| line.trim().split("  "));
            let labels = labels.map(str::trim).filter(|label| !label.is_empty());
            Excerpt { command: command.to_owned(), labels: labels.map(str::to_owned).collect() }
        })
        .collect()
}

/// The shortest form of a command. The mock replaces any target of the reader's.
fn short_form(command: &str, mock: &str) -> Vec<String> {
    let words = command.split(' ');
    if command.starts_with("suite ") {
        return words.chain(SHORT).map(str::to_owned).collect();
    }
    let mut args: Vec<String> = words.map(|word| on_the_mock(word, mock)).collect();
    let stages = args.iter().position(|word| word == "--stages").unwrap();
    "2:1s,4:1s".clone_into(&mut args[stages + 1]);
    args.extend(["--full", "--allow-invalid", "--key", "any"].map(str::to_owned));
    args
}

fn on_the_mock(word: &str, mock: &str) -> String {
    ["http://127.0.0.1:8080", "http://127.0.0.1:9000"]
        .iter()
        .fold(word.to_owned(), |word, target| word.replace(target, mock))
}

/// Runs those whose command fits, and returns how many.
fn find_labels(fits: impl Fn(&str) -> bool) -> usize {
    let all = excerpts();
    let wanted: Vec<_> = all.iter().filter(|excerpt| fits(&excerpt.command)).collect();
    for Excerpt { command, labels } in &wanted {
        let fixture = Fixture::with(FAST);
        let args = short_form(command, &fixture.target());
        let output = fixture.plimsoll(&args.iter().map(String::as_str).collect::<Vec<_>>());
        // On a host that others use a report is inconclusive, and has every label.
        assert!(
            [Some(0), Some(1), Some(3), Some(4)].contains(&output.code),
            "{command}: {}",
            output.stderr
        );
        let text = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(labels.len() > 5);
        for label in labels {
            assert!(text.contains(label), "{command}: `{label}` is not in\n{}", output.stdout);
        }
    }
    wanted.len()
}

#[test]
fn the_quick_loop_and_the_parts_of_layers_have_the_labels_of_the_page() {
    assert_eq!(find_labels(|command| command.ends_with("quick") || command.contains("stores")), 2);
}

#[test]
fn the_baseline_has_the_labels_of_the_page() {
    assert_eq!(find_labels(|command| command.ends_with("baseline")), 1);
}

#[test]
fn the_first_layer_has_the_labels_of_the_page() {
    assert_eq!(find_labels(|command| command.ends_with("--only 1")), 1);
}

#[test]
fn the_policy_suite_has_the_labels_of_the_page() {
    assert_eq!(find_labels(|command| command.ends_with("policy")), 1);
}

#[test]
fn cache_streams_and_agents_have_the_labels_of_the_page() {
    assert_eq!(find_labels(|command| command.ends_with("--only 2,3")), 1);
}

#[test]
fn the_three_sizes_have_the_labels_of_the_page() {
    assert_eq!(find_labels(|command| command.ends_with("tiers")), 1);
}

#[test]
fn runs_and_comparisons_have_the_labels_of_the_page() {
    assert_eq!(find_labels(|command| !command.starts_with("suite ")), 2);
}

#[test]
fn every_command_of_the_page_is_run() {
    assert_eq!(excerpts().len(), 9);
}
