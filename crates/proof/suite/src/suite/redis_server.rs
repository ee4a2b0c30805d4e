//! A Redis server of the suite's own, where this host has one.

use std::time::Duration;

use serde_json::json;

use super::own_server;
use crate::child::Child;
use crate::runner::SuiteRunner;

/// Time limit until Redis accepts connections.
const READY_TIMEOUT: Duration = Duration::from_secs(5);

/// A Redis server on the loopback interface. Dropping this ends it; its data is lost.
pub(super) struct RedisServer(Child);

impl RedisServer {
    /// Starts one.
    pub(super) fn open(runner: &SuiteRunner<'_>) -> Result<Self, String> {
        let folder = runner.options.folder.display().to_string();
        own_server::start(runner, "redis-server", READY_TIMEOUT, |port| {
            let text = format!("--bind 127.0.0.1 --save  --appendonly no --port {port} --dir");
            Ok(text.split(' ').map(str::to_owned).chain([folder.clone()]).collect())
        })
        .map(Self)
    }

    /// Its process id.
    pub(super) fn pid(&self) -> Option<u32> {
        self.0.pid()
    }

    pub(super) fn url(&self) -> String {
        format!("redis://{}", self.0.address())
    }

    /// The setting of a gateway that keeps its state here. Its own time limit of 50 ms would take a
    /// pause of this host for a Redis that is gone, and refuse requests.
    pub(super) fn setting(&self) -> String {
        format!("store={}", json!({"redis": self.url(), "timeout": "2s"}))
    }
}
