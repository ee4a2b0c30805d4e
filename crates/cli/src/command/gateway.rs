//! `plimsoll gateway`: runs the reference gateway as a server.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc;

use anyhow::{Context as _, Result};
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueHint};
use nix::sys::signal::Signal;
use plimsoll_gateway_server::spec::UpstreamSpec;
use plimsoll_gateway_server::{Gateway, GatewayError, PRESETS, Preset, Spec};

use crate::console;
use crate::environment::FdLimit;
use crate::exit::{self, Exit, RunSignal, UsageError};
use crate::flags::{parse_listen_address, read_config};

const AFTER: &str = include_str!("gateway.txt").trim_ascii_end();

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Configuration file, YAML
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "preset")]
    config: Option<PathBuf>,
    /// Ready-made configuration
    #[arg(long, value_name = "NAME", default_value = "llm", value_parser = PossibleValuesParser::new(PRESETS.map(|preset| preset.name)))]
    preset: String,
    /// Address to listen on; port 0 takes a free one [default: the configuration's]
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_listen_address)]
    listen: Option<SocketAddr>,
    /// Address of the upstream; name each one if there are several at different addresses
    /// (repeatable) [default: the configuration's]
    #[arg(long = "upstream", value_name = "[NAME=]HOST:PORT")]
    upstreams: Vec<String>,
    /// Number of worker threads [default: the configuration's]
    #[arg(long, value_name = "N")]
    workers: Option<u16>,
    /// Set any key of the configuration, like `server.body_bytes=2MiB`; `null` switches a section
    /// off (repeatable)
    #[arg(long = "set", value_name = "PATH=VALUE")]
    settings: Vec<String>,
    /// Check the configuration, print the file or preset without its keys and without the other
    /// flags, and exit
    #[arg(long)]
    print: bool,
}

/// Runs the gateway until a signal stops it.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let text = flags.text()?;
    let spec = flags.spec(&text).map_err(|error| flags.usage_error(error))?;
    spec.check().map_err(|error| flags.usage_error(error.located(&text)))?;
    if flags.print {
        Gateway::check(&spec).map_err(|error| flags.usage_error(error))?;
        console::print(&without_secrets(&text))?;
        return Ok(Exit::Pass);
    }
    if let Some(message) = FdLimit::raise().and_then(FdLimit::raised_message) {
        console::eprint_line(&message);
    }
    let started = match &flags.config {
        Some(file) if flags.is_plain() => Gateway::spawn_from(&spec, file),
        _ => Gateway::spawn(&spec),
    };
    let mut gateway = started.map_err(|error| flags.usage_error(error))?;
    let (sender, signals) = mpsc::channel();
    // The receiver is gone only when the process ends anyway.
    exit::on_signals(&[(Signal::SIGHUP, RunSignal::HangUp)], move |signal| {
        let _ = sender.send(signal);
    })?;
    console::print(&greeting(&gateway, &spec))?;
    // The sender lives as long as the thread that waits for signals.
    while let Ok(RunSignal::HangUp) = signals.recv() {
        match gateway.reload() {
            Ok(()) => console::eprint_line("reloaded the configuration"),
            Err(error) => console::eprint_line(&format!("{error}\nkept the old configuration")),
        }
    }
    gateway.shutdown();
    console::print(&format!("{} requests served\n", gateway.served()))?;
    if let Some(message) = lost_message(gateway.lost_rows()) {
        console::eprint_line(&message);
    }
    Ok(Exit::Pass)
}

/// Keys of the configuration whose values are not shown. Among them are paths of key files.
const SECRETS: [&str; 4] = ["key", "secret", "clickhouse", "redis"];

/// A configuration with its secrets replaced. Names of environment variables stay.
fn without_secrets(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    // The indentation of a key whose value is a block of lines.
    let mut block = None;
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start().len();
        if block.is_some_and(|block| indent > block || line.trim().is_empty()) {
            continue;
        }
        block = None;
        let mut rest = line;
        while let Some((before, value)) = next_secret(rest) {
            shown.push_str(before);
            let end = end_of_value(value);
            let found = value[..end].trim();
            match found.trim_matches(['"', '\'']) {
                variable if variable.starts_with("${") => shown.push_str(found),
                "" => {}
                _ => shown.push_str("[redacted]"),
            }
            block = found.starts_with(['|', '>']).then_some(indent);
            rest = &value[end..];
        }
        shown.push_str(rest);
    }
    shown
}

/// The text up to the next value of a secret, and the text from there on.
fn next_secret(line: &str) -> Option<(&str, &str)> {
    line.match_indices(':').find_map(|(at, _)| {
        let name = line[..at].trim_end().trim_end_matches(['"', '\'']);
        let is_secret = SECRETS.iter().any(|secret| {
            let before = name.strip_suffix(secret);
            before
                .is_some_and(|before| !before.ends_with(|c: char| c.is_alphanumeric() || c == '_'))
        });
        let value = line[at + 1..].trim_start_matches(' ');
        let is_value = line[at + 1..].starts_with([' ', '"', '\'']) && is_secret;
        is_value.then(|| line.split_at(line.len() - value.len()))
    })
}

/// End of a value: at its closing quote, otherwise before the first character that may follow a
/// plain value.
fn end_of_value(value: &str) -> usize {
    let quote = value.chars().next().filter(|first| matches!(first, '"' | '\''));
    let end = match quote {
        Some(quote) => value[1..].find(quote).map(|at| at + 2),
        None => [",", "}", " #", "\n"].iter().filter_map(|end| value.find(end)).min(),
    };
    end.unwrap_or_else(|| value.trim_end().len())
}

/// Warning about rows lost at the end; `None` if all were written.
fn lost_message(lost: u64) -> Option<String> {
    (lost > 0).then(|| {
        format!(
            "{lost} audit rows were lost because the queue was full, or the file or store rejected them: see `audit.queue`, `audit.queue_bytes` and `audit.when_full`"
        )
    })
}

impl Flags {
    fn text(&self) -> Result<String> {
        match &self.config {
            None => Preset::named(&self.preset)
                .map(|preset| preset.text.to_owned())
                .context("the preset is unknown"),
            Some(path) => Ok(read_config(path)?),
        }
    }

    /// An invalid configuration is wrong usage, told with its file; an error of the system is not.
    fn usage_error(&self, error: GatewayError) -> anyhow::Error {
        match error {
            GatewayError::Syntax { .. } | GatewayError::Empty | GatewayError::Config(_) => {
                let file = self.config.as_ref().map(|path| format!("{}: ", path.display()));
                UsageError(format!("{}{error}", file.unwrap_or_default())).into()
            }
            error => error.into(),
        }
    }

    /// Whether the file is the whole configuration, so that the gateway can read it again.
    fn is_plain(&self) -> bool {
        self.settings.is_empty()
            && self.listen.is_none()
            && self.upstreams.is_empty()
            && self.workers.is_none()
    }

    fn spec(&self, text: &str) -> Result<Spec, GatewayError> {
        let mut spec = Spec::with_overrides(text, &self.settings)?;
        spec.listen = self.listen.unwrap_or(spec.listen);
        spec.workers = self.workers.unwrap_or(spec.workers);
        for flag in &self.upstreams {
            move_upstreams(&mut spec.upstreams, flag)
                .map_err(|why| GatewayError::Config(vec![format!("--upstream {flag}: {why}")]))?;
        }
        Ok(spec)
    }
}

/// Changes the address of an upstream: the named one, otherwise all upstreams with the same server.
///
/// # Errors
/// The upstream does not exist, or several match and none is named.
fn move_upstreams(
    upstreams: &mut BTreeMap<String, UpstreamSpec>,
    flag: &str,
) -> Result<(), String> {
    let names = upstreams.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    let Some((name, address)) = flag.split_once('=') else {
        let mut places = upstreams.values().map(|upstream| &upstream.addresses);
        let first = places.next();
        if places.any(|place| Some(place) != first) {
            return Err(format!(
                "the configuration has several upstreams: {names}; write NAME=HOST:PORT, once for each"
            ));
        }
        for upstream in upstreams.values_mut() {
            upstream.addresses = vec![flag.to_owned()];
        }
        return Ok(());
    };
    let upstream = upstreams
        .get_mut(name)
        .ok_or_else(|| format!("unknown upstream `{name}`; the gateway has: {names}"))?;
    upstream.addresses = vec![address.to_owned()];
    Ok(())
}

fn greeting(gateway: &Gateway, spec: &Spec) -> String {
    let scheme = if spec.tls.is_some() { "https" } else { "http" };
    let (layers, faults) = (spec.layers(), spec.faults());
    let layers = if layers.is_empty() { "no layers".to_owned() } else { layers.join(", ") };
    let injected = if faults.is_empty() {
        String::new()
    } else {
        format!("INJECTED FAULTS: {}\n", faults.join(", "))
    };
    let admin = gateway.admin_addr().map_or_else(String::new, |addr| {
        format!("health, metrics and administration on {scheme}://{addr}\n")
    });
    let unjudged = spec.unjudged_routes();
    let unjudged = if unjudged.is_empty() {
        String::new()
    } else {
        format!("not judged by the policy: {}\n", unjudged.join(", "))
    };
    let (addr, name) = (gateway.addr(), &spec.name);
    format!(
        "listening on {scheme}://{addr} (Ctrl-C ends it)\n{admin}{name}: {layers}\n{unjudged}{injected}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown_in_any_spelling() {
        for (line, shown) in [
            ("admin: {key: hush}\n", "admin: {key: [redacted]}\n"),
            ("  key: hush # why\n", "  key: [redacted] # why\n"),
            ("  key: \"a, b}\" # why\n", "  key: [redacted] # why\n"),
            ("\"key\": 'hush', \"secret\":\"x\"\n", "\"key\": [redacted], \"secret\":[redacted]\n"),
            (
                "keys: [{name: a, key: k1, tenant: t}, {name: b, key: k2}]\n",
                "keys: [{name: a, key: [redacted], tenant: t}, {name: b, key: [redacted]}]\n",
            ),
            ("store: {redis: \"redis://u:p@h:1\"}\n", "store: {redis: [redacted]}\n"),
            ("  clickhouse: http://u:p@h/t\n", "  clickhouse: [redacted]\n"),
            ("key: \"${ADMIN_KEY}\"\n", "key: \"${ADMIN_KEY}\"\n"),
            ("key: |\n  line 1\n  line 2\nname: x\n", "key: [redacted]\nname: x\n"),
            ("key: hush", "key: [redacted]"),
            ("monkey: x, keys: [1], per: key\n", "monkey: x, keys: [1], per: key\n"),
            ("header: x-key\n# a key: none\n", "header: x-key\n# a key: [redacted]\n"),
        ] {
            assert_eq!(without_secrets(line), shown, "{line}");
        }
    }
}
