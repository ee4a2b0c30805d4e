//! A process of our own binary: started on a core of its own, ended with us whatever happens.

mod ask;

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child as Process, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plimsoll_measure::{Clock as _, MonotonicClock, Nanos};

use crate::cores;
use crate::error::SuiteError;

pub(crate) use ask::{Answer, get};

/// How long a process may take until it answers.
const READY: Duration = Duration::from_secs(5);
/// How long it may take to end in good order.
const END: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(5);

/// How a process is started.
#[derive(Clone, Debug)]
pub(crate) struct Start<'a> {
    /// What it is called in messages.
    pub(crate) what: &'a str,
    /// The `plimsoll` binary.
    pub(crate) exe: &'a Path,
    /// Its core.
    pub(crate) core: Option<usize>,
    /// Its arguments.
    pub(crate) args: &'a [String],
    /// File for what it writes to stderr.
    pub(crate) log: PathBuf,
}

/// A process that listens. Dropped, it is ended.
#[derive(Debug)]
pub(crate) struct Child {
    process: Process,
    address: String,
}

impl Child {
    /// Starts `plimsoll ARGS`, and waits until it has said where it listens and answers there.
    ///
    /// The thread that calls this must live as long as the child: the kernel ends the child with it.
    ///
    /// # Errors
    /// Where it cannot be started or is not ready within 5 s.
    pub(crate) fn start(start: &Start<'_>) -> Result<Self, SuiteError> {
        let cannot = |source| SuiteError::Start { what: start.what.to_owned(), source };
        let log = File::create(&start.log).map_err(cannot)?;
        let mut command = Command::new(start.exe);
        command.args(["suite", "child"]);
        if let Some(core) = start.core {
            command.arg("--core").arg(core.to_string());
        }
        command.arg("--").args(start.args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        // Ctrl-C is for us: what is under way must be answered while the load ends in good order.
        command.process_group(0);
        let mut process = command.spawn().map_err(cannot)?;
        let lines = process.stdout.take().map(follow);
        let mut child = Self { process, address: String::new() };
        child.wait_until_ready(lines).map_err(|why| {
            let what = start.what.to_owned();
            SuiteError::NotReady { what, why: format!("{why}{}", last_words(&start.log)) }
        })?;
        Ok(child)
    }

    fn wait_until_ready(&mut self, lines: Option<Receiver<String>>) -> Result<(), String> {
        let clock = MonotonicClock::start();
        let until = clock.now() + Nanos::from(READY);
        let said = lines.and_then(|lines| lines.recv_timeout(READY).ok());
        let said = said.ok_or_else(|| "it did not say where it listens within 5 s".to_owned())?;
        self.address = address(&said)
            .ok_or_else(|| format!("its first line is `{said}`, without an address"))?;
        loop {
            let why = match get(&self.address, "/health", READY) {
                // A refusal for want of a key is an answer; and TLS, which is no status, is not ours to speak here.
                Ok(Answer { status: ..500, .. }) => return Ok(()),
                Ok(answer) => format!("GET /health answers {}", answer.status),
                Err(error) => format!("GET /health: {error}"),
            };
            if clock.now() >= until || !matches!(self.process.try_wait(), Ok(None)) {
                return Err(why);
            }
            thread::park_timeout(LOOK);
        }
    }

    /// `HOST:PORT` where it listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> Pid {
        // Process ids are positive and small; 0 would mean ourselves, and is never a child's.
        Pid::from_raw(i32::try_from(self.process.id()).unwrap_or(i32::MAX))
    }

    /// Has it ended by itself?
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }

    /// Ends it in good order, or else at once.
    fn end(&mut self) {
        let clock = MonotonicClock::start();
        let until = clock.now() + Nanos::from(END);
        // Whoever has ended already cannot be told.
        let _ = kill(self.pid(), Signal::SIGTERM);
        while !self.has_ended() && clock.now() < until {
            thread::park_timeout(LOOK);
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.has_ended() {
            self.end();
        }
    }
}

/// Turns this process into `ARGS` of the same binary, or of another program: kept on a core, and ended by the kernel as
/// soon as the thread that started it is gone, by whatever way.
///
/// # Errors
/// It only returns where that failed.
pub fn become_child(core: Option<usize>, program: Option<&Path>, args: &[String]) -> SuiteError {
    let cannot = |source| SuiteError::Start { what: args.join(" "), source };
    let prepared = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)
        .and_then(|()| core.map_or(Ok(()), |core| cores::stay_on(&[core])));
    let program = || program.map_or_else(std::env::current_exe, |program| Ok(program.to_owned()));
    match prepared.map_err(std::io::Error::from).and_then(|()| program()) {
        Ok(exe) => cannot(Command::new(exe).args(args).exec()),
        Err(error) => cannot(error),
    }
}

/// Reads all lines, so that the process never waits for a reader; the first is of interest.
fn follow(stdout: ChildStdout) -> Receiver<String> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            // Whoever asked may have what it wanted.
            let _ = sender.send(line);
        }
    });
    lines
}

/// `HOST:PORT` of `listening on http://HOST:PORT ...`.
fn address(line: &str) -> Option<String> {
    let rest = line.split_once("://")?.1;
    rest.split([' ', '/']).next().filter(|address| !address.is_empty()).map(str::to_owned)
}

/// What a process wrote at last.
fn last_words(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<_> = text.lines().rev().take(3).collect();
    let said: Vec<_> = lines.into_iter().rev().collect();
    if said.is_empty() { String::new() } else { format!("; it said: {}", said.join(" / ")) }
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
    fn what_cannot_be_run_is_told_with_its_last_words() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let args = ["x".to_owned()];
        let start = |exe: &'static str| Start {
            what: "the thing",
            exe: Path::new(exe),
            core: None,
            args: &args,
            log: log.clone(),
        };
        let absent = Child::start(&start("/no/such/binary")).unwrap_err().to_string();
        assert!(absent.starts_with("cannot start the thing"), "{absent}");
        // A program that says nothing of the kind, and complains.
        let silent = Child::start(&start("/bin/cat")).unwrap_err().to_string();
        assert!(silent.starts_with("the thing is not ready: it did not say"), "{silent}");
        assert!(silent.contains("it said: "), "{silent}");
    }
}
