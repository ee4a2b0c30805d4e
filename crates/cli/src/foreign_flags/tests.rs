//! The table of flags, against the flags that there are.

use super::tools::{Answer, TOOLS, Tool};
use super::*;
use crate::command::flags_of;

fn hint_for(line: &str, refused: Option<&str>) -> Option<String> {
    hint(&line.split(' ').map(OsString::from).collect::<Vec<_>>(), refused, flags_of)
}

#[test]
fn flags_of_other_tools_have_a_hint_that_fits_the_command() {
    for (line, refused, part) in [
        ("p run x -header a", None, "use -H 'NAME: VALUE'"),
        ("p run -config x", None, "plimsoll run PROFILE"),
        ("p http -q 50 http://a", None, "use --rate N"),
        ("p run x --vus 5", Some("--vus"), "--stages N:TIME"),
        ("p http u --vus=5", Some("--vus=5"), "use -c N"),
        ("p http u --latency", Some("--latency"), "percentiles are always shown"),
        ("p run x -vk=k", None, "PLIMSOLL_KEY"),
        (
            "p attack -duration=5s",
            None,
            "`attack` is a command of vegeta; use plimsoll http URL\n`-duration`",
        ),
        ("p profile -m m --url u", None, "`profile` is a command of AIPerf; use plimsoll llm URL"),
        ("p benchmark --data x", None, "GuideLLM; use plimsoll llm URL --model NAME\n`--data`"),
        ("p http://a", None, "a command comes first: plimsoll http URL"),
        ("p -n 5 http://a", None, "a command comes first"),
        (
            "p http u -t12 -c40 --latency",
            Some("-t"),
            "worker for each core\n`--latency` is a flag of wrk",
        ),
        ("p llm u --request-count 5 --streaming", Some("--request-count"), "\n`--streaming` is"),
        ("p llm u --url v", Some("--url"), "the URL as first argument"),
        ("p llm u --request-rate 5", Some("--request-rate"), "use --rate N,..."),
        ("p run x --goodput a", Some("--goodput"), "--set 'goodput="),
    ] {
        let hint = hint_for(line, refused).unwrap();
        assert!(hint.contains(part), "{line}: {hint}");
    }
}

#[test]
fn our_own_flags_have_none() {
    for line in [
        "p profile show minimal",
        "p profile --help",
        "p -V",
        "p http u -c100 -d 5s",
        "p http -q u",
        "p run x -Ha:b",
        "p run x --stages 5:5s",
    ] {
        assert_eq!(hint_for(line, None), None, "{line}");
    }
    assert_eq!(hint_for("p run x --frobnicate", Some("--frobnicate")), None);
}

#[test]
fn a_flag_is_listed_once_for_a_command() {
    for (index, one) in FLAGS.iter().enumerate() {
        let later = &FLAGS[index + 1..];
        let shadowed = later.iter().find(|other| {
            one.flag == other.flag && (one.commands.is_empty() || one.commands == other.commands)
        });
        assert!(shadowed.is_none(), "{} is listed after its row for all commands", one.flag);
    }
}

/// What the table of the reference page says to a flag of a tool.
fn said(tool: &Tool, flag: &str, answer: Answer) -> String {
    match answer {
        Answer::Same => "the same".to_owned(),
        Answer::Differs(text) => format!("{text} (no hint: it is a flag here)"),
        Answer::Hint => {
            let known = find(flag, tool.command);
            known.map_or_else(|| panic!("{} {flag}", tool.name), |known| known.ours.to_owned())
        }
    }
}

#[test]
fn every_flag_of_seven_tools_is_ours_or_has_a_hint_or_a_reason() {
    assert_eq!(TOOLS.len(), 7);
    for tool in TOOLS {
        let ours = flags_of(tool.command);
        for (flag, answer) in tool.flags {
            let is_ours = ours.iter().any(|own| own == flag);
            let single_word = is_single_dash_word(flag);
            match answer {
                Answer::Same | Answer::Differs(_) => {
                    assert!(is_ours, "{} {flag} is not a flag of {}", tool.name, tool.command);
                }
                Answer::Hint => {
                    assert!(!is_ours, "{} {flag} is a flag of {}", tool.name, tool.command);
                    let line = format!("plimsoll {} {flag} 5", tool.command);
                    let refused = (!single_word).then_some(*flag);
                    let hint = hint_for(&line, refused).unwrap_or_else(|| panic!("{line}"));
                    assert!(hint.starts_with(&format!("`{flag}` is a flag of ")), "{line}: {hint}");
                }
            }
        }
    }
}

/// The flags that a hint for a command may name: its own, and those of commands that do the same.
fn nameable(command: &str, ours: &str) -> Vec<String> {
    let named = ours.split("plimsoll ").nth(1);
    let named = named.and_then(|rest| rest.split([' ', '`', ',', ';']).next());
    let named = named.filter(|name| !name.is_empty() && !name.starts_with('-'));
    let commands = [command, "http", "llm", "knee"].into_iter().chain(named);
    commands.flat_map(flags_of).chain(["--version".to_owned()]).collect()
}

/// A hint that names a flag which no command has would lead nowhere.
#[test]
fn hints_name_flags_that_their_command_has() {
    for known in FLAGS.iter() {
        let commands = if known.commands.is_empty() { "run" } else { known.commands };
        for command in commands.split(',') {
            let flags = nameable(command, known.ours);
            let words = known.ours.split([' ', ',', ';', '`', '(', ')', ':']);
            let is_flag =
                |word: &&str| word.starts_with('-') && word.len() > 1 && !word.contains('=');
            let unknown = words.filter(is_flag).find(|word| !flags.iter().any(|own| own == word));
            assert_eq!(unknown, None, "{command}: {}", known.ours);
        }
    }
}

/// The keys of a profile that a hint names.
fn keys_in(ours: &str) -> impl Iterator<Item = &str> {
    let parts = ours.split("--set ").skip(1).chain(ours.split('`').skip(1).step_by(2));
    let keys = parts
        .map(|part| part.trim_matches('\'').split(['=', ':', ' ', ',']).next().unwrap_or_default());
    let is_key = |key: &&str| {
        key.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'.'))
            && !matches!(*key, "" | "plimsoll")
    };
    // Below `parameters` are the provider's own.
    let others = ["min_tokens", "stream_options"];
    keys.filter(is_key).flat_map(|key| key.split('.')).filter(move |name| !others.contains(name))
}

#[test]
fn hints_name_keys_that_profiles_have() {
    let schema = include_str!("../../../../docs/reference/profile.schema.json");
    for known in FLAGS.iter() {
        let unknown = keys_in(known.ours).find(|name| !schema.contains(&format!("\"{name}\":")));
        assert_eq!(unknown, None, "{}", known.ours);
    }
}

/// `docs/reference/other-tools.md` is made from the table.
#[test]
fn the_reference_page_of_other_tools_is_up_to_date() {
    use std::fmt::Write as _;
    let mut page = HEAD.to_owned();
    for tool in TOOLS {
        let Tool { name, version, command, flags } = tool;
        let _ = write!(
            page,
            "\n## {name}\n\nVersion {version}; here `plimsoll {command}`.\n\n| flag | here |\n|---|---|\n"
        );
        for (flag, answer) in *flags {
            let _ =
                writeln!(page, "| `{flag}` | {} |", said(tool, flag, *answer).replace('|', "\\|"));
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/other-tools.md");
    expect_test::expect_file![path].assert_eq(&page);
}

const HEAD: &str = "# Flags of other tools

Generated from the table in `crates/cli/src/foreign_flags.tsv`; do not edit. To refresh it:
`UPDATE_EXPECT=1 cargo test -p plimsoll --bin plimsoll foreign_flags`.

Every flag of seven tools, and what Plimsoll has in its place: the same, another flag or key, or why there is nothing.
The command line answers each with this text, except where a flag of the same name means something else here.
";
