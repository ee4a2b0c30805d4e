//! A Redis server of the suite's own, where this build and this host have one.

use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use plimsoll_gateway_store::HAS_REDIS;
use plimsoll_runner::ChildProcess;
use plimsoll_runner::time::poll;
use serde_json::json;

use crate::runner::SuiteRunner;

/// Time limit until Redis accepts connections.
const READY_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A Redis server on the loopback interface. Dropping this ends it; its data is lost.
pub(super) struct RedisServer {
    process: ChildProcess,
    port: u16,
}

impl RedisServer {
    /// Starts one for a build that can use it. The only place that needs the Redis client.
    pub(super) fn open(runner: &SuiteRunner<'_>) -> Result<Self, String> {
        if !HAS_REDIS {
            let why = "this build has no Redis client; build with `cargo build --release --features redis`";
            return Err(why.to_owned());
        }
        // Beside the provider: on a core of the load's it would hold the load up.
        let options = runner.options;
        Self::start(&options.exe, &options.folder, runner.cores.provider)
    }

    /// Starts it by way of `suite child`, so that the kernel ends it with the suite.
    fn start(exe: &Path, folder: &Path, core: Option<usize>) -> Result<Self, String> {
        let port = free_port().ok_or("no free port for it")?;
        let mut command = Command::new(exe);
        command.args(["suite", "child"]);
        if let Some(core) = core {
            command.arg("--core").arg(core.to_string());
        }
        command.args(["--program", "redis-server", "--"]);
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port"]);
        command.arg(port.to_string()).arg("--dir").arg(folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = ChildProcess::spawn(command.process_group(0)).map_err(|e| e.to_string())?;
        let mut redis = Self { process, port };
        if redis.is_ready() {
            return Ok(redis);
        }
        Err("`redis-server` does not answer; install it to measure with it".to_owned())
    }

    fn is_ready(&mut self) -> bool {
        let ready = poll(READY_TIMEOUT, POLL_INTERVAL, || {
            let accepts = TcpStream::connect(("127.0.0.1", self.port)).is_ok();
            (accepts || self.process.has_ended()).then_some(accepts)
        });
        ready == Some(true)
    }

    /// Its process id.
    pub(super) fn pid(&self) -> Option<u32> {
        u32::try_from(self.process.pid().as_raw()).ok()
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The setting of a gateway that keeps its state here. Its own time limit of 50 ms would take a
    /// pause of this host for a Redis that is gone, and refuse requests.
    pub(super) fn setting(&self) -> String {
        format!("store={}", json!({"redis": self.url(), "timeout": "2s"}))
    }
}

/// A port that was free a moment ago: Redis cannot choose one itself.
fn free_port() -> Option<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).ok()?;
    listener.local_addr().ok().map(|address| address.port())
}
