//! The terminal's state, and restoring it.
//!
//! There is one terminal on stderr, so the screen is global to the process, and any code that ends
//! the process can restore it. The terminal is opened again, because its own handle is shared with
//! the shell and must not be made non-blocking.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::{Mutex, TryLockError};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use nix::unistd::{getpgrp, tcgetpgrp};
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};

/// Time for which a frame may wait for a blocked terminal, in milliseconds.
const PATIENCE_MS: u16 = 50;

static SCREEN: Mutex<Option<Screen>> = Mutex::new(None);

/// The terminal while it shows the view.
struct Screen {
    tty: File,
    saved: Option<Termios>,
    /// Bytes that the terminal has not accepted yet.
    pending: Vec<u8>,
    shown: Buffer,
    colour: bool,
}

/// The terminal is closed.
#[derive(Debug)]
pub(crate) struct TerminalLost;

/// Closes the view if it is open, and restores the terminal and its cursor. For code that is about
/// to end the process; does not wait.
pub fn restore() {
    // The code that panicked may have locked it.
    for _ in 0..20 {
        let mut screen = match SCREEN.try_lock() {
            Ok(screen) => screen,
            Err(TryLockError::Poisoned(screen)) => screen.into_inner(),
            Err(TryLockError::WouldBlock) => {
                let _ = poll(&mut [], 10_u16);
                continue;
            }
        };
        if let Some(screen) = screen.take() {
            screen.leave(false);
        }
        return;
    }
}

/// The same for code that continues and writes to the terminal: it waits like that write.
pub(crate) fn leave() {
    if let Some(screen) = take() {
        screen.leave(true);
    }
}

/// Forgets a closed terminal.
pub(crate) fn forget() {
    drop(take());
}

fn take() -> Option<Screen> {
    SCREEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
}

/// Opens the view, if this process may write to the terminal. Returns the source of keys.
pub(crate) fn enter(colour: bool) -> Option<File> {
    if !is_foreground() {
        return None;
    }
    let mut screen = Screen::open(colour).ok()?;
    let keys = screen.tty.try_clone().ok()?;
    screen.pending = ENTER.into();
    let entered = screen.flush().is_ok();
    *SCREEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(screen);
    entered.then_some(keys)
}

/// Size of the terminal; `None` while the view is not shown.
pub(crate) fn area() -> Option<Rect> {
    let screen = SCREEN.lock().ok()?;
    let (width, height) = terminal_size::terminal_size_of(&screen.as_ref()?.tty)
        .map_or((80, 24), |(width, height)| (width.0, height.0));
    Some(Rect::new(0, 0, width.clamp(1, 500), height.clamp(1, 200)))
}

/// Shows a frame, if the view is open and the terminal has accepted the previous one.
pub(crate) fn show(picture: Buffer) -> Result<(), TerminalLost> {
    let Ok(mut screen) = SCREEN.lock() else { return Ok(()) };
    screen.as_mut().map_or(Ok(()), |screen| screen.show(picture))
}

/// Whether this process may change the terminal on stderr. A background process that does is
/// stopped.
pub fn is_foreground() -> bool {
    match tcgetpgrp(io::stderr()) {
        Ok(group) => group == getpgrp(),
        // It is not the controlling terminal of this process, so it does not stop the process.
        Err(error) => error == Errno::ENOTTY,
    }
}

/// Terminal attributes of the view: keys are read immediately and are not echoed. Ctrl-C and Ctrl-Z
/// remain signals.
fn viewing(saved: &Termios) -> Termios {
    let mut own = saved.clone();
    own.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
    own
}

impl Screen {
    fn open(colour: bool) -> io::Result<Self> {
        let flags = (OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits();
        let mut options = OpenOptions::new();
        let tty = options.read(true).write(true).custom_flags(flags).open("/proc/self/fd/2")?;
        let saved = tcgetattr(&tty).ok();
        if let Some(saved) = &saved {
            tcsetattr(&tty, SetArg::TCSANOW, &viewing(saved))?;
        }
        let shown = Buffer::empty(Rect::ZERO);
        Ok(Self { tty, saved, pending: Vec::new(), shown, colour })
    }

    fn show(&mut self, picture: Buffer) -> Result<(), TerminalLost> {
        if self.pending.is_empty() {
            if self.shown.area != picture.area {
                self.pending.extend_from_slice(CLEAR.as_bytes());
                self.shown = Buffer::empty(picture.area);
            }
            let change = difference(&self.shown, &picture, self.colour);
            self.pending.extend_from_slice(change.as_bytes());
            self.shown = picture;
        }
        self.flush()
    }

    /// Writes as much as the terminal accepts; the rest waits for the next call.
    fn flush(&mut self) -> Result<(), TerminalLost> {
        let mut waited = false;
        while !self.pending.is_empty() {
            match self.tty.write(&self.pending).map_err(|error| error.kind()) {
                Ok(written) => drop(self.pending.drain(..written)),
                Err(ErrorKind::Interrupted) => {}
                Err(ErrorKind::WouldBlock) if waited => return Ok(()),
                Err(ErrorKind::WouldBlock) => {
                    let mut ready = [PollFd::new(self.tty.as_fd(), PollFlags::POLLOUT)];
                    waited = poll(&mut ready, PATIENCE_MS).is_ok();
                }
                Err(_) => return Err(TerminalLost),
            }
        }
        Ok(())
    }

    fn leave(mut self, patient: bool) {
        // In the background, another program owns the terminal, and querying it would stop this
        // process.
        if is_foreground() {
            self.pending.extend_from_slice(LEAVE.as_bytes());
            let flushed = self.flush();
            if patient && flushed.is_ok() && !self.pending.is_empty() {
                let _ = io::stderr().write_all(&self.pending);
            }
            if let Some(saved) = &self.saved {
                let _ = tcsetattr(&self.tty, SetArg::TCSANOW, saved);
            }
        }
    }
}

// Translates characters and colours to terminal control sequences (ECMA-48).

/// Switches to the alternate screen, which preserves the lines above, and hides cursor and colours.
pub(crate) const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[0m\x1b[2J";
/// Switches back, with a cursor and without colours.
pub(crate) const LEAVE: &str = "\x1b[0m\x1b[2J\x1b[?1049l\x1b[?25h";
/// Clears the screen.
pub(crate) const CLEAR: &str = "\x1b[0m\x1b[2J";

/// The sequences that change one frame into the next.
pub(crate) fn difference(old: &Buffer, new: &Buffer, colour: bool) -> String {
    let mut out = String::new();
    let mut next = None;
    let mut style = None;
    for (x, y, cell) in old.diff(new) {
        if next != Some((x, y)) {
            // Writing to a string cannot fail.
            let _ = write!(out, "\x1b[{};{}H", y + 1, x + 1);
        }
        let wanted = (cell.fg, cell.modifier);
        if style != Some(wanted) {
            write_style(&mut out, cell, colour);
            style = Some(wanted);
        }
        out.push_str(cell.symbol());
        // A wide character moves the cursor by two, so the next position is written explicitly.
        next = cell.symbol().is_ascii().then_some((x + 1, y));
    }
    if style.is_some() {
        out.push_str("\x1b[0m");
    }
    out
}

fn write_style(out: &mut String, cell: &Cell, colour: bool) {
    out.push_str("\x1b[0");
    let modifiers = [(Modifier::BOLD, ";1"), (Modifier::DIM, ";2"), (Modifier::REVERSED, ";7")];
    for (modifier, code) in modifiers {
        if cell.modifier.contains(modifier) {
            out.push_str(code);
        }
    }
    // Only the eight basic colours, which the user may have customized.
    let code = match cell.fg {
        Color::Red => ";31",
        Color::Green => ";32",
        Color::Yellow => ";33",
        Color::Blue => ";34",
        Color::Magenta => ";35",
        Color::Cyan => ";36",
        _ => "",
    };
    out.push_str(if colour { code } else { "" });
    out.push('m');
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    #[test]
    fn only_what_changed_is_written_and_colours_only_where_wanted() {
        let area = Rect::new(0, 0, 6, 2);
        let (old, mut new) = (Buffer::empty(area), Buffer::empty(area));
        assert_eq!(difference(&old, &new, true), "");
        new.set_string(2, 1, "ab", Style::new().fg(Color::Red));
        new.set_string(4, 1, "c", Style::new().add_modifier(Modifier::BOLD));
        assert_eq!(difference(&old, &new, true), "\x1b[2;3H\x1b[0;31mab\x1b[0;1mc\x1b[0m");
        assert_eq!(difference(&old, &new, false), "\x1b[2;3H\x1b[0mab\x1b[0;1mc\x1b[0m");
        assert_eq!(difference(&new, &new, true), "");
    }
}
