//! `plimsoll demo`: a first look that needs only this program.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::{Context as _, Result};
use clap::Args;
use plimsoll_gateway_server::{Gateway, Preset, Spec};
use plimsoll_mock::Mock;
use plimsoll_plan::Plan;
use plimsoll_profile::{EnvVars, Overrides, Profile, Purpose, load};
use plimsoll_report::run_screen;

use super::{mock, versus};
use crate::console::{self, Show};
use crate::exit::Exit;
use crate::flags::{OutputFlags, ProgressFlags, ScreenFlags};
use crate::session::{Launch, RunOptions, Session};

const AFTER: &str = include_str!("demo.txt").trim_ascii_end();

const PROFILE: &str = "realistic";

/// Short enough for a first look, long enough for a 99th percentile.
const STAGES: &str = "w20:2s,60:8s";

/// Load of `versus`: short requests that the provider answers at once, which leaves only the
/// overhead. Every prompt is new, so the cache never hits.
const ADDED: &str = include_str!("demo.yaml");

/// Think times of seconds would leave few turns in eight seconds.
const SETTINGS: [&str; 3] =
    ["name=demo", "scenarios.medium.think_time=200ms", "scenarios.complex.think_time=300ms"];

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    screen: ScreenFlags,
    #[command(flatten)]
    progress: ProgressFlags,
}

/// Runs the demo.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let mut session = Session::open(flags.progress.ui());
    let free_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mock = Mock::spawn(&mock::default_config()?, free_port)
        .context("the mock provider of the demo did not start")?;
    let gateway = gateway(mock.addr())?;
    session.status().info(&format!(
        "a mock LLM provider listens on http://{}, the reference gateway in front of it on http://{}",
        mock.addr(),
        gateway.addr()
    ));
    session
        .status()
        .info(&format!("the profile `{PROFILE}` runs through both, with the stages {STAGES}"));
    let plan = plan(gateway.addr())?;
    // The demo is not a measurement: on a busy machine the report says so, but the demo passes.
    let show = flags.screen.show();
    let options = RunOptions {
        output: Some(flags.output.options()),
        probe: true,
        allow_invalid: true,
        ignored: Vec::new(),
        watch: Vec::new(),
        servers: Vec::new(),
        launch: Launch::default(),
        profile: None,
        until_saturated: false,
        // Both results share a screen.
        show: if show == Show::Screen { Show::Nothing } else { show },
        junit: None,
    };
    let finished = session.run_plan(plan, &options)?;
    let mut screen = run_screen(&finished.summary, finished.rest);
    if finished.exit != Exit::Interrupted {
        let added = added_plan(mock.addr(), gateway.addr())?;
        session.status().info("what does the gateway add? each request goes to it and past it");
        if let Some(compared) = versus::compare(&mut session, &added, options)? {
            screen = screen.and(compared);
        }
    }
    screen.next(NEXT.map(str::to_owned));
    if show == Show::Screen {
        console::print_screen(&screen)?;
    } else {
        console::print(&format!("\nNext:\n  {}\n", NEXT.join("\n  ")))?;
    }
    Ok(finished.exit)
}

/// The comparison of the gateway with the provider itself.
fn added_plan(provider: SocketAddr, gateway: SocketAddr) -> Result<Plan> {
    let targets = format!(
        "targets: [{{name: direct, url: 'http://{provider}', role: direct}}, \
         {{name: gateway, url: 'http://{gateway}'}}]\n"
    );
    let profile = Profile::new(Path::new("demo"), format!("{ADDED}{targets}").into_bytes());
    let overrides = Overrides::default().with("key", "key", "demo-key");
    Ok(load(&profile, &EnvVars::default(), &overrides, Purpose::Versus)?)
}

/// The reference gateway as an LLM gateway, with its layers on.
fn gateway(provider: SocketAddr) -> Result<Gateway> {
    let preset = Preset::named("llm").context("the preset of the demo is missing")?;
    let mut spec = Spec::from_yaml(preset.text)?;
    spec.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    for upstream in spec.upstreams.values_mut() {
        upstream.addresses = vec![provider.to_string()];
    }
    Gateway::spawn(&spec).context("the gateway of the demo did not start")
}

/// Suggestions after the demo.
const NEXT: [&str; 3] = [
    "plimsoll run realistic --target URL --key KEY --model NAME: your own target",
    "plimsoll versus --direct URL --target a=URL --target b=URL: which gateway?",
    "plimsoll doctor: is this host fit to measure? plimsoll --help: the rest",
];

fn plan(addr: SocketAddr) -> Result<Plan> {
    let sets = SETTINGS.map(str::to_owned).into();
    let overrides = Overrides { sets, ..Overrides::default() }
        .with("target", "target", format!("http://{addr}"))
        .with("key", "key", "demo-key")
        .with("stages", "stages", STAGES);
    // Environment variables are meant for real targets.
    let environment = EnvVars::default();
    Ok(load(&Profile::open(PROFILE)?, &environment, &overrides, Purpose::Run)?)
}
