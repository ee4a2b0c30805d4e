//! `plimsoll man`: prints the manual page of a command.

use anyhow::Result;
use clap::{Args, Command, CommandFactory as _};
use clap_mangen::Man;

use super::Cli;
use crate::console;
use crate::exit::{Exit, UsageError};

const AFTER: &str = include_str!("man.txt").trim_ascii_end();

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Command, like `run` or `suite quick` [default: the program as a whole]
    #[arg(value_name = "COMMAND")]
    path: Vec<String>,
}

/// Prints the page in roff.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
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
