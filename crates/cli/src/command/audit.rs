//! `plimsoll audit`: checks published tables against five laws.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, ValueHint};
use plimsoll_audit::{Audit, LARGEST_FILE, Mapping, Report, SCHEMA, audit};

use crate::console;
use crate::exit::{Exit, UsageError};

const AFTER: &str = include_str!("audit.txt").trim_ascii_end();

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Files to check, at most 8 MiB each; `-` is stdin
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// Explain a heading, such as `Antwortzeit=mean:ms`; `HEADING=` leaves it out (repeatable)
    #[arg(long = "map", value_name = "HEADING=MEANING", value_parser = Mapping::parse)]
    map: Vec<Mapping>,
    /// Exit with 1 also for unsupported figures
    #[arg(long)]
    strict: bool,
    /// Write the findings as JSON; `-` is stdout, without the text
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    json: Option<PathBuf>,
}

/// Checks all files before anything is printed or written.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let read = flags.files.iter().map(|path| of_file(path, &flags.map));
    let files: Vec<Report> = read.collect::<Result<_>>()?;
    let found = files.iter().any(|report| report.fails(flags.strict));
    let to_stdout = flags.json.as_deref() == Some(Path::new("-"));
    if !to_stdout {
        let texts: Vec<String> = files.iter().map(Report::text).collect();
        console::print(&texts.join("\n"))?;
    }
    if let Some(path) = &flags.json {
        let json = serde_json::to_string_pretty(&Audit { schema: SCHEMA, files })? + "\n";
        if to_stdout {
            console::print(&json)?;
        } else {
            fs::write(path, json).with_context(|| console::cannot_write(path))?;
        }
    }
    Ok(if found { Exit::Fail } else { Exit::Pass })
}

fn of_file(path: &Path, mappings: &[Mapping]) -> Result<Report> {
    let name = path.display();
    let bytes = read(path).map_err(|error| UsageError(format!("{name}: {error}")))?;
    let report = audit(&path.to_string_lossy(), &bytes, mappings);
    Ok(report.map_err(|error| UsageError(format!("{name}: {error}")))?)
}

/// Reads at most one byte more than allowed, so that larger files are rejected without reading
/// them.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let most = u64::try_from(LARGEST_FILE).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().lock().take(most).read_to_end(&mut bytes)?;
    } else {
        plimsoll_input::open(path)?.take(most).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}
