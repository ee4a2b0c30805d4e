//! Every command that a document shows is one that the program takes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use crate::support::{FAST, Fixture};

#[test]
fn every_command_line_of_the_documents_has_flags_that_there_are() {
    let fixture = Fixture::with(FAST);
    let mut seen = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for line in commands(&text) {
            // Help ends the reading of the line: what stands before it must be known, and need not
            // be complete.
            let args = words(line.trim_start_matches("plimsoll "));
            let args: Vec<_> = args.iter().map(String::as_str).chain(["--help"]).collect();
            let output = fixture.plimsoll(&args);
            assert_eq!(output.code, Some(0), "{}: {line}: {}", document.display(), output.stderr);
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen} commands found");
}

#[test]
fn the_readme_lists_every_command() {
    let readme = fs::read_to_string(documents().swap_remove(0)).unwrap();
    let help = Fixture::with(FAST).plimsoll(&["--help"]).expect(0).stdout;
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let (commands, _) = commands.split_once("\n\n").unwrap();
    let names = commands
        .lines()
        .filter(|line: &&str| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next());
    let names: Vec<_> = names.filter(|name| *name != "help").collect();
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        let row = |line: &str| line.starts_with("| `") && line.contains(&format!("`{name}`"));
        assert!(readme.lines().any(row), "{name} is in no row of the README");
    }
}

#[test]
fn help_fits_on_two_screens_and_all_flags_are_on_another_page() {
    let fixture = Fixture::with(FAST);
    for command in ["http", "llm", "run", "versus", "knee"] {
        let short = fixture.plimsoll(&[command, "--help"]).expect(0).stdout;
        assert!(short.lines().count() <= 80, "{command}: {short}");
        let all = fixture.plimsoll(&[command, "--help-all"]).expect(0).stdout;
        for flag in ["--no-probe", "--seed", "--metric-label"] {
            assert!(!short.contains(flag), "{command} {flag}");
            assert_eq!(
                all.contains(flag),
                command != "knee" || flag == "--seed",
                "{command} {flag}"
            );
        }
    }
}

#[test]
fn readme_and_its_screens_are_short() {
    let readme = fs::read_to_string(documents().swap_remove(0)).unwrap();
    assert!(readme.lines().count() <= 120, "{} lines", readme.lines().count());
}

#[test]
fn help_names_every_protocol() {
    let fixture = Fixture::with(FAST);
    let refusal = fixture.run(&["minimal", "--protocol", "none"]).expect(2).stderr;
    let (_, known) = refusal.split_once("known are ").unwrap();
    let help = fixture.plimsoll(&["run", "--help-all"]).expect(0).stdout;
    let (_, help) = help.split_once("Protocol of every scenario:").unwrap();
    let (help, _) = help.split_once("[default").unwrap();
    let names: Vec<_> = known.split('`').skip(1).step_by(2).collect();
    assert!(names.len() > 5, "{known}");
    for name in names {
        let mut words = help.split([',', ' ', '\n']);
        assert!(words.any(|word| word == name), "{name} is not in {help}");
    }
}

#[test]
fn commands_are_found_and_split_as_a_shell_does() {
    let text = "`plimsoll no` in a text\n```\nplimsoll mock --log a.jsonl &   # a comment\nKEY=x \
                plimsoll run a \\\n    --set 'a=[\"b c\"]' > out\nls\n```\nplimsoll no\n";
    let found = commands(text);
    let split: Vec<_> = found.iter().map(|line| words(line)).collect();
    assert_eq!(
        split,
        [
            vec!["plimsoll", "mock", "--log", "a.jsonl"],
            vec!["plimsoll", "run", "a", "--set", "a=[\"b c\"]"],
        ]
    );
}

/// README, the guides and the documents of the examples.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = vec![root.join("README.md")];
    for folder in ["docs", "docs/guides", "examples/grafana", "examples/gateways"] {
        let entries = fs::read_dir(root.join(folder)).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        found.extend(paths.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    found
}

/// The lines in code fences that begin with the program, behind variables if there are any.
fn commands(text: &str) -> Vec<String> {
    let text = text.replace("\\\n", " ");
    let mut in_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            in_code = !in_code;
        }
        let mut line = line.trim().trim_start_matches("$ ");
        while let Some((_, rest)) = line.split_once(' ').filter(|(first, _)| is_variable(first)) {
            line = rest.trim();
        }
        if in_code && line.starts_with("plimsoll ") {
            found.push(line.to_owned());
        }
    }
    found
}

fn is_variable(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_'))
}

/// The words of a command up to a comment, a pipe, `&` or `>`. A watched process must exist, so
/// this process is used.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for letter in line.chars() {
        match (letter, quote) {
            (_, Some(open)) if letter == open => quote = None,
            ('\'' | '"', None) => quote = Some(letter),
            (' ', None) => words.push(String::new()),
            _ => words.last_mut().unwrap().push(letter),
        }
    }
    let ends = |word: &String| ["#", "|", "&", ">", ";"].iter().any(|end| word.starts_with(end));
    let words = words.into_iter().filter(|word| !word.is_empty()).take_while(|word| !ends(word));
    let mut words: Vec<_> = words.collect();
    for at in 1..words.len() {
        if words[at - 1] == "--watch" {
            words[at] = format!("gateway={}", process::id());
        }
    }
    words
}
