//! `plimsoll import`: recorded traffic becomes one canonical file.

use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, ValueHint};
use plimsoll_import::{ImportError, Options, Summary, formats, import};

use crate::console;
use crate::exit::{Exit, UsageError};
use crate::traffic_screen::traffic_screen;

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
    let written =
        out.map_or_else(|| "nothing (-o FILE)".to_owned(), |out| out.display().to_string());
    format!("{}{:<14} {written}\n", traffic_screen(summary), "written")
}
