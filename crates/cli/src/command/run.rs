//! `plimsoll run`: runs a profile against a target.

use anyhow::Result;
use clap::{Args, ValueHint};
use plimsoll_profile::{EnvVars, Profile, Purpose, load};

use crate::exit::Exit;
use crate::flags::{OutputFlags, ProfileFlags, ProgressFlags, RunFlags, TargetFlags};
use crate::session::Session;

const AFTER: &str = "\
Examples:
  plimsoll run realistic --target https://gateway.example --key KEY --model NAME
  PLIMSOLL_KEY=... plimsoll run my.yaml --stages w10:10s,100:60s --set timeout=30s
  plimsoll run realistic --stages @5..50:2m --set 'thresholds.ttft=[\"p(95)<500ms\"]'
  export PLIMSOLL_RUN_ID=big-42; plimsoll run big.yaml --shard 0/2 & plimsoll run big.yaml --shard 1/2

Environment variables set any key of the profile, like PLIMSOLL_TARGET or PLIMSOLL_TLS__CA_FILE (`__` for the dot). Flags override variables, and variables override the file. `plimsoll profile show PROFILE` prints the result.

The run's folder contains plan.json, results.jsonl, summary.json, timeline.json, histograms.hlog, exemplars.json, report.html, report.txt, report.csv and metrics.prom. Ctrl-C ends the load and still writes the report; a second Ctrl-C stops at once.";

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Profile file, or name of a built-in profile (`plimsoll profile list`)
    #[arg(value_hint = ValueHint::FilePath)]
    profile: String,
    #[command(flatten)]
    target: TargetFlags,
    #[command(flatten)]
    settings: ProfileFlags,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    run: RunFlags,
    #[command(flatten)]
    progress: ProgressFlags,
}

/// Runs the profile.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let profile = Profile::open(&flags.profile)?;
    let overrides = flags.target.overrides(&flags.settings);
    let plan = load(&profile, &EnvVars::from_process(), &overrides, Purpose::Run)?;
    let mut session = Session::open(flags.progress.ui());
    let options = flags.run.options(Some(flags.output.options()));
    Ok(session.run_plan(plan, &options)?.exit)
}
