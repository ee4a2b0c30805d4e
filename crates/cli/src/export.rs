//! Metrics of the runs of a command: served during the runs, and pushed at their end.

use std::net::SocketAddr;

use plimsoll_engine::Control;
use plimsoll_export::{
    Conclusion, LiveKnee, LiveMetrics, MetricsServer, PushError, PushTarget, Verdict,
};
use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos};
use plimsoll_metrics::{RunMetadata, RunSummary, Snapshot};

use crate::exit::{Exit, UsageError};
use crate::progress::StatusOutput;
use plimsoll_runner::time::sleep;

/// Between looks whether the last page was read.
const LOOK: Nanos = Nanos::from_millis(50);

/// Requested exports.
#[derive(Clone, Debug)]
pub(crate) struct ExportOptions {
    /// Where live metrics are served.
    pub(crate) serve: Option<SocketAddr>,
    /// How long the end waits for a reader of the last ones, at most.
    pub(crate) linger: Nanos,
    /// Where results of runs are pushed to.
    pub(crate) push: Option<PushTarget>,
}

/// Metrics that are served and pushed; by default none.
#[derive(Debug, Default)]
pub(crate) struct Export {
    served: Option<(LiveMetrics, MetricsServer)>,
    /// How long the end waits for a reader.
    linger: Nanos,
    push: Option<PushTarget>,
}

impl Export {
    /// Starts to serve, and prints the address.
    pub(crate) fn open(options: ExportOptions, status: &StatusOutput) -> Result<Self, UsageError> {
        let served = options.serve.map(|address| {
            let live = LiveMetrics::default();
            let server = MetricsServer::start(address, live.clone()).map_err(|error| {
                UsageError(format!(
                    "cannot serve metrics at {address}: {error}; choose another address with --serve-metrics=ADDR:PORT (port 0 takes a free one)"
                ))
            })?;
            Ok((live, server))
        }).transpose()?;
        if let Some((_, server)) = &served {
            status.info(&format!("metrics are served at http://{}/metrics", server.address()));
        }
        Ok(Self { served, linger: options.linger, push: options.push })
    }

    /// Receiver of the progress of runs; `None` if no metrics are served.
    pub(crate) fn live(&self) -> Option<LiveMetrics> {
        self.served.as_ref().map(|(live, _)| live.clone())
    }

    /// A run begins; gives what its progress goes to.
    pub(crate) fn begin(&self, run: RunMetadata) -> Option<LiveMetrics> {
        self.live().inspect(|live| live.begin(run))
    }

    /// A search or a suite is over.
    pub(crate) fn conclude(&self, exit: Exit, knees: Vec<LiveKnee>) {
        let outcome = match exit {
            Exit::Pass => "pass",
            Exit::Fail => "fail",
            Exit::Usage | Exit::Inconclusive | Exit::Invalid => "inconclusive",
            Exit::Interrupted => "interrupted",
        };
        if let Some((live, _)) = &self.served {
            live.conclude(Conclusion { outcome, knees });
        }
    }

    /// The run is over.
    pub(crate) fn end(&self, whole: &Snapshot, summary: &RunSummary) {
        if let Some((live, _)) = &self.served {
            live.end(whole, Verdict::of(summary.is_valid(), &summary.thresholds));
        }
    }

    /// Waits until the last page was read, the user ends it, or the time is over.
    pub(crate) fn linger(&self, control: &Control, status: &StatusOutput) {
        let Some((_, server)) = &self.served else { return };
        if self.linger == Nanos::ZERO || control.is_interrupted() {
            return;
        }
        status.info("waiting for the last scrape of the metrics; press Ctrl-C to skip it");
        let clock = MonotonicClock::start();
        while !server.final_page_was_read()
            && !control.is_interrupted()
            && clock.now().since(Moment::EPOCH) < self.linger
        {
            sleep(LOOK);
        }
    }

    /// Pushes the figures of a run or of a suite, if that is wanted.
    pub(crate) fn push(&self, run: &str, page: &str) -> Result<(), PushError> {
        let Some(target) = &self.push else { return Ok(()) };
        let host = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
        target.push(run, &host.unwrap_or_default(), page)
    }
}
