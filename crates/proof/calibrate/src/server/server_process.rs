//! A reference server in a separate process, which is this tool's binary under another command.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::Receiver;

use plimsoll_runner::ChildProcess;
use plimsoll_runner::affinity::{allowed_cpus, pin_current_thread};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{GroundTruth, RunningServer, ServerSpec};
use crate::error::CalibrateError;

/// The first line that the child reads.
#[derive(Debug, Serialize, Deserialize)]
struct Assignment {
    spec: ServerSpec,
    /// The core to stay on.
    core: Option<usize>,
}

/// The child. It ends when its standard input is closed.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    addr: SocketAddr,
    child: ChildProcess,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl ServerProcess {
    /// Starts `exe calibrate --serve`, and waits until it listens.
    pub(crate) fn start(
        exe: &Path,
        spec: ServerSpec,
        core: Option<usize>,
    ) -> Result<Self, CalibrateError> {
        let assignment = serde_json::to_string(&Assignment { spec, core })?;
        let mut command = Command::new(exe);
        command.args(["calibrate", "--serve"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = ChildProcess::spawn(&mut command).map_err(CalibrateError::Server)?;
        let mut stdin = child.stdin().ok_or_else(gone)?;
        let lines = child.lines().ok_or_else(gone)?;
        writeln!(stdin, "{assignment}").map_err(CalibrateError::Server)?;
        let addr = receive(&lines)?;
        Ok(Self { addr, child, stdin: Some(stdin), lines })
    }
}

impl RunningServer for ServerProcess {
    fn addr(&self) -> SocketAddr {
        self.addr
    }

    fn finish(mut self: Box<Self>) -> Result<GroundTruth, CalibrateError> {
        drop(self.stdin.take());
        let truth = receive(&self.lines)?;
        self.child.wait().map_err(CalibrateError::Server)?;
        Ok(truth)
    }
}

/// The next line of the child, which is JSON.
fn receive<T: DeserializeOwned>(lines: &Receiver<String>) -> Result<T, CalibrateError> {
    let line = lines.recv().map_err(|_| gone())?;
    Ok(serde_json::from_str(&line)?)
}

/// Error for a child that ended before it sent the expected message.
fn gone() -> CalibrateError {
    CalibrateError::Server(io::ErrorKind::BrokenPipe.into())
}

/// The child's side: reads its assignment from standard input, serves until that is closed, and
/// writes its address and its records to standard output, a line of JSON each.
///
/// # Errors
/// Where the assignment cannot be read, or the server cannot start.
pub(crate) fn serve() -> Result<(), CalibrateError> {
    let mut line = String::new();
    io::stdin().read_line(&mut line).map_err(CalibrateError::Server)?;
    let Assignment { spec, core } = serde_json::from_str(&line)?;
    core.map_or(Ok(()), stay_on)?;
    let server = spec.start()?;
    send(&server.addr())?;
    // Any further line ends the server, as the end of input does.
    let _ = io::stdin().read_line(&mut line);
    send(&server.finish()?)
}

fn send(value: &impl Serialize) -> Result<(), CalibrateError> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{}", serde_json::to_string(value)?)
        .and_then(|()| stdout.flush())
        .map_err(CalibrateError::Server)
}

// Which core does what: the generator and the reference server must not share one.

/// One core for the generator and one for the reference server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cores {
    pub(crate) generator: usize,
    pub(crate) server: usize,
}

impl Cores {
    /// The first two cores that this process may use; `None` where there is only one.
    pub(crate) fn choose() -> Option<Self> {
        Self::first_two(&allowed_cpus())
    }

    fn first_two(allowed: &[usize]) -> Option<Self> {
        let [generator, server] = *allowed.first_chunk()?;
        Some(Self { generator, server })
    }
}

/// Restricts the calling thread, and everything that it starts from now on, to one core.
pub(crate) fn stay_on(core: usize) -> Result<(), CalibrateError> {
    pin_current_thread(&[core]).map_err(CalibrateError::errno("cannot stay on one core"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_child_that_ends_too_early_is_an_error_and_so_is_what_is_no_json() {
        let (sender, lines) = channel();
        sender.send("\"127.0.0.1:80\"".to_owned()).unwrap();
        sender.send("panicked".to_owned()).unwrap();
        drop(sender);
        let addr: SocketAddr = receive(&lines).unwrap();
        assert_eq!(addr.port(), 80);
        assert!(matches!(receive::<SocketAddr>(&lines), Err(CalibrateError::Truth(_))));
        assert!(matches!(receive::<SocketAddr>(&lines), Err(CalibrateError::Server(_))));
    }

    #[test]
    fn what_cannot_be_started_is_an_error() {
        let spec = ServerSpec::Null(super::super::NullSpec::default());
        let error = ServerProcess::start(Path::new("/no/such/binary"), spec, None).unwrap_err();
        assert!(error.to_string().starts_with("the reference server:"), "{error}");
    }
}

#[cfg(test)]
mod cores_tests {
    use super::*;

    #[test]
    fn generator_and_server_have_a_core_each_or_none_is_assigned() {
        for (allowed, cores) in [
            (&[][..], None),
            (&[3], None),
            (&[3, 5], Some(Cores { generator: 3, server: 5 })),
            (&[0, 1, 2], Some(Cores { generator: 0, server: 1 })),
        ] {
            assert_eq!(Cores::first_two(allowed), cores, "{allowed:?}");
        }
    }
}
