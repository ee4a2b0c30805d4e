//! A gateway or provider in a separate process, which ends with the suite whatever happens.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::net::TcpListener;
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use plimsoll_engine::process_family;
use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos};
use plimsoll_runner::ChildProcess;
use plimsoll_runner::affinity::pin_current_thread;
use plimsoll_runner::time::poll;

use crate::error::SuiteError;
use crate::http_get::{HttpResponse, get};

/// Time limit until a process answers requests.
const READY_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for a process to exit without a signal.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// Time between two attempts to reach it.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The command of a child process.
#[derive(Clone, Debug)]
pub(crate) struct ChildSpec<'a> {
    /// Its name in messages.
    pub(crate) what: &'a str,
    /// The `plimsoll` binary.
    pub(crate) exe: &'a Path,
    /// The core that it is pinned to.
    pub(crate) core: Option<usize>,
    /// Its arguments.
    pub(crate) args: &'a [String],
    /// File for its standard error.
    pub(crate) log: PathBuf,
    /// The path by which it shows that it is ready.
    pub(crate) ready: &'static str,
}

/// A running server process. Dropping this ends the process.
#[derive(Debug)]
pub(crate) struct Child {
    /// `None` in tests of a suite's conclusions.
    process: Option<ChildProcess>,
    address: String,
    ready_after: Nanos,
}

impl Child {
    /// Starts `plimsoll ARGS`, and waits until it answers requests.
    ///
    /// The thread that calls this must live as long as the child: the kernel ends the child with
    /// it.
    ///
    /// # Errors
    /// If it cannot be started or is not ready within 5 s.
    pub(crate) fn start(spec: &ChildSpec<'_>) -> Result<Self, SuiteError> {
        let what = spec.what;
        let cannot = |source| SuiteError::System { what: format!("start {what}"), source };
        let log = File::create(&spec.log).map_err(cannot)?;
        let mut command = command(spec.exe, spec.core, &[], spec.args);
        let clock = MonotonicClock::start();
        let mut process =
            ChildProcess::spawn(command.stdout(Stdio::piped()).stderr(log)).map_err(cannot)?;
        let lines = process.lines();
        let mut child = Self::new(Some(process), String::new());
        child.wait_until_ready(lines, spec.ready).map_err(|why| {
            SuiteError::Failed(format!("{what} is not ready: {why}{}", last_lines(&spec.log)))
        })?;
        child.ready_after = clock.now().since(Moment::EPOCH);
        Ok(child)
    }

    /// A process that listens at `address`; `None` in tests of a suite's conclusions.
    pub(crate) const fn new(process: Option<ChildProcess>, address: String) -> Self {
        Self { process, address, ready_after: Nanos::ZERO }
    }

    fn wait_until_ready(
        &mut self,
        lines: Option<Receiver<String>>,
        path: &str,
    ) -> Result<(), String> {
        let first = lines.and_then(|lines| lines.recv_timeout(READY_TIMEOUT).ok());
        let first = first.ok_or_else(|| "it did not print its address within 5 s".to_owned())?;
        self.address = address(&first)
            .ok_or_else(|| format!("its first line is `{first}`, without an address"))?;
        let mut why = String::new();
        let ready = poll(READY_TIMEOUT, POLL_INTERVAL, || {
            why = match get(&self.address, path, READY_TIMEOUT) {
                // A 401 for the missing key shows that the server is ready. Status 0 does too: the
                // server speaks TLS, which this client does not support.
                Ok(HttpResponse { status: ..500, .. }) => return Some(true),
                Ok(response) => format!("GET {path} answers {}", response.status),
                Err(error) => format!("GET {path}: {error}"),
            };
            self.has_ended().then_some(false)
        });
        if ready == Some(true) { Ok(()) } else { Err(why) }
    }

    /// `HOST:PORT` where it listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// From its start to its first answer, to 5 ms.
    pub(crate) const fn ready_after(&self) -> Nanos {
        self.ready_after
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> Option<u32> {
        u32::try_from(self.process.as_ref()?.pid().as_raw()).ok()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.process.as_mut().is_none_or(ChildProcess::has_ended)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process
            && !process.has_ended()
        {
            process.terminate(EXIT_TIMEOUT);
        }
    }
}

/// A command that runs through `suite child`, so the kernel ends it with the suite; `flags` are
/// flags of `suite child`.
pub(crate) fn command(exe: &Path, core: Option<usize>, flags: &[&str], args: &[String]) -> Command {
    let mut command = Command::new(exe);
    command.args(["suite", "child"]);
    if let Some(core) = core {
        command.arg("--core").arg(core.to_string());
    }
    command.args(flags).arg("--").args(args).stdin(Stdio::null());
    // Ctrl-C is for the suite: it must reach no child while requests are in flight.
    command.process_group(0);
    command
}

/// Replaces this process by `program` (default: this binary) with `args`. The process is pinned to
/// `core`, and the kernel ends it as soon as the thread that started it is gone, for whatever
/// reason.
///
/// # Errors
/// It returns only if that failed.
pub fn become_child(core: Option<usize>, program: Option<&Path>, args: &[String]) -> SuiteError {
    let prepared = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)
        .and_then(|()| core.map_or(Ok(()), |core| pin_current_thread(&[core])));
    let source = prepared
        .map_err(io::Error::from)
        .and_then(|()| program.map_or_else(std::env::current_exe, |program| Ok(program.to_owned())))
        .map_or_else(|error| error, |exe| Command::new(exe).args(args).exec());
    SuiteError::System { what: format!("start {}", args.join(" ")), source }
}

/// Time between two looks of a supervisor, which must not take time from the gateway.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// Time limit for a program and everything that it started to end by itself.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs a shell command until it ends or standard input is closed, and ends every process that it
/// started: a gateway may have workers that leave its process group or outlive it. The first line
/// on standard output is the id of its process; its own output goes to standard error.
///
/// # Errors
/// It cannot be started.
pub fn supervise(core: Option<usize>, shell_command: &str) -> Result<(), SuiteError> {
    supervised(core, shell_command).map_err(SuiteError::system("start the command"))
}

fn supervised(core: Option<usize>, shell_command: &str) -> io::Result<()> {
    nix::sys::prctl::set_child_subreaper(true)?;
    core.map_or(Ok(()), |core| pin_current_thread(&[core]))?;
    let output = io::stderr().as_fd().try_clone_to_owned()?;
    let mut command = Command::new("sh");
    command.args(["-c", shell_command]).stdin(Stdio::null()).stdout(output).process_group(0);
    let mut process = ChildProcess::spawn(&mut command)?;
    writeln!(io::stdout(), "{}", process.pid())?;
    let (closed, input) = channel();
    std::thread::spawn(move || {
        // It gets no input and ends with the suite.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        let _ = closed.send(());
    });
    let mut status = None;
    while input.recv_timeout(LOOK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
        status = status.or_else(|| process.ended());
        // A gateway may put itself into the background.
        if status.is_some() && descendants().is_empty() {
            break;
        }
    }
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        // This fails for a process that has ended meanwhile.
        for pid in descendants() {
            let _ = kill(pid, signal);
        }
        if poll(END_TIMEOUT, POLL_INTERVAL, || descendants().is_empty().then_some(())).is_some() {
            break;
        }
    }
    status.map_or(Ok(()), |status| writeln!(io::stderr(), "{status}"))
}

/// The living descendants of this process, which adopts orphans; those that have ended are waited
/// for.
fn descendants() -> Vec<Pid> {
    while waitpid(None, Some(WaitPidFlag::WNOHANG)).is_ok_and(|ended| ended.pid().is_some()) {}
    let own = std::process::id();
    let pids = process_family(own).into_keys().filter(|pid| *pid != own);
    pids.filter_map(|pid| i32::try_from(pid).ok()).map(Pid::from_raw).collect()
}

/// A port that was free a moment ago, for a server that cannot choose one itself.
pub(crate) fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind(("127.0.0.1", 0));
    let address = listener.and_then(|listener| listener.local_addr());
    address.map(|address| address.port()).map_err(|_| "no free port for it".to_owned())
}

/// `HOST:PORT` of `listening on http://HOST:PORT ...`.
fn address(line: &str) -> Option<String> {
    let rest = line.split_once("://")?.1;
    rest.split([' ', '/']).next().filter(|address| !address.is_empty()).map(str::to_owned)
}

/// The last lines that a process wrote to its log.
pub(crate) fn last_lines(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let mut lines: Vec<_> = text.lines().rev().take(3).collect();
    lines.reverse();
    // Logs in JSON around it hide the reason.
    if let Some(error) = lines.iter().copied().rfind(is_error) {
        lines = vec![error];
    }
    if lines.is_empty() { String::new() } else { format!("; it said: {}", lines.join(" / ")) }
}

fn is_error(line: &&str) -> bool {
    let line = line.to_ascii_lowercase();
    !line.starts_with('{') && ["error", "fatal", "panic"].iter().any(|word| line.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_what_follows_the_scheme() {
        for (line, expected) in [
            ("listening on http://127.0.0.1:9000 (Ctrl-C ends it)", Some("127.0.0.1:9000")),
            ("listening on https://[::1]:1/", Some("[::1]:1")),
            ("ready", None),
            ("http:// nowhere", None),
        ] {
            assert_eq!(address(line).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn the_last_three_lines_of_a_log_are_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        assert_eq!(last_lines(&log), "");
        fs::write(&log, "a\nb\nc\nd\n").unwrap();
        assert_eq!(last_lines(&log), "; it said: b / c / d");
        fs::write(&log, "a\nError: no option x\n{\"level\": \"error\"}\nexit status: 1\n").unwrap();
        assert_eq!(last_lines(&log), "; it said: Error: no option x");
    }

    #[test]
    fn a_process_that_cannot_be_run_is_reported_with_its_last_lines() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let args = ["x".to_owned()];
        let spec = |exe: &'static str| ChildSpec {
            what: "the thing",
            exe: Path::new(exe),
            core: None,
            args: &args,
            log: log.clone(),
            ready: "/health",
        };
        let absent = Child::start(&spec("/no/such/binary")).unwrap_err().to_string();
        assert!(absent.starts_with("cannot start the thing"), "{absent}");
        // A program that prints no address, and complains.
        let silent = Child::start(&spec("/bin/cat")).unwrap_err().to_string();
        assert!(silent.starts_with("the thing is not ready: it did not print"), "{silent}");
        assert!(silent.contains("it said: "), "{silent}");
    }
}
