//! What one chat holds in memory, counted for its owner.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::worker::owners::{NoRoom, Work};

/// Bytes of the buffer that a client's frames are read into; it grows with them.
pub(super) const READ_BUFFER: usize = 8 << 10;

/// The parts of a chat that hold something.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    /// The buffer of the client's frames, with messages that are not complete.
    Frames,
    /// Messages that wait, and the one that is answered.
    Messages,
    /// What was said so far.
    Dialogue,
    /// The answer so far.
    Answer,
}

/// The memory of a chat, shared by its parts.
#[derive(Clone, Debug)]
pub(super) struct ChatMemory(Rc<RefCell<Counted>>);

#[derive(Debug)]
struct Counted {
    work: Work,
    parts: [usize; 4],
}

impl ChatMemory {
    pub(super) fn new(work: Work) -> Self {
        Self(Rc::new(RefCell::new(Counted { work, parts: [0; 4] })))
    }

    /// A part holds this many bytes now.
    ///
    /// # Errors
    /// That is more than allowed.
    pub(super) fn set(&self, part: Part, bytes: usize) -> Result<(), NoRoom> {
        let mut counted = self.0.borrow_mut();
        let mut parts = counted.parts;
        parts[part as usize] = bytes;
        counted.work.resize(parts.iter().sum())?;
        counted.parts = parts;
        Ok(())
    }
}

/// A client's socket that counts what is read of a message before it is complete. The reader keeps
/// the room for the largest one.
#[derive(Debug)]
pub(super) struct CountedSocket<S> {
    stream: S,
    memory: ChatMemory,
    /// Bytes since the last complete message.
    unread: usize,
    largest: usize,
}

impl<S> CountedSocket<S> {
    pub(super) const fn new(stream: S, memory: ChatMemory) -> Self {
        Self { stream, memory, unread: 0, largest: 0 }
    }

    /// A message is complete.
    pub(super) const fn message_is_complete(&mut self) {
        self.unread = 0;
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CountedSocket<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        this.unread += buffer.filled().len() - before;
        if this.unread > this.largest {
            this.largest = this.unread;
            if this.memory.set(Part::Frames, READ_BUFFER + this.largest).is_err() {
                return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
            }
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CountedSocket<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
