//! `plimsoll mock`: runs the mock LLM provider as a server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc;

use anyhow::{Context as _, Result};
use clap::{Args, ValueHint};
use plimsoll_mock::{
    Distribution, HumanDuration, LogTarget, Mock, MockConfig, ModelSpec, OutputLength, Stats,
};

use crate::console;
use crate::environment::FdLimit;
use crate::exit::{self, Exit};
use crate::flags::{parse_listen_address, read_config};

const AFTER: &str = include_str!("mock.txt").trim_ascii_end();

/// The default configuration.
const MODELS: &str = include_str!("mock/models.yaml");

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9000", value_parser = parse_listen_address)]
    listen: SocketAddr,
    /// Configuration file, YAML or JSON: models, latencies, faults [default: built in]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    config: Option<PathBuf>,
    /// Folder of recorded answers: each file, like `azure.sse`, `whole.json` or
    /// `overloaded.503.json`, is a model of that name, which returns its bytes
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    answers: Option<PathBuf>,
    /// Time to first token of every model: a duration like `40ms`, or a distribution
    /// [default: the configuration's]
    #[arg(long, value_name = "TIME", value_parser = parse_distribution)]
    ttft: Option<Distribution<HumanDuration>>,
    /// Time between tokens of every model: a duration like `40ms`, or a distribution
    /// [default: the configuration's]
    #[arg(long, value_name = "TIME", value_parser = parse_distribution)]
    gap: Option<Distribution<HumanDuration>>,
    /// Output tokens of every response, as far as the request allows [default: the
    /// configuration's]
    #[arg(long, value_name = "N")]
    tokens: Option<u32>,
    /// Seed of all random numbers, a whole number [default: the configuration's]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write a log with one JSON line per request, with the time of every step [default: none]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    log: Option<PathBuf>,
    /// Number of worker threads [default: the configuration's]
    #[arg(long, value_name = "N")]
    workers: Option<u16>,
}

/// Runs the mock until a signal stops it.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let config = flags.config()?;
    if let Some(message) = FdLimit::raise().and_then(FdLimit::raised_message) {
        console::eprint_line(&message);
    }
    let mut mock = Mock::spawn(&config, flags.listen)?;
    let (stop, stopped) = mpsc::channel();
    // The receiver is gone only when the process ends anyway.
    exit::on_signals(&[], move |_| {
        let _ = stop.send(());
    })?;
    console::print(&greeting(mock.addr()))?;
    // The sender lives as long as the thread that waits for signals.
    let _ = stopped.recv();
    mock.shutdown();
    console::print(&served(&mock.stats()))?;
    Ok(Exit::Pass)
}

/// The configuration of `plimsoll demo`, and of `plimsoll mock` without `--config`.
pub(crate) fn default_config() -> Result<MockConfig> {
    Ok(MockConfig::from_yaml(MODELS)?)
}

impl Flags {
    fn config(&self) -> Result<MockConfig> {
        let mut config = match &self.config {
            None => default_config()?,
            Some(path) => {
                let text = read_config(path)?;
                MockConfig::from_yaml(&text).with_context(|| path.display().to_string())?
            }
        };
        config
            .models
            .values_mut()
            .chain([&mut config.other_models])
            .for_each(|model| self.apply_to(model));
        config.seed = self.seed.unwrap_or(config.seed);
        config.workers = self.workers.unwrap_or(config.workers);
        config.answers = self.answers.clone().or(config.answers);
        config.log = self.log.clone().map_or(config.log, LogTarget::File);
        config.check()?;
        Ok(config)
    }

    fn apply_to(&self, model: &mut ModelSpec) {
        self.ttft.iter().for_each(|ttft| model.ttft = ttft.clone());
        self.gap.iter().for_each(|gap| model.gap = gap.clone());
        self.tokens.iter().for_each(|&tokens| {
            model.output = OutputLength::Sampled(Distribution::Constant(tokens));
        });
    }
}

/// Parses a duration or a distribution of durations, as in the configuration.
fn parse_distribution(text: &str) -> Result<Distribution<HumanDuration>, String> {
    let config = MockConfig::from_yaml(&format!("other_models:\n  ttft: {text}"));
    config.map(|config| config.other_models.ttft).map_err(|_| {
        "write a duration, like `40ms`, or a distribution, like `{lognormal: {median: 40ms, p95: 90ms}}`"
            .to_owned()
    })
}

fn greeting(addr: SocketAddr) -> String {
    format!(
        "listening on http://{addr} (Ctrl-C ends it)\n\
         try: plimsoll run minimal --target http://{addr}\n\
         or:  curl http://{addr}/v1/chat/completions -H 'content-type: application/json' \\\n       \
         -d '{{\"model\":\"mock-medium\",\"messages\":[{{\"role\":\"user\",\"content\":\"hello\"}}]}}'\n"
    )
}

/// Text about the requests that the mock served.
fn served(stats: &Stats) -> String {
    let statuses: Vec<_> =
        stats.by_status.iter().map(|(status, count)| format!("{status} x {count}")).collect();
    let statuses = if statuses.is_empty() { "none".to_owned() } else { statuses.join(", ") };
    let mut text = format!(
        "{} requests: {} answered, {} aborted by an injected fault, {} aborted by the client, {} cut off by the shutdown\n\
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
            format!("{} log lines were lost because the disk did not keep up\n", stats.log_lost);
        text.push_str(&lost);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_duration_or_a_distribution() {
        assert_eq!(
            parse_distribution("40ms"),
            Ok(Distribution::Constant(HumanDuration::from_millis(40)))
        );
        let uniform = Distribution::Uniform {
            min: HumanDuration::from_millis(1),
            max: HumanDuration::from_millis(2),
        };
        assert_eq!(parse_distribution("{uniform: {min: 1ms, max: 2ms}}"), Ok(uniform));
        for text in ["", "40", "fast", "{uniform: {min: 2ms, max: 1ms}}", "1ms\n  gap: 2ms\n- x"] {
            assert!(parse_distribution(text).is_err(), "{text}");
        }
    }

    #[test]
    fn flags_apply_to_every_model() {
        let flags = Flags {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            config: None,
            answers: None,
            ttft: Some(Distribution::Constant(HumanDuration::from_millis(7))),
            gap: None,
            tokens: Some(3),
            seed: Some(9),
            log: None,
            workers: None,
        };
        let (config, default) = (flags.config().unwrap(), default_config().unwrap());
        assert_eq!((config.seed, config.workers), (9, default.workers));
        for model in config.models.values().chain([&config.other_models]) {
            assert_eq!(model.ttft, Distribution::Constant(HumanDuration::from_millis(7)));
            assert_eq!(model.output, OutputLength::Sampled(Distribution::Constant(3)));
        }
        assert_eq!(config.other_models.gap, default.other_models.gap);
    }
}
