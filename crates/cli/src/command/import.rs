//! `plimsoll import`: converts recorded traffic to one canonical file; `plimsoll export`: the way
//! back.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueHint};
use plimsoll_import::{ImportError, Options, Summary, export, exports, import};

use crate::console;
use crate::exit::{Exit, UsageError};
use crate::flags::ReadFlags;
use crate::session::traffic_screen;

const AFTER: &str = include_str!("import.txt").trim_ascii_end();

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Recorded traffic, also compressed with gzip or zstd
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    #[command(flatten)]
    read: ReadFlags,
    /// Replace email addresses, numbers of phones, cards and accounts, and IP addresses in texts
    #[arg(long)]
    scrub: bool,
    /// Output file, such as chat.plimsoll.jsonl [default: only the summary]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    out: Option<PathBuf>,
}

const AFTER_EXPORT: &str = include_str!("export.txt").trim_ascii_end();

#[derive(Args, Debug)]
#[command(after_help = AFTER_EXPORT)]
pub(crate) struct ExportFlags {
    /// Recorded traffic, in any format that `plimsoll import` reads
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Format of the output
    #[arg(long = "as", value_name = "FORMAT")]
    #[arg(value_parser = PossibleValuesParser::new(exports()))]
    format: String,
    /// Output file
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    out: PathBuf,
}

/// Imports the file and prints the summary.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let options = Options { scrub: flags.scrub, ..flags.read.options() };
    let Some(out) = &flags.out else {
        let summary = import(&flags.file, &options, &mut io::sink()).map_err(usage)?;
        return print(&summary, "no file (use -o FILE)");
    };
    let summary = write_to(out, |output| import(&flags.file, &options, output))?;
    print(&summary, &out.display().to_string())
}

/// Writes the file in another format, and prints the summary.
pub(crate) fn run_export(ExportFlags { file, format, out }: &ExportFlags) -> Result<Exit> {
    let summary = write_to(out, |output| export(file, format, output))?;
    print(&summary, &format!("{} as {format}", out.display()))
}

fn print(summary: &Summary, written: &str) -> Result<Exit> {
    console::print(&format!("{}{:<14} {written}\n", traffic_screen(summary), "written"))?;
    Ok(Exit::Pass)
}

/// Creates the file only if the conversion succeeds.
fn write_to(
    out: &Path,
    convert: impl FnOnce(&mut dyn Write) -> Result<Summary, ImportError>,
) -> Result<Summary> {
    let failed = console::cannot_write(out);
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    let new = tempfile::NamedTempFile::new_in(folder.unwrap_or_else(|| Path::new(".")));
    let mut new = new.context(failed.clone())?;
    let summary = convert(&mut BufWriter::new(&mut new)).map_err(usage)?;
    new.persist(out).context(failed)?;
    Ok(summary)
}

fn usage(error: ImportError) -> anyhow::Error {
    match error {
        ImportError::Input(why) => UsageError(why).into(),
        error @ ImportError::Write(_) => error.into(),
    }
}
