//! `plimsoll completions`: prints the completion script of a shell.

use std::ffi::OsStr;

use anyhow::{Context as _, Result};
use clap::{Args, Command, CommandFactory as _};
use clap_complete::Shell;
use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter as _};
use clap_complete::env::{CompleteEnv, Shells};
use clap_mangen::Man;
use plimsoll_profile::builtin_names;

use super::Cli;
use crate::console;
use crate::exit::{Exit, UsageError};

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

// `plimsoll man`: prints the manual page of a command.

const MAN_AFTER: &str = include_str!("man.txt").trim_ascii_end();

#[derive(Args, Debug)]
#[command(after_help = MAN_AFTER)]
pub(crate) struct ManFlags {
    /// Command, like `run` or `suite quick` [default: the program as a whole]
    #[arg(value_name = "COMMAND")]
    path: Vec<String>,
}

/// Prints the page in roff.
pub(crate) fn run_man(flags: &ManFlags) -> Result<Exit> {
    let mut program = Cli::command();
    program.build();
    let command = find(&program, &flags.path)?;
    let mut page = Vec::new();
    Man::new(command.clone().display_name(full_name(&flags.path))).render(&mut page)?;
    console::print(&String::from_utf8(page)?)?;
    Ok(Exit::Pass)
}

/// The command of this path below the program.
fn find<'a>(program: &'a Command, path: &[String]) -> Result<&'a Command> {
    path.iter().try_fold(program, |command, name| {
        command.find_subcommand(name).ok_or_else(|| {
            let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
            let known: Vec<_> = shown.map(Command::get_name).collect();
            let message =
                format!("`{name}` is not a command of plimsoll; known are {}", known.join(", "));
            UsageError(message).into()
        })
    })
}

/// The name of its page, like `plimsoll-suite-quick`.
fn full_name(path: &[String]) -> String {
    ["plimsoll"].into_iter().chain(path.iter().map(String::as_str)).collect::<Vec<_>>().join("-")
}
