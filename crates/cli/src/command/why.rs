//! `plimsoll why`: the bottleneck of a run

use std::fmt::Display;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueHint};
use plimsoll_join::Join;
use plimsoll_runner::folder::{file, replace};
use plimsoll_why::{Answer, Why, text, why_with};

use super::report::found::{Found, Kind, find};
use super::report::{Stored, read};
use crate::console;
use crate::exit::{Exit, UsageError};

const AFTER: &str = include_str!("why.txt").trim_ascii_end();

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Folder of a run, or a folder of such folders: the latest
    #[arg(value_hint = ValueHint::DirPath, value_name = "RUN", default_value = "runs")]
    run: PathBuf,
    /// A result of `plimsoll join` with the gateway's own log [default: join.json in the run's
    /// folder, if it is there]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    join: Option<PathBuf>,
    /// Print why.json instead of the text
    #[arg(long)]
    json: bool,
}

/// Prints the answer and writes why.json.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let Found { kind, folder, note } = find(&flags.run)?;
    if kind != Kind::Run {
        let folder = folder.display();
        return Err(UsageError(format!("{folder} is not a run folder")).into());
    }
    if let Some(note) = note {
        console::eprint_line(&note);
    }
    let join = join_of(&folder, flags.join.as_deref())?;
    let found = of_folder(&folder, join.as_ref())?;
    let json = serde_json::to_string_pretty(&found)? + "\n";
    replace(&folder, file::WHY, json.as_bytes())?;
    console::print(&if flags.json { json } else { text(&found) })?;
    let is_open = found.answer == Answer::Unknown || found.load.is_none();
    Ok(if is_open { Exit::Inconclusive } else { Exit::Pass })
}

/// The named join, or the join in the run's folder, if it has one.
fn join_of(folder: &Path, named: Option<&Path>) -> Result<Option<Join>, UsageError> {
    let own = folder.join(file::JOIN);
    let path = named.unwrap_or(&own);
    let bytes = match plimsoll_input::read(path) {
        Err(error) if named.is_none() && error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|error| cannot_read(path, &error))?,
    };
    let join = serde_json::from_slice(&bytes).map_err(|error| cannot_read(path, &error))?;
    Ok(Some(join))
}

fn cannot_read(path: &Path, error: &dyn Display) -> UsageError {
    let path = path.display();
    UsageError(format!("{path} cannot be read as a result of `plimsoll join`: {error}"))
}

/// The answer for a stored run.
fn of_folder(folder: &Path, join: Option<&Join>) -> Result<Why, UsageError> {
    let Stored { summary, .. } = read(folder).map_err(|error| {
        let folder = folder.display();
        UsageError(format!("the run in {folder} cannot be read: {error:#}"))
    })?;
    let version = &summary.metadata.run.tool_version;
    if version.starts_with("0.1.") {
        return Err(UsageError(format!(
            "this run was made by plimsoll {version}, which recorded no evidence of bottlenecks; repeat the run"
        )));
    }
    Ok(why_with(&summary, join))
}
