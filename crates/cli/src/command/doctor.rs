//! `plimsoll doctor`: checks whether this host is fit to measure from.

use anyhow::Result;

use crate::console;
use crate::doctor::{Finding, Severity, check_host};
use crate::exit::Exit;
use crate::fd_limit::FdLimit;
use crate::progress::{StatusOutput, Steps, Ui, UiFlag};

pub(crate) const AFTER: &str = include_str!("doctor.txt").trim_ascii_end();

/// Prints the findings.
pub(crate) fn run() -> Result<Exit> {
    let status = StatusOutput::open(Ui::for_process(UiFlag::Auto, false));
    let steps = Steps::passing(&status, "checking this host");
    let findings = check_host(FdLimit::raise());
    drop(steps);
    let lines: Vec<_> = findings.iter().map(line).collect();
    console::print(&lines.concat())?;
    let worst = findings.iter().map(|finding| finding.severity).max();
    Ok(if worst == Some(Severity::Bad) { Exit::Invalid } else { Exit::Pass })
}

fn line(finding: &Finding) -> String {
    let Finding { severity, subject, value, fix } = finding;
    let fix = if fix.is_empty() { String::new() } else { format!("      {:20} fix: {fix}\n", "") };
    format!("{:4}  {subject:20} {value}\n{fix}", severity.word())
}
