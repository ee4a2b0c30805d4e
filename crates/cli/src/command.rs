//! The commands, one file each.

pub(crate) mod calibrate;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod gateway;
pub(crate) mod http;
pub(crate) mod mock;
pub(crate) mod profile;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod suite;

use clap::{Parser, Subcommand};

const ABOUT: &str = "A calibrated load-testing instrument for LLM and API gateways";

const AFTER: &str = "\
Start here:
  plimsoll demo                    a mock provider, a gateway, realistic load and a report, in 15 seconds
  plimsoll http http://HOST/path   load for any endpoint
  plimsoll run realistic --target https://gateway.example --key KEY --model NAME

Exit codes:
    0  pass
    1  a threshold failed
    2  wrong usage or a bad profile
    3  the run is invalid or inconclusive, or could not be carried out
  130  interrupted (the report is still written)";

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, about = ABOUT, after_help = AFTER)]
#[command(arg_required_else_help = true, subcommand_required = true, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What can be asked for.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// See it work: mock provider and reference gateway in this process, the realistic mix, a
    /// report
    Demo(demo::Flags),
    /// Run a profile against a target
    Run(run::Flags),
    /// Load any HTTP endpoint, several one after another
    Http(http::Flags),
    /// Serve as a mock LLM provider
    Mock(mock::Flags),
    /// Serve as the reference gateway
    Gateway(gateway::Flags),
    /// Measure a gateway with one command: baseline, layers, policy, quick, tiers
    #[command(subcommand)]
    Suite(suite::Which),
    /// Check, show, write and list profiles
    #[command(subcommand)]
    Profile(profile::What),
    /// Show a stored run again, also one that was killed
    Report(report::Flags),
    /// What on this host would bend a measurement, and the fix
    #[command(after_help = doctor::AFTER)]
    Doctor,
    /// Prove the instrument on this machine, in about two minutes
    Calibrate(calibrate::Flags),
    /// Completions for a shell
    Completions(completions::Flags),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use clap_markdown::{MarkdownOptions, help_markdown_command_custom};

    /// `docs/reference/cli.md` is what the parser itself says.
    #[test]
    fn the_reference_page_is_that_of_the_parser() {
        let options = MarkdownOptions::new()
            .title("Command line".to_owned())
            .show_footer(false)
            .show_table_of_contents(true);
        // As wide as it likes: the page is not a terminal.
        let command = super::Cli::command().max_term_width(0);
        let page = help_markdown_command_custom(&command, &options);
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/cli.md");
        plimsoll_golden::check(path, &page);
    }
}
