//! `plimsoll rule`: prints the page of a rule, or the list of all.

use anyhow::Result;
use clap::Args;
use plimsoll_metrics::Rule;

use crate::console;
use crate::exit::{Exit, UsageError};
use crate::flags::unknown_rule;

const AFTER: &str = include_str!("rule.txt").trim_ascii_end();

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Code or name of a rule, like PL204 or server-errors [default: a list of all]
    rule: Option<String>,
}

/// Prints the page.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let text = match &flags.rule {
        Some(name) => Rule::find(name).ok_or_else(|| UsageError(unknown_rule(name)))?.page(),
        None => Rule::all().iter().map(Rule::line).collect(),
    };
    console::print(&text)?;
    Ok(Exit::Pass)
}
