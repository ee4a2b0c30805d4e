//! `plimsoll completions`: prints the completion script of a shell.

use anyhow::Result;
use clap::{Args, CommandFactory as _};
use clap_complete::{Shell, generate};

use super::Cli;
use crate::console;
use crate::exit::Exit;

const AFTER: &str = "\
Examples:
  source <(plimsoll completions bash)
  plimsoll completions zsh > \"${fpath[1]}/_plimsoll\"
  plimsoll completions fish > ~/.config/fish/completions/plimsoll.fish";

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Shell to print completions for
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let mut script = Vec::new();
    generate(flags.shell, &mut Cli::command(), "plimsoll", &mut script);
    console::print(&String::from_utf8(script)?)?;
    Ok(Exit::Pass)
}
