//! A process that ends with its owner.

use std::io::{self, BufRead as _, BufReader};
use std::process::{Child, ChildStderr, ChildStdin, Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::time::poll;

/// Pause between two looks at a process that is ending.
const PAUSE: Duration = Duration::from_millis(5);

/// A child process. Dropped, it is killed and waited for.
#[derive(Debug)]
pub struct ChildProcess {
    child: Child,
}

impl ChildProcess {
    /// Starts a process.
    ///
    /// # Errors
    /// Same as [`Command::spawn`].
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        command.spawn().map(|child| Self { child })
    }

    /// Its process id.
    pub fn pid(&self) -> Pid {
        // Process ids are positive and small; 0 would mean ourselves, and is never a child's.
        Pid::from_raw(i32::try_from(self.child.id()).unwrap_or(i32::MAX))
    }

    /// Its standard input, if it is piped and was not taken before.
    pub const fn stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// The lines of its standard output, read by a thread, so that the process never waits for a
    /// reader; `None` if the output is not piped or was taken before. The channel closes when the
    /// process closes its output.
    pub fn lines(&mut self) -> Option<Receiver<String>> {
        let stdout = self.child.stdout.take()?;
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // The owner may have read all that it wanted.
                let _ = sender.send(line);
            }
        });
        Some(lines)
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until it ends.
    ///
    /// # Errors
    /// Same as [`Child::wait`].
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }

    /// Its standard error, if it is piped and was not taken before.
    pub const fn stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Exit status; `None` while the process is running.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Asks it to end, as Ctrl-C does.
    ///
    /// # Errors
    /// Same as [`ChildProcess::suspend`].
    pub fn interrupt(&self) -> io::Result<()> {
        self.signal(Signal::SIGINT)
    }

    /// Suspends the whole process, whatever it is doing.
    ///
    /// # Errors
    /// Where the system refuses: the process has ended.
    pub fn suspend(&self) -> io::Result<()> {
        self.signal(Signal::SIGSTOP)
    }

    /// Lets a suspended process continue.
    ///
    /// # Errors
    /// Same as [`ChildProcess::suspend`].
    pub fn resume(&self) -> io::Result<()> {
        self.signal(Signal::SIGCONT)
    }

    /// Asks it to end, and kills it if it has not after `grace`.
    pub fn terminate(&mut self, grace: Duration) {
        // This fails if it has ended already.
        let _ = self.signal(Signal::SIGTERM);
        poll(grace, PAUSE, || self.has_ended().then_some(()));
        self.kill();
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill(self.pid(), signal)?)
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        if !self.has_ended() {
            // Also where it is suspended: SIGKILL needs no resuming.
            self.kill();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::process::Stdio;

    const SOON: Duration = Duration::from_secs(10);

    fn start(program: &str, args: &[&str]) -> ChildProcess {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        ChildProcess::spawn(&mut command).unwrap()
    }

    fn exists(pid: Pid) -> bool {
        kill(pid, None).is_ok()
    }

    #[test]
    fn its_lines_are_read_and_its_end_is_seen() {
        let mut child = start("cat", &[]);
        let (mut stdin, lines) = (child.stdin().unwrap(), child.lines().unwrap());
        assert!(child.lines().is_none() && !child.has_ended());
        stdin.write_all(b"one\ntwo").unwrap();
        drop(stdin);
        let read: Vec<_> = std::iter::from_fn(|| lines.recv_timeout(SOON).ok()).collect();
        assert_eq!(read, ["one", "two"]);
        assert!(child.wait().unwrap().success());
        assert!(child.has_ended());
    }

    #[test]
    fn a_suspended_process_answers_after_it_was_resumed() {
        let mut child = start("cat", &[]);
        let (mut stdin, lines) = (child.stdin().unwrap(), child.lines().unwrap());
        child.suspend().unwrap();
        let status = || std::fs::read_to_string(format!("/proc/{}/stat", child.pid())).unwrap();
        let state = |wanted: &str| {
            let is = || status().rsplit(')').next().unwrap().trim_start().starts_with(wanted);
            poll(SOON, PAUSE, || is().then_some(())).is_some()
        };
        assert!(state("T"), "it is suspended");
        stdin.write_all(b"later\n").unwrap();
        child.resume().unwrap();
        assert_eq!(lines.recv_timeout(SOON).unwrap(), "later");
    }

    #[test]
    fn it_ends_with_its_owner_and_on_request() {
        let child = start("sleep", &["60"]);
        let pid = child.pid();
        child.suspend().unwrap();
        drop(child);
        assert!(!exists(pid), "a suspended one, too");
        let mut child = start("sleep", &["60"]);
        child.terminate(SOON);
        assert!(child.has_ended());
    }
}
