//! A server of another program that the suite starts for itself.

use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::time::Duration;

use plimsoll_runner::ChildProcess;
use plimsoll_runner::time::poll;

use crate::child::command;
use crate::runner::SuiteRunner;

const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Another process may take a port that was free a moment ago.
const ATTEMPTS: u32 = 3;

/// A server on the loopback interface. Dropping this ends it.
pub(super) struct OwnServer {
    process: ChildProcess,
    port: u16,
}

impl OwnServer {
    /// Starts `program` with the arguments for a port, at which it must listen within `limit`; a
    /// port that is taken meanwhile is replaced.
    pub(super) fn start(
        runner: &SuiteRunner<'_>,
        program: &str,
        limit: Duration,
        arguments: impl Fn(u16) -> Result<Vec<String>, String>,
    ) -> Result<Self, String> {
        for _ in 0..ATTEMPTS {
            let port = free_port()?;
            let mut server = Self::spawn(runner, program, &arguments(port)?, port)?;
            if server.is_ready(limit) {
                return Ok(server);
            }
            if !server.process.has_ended() {
                break;
            }
        }
        Err(format!("`{program}` does not answer; install it to measure with it"))
    }

    /// Beside the provider: on a core of the load's it would hold the load up.
    fn spawn(
        runner: &SuiteRunner<'_>,
        program: &str,
        arguments: &[String],
        port: u16,
    ) -> Result<Self, String> {
        let core = runner.cores.provider;
        let mut command = command(&runner.options.exe, core, &["--program", program], arguments);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let process = ChildProcess::spawn(&mut command).map_err(|error| error.to_string())?;
        Ok(Self { process, port })
    }

    fn is_ready(&mut self, limit: Duration) -> bool {
        let ready = poll(limit, POLL_INTERVAL, || {
            let accepts = TcpStream::connect(("127.0.0.1", self.port)).is_ok();
            (accepts || self.process.has_ended()).then_some(accepts)
        });
        ready == Some(true)
    }

    /// Its process id.
    pub(super) fn pid(&self) -> Option<u32> {
        u32::try_from(self.process.pid().as_raw()).ok()
    }

    /// Where it listens.
    pub(super) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

/// A port that was free a moment ago, for a server that cannot choose one itself.
pub(super) fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind(("127.0.0.1", 0));
    let address = listener.and_then(|listener| listener.local_addr());
    address.map(|address| address.port()).map_err(|_| "no free port for it".to_owned())
}
