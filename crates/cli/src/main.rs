//! Plimsoll: the calibrated load-testing instrument for LLM and API gateways.
//!
//! This crate is flags, wiring, signals and exit codes. What a profile means is `plimsoll-profile`'s business, the
//! load is `plimsoll-engine`'s, the numbers are `plimsoll-metrics`' and their looks `plimsoll-report`'s.
//!
//! ```text
//! command::Cli -> command::* -> session (folder, probe, load, summary) -> exit
//! ```

mod command;
mod console;
mod descriptors;
mod doctor;
mod environment;
mod exit;
mod flags;
mod folder;
mod notes;
mod pause;
mod progress;
mod secrets;
mod session;
mod signal;

use std::process::ExitCode;

use clap::Parser as _;

use command::{Cli, Command};

fn main() -> ExitCode {
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(answer) => return exit::of_parser(&answer),
    };
    exit::code(match &command {
        Command::Demo(flags) => command::demo::run(flags),
        Command::Run(flags) => command::run::run(flags),
        Command::Http(flags) => command::http::run(flags),
        Command::Mock(flags) => command::mock::run(flags),
        Command::Gateway(flags) => command::gateway::run(flags),
        Command::Suite(which) => command::suite::run(which),
        Command::Profile(what) => command::profile::run(what),
        Command::Report(flags) => command::report::run(flags),
        Command::Doctor => command::doctor::run(),
        Command::Calibrate(flags) => command::calibrate::run(flags),
        Command::Completions(flags) => command::completions::run(flags),
    })
}
