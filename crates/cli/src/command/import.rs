//! `plimsoll import`: recorded traffic becomes one canonical file.

use std::fmt::Write as _;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, ValueHint};
use plimsoll_import::{ImportError, Options, Summary, Tokens, formats, import};
use plimsoll_report::format::count;

use crate::console;
use crate::exit::{Exit, UsageError};

const AFTER: &str = include_str!("import.txt").trim_ascii_end();

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Recorded traffic, also compressed with gzip
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Format of the file [default: recognised]
    #[arg(
        long = "as",
        value_name = "FORMAT",
        value_parser = clap::builder::PossibleValuesParser::new(formats().map(|(name, _)| name))
    )]
    format: Option<String>,
    /// File to write, like chat.plimsoll.jsonl [default: only the summary]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    out: Option<PathBuf>,
    /// Skip broken rows and count them
    #[arg(long)]
    skip_broken: bool,
}

/// Imports the file and prints the summary.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let options = Options { format: flags.format.clone(), skip_broken: flags.skip_broken };
    let summary = match &flags.out {
        Some(out) => import_to(&flags.file, &options, out)?,
        None => checked(import(&flags.file, &options, &mut io::sink()))?,
    };
    console::print(&screen(&summary, flags.out.as_deref()))?;
    Ok(Exit::Pass)
}

/// Writes the file once it is whole.
fn import_to(file: &Path, options: &Options, out: &Path) -> Result<Summary> {
    let failed = format!("cannot write {}", out.display());
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    let new = tempfile::NamedTempFile::new_in(folder.unwrap_or_else(|| Path::new(".")))
        .context(failed.clone())?;
    let mut writer = BufWriter::new(new);
    let summary = checked(import(file, options, &mut writer))?;
    writer.flush().context(failed.clone())?;
    let new =
        writer.into_inner().map_err(io::IntoInnerError::into_error).context(failed.clone())?;
    new.persist(out).context(failed)?;
    Ok(summary)
}

fn checked(imported: Result<Summary, ImportError>) -> Result<Summary> {
    imported.map_err(|error| {
        if error.is_usage() { UsageError(error.to_string()).into() } else { error.into() }
    })
}

fn screen(summary: &Summary, out: Option<&Path>) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<14} {value}");
    };
    row("format", format!("{}: {}", summary.format, summary.why));
    if !summary.also.is_empty() {
        row("fits as well", format!("--as {}", summary.also.join(", --as ")));
    }
    row("sessions", count(summary.sessions));
    let turns = format!(" (at most {} in a session)", count(summary.most_turns));
    row("requests", count(summary.requests) + &turns);
    row("input tokens", tokens(summary.in_tokens));
    row("output tokens", tokens(summary.out_tokens));
    row(
        "time span",
        summary.span_ms.map_or_else(|| "no times".to_owned(), |ms| format!("{:.3} s", ms / 1e3)),
    );
    if summary.failed > 0 {
        row("failed", format!("{} with status 400 or higher; kept", count(summary.failed)));
    }
    if !summary.hosts.is_empty() {
        let hosts = summary.hosts.iter().map(|(host, requests)| format!("{host} ({requests})"));
        row("hosts", hosts.collect::<Vec<_>>().join(", "));
    }
    if summary.skipped > 0 {
        let first = summary.skipped_first.join("; ");
        row("broken", format!("{} skipped: {first}", count(summary.skipped)));
    }
    row(
        "written",
        out.map_or_else(|| "nothing (-o FILE)".to_owned(), |out| out.display().to_string()),
    );
    if summary.unused.is_empty() {
        row("not used", "nothing: every member is in the file".to_owned());
    }
    for (index, (member, times)) in summary.unused.iter().enumerate() {
        row(if index == 0 { "not used" } else { "" }, format!("{:>7} {member}", count(*times)));
    }
    text
}

/// Stated tokens, and an estimate with its mark.
fn tokens(tokens: Tokens) -> String {
    let Tokens { stated, estimated, unknown } = tokens;
    let mut text = match (stated, estimated) {
        (0, 0) if unknown > 0 => return "not recorded".to_owned(),
        (stated, 0) => count(stated),
        (stated, estimated) => format!(
            "~{} (of which {} are estimated, 4 bytes of text each)",
            count(stated + estimated),
            count(estimated)
        ),
    };
    if unknown > 0 {
        let _ = write!(text, "; not recorded for {} requests", count(unknown));
    }
    text
}
