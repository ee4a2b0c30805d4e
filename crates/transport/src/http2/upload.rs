//! The bodies of requests, and how long they wait for the target's flow control.
//!
//! How much room the target's windows have is not to be asked of the `h2` crate before its driver has opened the stream:
//! one turn of the worker later, which costs a system call more per request. So a body is handed over at once while
//! the windows have room for it in any case, and watched where they may have none.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{RecvStream, SendStream};
use http::Response;
use plimsoll_measure::Clock;

use super::failure;
use crate::connection::Receiver;
use crate::failure::Failure;

/// Bytes on the way for which there is room in any case: half of the window with which every connection starts
/// (RFC 9113, 6.9.2), as targets make room again at the latest when half of it is used up. Windows of streams can be
/// smaller, by the target's settings: bodies larger than all before
/// them find out.
const ROOMY: usize = 32 << 10;

/// What is known of the uploads of one connection.
#[derive(Debug, Default)]
pub(super) struct Uploads {
    /// Bytes of bodies whose answers have not begun.
    unanswered: Cell<usize>,
    /// The largest body that was watched and did not wait.
    proven: Cell<usize>,
    /// Did one have to wait?
    tight: Cell<bool>,
}

/// A request's body on its way out.
pub(super) struct Upload<'a> {
    uploads: &'a Uploads,
    stream: SendStream<Bytes>,
    length: usize,
    rest: Bytes,
}

impl Drop for Upload<'_> {
    fn drop(&mut self) {
        self.uploads.unanswered.set(self.uploads.unanswered.get() - self.length);
    }
}

impl<'a> Upload<'a> {
    /// A body that is not empty.
    pub(super) fn new(uploads: &'a Uploads, stream: SendStream<Bytes>, body: &[u8]) -> Self {
        uploads.unanswered.set(uploads.unanswered.get() + body.len());
        Self { uploads, stream, length: body.len(), rest: Bytes::copy_from_slice(body) }
    }

    /// May the target's windows have no room for it?
    fn may_wait(&self) -> bool {
        let Uploads { unanswered, proven, tight } = self.uploads;
        self.length > proven.get() || tight.get() || unanswered.get() > ROOMY
    }

    /// Hands the body over, as the target's windows let it. The response, where it comes before the body is out: a
    /// target that has answered may never make room for the rest.
    pub(super) async fn send<C: Clock, R: Receiver>(
        &mut self,
        clock: &C,
        response: &mut ResponseFuture,
        receiver: &mut R,
    ) -> Result<Option<Response<RecvStream>>, Failure> {
        if !self.may_wait() {
            return self.hand_over().map(|()| None);
        }
        self.stream.reserve_capacity(self.rest.len());
        // The driver, which was woken by the request, opens the stream.
        tokio::task::yield_now().await;
        self.advance()?;
        if self.rest.is_empty() {
            self.uploads.proven.set(self.uploads.proven.get().max(self.length));
            return Ok(None);
        }
        self.uploads.tight.set(true);
        let began = clock.now();
        let early = self.wait(response).await;
        receiver.send_stalled(clock.now().since(began));
        let early = early?;
        if early.is_some() {
            // A stream that the target has closed takes nothing more, which the response makes up for.
            let _ = self.hand_over();
        }
        Ok(early)
    }

    /// Leaves the rest to the driver, whatever the windows say.
    fn hand_over(&mut self) -> Result<(), Failure> {
        self.stream.send_data(std::mem::take(&mut self.rest), true).map_err(refused)
    }

    /// Sends what the windows have room for now.
    fn advance(&mut self) -> Result<(), Failure> {
        let part = self.rest.split_to(self.stream.capacity().min(self.rest.len()));
        if part.is_empty() {
            return Ok(());
        }
        self.stream.send_data(part, self.rest.is_empty()).map_err(refused)
    }

    async fn wait(
        &mut self,
        response: &mut ResponseFuture,
    ) -> Result<Option<Response<RecvStream>>, Failure> {
        poll_fn(|context| match Pin::new(&mut *response).poll(context) {
            Poll::Ready(response) => Poll::Ready(response.map(Some).map_err(refused)),
            Poll::Pending => self.poll_rest(context).map_ok(|()| None),
        })
        .await
    }

    /// Ready when the body is out, or cannot get out.
    fn poll_rest(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        while !self.rest.is_empty() {
            // Without an error and without room the stream is closed; the response says why.
            let Some(room) = ready!(self.stream.poll_capacity(context)) else {
                return Poll::Pending;
            };
            room.map_err(refused)?;
            self.advance()?;
        }
        Poll::Ready(Ok(()))
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn refused(error: h2::Error) -> Failure {
    failure(&error)
}
