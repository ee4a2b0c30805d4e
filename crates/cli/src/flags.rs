//! Flags that several commands have.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use plimsoll_engine::{ProcessStat, WatchedProcess};
use plimsoll_profile::Overrides;

use crate::run_dir::RunDirOptions;
use crate::session::RunOptions;

/// What changes a profile.
#[derive(Args, Debug)]
#[command(next_help_heading = "What is sent")]
pub(crate) struct ProfileFlags {
    /// Base URL of the target
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    target: Option<String>,
    /// Key of the target, never shown; `PLIMSOLL_KEY` keeps it out of the process list, too
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Model asked for
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Wire format of every scenario: openai-chat, openai-responses, openai-embeddings,
    /// anthropic-messages, http
    #[arg(long, value_name = "NAME")]
    protocol: Option<String>,
    /// Load: `10:30s` users, `@50:30s` arrivals/s, `@5..50:30s` a ramp, `w` in front a warm-up
    #[arg(long, value_name = "STAGES")]
    stages: Option<String>,
    /// Header of every request (repeatable)
    #[arg(long = "header", short = 'H', value_name = "'NAME: VALUE'")]
    headers: Vec<String>,
    /// Any key of the profile, like `scenarios.simple.weight=3` (repeatable)
    #[arg(long = "set", value_name = "PATH=VALUE")]
    sets: Vec<String>,
    /// Seed of every random draw
    #[arg(long, value_name = "N")]
    seed: Option<String>,
    /// Part K (from 0) of N equal parts of the load, for several processes
    #[arg(long, value_name = "K/N")]
    shard: Option<String>,
    /// Name of the run
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    tls: Tls,
}

/// How an https target is verified.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "What is sent")]
pub(crate) struct Tls {
    /// Trust these roots in place of the system's (PEM)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) ca_file: Option<String>,
    /// Do not verify the target's certificate; every report says so
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Make every TLS handshake a full one
    #[arg(long)]
    pub(crate) no_resumption: bool,
}

impl ProfileFlags {
    /// As the profile takes them.
    pub(crate) fn overrides(&self) -> Overrides {
        // The name comes first, so that an explicit `--set name=...` wins.
        let name = self.name.iter().map(|name| format!("name={name}"));
        Overrides {
            target: self.target.clone(),
            key: self.key.clone(),
            model: self.model.clone(),
            protocol: self.protocol.clone(),
            stages: self.stages.clone(),
            seed: self.seed.clone(),
            ca_file: self.tls.ca_file.clone(),
            insecure: self.tls.insecure,
            no_resumption: self.tls.no_resumption,
            headers: self.headers.clone(),
            sets: name.chain(self.sets.iter().cloned()).collect(),
            shard: self.shard.clone(),
        }
    }
}

/// What is kept of a run.
#[derive(Args, Debug)]
#[command(next_help_heading = "What comes out")]
pub(crate) struct OutputFlags {
    /// Folder in which the run gets its own, named by time and name
    #[arg(long, value_name = "DIR", default_value = "runs", value_hint = ValueHint::DirPath)]
    out: PathBuf,
    /// No results.jsonl, the file with a line for each request
    #[arg(long)]
    no_jsonl: bool,
}

/// How strict and how talkative a run is.
#[derive(Args, Debug)]
#[command(next_help_heading = "What comes out")]
pub(crate) struct RunFlags {
    /// Send no probe request before the load
    #[arg(long)]
    no_probe: bool,
    /// Do not fail (exit 3) because the instrument was not good enough; the report still says so
    #[arg(long)]
    allow_invalid: bool,
    /// Tell how much CPU and memory a process uses, like `gateway=4711` (repeatable)
    #[arg(long, value_name = "NAME=PID", value_parser = watched)]
    watch: Vec<WatchedProcess>,
}

fn watched(text: &str) -> Result<WatchedProcess, String> {
    let fix = "write NAME=PID, like gateway=4711";
    let (name, pid) = text.split_once('=').ok_or(fix)?;
    let pid = pid.parse().map_err(|_| fix)?;
    if name.is_empty() {
        return Err(fix.to_owned());
    }
    if ProcessStat::of(pid).is_none() {
        return Err(format!("there is no process {pid}"));
    }
    Ok(WatchedProcess { name: name.to_owned(), pid })
}

/// No progress.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "What comes out")]
pub(crate) struct ProgressFlags {
    /// Show no progress on stderr
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl OutputFlags {
    /// As the session takes it.
    pub(crate) fn keep(&self) -> RunDirOptions {
        RunDirOptions { out: self.out.clone(), rows: !self.no_jsonl }
    }
}

impl RunFlags {
    /// How a run is carried out of which this is kept.
    pub(crate) fn options(&self, keep: Option<RunDirOptions>) -> RunOptions {
        let watch = self.watch.clone();
        RunOptions { keep, probe: !self.no_probe, allow_invalid: self.allow_invalid, watch }
    }
}
