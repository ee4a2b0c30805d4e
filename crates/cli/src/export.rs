//! Metrics of the runs of a command: served while they go on, and pushed when they are over.

use std::net::SocketAddr;

use plimsoll_export::{LiveMetrics, MetricsServer, PushError, PushTarget, Verdict};
use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos};
use plimsoll_metrics::{RunMetadata, RunSummary, Snapshot};

use crate::exit::UsageError;
use crate::sleep::sleep;

/// Between looks whether the last page was read.
const LOOK: Nanos = Nanos::from_millis(50);

/// What is asked for.
#[derive(Clone, Debug)]
pub(crate) struct ExportOptions {
    /// Where live metrics are served.
    pub(crate) serve: Option<SocketAddr>,
    /// How long the end waits for a reader of the last ones, at most.
    pub(crate) linger: Nanos,
    /// Where results are pushed to.
    pub(crate) push: Option<PushTarget>,
}

/// What is served and pushed; by default nothing.
#[derive(Debug, Default)]
pub(crate) struct Export {
    served: Option<(LiveMetrics, MetricsServer)>,
    /// How long the end waits for a reader.
    linger: Nanos,
    push: Option<PushTarget>,
}

impl Export {
    /// Begins to serve.
    pub(crate) fn open(options: ExportOptions) -> Result<Self, UsageError> {
        let serve = |address| {
            let live = LiveMetrics::default();
            let server = MetricsServer::start(address, live.clone()).map_err(|error| {
                UsageError(format!(
                    "cannot serve metrics at {address}: {error}; choose another address with --serve-metrics=ADDR:PORT (port 0 takes a free one)"
                ))
            })?;
            Ok((live, server))
        };
        let served = options.serve.map(serve).transpose()?;
        Ok(Self { served, linger: options.linger, push: options.push })
    }

    /// Where metrics are served.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.served.as_ref().map(|(_, server)| server.address())
    }

    /// A run begins; gives what its progress goes to.
    pub(crate) fn begin(&self, run: RunMetadata) -> Option<LiveMetrics> {
        let (live, _) = self.served.as_ref()?;
        live.begin(run);
        Some(live.clone())
    }

    /// The run is over.
    pub(crate) fn end(&self, whole: &Snapshot, summary: &RunSummary) {
        if let Some((live, _)) = &self.served {
            live.end(whole, Verdict::of(summary.validity.is_valid(), &summary.thresholds));
        }
    }

    /// Whether the end waits for a reader.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.linger > Nanos::ZERO && self.served.is_some()
    }

    /// Waits until the last page was read, until `ended`, or for the time that was asked for.
    pub(crate) fn linger(&self, ended: impl Fn() -> bool) {
        let Some((_, server)) = &self.served else { return };
        let clock = MonotonicClock::start();
        let waited = || clock.now().since(Moment::EPOCH);
        while !server.final_page_was_read() && !ended() && waited() < self.linger {
            sleep(LOOK);
        }
    }

    /// Pushes the figures of a run, if that is wanted.
    pub(crate) fn push(&self, run: &str, page: &str) -> Result<(), PushError> {
        self.push.as_ref().map_or(Ok(()), |target| push(target, run, page))
    }
}

/// Pushes the figures of a run or of a suite.
pub(crate) fn push(target: &PushTarget, run: &str, page: &str) -> Result<(), PushError> {
    let host = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    target.push(run, &host.unwrap_or_default(), page)
}
