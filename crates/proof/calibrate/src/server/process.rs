//! A reference server in a process of its own, which is this tool's binary under another command.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::{ServerSpec, Truth};
use crate::cores;
use crate::error::CalibrateError;

/// What the child is told.
#[derive(Debug, Serialize, Deserialize)]
struct Orders {
    spec: ServerSpec,
    /// The core to stay on.
    core: Option<usize>,
}

/// The child. Dropped, it ends, because its standard input does.
#[derive(Debug)]
pub(crate) struct Process {
    addr: SocketAddr,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Process {
    /// Starts `exe calibrate --serve`, and waits until it listens.
    pub(crate) fn start(
        exe: &Path,
        spec: ServerSpec,
        core: Option<usize>,
    ) -> Result<Self, CalibrateError> {
        let orders = serde_json::to_string(&Orders { spec, core })?;
        let mut command = Command::new(exe);
        command.args(["calibrate", "--serve"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(CalibrateError::Server)?;
        let gone = || CalibrateError::Server(io::ErrorKind::BrokenPipe.into());
        let mut stdin = child.stdin.take().ok_or_else(gone)?;
        let mut stdout = BufReader::new(child.stdout.take().ok_or_else(gone)?);
        writeln!(stdin, "{orders}").map_err(CalibrateError::Server)?;
        let mut line = String::new();
        stdout.read_line(&mut line).map_err(CalibrateError::Server)?;
        let addr = serde_json::from_str(&line)?;
        Ok(Self { addr, child, stdin: Some(stdin), stdout })
    }

    pub(crate) const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Stops the whole process, whatever it is doing.
    pub(crate) fn stop(&self) -> Result<(), CalibrateError> {
        self.signal(Signal::SIGSTOP)
    }

    /// Lets it go on.
    pub(crate) fn go_on(&self) -> Result<(), CalibrateError> {
        self.signal(Signal::SIGCONT)
    }

    fn signal(&self, signal: Signal) -> Result<(), CalibrateError> {
        send(&self.child, signal)
    }

    /// Ends the server, and reads what it did.
    pub(crate) fn finish(mut self) -> Result<Truth, CalibrateError> {
        drop(self.stdin.take());
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).map_err(CalibrateError::Server)?;
        Ok(serde_json::from_str(&text)?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // It may have been left stopped, or be waiting to write what nobody reads.
        let _ = self.go_on();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to a child.
pub(crate) fn send(child: &Child, signal: Signal) -> Result<(), CalibrateError> {
    let pid = i32::try_from(child.id()).map(Pid::from_raw).map_err(io::Error::other);
    let pid = pid.map_err(CalibrateError::system("cannot signal a child process"))?;
    kill(pid, signal).map_err(CalibrateError::errno("cannot signal a child process"))
}

/// The child's side: reads its orders from standard input, serves until that is closed, and writes what it did to
/// standard output.
///
/// # Errors
/// Where the orders make no sense, or the server cannot start.
pub(crate) fn serve() -> Result<(), CalibrateError> {
    let mut stdin = io::stdin().lock();
    let mut line = String::new();
    stdin.read_line(&mut line).map_err(CalibrateError::Server)?;
    let Orders { spec, core } = serde_json::from_str(&line)?;
    core.map_or(Ok(()), cores::stay_on)?;
    let server = spec.start()?;
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{}", serde_json::to_string(&server.addr())?)
        .and_then(|()| stdout.flush())
        .map_err(CalibrateError::Server)?;
    // Whatever comes, and the end, mean the end.
    let _ = stdin.read_line(&mut line);
    let text = serde_json::to_string(&server.finish())?;
    stdout.write_all(text.as_bytes()).map_err(CalibrateError::Server)
}
