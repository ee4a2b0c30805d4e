//! A server of another program that the suite starts for itself.

use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

use plimsoll_runner::ChildProcess;
use plimsoll_runner::time::poll;

use crate::child::{Child, command, free_port};
use crate::runner::SuiteRunner;

const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Another process may take a port that was free a moment ago.
const ATTEMPTS: u32 = 3;

/// Starts `program` on the loopback interface with the arguments for a port, at which it must
/// listen within `limit`; a port that is taken meanwhile is replaced.
pub(super) fn start(
    runner: &SuiteRunner<'_>,
    program: &str,
    limit: Duration,
    arguments: impl Fn(u16) -> Result<Vec<String>, String>,
) -> Result<Child, String> {
    for _ in 0..ATTEMPTS {
        let port = free_port()?;
        // Beside the provider: on a core of the load's it would hold the load up.
        let (exe, core) = (&runner.options.exe, runner.cores.provider);
        let mut command = command(exe, core, &["--program", program], &arguments(port)?);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let process = ChildProcess::spawn(&mut command).map_err(|error| error.to_string())?;
        let mut server = Child::new(Some(process), format!("127.0.0.1:{port}"));
        let listens = poll(limit, POLL_INTERVAL, || {
            let listens = TcpStream::connect(server.address()).is_ok();
            (listens || server.has_ended()).then_some(listens)
        });
        match listens {
            Some(true) => return Ok(server),
            Some(false) => {}
            None => break,
        }
    }
    Err(format!("`{program}` does not answer; install it to measure with it"))
}
