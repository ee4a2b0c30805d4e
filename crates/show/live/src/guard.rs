//! A process that restores the terminal if this one is killed.
//!
//! A load generator is a process that the kernel likes to kill when memory is short, and nobody can
//! clean up after SIGKILL but another process.

use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use nix::unistd::{getpgrp, tcgetpgrp};

use crate::ansi;

/// The command that runs [`guard_terminal`].
const COMMAND: &str = "terminal-guard";
/// How long the guard may take to start, in milliseconds.
const START_MS: u16 = 2_000;

/// Whether this process may change the terminal on stderr: a program in the background that does is
/// stopped.
pub fn is_foreground() -> bool {
    match tcgetpgrp(io::stderr()) {
        Ok(group) => group == getpgrp(),
        // Not the terminal that controls this process: it stops nobody.
        Err(error) => error == Errno::ENOTTY,
    }
}

/// The attributes of the view: keys come at once and are not echoed. Ctrl-C and Ctrl-Z remain
/// signals.
pub(crate) fn viewing(saved: &Termios) -> Termios {
    let mut own = saved.clone();
    own.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
    own
}

/// The guard, as seen by the process that it guards.
pub(crate) struct Guard(Child);

impl Guard {
    /// Starts it. It knows the terminal's attributes when this returns; without a guard the view
    /// works all the same.
    pub(crate) fn start(exe: &Path) -> Option<Self> {
        let mut command = Command::new(exe);
        command.arg(COMMAND).stdin(Stdio::piped()).stdout(Stdio::piped());
        // Ctrl-C is not meant for it.
        let mut child = command.process_group(0).spawn().ok()?;
        let ready = child.stdout.take().is_some_and(|ready| {
            let mut wanted = [PollFd::new(ready.as_fd(), PollFlags::POLLIN)];
            poll(&mut wanted, START_MS).is_ok_and(|count| count > 0)
        });
        let guard = Self(child);
        if ready {
            return Some(guard);
        }
        guard.release();
        None
    }

    /// Ends it: the terminal is as it should be.
    pub(crate) fn release(mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until the process that started this one is gone, and restores the terminal. Whoever ends
/// in an orderly way ends this process first.
///
/// # Errors
/// Where stderr is no terminal.
pub fn guard_terminal() -> io::Result<()> {
    let tty = io::stderr();
    let saved = tcgetattr(&tty)?;
    // It is in the background, and the terminal is free when it acts.
    let mut mask = SigSet::empty();
    mask.extend([Signal::SIGTTOU, Signal::SIGHUP, Signal::SIGTERM]);
    mask.thread_block()?;
    io::stdout().write_all(b"!")?;
    io::stdout().flush()?;
    // Nothing is ever sent: this returns when the other end is gone.
    let _ = io::stdin().read(&mut [0]);
    // A shell may have put its own attributes there already.
    if tcgetattr(&tty)?.local_flags == viewing(&saved).local_flags {
        tcsetattr(&tty, SetArg::TCSANOW, &saved)?;
    }
    (&tty).write_all(ansi::LEAVE.as_bytes())
}
