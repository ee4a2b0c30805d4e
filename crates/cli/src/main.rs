//! Plimsoll: the calibrated load-testing instrument for LLM and API gateways.
//!
//! This crate is flags, wiring, signals and exit codes. What a profile means is
//! `plimsoll-profile`'s business, the load is `plimsoll-engine`'s, the numbers are
//! `plimsoll-metrics`' and their looks `plimsoll-report`'s.
//!
//! ```text
//! command::Cli -> command::* -> session (run_dir, probe, load, summary) -> exit
//! ```

mod command;
mod console;
mod doctor;
mod environment;
mod exit;
mod fd_limit;
mod flags;
mod progress;
mod renamed_flags;
mod report_notes;
mod run_dir;
mod secrets;
mod session;
mod signal;
mod sleep;

use std::process::ExitCode;

use clap::Parser as _;

use command::{Cli, Command};

fn main() -> ExitCode {
    let (args, notes) = renamed_flags::replace(std::env::args_os());
    notes.iter().for_each(|note| console::say(note));
    let command = match Cli::try_parse_from(args) {
        Ok(cli) => cli.command,
        Err(answer) => return exit::from_parse_error(&answer),
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
