//! Flags for metrics that are served or pushed.

use std::net::SocketAddr;

use clap::{Args, ValueHint};
use plimsoll_export::{DEFAULT_ADDRESS, PushTarget};
use plimsoll_measure::Nanos;

use super::keys::LabelFlags;
use super::parse_listen_address;
use crate::export::ExportOptions;

/// The flags of every command with load.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Metrics")]
pub(crate) struct ServeFlags {
    /// Serve metrics for Prometheus at http://ADDR:PORT/metrics while the load goes on [address if
    /// none is given: 127.0.0.1:9797]
    #[arg(long, value_name = "ADDR:PORT", value_parser = parse_listen_address)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = DEFAULT_ADDRESS)]
    serve_metrics: Option<SocketAddr>,
    /// At the end, wait until the last metrics have been read, at most this long
    #[arg(long, value_name = "TIME", default_value = "0s", requires = "serve_metrics")]
    serve_metrics_linger: Nanos,
}

/// The flags of commands with runs.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Metrics")]
pub(crate) struct ExportFlags {
    #[command(flatten)]
    serve: ServeFlags,
    #[command(flatten)]
    push: PushFlags,
    #[command(flatten)]
    pub(crate) labels: LabelFlags,
}

/// The flag of every command with results.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Metrics")]
pub(crate) struct PushFlags {
    /// Push the results to this Pushgateway, as metrics.prom has them; if that fails, a warning
    /// says so, and the exit code stays that of the results
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) push_metrics: Option<PushTarget>,
}

impl ServeFlags {
    /// What is served; nothing is pushed.
    pub(crate) const fn options(&self) -> ExportOptions {
        let Self { serve_metrics: serve, serve_metrics_linger: linger } = *self;
        ExportOptions { serve, linger, push: None }
    }
}

impl ExportFlags {
    /// What is served and pushed.
    pub(crate) fn options(&self) -> ExportOptions {
        ExportOptions { push: self.push.push_metrics.clone(), ..self.serve.options() }
    }
}
