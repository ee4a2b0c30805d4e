//! `plimsoll run`: a profile against a target.

use anyhow::Result;
use clap::{Args, ValueHint};
use plimsoll_profile::{Environment, Profile, Purpose, load};

use crate::exit::Exit;
use crate::flags::{OutputFlags, ProfileFlags, ProgressFlags, RunFlags};
use crate::session::Session;

const AFTER: &str = "\
Examples:
  plimsoll run realistic --target https://gateway.example --key KEY --model NAME
  PLIMSOLL_KEY=... plimsoll run my.yaml --stages w10:10s,100:60s --set timeout=30s
  plimsoll run realistic --stages @5..50:2m --set 'thresholds.ttft=[\"p(95)<500ms\"]'
  plimsoll run big.yaml --shard 0/2 & plimsoll run big.yaml --shard 1/2

Any key of the profile can also be given as a variable: PLIMSOLL_TARGET, PLIMSOLL_TLS__CA_FILE. Flags win over variables, and variables over the file. `plimsoll profile show PROFILE` prints what comes of it.

The run's folder holds plan.json, results.jsonl, summary.json, report.txt, report.csv and metrics.prom. Ctrl-C ends the load and still writes the report; a second one stops at once.";

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// A file, or the name of a built-in profile (`plimsoll profile list`)
    #[arg(value_hint = ValueHint::FilePath)]
    profile: String,
    #[command(flatten)]
    intent: ProfileFlags,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    manners: RunFlags,
    #[command(flatten)]
    talk: ProgressFlags,
}

/// Runs the profile.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let profile = Profile::open(&flags.profile)?;
    let overrides = flags.intent.overrides();
    let plan = load(&profile, &Environment::of_process(), &overrides, Purpose::Run)?;
    let mut session = Session::open(flags.talk.quiet);
    let options = flags.manners.options(Some(flags.output.keep()));
    Ok(session.carry_out(plan, &options)?.exit)
}
