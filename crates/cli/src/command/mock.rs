//! `plimsoll mock`: the mock LLM provider as a server.

use std::fs;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::mpsc;

use anyhow::{Context as _, Result};
use clap::{Args, ValueHint};
use plimsoll_mock::{
    Distribution, HumanDuration, LogTarget, Mock, MockConfig, ModelSpec, OutputLength, Stats,
};

use crate::console;
use crate::exit::{Exit, Usage};
use crate::fd_limit::FdLimit;
use crate::signal;

const AFTER: &str = "\
Examples:
  plimsoll mock
  plimsoll mock --ttft 200ms --gap 10ms --tokens 100
  plimsoll mock --ttft '{lognormal: {median: 300ms, p95: 900ms}}' --log truth.jsonl
  curl http://127.0.0.1:9000/v1/models

It speaks OpenAI's chat completions, responses and embeddings and Anthropic's messages, streamed and not. Without --config every model answers like a quick real one, and `mock-fast` at once. Live counters are at /metrics. A request header overrides a setting for that request: `x-mock-ttft: 50ms`, `x-mock-status: 503`.";

/// How the mock behaves unless it is told otherwise.
const MODELS: &str = include_str!("mock/models.yaml");

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9000", value_parser = resolve)]
    listen: SocketAddr,
    /// Configuration, YAML or JSON: models, latencies, faults
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    config: Option<PathBuf>,
    /// Time to the first token of every model: a length of time, or a distribution
    #[arg(long, value_name = "TIME", value_parser = times)]
    ttft: Option<Distribution<HumanDuration>>,
    /// Time between tokens of every model: a length of time, or a distribution
    #[arg(long, value_name = "TIME", value_parser = times)]
    gap: Option<Distribution<HumanDuration>>,
    /// OutputLength tokens of every answer, where the request allows as many
    #[arg(long, value_name = "N")]
    tokens: Option<u32>,
    /// Seed of every draw
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// File for the ground truth: a line for each request, with what was done when
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    log: Option<PathBuf>,
    /// Threads that serve
    #[arg(long, value_name = "N")]
    workers: Option<u16>,
}

/// Serves until a signal comes.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let config = flags.config()?;
    if let Some(told) = FdLimit::raise().and_then(FdLimit::told) {
        console::say(&told);
    }
    let mut mock = Mock::spawn(&config, flags.listen)?;
    let (stop, stopped) = mpsc::channel();
    // The receiver is gone only when the process ends anyway.
    signal::listen(move || {
        let _ = stop.send(());
    })?;
    console::print(&greeting(mock.addr()))?;
    // The sender lives as long as the thread that waits for signals.
    let _ = stopped.recv();
    mock.shutdown();
    console::print(&account(&mock.stats()))?;
    Ok(Exit::Pass)
}

/// The mock of `plimsoll demo`, and of `plimsoll mock` without a configuration.
pub(crate) fn everyday() -> Result<MockConfig> {
    Ok(MockConfig::from_yaml(MODELS)?)
}

impl Flags {
    fn config(&self) -> Result<MockConfig> {
        let mut config = match &self.config {
            None => everyday()?,
            Some(path) => {
                let text = fs::read_to_string(path)
                    .map_err(|error| Usage(format!("cannot read {}: {error}", path.display())))?;
                MockConfig::from_yaml(&text).with_context(|| path.display().to_string())?
            }
        };
        config
            .models
            .values_mut()
            .chain([&mut config.other_models])
            .for_each(|model| self.shape(model));
        config.seed = self.seed.unwrap_or(config.seed);
        config.workers = self.workers.unwrap_or(config.workers);
        config.log = self.log.clone().map_or(config.log, LogTarget::File);
        config.check()?;
        Ok(config)
    }

    fn shape(&self, model: &mut ModelSpec) {
        self.ttft.iter().for_each(|ttft| model.ttft = ttft.clone());
        self.gap.iter().for_each(|gap| model.gap = gap.clone());
        self.tokens.iter().for_each(|&tokens| {
            model.output = OutputLength::Sampled(Distribution::Constant(tokens))
        });
    }
}

fn resolve(text: &str) -> Result<SocketAddr, String> {
    let found = text.to_socket_addrs().map_err(|error| error.to_string());
    found?.next().ok_or_else(|| "the name has no address".to_owned())
}

/// A law as the configuration writes it.
fn times(text: &str) -> Result<Distribution<HumanDuration>, String> {
    let config = MockConfig::from_yaml(&format!("other_models:\n  ttft: {text}"));
    config.map(|config| config.other_models.ttft).map_err(|_| {
        "write a length of time, like `40ms`, or a distribution, like `{lognormal: {median: 40ms, p95: 90ms}}`"
            .to_owned()
    })
}

fn greeting(addr: SocketAddr) -> String {
    format!(
        "listening on http://{addr} (Ctrl-C ends it)\n\
         try: plimsoll run minimal --target http://{addr} --key any\n\
         or:  curl http://{addr}/v1/chat/completions -H 'content-type: application/json' \\\n       \
         -d '{{\"model\":\"mock-medium\",\"messages\":[{{\"role\":\"user\",\"content\":\"hello\"}}]}}'\n"
    )
}

/// What was served.
fn account(stats: &Stats) -> String {
    let statuses: Vec<_> =
        stats.by_status.iter().map(|(status, count)| format!("{status} x {count}")).collect();
    let statuses = if statuses.is_empty() { "none".to_owned() } else { statuses.join(", ") };
    let mut text = format!(
        "{} requests: {} answered, {} broken off, {} given up by the client, {} cut short at the end\n\
         statuses: {statuses}\n\
         {} tokens in, {} tokens out, {} streams, {} connections\n",
        stats.requests,
        stats.completed,
        stats.aborted,
        stats.client_gone,
        stats.shut_down,
        stats.tokens_in,
        stats.tokens_out,
        stats.streams,
        stats.connections
    );
    if stats.log_lost > 0 {
        let lost =
            format!("{} records of the log are lost: the disk did not keep up\n", stats.log_lost);
        text.push_str(&lost);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_length_or_a_distribution() {
        assert_eq!(times("40ms"), Ok(Distribution::Constant(HumanDuration::from_millis(40))));
        let uniform = Distribution::Uniform {
            min: HumanDuration::from_millis(1),
            max: HumanDuration::from_millis(2),
        };
        assert_eq!(times("{uniform: {min: 1ms, max: 2ms}}"), Ok(uniform));
        for text in ["", "40", "fast", "{uniform: {min: 2ms, max: 1ms}}", "1ms\n  gap: 2ms\n- x"] {
            assert!(times(text).is_err(), "{text}");
        }
    }

    #[test]
    fn flags_shape_every_model() {
        let flags = Flags {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            config: None,
            ttft: Some(Distribution::Constant(HumanDuration::from_millis(7))),
            gap: None,
            tokens: Some(3),
            seed: Some(9),
            log: None,
            workers: None,
        };
        let (config, default) = (flags.config().unwrap(), everyday().unwrap());
        assert_eq!((config.seed, config.workers), (9, default.workers));
        for model in config.models.values().chain([&config.other_models]) {
            assert_eq!(model.ttft, Distribution::Constant(HumanDuration::from_millis(7)));
            assert_eq!(model.output, OutputLength::Sampled(Distribution::Constant(3)));
        }
        assert_eq!(config.other_models.gap, default.other_models.gap);
    }
}
