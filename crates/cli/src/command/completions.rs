//! `plimsoll completions`: prints the completion script of a shell.

use std::ffi::OsStr;

use anyhow::{Context as _, Result};
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;
use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter as _};
use clap_complete::env::{CompleteEnv, Shells};
use plimsoll_profile::builtin_names;

use super::Cli;
use crate::console;
use crate::exit::Exit;

const AFTER: &str = include_str!("completions.txt").trim_ascii_end();

/// The script sets it when it asks the program what to offer.
const VARIABLE: &str = "PLIMSOLL_COMPLETE";

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Shell to print completions for
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let shells = Shells::builtins();
    let shell = shells.completer(&flags.shell.to_string()).context("the shell is unknown")?;
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, "plimsoll", "plimsoll", "plimsoll", &mut script)?;
    console::print(&String::from_utf8(script)?)?;
    Ok(Exit::Pass)
}

/// Answers a shell that asks for completions, and ends the process; otherwise returns.
pub(crate) fn answer_shell() {
    CompleteEnv::with_factory(Cli::command).var(VARIABLE).complete();
}

/// Completions for a profile: built-in names and files.
pub(super) fn profiles(current: &OsStr) -> Vec<CompletionCandidate> {
    let text = current.to_string_lossy();
    let names = builtin_names().filter(|name| name.starts_with(&*text));
    names.map(CompletionCandidate::new).chain(PathCompleter::any().complete(current)).collect()
}
