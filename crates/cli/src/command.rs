//! The command line, and one file per command.

pub(crate) mod calibrate;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod fleet;
pub(crate) mod gateway;
mod help;
pub(crate) mod http;
pub(crate) mod import;
pub(crate) mod join;
pub(crate) mod knee;
pub(crate) mod llm;
pub(crate) mod merge;
pub(crate) mod mock;
pub(crate) mod profile;
pub(crate) mod report;
pub(crate) mod rule;
pub(crate) mod run;
pub(crate) mod suite;
pub(crate) mod versus;
pub(crate) mod why;

use std::ffi::OsString;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

const ABOUT: &str = "Load testing for LLM and API gateways, with a check of its own accuracy";

const AFTER: &str = include_str!("command/plimsoll.txt").trim_ascii_end();

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, about = ABOUT, after_help = AFTER)]
#[command(arg_required_else_help = true, subcommand_required = true, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Try it without a target: mock provider, reference gateway, load and report in half a minute
    Demo(demo::Flags),
    /// Run a profile against a target
    Run(run::Flags),
    /// Load any HTTP endpoint without a profile, or compare several
    Http(http::Flags),
    /// Load an LLM endpoint without a profile: levels of load, and their curve
    Llm(llm::Flags),
    /// Compare targets request by request: the overhead of a gateway, and which one is better
    Versus(versus::Flags),
    /// Find the highest load at which a target meets an objective
    Knee(knee::Flags),
    /// Start a mock LLM provider
    Mock(mock::Flags),
    /// Start the reference gateway
    Gateway(gateway::Flags),
    /// Measure a gateway with a predefined series of loads
    #[command(subcommand)]
    Suite(suite::SuiteCommand),
    /// Check, show, create and list profiles
    #[command(subcommand)]
    Profile(profile::ProfileCommand),
    /// Compare old runs with new ones: is the new version worse than the margins allow?
    Compare(compare::Flags),
    /// The bottleneck of a run: generator, gateway, upstream, store, host or network
    Why(why::Flags),
    /// Match a run with the gateway's own log: what is missing, twice or different
    Join(join::Flags),
    /// Convert recorded traffic to one canonical file, and list every member left out
    Import(import::Flags),
    /// Write recorded traffic for another tool, and list every member left out
    Export(import::ExportFlags),
    /// Add the shards of a run up to one result
    Merge(merge::Flags),
    /// Print the report of a stored run, suite or comparison, also of a run that was killed
    Report(report::Flags),
    /// Explain a finding by its code: what it proves, and what to do
    Rule(rule::Flags),
    /// Estimate hosts, ports, files, network and money that a load needs
    Fleet(fleet::Flags),
    /// Check this host for anything that would distort a measurement
    #[command(after_help = crate::doctor::AFTER)]
    Doctor,
    /// Check the accuracy of Plimsoll on this machine, in about two minutes
    Calibrate(calibrate::Flags),
    /// Print completions for a shell
    Completions(completions::Flags),
    /// Print the manual page of a command
    Man(completions::ManFlags),
}

/// Reads a command line.
pub(crate) fn parse(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    Cli::from_arg_matches(&help::shown(Cli::command()).try_get_matches_from(arguments)?)
}

/// A flag of ours, with its dashes.
#[derive(Clone, Debug)]
pub(crate) struct OwnFlag {
    pub(crate) name: String,
    pub(crate) takes_value: bool,
    pub(crate) needs_value: bool,
}

/// The flags of the command that the first words name.
pub(crate) fn flags_of(words: &[&str]) -> Vec<OwnFlag> {
    let mut cli = Cli::command();
    cli.build();
    let mut command = &cli;
    while let Some(next) = words.iter().find_map(|word| command.find_subcommand(word)) {
        command = next;
    }
    let flags = command.get_arguments().flat_map(|argument| {
        let (long, short) = (argument.get_long(), argument.get_short());
        let longs = long.into_iter().chain(argument.get_all_aliases().unwrap_or_default());
        let shorts = short.into_iter().chain(argument.get_all_short_aliases().unwrap_or_default());
        let names = longs.map(|name| format!("--{name}"));
        let names: Vec<_> = names.chain(shorts.map(|name| format!("-{name}"))).collect();
        let count = argument.get_num_args().unwrap_or_default();
        let (takes_value, needs_value) = (count.takes_values(), count.min_values() > 0);
        names.into_iter().map(move |name| OwnFlag { name, takes_value, needs_value })
    });
    flags.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::CommandFactory as _;
    use clap_markdown::{MarkdownOptions, help_markdown_command_custom};

    /// `docs/reference/cli.md` is generated from the parser.
    #[test]
    fn the_reference_page_is_up_to_date() {
        let options = MarkdownOptions::new()
            .title("Command line".to_owned())
            .show_footer(false)
            .show_table_of_contents(true);
        // No wrapping: the page is not a terminal.
        let command = super::Cli::command().max_term_width(0);
        let page = help_markdown_command_custom(&command, &options);
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/cli.md");
        expect_test::expect_file![path].assert_eq(&fence_examples(&page));
    }

    /// Flags that the functions of the Python package do not take as keywords.
    const NOT_IN_PYTHON: [&str; 12] = [
        "body", "full", "help", "json", "new", "no-jsonl", "out", "quiet", "slo", "ui", "version",
        "zstd",
    ];

    /// The keyword for a flag, and the type of its value.
    fn keyword(flag: &str, action: &clap::ArgAction) -> (String, &'static str) {
        let name = match flag {
            "for" => "duration",
            "from" => "start",
            "to" => "highest",
            "set" => "settings",
            "header" => "headers",
            "threshold" => "thresholds",
            "gate" => "gates",
            flag => flag.strip_prefix("no-").unwrap_or(flag),
        };
        let kind = match action {
            clap::ArgAction::SetTrue => "bool",
            _ if flag == "stages" => "str | Sequence[str]",
            _ if ["concurrency", "rate"].contains(&flag) => "str | float | Sequence[float]",
            clap::ArgAction::Append => "Mapping[str, Any] | Sequence[Any]",
            _ => "str | float | Path",
        };
        (name.replace('-', "_"), kind)
    }

    /// The keywords of a function of the Python package, with their types.
    fn keywords(
        command: &str,
        flags: &[(&str, &clap::ArgAction)],
    ) -> BTreeMap<String, &'static str> {
        let mut keywords: BTreeMap<_, _> =
            flags.iter().map(|(flag, action)| keyword(flag, action)).collect();
        if command == "run" {
            let schema = plimsoll_profile::schema();
            let keys = schema["properties"].as_object().unwrap().keys();
            for key in keys {
                keywords.entry(key.clone()).or_insert("Any");
            }
        }
        keywords.remove("key");
        // A word of the language has an underscore behind it.
        if let Some(kind) = keywords.remove("as") {
            keywords.insert("as_".to_owned(), kind);
        }
        if command == "llm" {
            keywords
                .retain(|name, _| !["concurrency", "rate", "sweep", "model"].contains(&&**name));
        }
        keywords
    }

    /// The flags that the Python package passes on, as `_flags.json`, and as types for its users.
    #[test]
    fn the_python_package_knows_the_flags() {
        let mut cli = super::Cli::command();
        cli.build();
        let mut known = serde_json::Map::new();
        let mut types = vec![
            "# The keywords of the functions of this package. A test of the program writes this file.\n\n\
             from collections.abc import Mapping, Sequence\nfrom pathlib import Path\n\
             from typing import Any, TypedDict\n"
                .to_owned(),
        ];
        for command in ["run", "http", "llm", "versus", "knee", "compare"] {
            let arguments = cli.find_subcommand(command).unwrap().get_arguments();
            let flags: Vec<_> = arguments
                .filter_map(|own| Some((own.get_long()?, own.get_action())))
                .filter(|(flag, _)| !NOT_IN_PYTHON.contains(flag))
                .collect();
            let title = format!("{}{}", command[..1].to_uppercase(), &command[1..]);
            types.push(format!("\nclass {title}Flags(TypedDict, total=False):\n"));
            let keywords = keywords(command, &flags).into_iter();
            types.extend(keywords.map(|(name, kind)| format!("    {name}: {kind}\n")));
            let names = flags.into_iter().map(|(flag, _)| flag);
            let names: Vec<_> = names.chain((command == "knee").then_some("slo")).collect();
            known.insert(command.to_owned(), names.into());
        }
        let metrics = plimsoll_metrics::Metric::ALL.map(plimsoll_metrics::Metric::name);
        known.insert("metrics".to_owned(), metrics.to_vec().into());
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/src/plimsoll/");
        let json = serde_json::to_string_pretty(&known).unwrap() + "\n";
        expect_test::expect_file![format!("{folder}_flags.json")].assert_eq(&json);
        expect_test::expect_file![format!("{folder}_flags.pyi")].assert_eq(&types.concat());
    }

    /// Turns runs of indented lines outside of option lists into fenced code blocks. Markdown would
    /// show them as running text.
    fn fence_examples(page: &str) -> String {
        let (mut text, mut in_list, mut in_fence) = (String::new(), false, false);
        for line in page.lines() {
            let indented = line.starts_with("  ");
            if !indented && !line.is_empty() {
                in_list = line.starts_with("* ");
            }
            let code = indented && !in_list;
            text.push_str(match (in_fence, code) {
                (false, true) => "\n```text\n",
                (true, false) => "```\n",
                _ => "",
            });
            in_fence = code;
            text.push_str(if code { &line[2..] } else { line });
            text.push('\n');
        }
        text
    }

    #[test]
    fn indented_lines_become_code_blocks_except_in_option_lists() {
        let page = "Examples:\n  one\n    two\n\nText.\n\n* `--flag`\n\n  Default: 1\n\n## Next\n";
        let fenced = "Examples:\n\n```text\none\n  two\n```\n\nText.\n\n* `--flag`\n\n  Default: 1\n\n## Next\n";
        assert_eq!(fence_examples(page), fenced);
    }
}
