//! `plimsoll why`: what limited the load of a run?

use std::fmt::Display;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueHint};
use plimsoll_join::Join;
use plimsoll_runner::folder::{file, replace};
use plimsoll_why::{Answer, Why, text, why_with};

use super::report::found::{Found, Kind, find};
use super::report::stored::{Stored, read};
use crate::console;
use crate::exit::{Exit, UsageError};

const AFTER: &str = "\
Examples:
  plimsoll why                                             the latest run in runs/
  plimsoll why runs/20260102T030405Z-realistic
  plimsoll run realistic --watch gateway=:8080 --watch provider=:9000 --watch store=:6379
                                                           a run whose processes are known
  plimsoll why RUN --join other/join.json                  with a result of `plimsoll join`

The answer is one of: generator, gateway, provider, store, nothing saturated, unknown. A suspect is named only if it is at a limit of its own, and the load at its limit too: a closed loop, or an open one that fell behind. Two that are at their limits are both named, and not told apart.

The evidence is in the run's summary.json: CPU time, waiting and quotas of the processes that --watch names (gateway, provider, store, also gateway-2) and of the one that listens at the target's address on this host; Plimsoll's own lateness. Of a process on another host, --watch gateway=http://10.0.0.2:9100/metrics reads the CPU time from a page of metrics.

What was in flight is split between gateway and provider where a target that `plimsoll versus` calls direct tells of the provider, or the gateway's own log does: `plimsoll join RUN --log SOURCE` writes join.json to the run's folder, and `why` reads it there. A join that found run and log to disagree, that could not be judged, or that has the upstream times of fewer than 99 % of the requests is not used, and the reason is said.

The answer is written to the run's folder as why.json.

Exit codes: 0 an answer, 2 wrong usage or a folder without a run, 3 unknown.";

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
        return Err(UsageError(format!("{folder} is not the folder of a run")).into());
    }
    if let Some(note) = note {
        console::eprint_line(&note);
    }
    let join = join_of(&folder, flags.join.as_deref())?;
    let found = of_folder(&folder, join.as_ref())?;
    let json = serde_json::to_string_pretty(&found)? + "\n";
    replace(&folder, file::WHY, json.as_bytes())?;
    console::print(&if flags.json { json } else { text(&found) })?;
    Ok(if found.answer == Answer::CannotBeTold { Exit::Invalid } else { Exit::Pass })
}

/// The join that is named, else that of the run's folder, if it has one.
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
            "plimsoll {version} made this run, and recorded no evidence of what limits a load; \
             run it again"
        )));
    }
    Ok(why_with(&summary, join))
}
