//! The task that owns a connection's socket.
//!
//! It is woken by the socket, or by an exchange that has queued something. In the second case it runs when the tasks
//! that were ready before have run, so that what they queue meanwhile is written with it at once.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use plimsoll_measure::{Clock, ErrorClass};

use super::error::Violation;
use super::link::Link;
use crate::connection::ReadBuffers;
use crate::failure::Failure;
use crate::socket::{Read, Socket};
use crate::stamp::RxClock;

pub(super) struct Driver<C> {
    link: Rc<Link>,
    socket: Socket,
    stamper: Rc<RxClock<C>>,
    /// Shared with the other connections of the worker.
    scratch: Rc<RefCell<ReadBuffers>>,
    /// Has the kernel taken less than there was?
    blocked: bool,
    /// Why nothing can be written any more. What the target said before is still to be read.
    broken: Option<Failure>,
}

impl<C: Clock> Driver<C> {
    pub(super) const fn new(
        link: Rc<Link>,
        socket: Socket,
        stamper: Rc<RxClock<C>>,
        scratch: Rc<RefCell<ReadBuffers>>,
    ) -> Self {
        Self { link, socket, stamper, scratch, blocked: true, broken: None }
    }

    /// Reads and writes until the connection is over, and tells everybody why it is.
    pub(super) async fn run(mut self) {
        let failure = poll_fn(|context| self.poll(context)).await;
        self.link.closed.set(true);
        self.link.state.borrow_mut().end(&failure);
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Failure> {
        match self.work(context) {
            Ok(()) => Poll::Pending,
            Err(failure) => Poll::Ready(failure),
        }
    }

    fn work(&mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        let asked = self.link.state.borrow_mut().enter(context);
        if self.link.state.borrow().abandoned {
            self.link.state.borrow_mut().session.leave();
            self.flush();
            return Err(Failure::new(ErrorClass::ClosedEarly, "nobody needed the connection"));
        }
        if asked && !self.blocked {
            self.flush();
        }
        while self.socket.poll_readable(context).map_err(broken)?.is_ready() {
            if self.read()? == Read::Nothing {
                continue;
            }
            let mut state = self.link.state.borrow_mut();
            if let Some(code) = state.session.is_over() {
                let detail = format!("the target closed the connection: {code}");
                return Err(Failure::new(ErrorClass::ClosedEarly, detail));
            }
            if !state.session.output().is_empty() {
                state.ask_for_flush();
            }
        }
        while self.blocked && self.socket.poll_writable(context).map_err(broken)?.is_ready() {
            self.flush();
        }
        Ok(())
    }

    /// Reads once.
    fn read(&mut self) -> Result<Read, Failure> {
        let Self { link, socket, stamper, scratch, .. } = self;
        let mut fed = Ok(());
        let read = socket.receive(stamper, &mut scratch.borrow_mut(), &mut |bytes, arrival| {
            if fed.is_ok() {
                fed = link.state.borrow_mut().feed(bytes, arrival);
            }
        })?;
        link.closed.set(!link.state.borrow().session.accepts_more());
        if let Err(Violation { code, detail }) = fed {
            // The farewell is queued; whether it arrives is not our concern.
            self.flush();
            let detail = format!("HTTP/2, {code}: {detail}");
            return Err(Failure::new(ErrorClass::MalformedHead, detail));
        }
        if read == Read::Closed {
            let closed = "the target closed the connection";
            let failure = self.broken.take();
            return Err(failure.unwrap_or_else(|| Failure::new(ErrorClass::ClosedEarly, closed)));
        }
        Ok(read)
    }

    /// Hands to the kernel what is queued.
    fn flush(&mut self) {
        if self.broken.is_some() {
            return;
        }
        let mut state = self.link.state.borrow_mut();
        match self.socket.write(state.session.output()) {
            Ok(written) => {
                state.session.wrote(written.bytes);
                self.blocked = !written.all;
                if written.with_kernel {
                    state.note_written(self.stamper.clock().now());
                }
            }
            Err(error) => {
                self.blocked = false;
                self.broken = Some(broken(error));
            }
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn broken(error: io::Error) -> Failure {
    let failure = Failure::on_connection(&error);
    if failure.class == ErrorClass::LocalIo {
        return Failure::new(ErrorClass::ClosedEarly, failure.detail);
    }
    failure
}
