//! `plimsoll doctor`: is this host fit to measure from?

use anyhow::Result;

use crate::console;
use crate::doctor::{Finding, State, examine};
use crate::exit::Exit;
use crate::fd_limit::FdLimit;

pub(crate) const AFTER: &str = "\
Each line is `ok`, `warn` (may bend a measurement) or `bad` (will). The limit on open files is raised by every command itself, as far as the hard limit allows.

Exit code: 3 if anything is bad, else 0.";

/// Prints what was found.
pub(crate) fn run() -> Result<Exit> {
    let findings = examine(FdLimit::raise());
    let lines: Vec<_> = findings.iter().map(line).collect();
    console::print(&lines.concat())?;
    let worst = findings.iter().map(|finding| finding.state).max();
    Ok(if worst == Some(State::Bad) { Exit::Invalid } else { Exit::Pass })
}

fn line(finding: &Finding) -> String {
    let Finding { state, about, seen, fix } = finding;
    let fix = if fix.is_empty() { String::new() } else { format!("      {:20} fix: {fix}\n", "") };
    format!("{:4}  {about:20} {seen}\n{fix}", state.word())
}
