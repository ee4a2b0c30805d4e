//! `plimsoll demo`: the first thing a new user runs. It needs nothing but this program.

mod overhead;

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context as _, Result};
use clap::Args;
use plimsoll_gateway_server::{Gateway, Preset, Spec};
use plimsoll_mock::Mock;
use plimsoll_profile::{Environment, Overrides, Plan, Profile, Purpose, load};

use super::mock;
use crate::console;
use crate::exit::Exit;
use crate::flags::{OutputFlags, ProgressFlags};
use crate::session::{RunOptions, Session};

const AFTER: &str = "\
Takes about 15 seconds. The mock provider, the reference gateway and the load share this machine's cores, so the numbers show what a report looks like; they say nothing about any real target.";

const PROFILE: &str = "realistic";

/// Short enough for a first look, and long enough for a 99th percentile.
const STAGES: &str = "w20:2s,60:8s";

/// People who think for seconds between turns would not get far in eight.
const SETS: [&str; 3] =
    ["name=demo", "scenarios.medium.think_time=200ms", "scenarios.complex.think_time=300ms"];

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    talk: ProgressFlags,
}

/// Runs the demonstration.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let mut session = Session::open(flags.talk.quiet);
    let free_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mock = Mock::spawn(&mock::everyday()?, free_port)
        .context("the mock provider of the demonstration did not start")?;
    let gateway = gateway(mock.addr())?;
    session.screen().tell(&format!(
        "a mock LLM provider listens on http://{}, the reference gateway before it on http://{}",
        mock.addr(),
        gateway.addr()
    ));
    session.screen().tell(&format!("the profile `{PROFILE}` now runs through both: {STAGES}"));
    let plan = plan(gateway.addr())?;
    // A demonstration is no measurement: a busy machine is told of, and no reason to fail.
    let options = RunOptions {
        keep: Some(flags.output.keep()),
        probe: true,
        allow_invalid: true,
        watch: Vec::new(),
    };
    let exit = session.carry_out(plan, &options)?.exit;
    if exit != Exit::Interrupted {
        session.screen().tell("and now single requests, through the gateway and past it in turn");
        let overhead = overhead::measure(mock.addr(), gateway.addr(), session.control())?;
        console::print(&overhead.map_or_else(String::new, |overhead| overhead.text()))?;
    }
    console::print(NEXT)?;
    Ok(exit)
}

/// The reference gateway, as an LLM gateway with its layers on.
fn gateway(provider: SocketAddr) -> Result<Gateway> {
    let persona = Preset::named("llm").context("the persona of the demonstration is unknown")?;
    let mut spec = Spec::from_yaml(persona.text)?;
    spec.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    for upstream in spec.upstreams.values_mut() {
        upstream.addresses = vec![provider.to_string()];
    }
    Gateway::spawn(&spec).context("the gateway of the demonstration did not start")
}

const NEXT: &str = "
Next, your own target:
  plimsoll run realistic --target https://gateway.example --key KEY --model NAME
  plimsoll suite baseline --quick
                             what the reference gateway can do on this machine
  plimsoll doctor            what on this host would bend a measurement
  plimsoll profile init      a profile of your own to start from
";

fn plan(addr: SocketAddr) -> Result<Plan> {
    let overrides = Overrides {
        target: Some(format!("http://{addr}")),
        key: Some("demo-key".to_owned()),
        stages: Some(STAGES.to_owned()),
        sets: SETS.map(str::to_owned).into(),
        ..Overrides::default()
    };
    // Variables are meant for real targets.
    let environment = Environment::default();
    Ok(load(&Profile::open(PROFILE)?, &environment, &overrides, Purpose::Run)?)
}
