//! `plimsoll doctor`: is this host fit to measure from?

use anyhow::Result;

use crate::console;
use crate::descriptors::Descriptors;
use crate::doctor::{Finding, State, examine};
use crate::exit::Exit;

pub(crate) const AFTER: &str = "\
Each line is `ok`, `warn` (may bend a measurement) or `bad` (will). The limit on open files is raised by every command itself, as far as the hard limit allows.

Exit code: 3 if anything is bad, else 0.";

/// Prints what was found.
pub(crate) fn run() -> Result<Exit> {
    let findings = examine(Descriptors::raise());
    let lines: Vec<_> = findings.iter().map(line).collect();
    console::print(&lines.concat())?;
    let worst = findings.iter().map(|finding| finding.state).max();
    Ok(if worst == Some(State::Bad) { Exit::Invalid } else { Exit::Pass })
}

fn line(finding: &Finding) -> String {
    let Finding { state, about, seen, mend } = finding;
    let mend =
        if mend.is_empty() { String::new() } else { format!("      {:20} mend: {mend}\n", "") };
    format!("{:4}  {about:20} {seen}\n{mend}", state.word())
}
