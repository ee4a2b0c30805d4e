//! The thread that draws the view and reads keys.

use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read as _};
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::thread::{self, JoinHandle};

use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::signal::{SigSet, Signal};
use ratatui::buffer::Buffer;

use crate::model::{Look, Model, RunFacts};
use crate::screen::{self, TerminalLost};
use crate::view::draw;

/// Time between two frames, in milliseconds.
const FRAME_MS: u16 = 250;

/// The live view, which shows one run after another. Clones share the same view.
#[derive(Clone)]
pub struct View(Arc<Shared>);

struct Shared {
    colour: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    model: Option<Model>,
    /// The frame shown while the display is paused.
    frozen: Option<Model>,
    look: Look,
    /// Messages received while the view is shown.
    said: Vec<String>,
    /// Whether the shell has the terminal.
    away: bool,
    thread: Option<(JoinHandle<()>, PipeWriter)>,
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").finish_non_exhaustive()
    }
}

impl View {
    /// Creates a view on the terminal of stderr, which is not shown yet.
    pub fn new(colour: bool) -> Self {
        Self(Arc::new(Shared { colour, state: Mutex::default() }))
    }

    /// Shows a run. `end` is called when the user wants to end it.
    pub fn begin(&self, facts: RunFacts, end: impl Fn() + Send + 'static) {
        restore_on_panic();
        let mut state = self.0.state();
        state.model = Some(Model::new(facts));
        (state.frozen, state.look) = (None, Look::default());
        let Ok((stop, stopper)) = std::io::pipe() else { return };
        let keys = self.0.enter(&state);
        let shared = Arc::clone(&self.0);
        let thread = thread::Builder::new()
            .name("plimsoll-view".to_owned())
            .spawn(move || Drawing { shared, keys, stop, end: Box::new(end) }.go_on());
        state.thread = thread.ok().map(|thread| (thread, stopper));
    }

    /// Changes the model; does nothing before a run begins.
    pub fn change(&self, change: impl FnOnce(&mut Model)) {
        if let Some(model) = &mut self.0.state().model {
            change(model);
        }
    }

    /// Shows a message, and keeps it until the view is closed. Returns the message if no run is
    /// shown.
    #[must_use]
    pub fn say(&self, message: String) -> Option<String> {
        let mut state = self.0.state();
        let Some(model) = &mut state.model else { return Some(message) };
        model.say(&message);
        state.said.push(message);
        None
    }

    /// Restores the terminal. Returns the messages received meanwhile.
    #[must_use]
    pub fn finish(&self) -> Vec<String> {
        let thread = self.0.state().thread.take();
        if let Some((thread, stopper)) = thread {
            drop(stopper);
            // A thread that panicked has stopped drawing.
            let _ = thread.join();
        }
        screen::leave();
        let mut state = self.0.state();
        state.model = None;
        std::mem::take(&mut state.said)
    }

    /// Returns the terminal to the shell, before this process is stopped.
    pub fn suspend(&self) {
        let mut state = self.0.state();
        state.away = true;
        screen::leave();
    }

    /// Shows the run again as soon as this process is in the foreground.
    pub fn resume(&self) {
        self.0.state().away = false;
    }

    /// Forgets the terminal, which is closed.
    pub fn hang_up(&self) {
        let mut state = self.0.state();
        state.away = true;
        screen::forget();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the terminal, unless the shell has it.
    fn enter(&self, state: &State) -> Option<File> {
        if state.away { None } else { screen::enter(self.colour) }
    }
}

/// State of the drawing thread.
struct Drawing {
    shared: Arc<Shared>,
    /// Source of keys; `None` while the view is not shown.
    keys: Option<File>,
    /// Signals the end of the run.
    stop: PipeReader,
    end: Box<dyn Fn() + Send>,
}

impl Drawing {
    fn go_on(mut self) {
        // In the background, these signals would stop the whole process.
        let mut mask = SigSet::empty();
        mask.extend([Signal::SIGTTIN, Signal::SIGTTOU]);
        let _ = mask.thread_block();
        loop {
            if self.draw().is_err() {
                // The terminal is closed, and the run continues without it.
                screen::forget();
                return;
            }
            if self.wait() {
                return;
            }
        }
    }

    /// Draws one frame.
    fn draw(&mut self) -> Result<(), TerminalLost> {
        let Some(area) = screen::area() else {
            let state = self.shared.state();
            self.keys = self.shared.enter(&state);
            return Ok(());
        };
        let mut picture = Buffer::empty(area);
        {
            let state = self.shared.state();
            if let Some(model) = state.frozen.as_ref().or(state.model.as_ref()) {
                draw(model, state.look, &mut picture);
            }
        }
        screen::show(picture)
    }

    /// Waits for the next frame or a key. Returns whether the run is over.
    fn wait(&mut self) -> bool {
        let mut wanted = vec![PollFd::new(self.stop.as_fd(), PollFlags::POLLIN)];
        wanted.extend(self.keys.as_ref().map(|keys| PollFd::new(keys.as_fd(), PollFlags::POLLIN)));
        let _ = poll(&mut wanted, FRAME_MS);
        let [over, pressed] =
            [0, 1].map(|index| wanted.get(index).and_then(PollFd::any).unwrap_or(false));
        if pressed {
            let mut bytes = [0; 1_024];
            let read = self.keys.as_mut().and_then(|keys| keys.read(&mut bytes).ok());
            match read.and_then(|length| bytes.get(..length)).unwrap_or_default() {
                // Readable without data: the terminal is closed, or the shell has it.
                [] => self.keys = None,
                bytes => keys(bytes).into_iter().for_each(|key| self.press(key)),
            }
        }
        over
    }

    fn press(&self, key: Key) {
        if key == Key::End {
            (self.end)();
            return;
        }
        let mut state = self.shared.state();
        let parts = state.model.as_ref().map_or(1, Model::parts);
        let look = &mut state.look;
        match key {
            Key::End => {}
            Key::Freeze => look.frozen = !look.frozen,
            Key::Next => look.part = (look.part + 1) % parts,
            Key::Back => look.part = (look.part + parts - 1) % parts,
            Key::Help => look.help = !look.help,
            Key::Close => (look.help, look.frozen) = (false, false),
        }
        let frozen = look.frozen;
        if !frozen {
            state.frozen = None;
        } else if state.frozen.is_none() {
            let State { model, frozen, .. } = &mut *state;
            frozen.clone_from(model);
        }
    }
}

/// Restores the normal screen, on which a panic's message must be shown.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let next = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            screen::restore();
            next(panic);
        }));
    });
}

/// The action of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// `q`: ends the run and reports.
    End,
    /// `p` or space: pauses or resumes the display.
    Freeze,
    /// Tab: shows the next scenario or target.
    Next,
    /// Shift-Tab: shows the previous one.
    Back,
    /// `?`: opens or closes the help.
    Help,
    /// Escape: closes whatever is open.
    Close,
}

/// Parses the keys of one read. Others are ignored: arrows, pasted text, responses of the terminal.
pub(crate) fn keys(mut bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    while let [first, rest @ ..] = bytes {
        bytes = rest;
        let key = match first {
            b'q' => Some(Key::End),
            b'p' | b' ' => Some(Key::Freeze),
            b'\t' => Some(Key::Next),
            b'?' | b'h' => Some(Key::Help),
            0x1b => {
                let (key, length) = escape(rest);
                bytes = rest.get(length..).unwrap_or_default();
                key
            }
            _ => None,
        };
        keys.extend(key);
    }
    keys
}

/// The key of an escape sequence without its first byte, and its length.
fn escape(rest: &[u8]) -> (Option<Key>, usize) {
    match rest {
        [] => (Some(Key::Close), 0),
        [b'[' | b'O', tail @ ..] => {
            // ECMA-48: the sequence ends with the first byte from `@` to `~`.
            let end = tail.iter().position(|byte| (0x40..=0x7e).contains(byte));
            let length = end.map_or(rest.len(), |end| end + 2);
            (tail.starts_with(b"Z").then_some(Key::Back), length)
        }
        [..] => (None, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_from_sequences_that_contain_their_letters() {
        for (bytes, expected) in [
            (&b"q"[..], &[Key::End][..]),
            (b"p\t?", &[Key::Freeze, Key::Next, Key::Help]),
            (b"\x1b", &[Key::Close]),
            (b"\x1b[Z", &[Key::Back]),
            // Arrow up, F1, delete; Alt-q; the response to a cursor position request.
            (b"\x1b[A\x1bOP\x1b[3~", &[]),
            (b"\x1bq", &[]),
            (b"\x1b[24;80Rp", &[Key::Freeze]),
            (b"xyz\xff\x00", &[]),
            (b"\x1b[", &[]),
        ] {
            assert_eq!(keys(bytes), expected, "{bytes:?}");
        }
    }
}
