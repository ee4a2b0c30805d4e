//! A pseudo-terminal with the program in it.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Child, Command, ExitStatus};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::poll::{PollFd, PollFlags, poll};
use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{Termios, tcgetattr};
use nix::unistd::Pid;
use vt100::Parser;

use crate::support::{Fixture, command, pause};

/// A terminal, its screen, and the program.
pub(crate) struct Terminal {
    master: Option<File>,
    slave: Option<OwnedFd>,
    parser: Parser,
    /// The attributes before the program began.
    before: Termios,
    pub(crate) child: Child,
}

impl Terminal {
    /// Runs `plimsoll run minimal` with these arguments in a terminal of so many columns and rows.
    pub(crate) fn run(fixture: &Fixture, size: (u16, u16), args: &[&str]) -> Self {
        let (columns, rows) = size;
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(Some(&size), None).unwrap();
        // The program must not hold its own terminal open.
        for end in [&pty.master, &pty.slave] {
            fcntl(end, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).unwrap();
        }
        let before = tcgetattr(&pty.slave).unwrap();
        let target = fixture.target();
        let fixed = ["run", "minimal", "--target", &target, "--key", "any", "--allow-invalid"];
        let args: Vec<_> = fixed.iter().chain(args).copied().collect();
        let plimsoll = command(fixture.folder.path(), &args);
        // A session of its own, which the terminal controls.
        let mut child = Command::new("setsid");
        child.arg("--ctty").arg(plimsoll.get_program()).args(plimsoll.get_args());
        child.current_dir(fixture.folder.path()).env("TERM", "xterm-256color").env_remove("CI");
        let end = || pty.slave.try_clone().unwrap();
        let child = child.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        let parser = Parser::new(rows, columns, 0);
        Self { master: Some(File::from(pty.master)), slave: Some(pty.slave), parser, before, child }
    }

    /// Reads the output so far.
    fn read(&mut self) {
        let Some(master) = &mut self.master else { return };
        let mut bytes = vec![0; 65_536];
        loop {
            let mut wanted = [PollFd::new(master.as_fd(), PollFlags::POLLIN)];
            if poll(&mut wanted, 0_u8).unwrap_or(0) == 0 {
                return;
            }
            match master.read(&mut bytes) {
                Ok(length) if length > 0 => self.parser.process(&bytes[..length]),
                _ => return,
            }
        }
    }

    /// The text on the screen.
    pub(crate) fn text(&self) -> String {
        self.parser.screen().contents()
    }

    /// Waits until the screen contains a text.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) {
        let shown = wait_until(|| {
            self.read();
            self.text().contains(text)
        });
        assert!(shown, "`{text}` does not come:\n{}", self.text());
    }

    /// Waits until the screen does not contain a text.
    #[track_caller]
    pub(crate) fn wait_without(&mut self, text: &str) {
        let gone = wait_until(|| {
            self.read();
            !self.text().contains(text)
        });
        assert!(gone, "`{text}` does not go:\n{}", self.text());
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.master.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// Makes the terminal larger or smaller.
    pub(crate) fn resize(&mut self, size: (u16, u16)) {
        let (columns, rows) = size;
        let slave = self.slave.as_ref().unwrap().try_clone().unwrap();
        let [width, height] = [columns, rows].map(|number| number.to_string());
        let mut stty = Command::new("stty");
        stty.args(["cols", &width, "rows", &height]).stdin(slave);
        assert!(stty.status().unwrap().success());
        self.parser.screen_mut().set_size(rows, columns);
    }

    /// Closes the terminal.
    pub(crate) fn close(&mut self) {
        (self.master, self.slave) = (None, None);
    }

    /// Sends a signal to the program.
    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), signal).unwrap();
    }

    /// Waits until the program is stopped, as Ctrl-Z does.
    pub(crate) fn wait_until_stopped(&mut self) {
        let path = format!("/proc/{}/stat", self.child.id());
        let stopped = wait_until(|| {
            self.read();
            fs::read_to_string(&path).unwrap().rsplit_once(") ").unwrap().1.starts_with('T')
        });
        assert!(stopped);
    }

    /// Waits for the end of the program.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        let ended = wait_until(|| {
            self.read();
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        assert!(ended, "still running:\n{}", self.text());
        self.read();
        status.unwrap()
    }

    /// Whether the terminal is as it was before the program.
    pub(crate) fn is_restored(&mut self) -> bool {
        self.read();
        let now = tcgetattr(self.slave.as_ref().unwrap()).unwrap();
        let screen = self.parser.screen();
        now == self.before && !screen.hide_cursor() && !screen.alternate_screen()
    }

    /// Expects that it is, or soon will be.
    #[track_caller]
    pub(crate) fn expect_restored(&mut self) {
        assert!(wait_until(|| self.is_restored()), "not restored:\n{}", self.text());
    }
}

/// Waits for a condition, for half a minute. Returns whether it was met.
fn wait_until(mut met: impl FnMut() -> bool) -> bool {
    (0..5_000).any(|_| {
        let is_met = met();
        if !is_met {
            pause();
        }
        is_met
    })
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A test that failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
