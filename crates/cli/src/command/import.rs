//! `plimsoll import`: converts recorded traffic to one canonical file.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, ValueHint};
use plimsoll_import::{ImportError, Options, Summary, import};

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

/// Imports the file and prints the summary.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let (summary, written) = match &flags.out {
        None => (convert(flags, &mut io::sink())?, "no file (use -o FILE)".to_owned()),
        Some(out) => (import_to(flags, out)?, out.display().to_string()),
    };
    console::print(&format!("{}{:<14} {written}\n", traffic_screen(&summary), "written"))?;
    Ok(Exit::Pass)
}

/// Creates the file only if the import succeeds.
fn import_to(flags: &Flags, out: &Path) -> Result<Summary> {
    let failed = console::cannot_write(out);
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    let new = tempfile::NamedTempFile::new_in(folder.unwrap_or_else(|| Path::new(".")));
    let mut new = new.context(failed.clone())?;
    let summary = convert(flags, &mut BufWriter::new(&mut new))?;
    new.persist(out).context(failed)?;
    Ok(summary)
}

fn convert(flags: &Flags, output: &mut dyn Write) -> Result<Summary> {
    let options = Options { scrub: flags.scrub, ..flags.read.options() };
    import(&flags.file, &options, output).map_err(|error| match error {
        ImportError::Input(why) => UsageError(why).into(),
        error @ ImportError::Write(_) => error.into(),
    })
}
