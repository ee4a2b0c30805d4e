//! `plimsoll gateway`: the reference gateway as a server.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc;

use anyhow::{Context as _, Result};
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueHint};
use plimsoll_gateway_server::{Gateway, GatewayError, PRESETS, Preset, Spec};

use crate::console;
use crate::exit::{Exit, Usage};
use crate::fd_limit::FdLimit;
use crate::signal::{self, ServerSignal};

const AFTER: &str = "\
Examples:
  plimsoll gateway --preset llm --upstream 127.0.0.1:9000
  plimsoll gateway --config gateway.yaml
  plimsoll gateway --preset layers --set 'rate_limits.0.requests=0' --set scrub=null
  plimsoll gateway --preset proxy --print > gateway.yaml
  curl http://127.0.0.1:3050/admin/build

Presets are ready-made configurations with the interface and the port of gateways that people measure. A section of the configuration that is present is a layer that is switched on; /admin/build and the metric gateway_layer_enabled say which. SIGHUP and POST /admin/reload read the file again; one that is wrong changes nothing.";

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Configuration, YAML
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "preset")]
    config: Option<PathBuf>,
    /// Ready-made configuration
    #[arg(long, value_name = "NAME", default_value = "llm", value_parser = PossibleValuesParser::new(PRESETS.map(|persona| persona.name)))]
    preset: String,
    /// Where to listen instead; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<SocketAddr>,
    /// Address of every upstream instead of the configured ones
    #[arg(long, value_name = "HOST:PORT")]
    upstream: Option<String>,
    /// Threads that serve
    #[arg(long, value_name = "N")]
    workers: Option<u16>,
    /// A setting on top, like `server.body_bytes=2MiB`; `null` switches a section off
    #[arg(long = "set", value_name = "PATH=VALUE")]
    settings: Vec<String>,
    /// Print the configuration that would be used, as it is written, and stop
    #[arg(long)]
    print: bool,
}

/// Serves until a signal comes.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let text = flags.text()?;
    let spec = flags.spec(&text).map_err(usage)?;
    spec.check().map_err(usage)?;
    if flags.print {
        console::print(&text)?;
        return Ok(Exit::Pass);
    }
    if let Some(told) = FdLimit::raise().and_then(FdLimit::told) {
        console::say(&told);
    }
    let started = match &flags.config {
        Some(file) if flags.is_plain() => Gateway::spawn_from(&spec, file),
        _ => Gateway::spawn(&spec),
    };
    let mut gateway = started.map_err(usage)?;
    let (tell, server_signals) = mpsc::channel();
    // The receiver is gone only when the process ends anyway.
    signal::server_signals(move |options| {
        let _ = tell.send(options);
    })?;
    console::print(&greeting(&gateway, &spec))?;
    // The sender lives as long as the thread that waits for signals.
    while let Ok(ServerSignal::Reload) = server_signals.recv() {
        match gateway.reload() {
            Ok(()) => console::say("the configuration was read again and is in force"),
            Err(error) => console::say(&format!("{error}\nthe old configuration stays in force")),
        }
    }
    gateway.shutdown();
    console::print(&format!("{} requests served\n", gateway.served()))?;
    Ok(Exit::Pass)
}

/// A wrong configuration is wrong usage; what the system refuses is not.
fn usage(error: GatewayError) -> anyhow::Error {
    match error {
        GatewayError::Syntax(_) | GatewayError::Config(_) => Usage(error.to_string()).into(),
        error => error.into(),
    }
}

impl Flags {
    fn text(&self) -> Result<String> {
        match &self.config {
            None => Preset::named(&self.preset)
                .map(|persona| persona.text.to_owned())
                .context("the preset is unknown"),
            Some(path) => fs::read_to_string(path)
                .map_err(|error| Usage(format!("cannot read {}: {error}", path.display())).into()),
        }
    }

    /// Is the file all there is, so that it can be read again?
    fn is_plain(&self) -> bool {
        self.settings.is_empty()
            && self.listen.is_none()
            && self.upstream.is_none()
            && self.workers.is_none()
    }

    fn spec(&self, text: &str) -> Result<Spec, GatewayError> {
        let mut spec = Spec::with_overrides(text, &self.settings)?;
        spec.listen = self.listen.unwrap_or(spec.listen);
        spec.workers = self.workers.unwrap_or(spec.workers);
        if let Some(address) = &self.upstream {
            for upstream in spec.upstreams.values_mut() {
                upstream.addresses = vec![address.clone()];
            }
        }
        Ok(spec)
    }
}

fn greeting(gateway: &Gateway, spec: &Spec) -> String {
    let scheme = if spec.tls.is_some() { "https" } else { "http" };
    let (layers, faults) = (spec.layers(), spec.faults());
    let layers = if layers.is_empty() { "no layers".to_owned() } else { layers.join(", ") };
    let planted = if faults.is_empty() {
        String::new()
    } else {
        format!("PLANTED FAULTS: {}\n", faults.join(", "))
    };
    let (addr, name) = (gateway.addr(), &spec.name);
    format!("listening on {scheme}://{addr} (Ctrl-C ends it)\n{name}: {layers}\n{planted}")
}
