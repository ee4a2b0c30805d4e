//! A connection that exchanges share, between them and its driver.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Waker};

use plimsoll_measure::{Clock, ErrorClass, Moment};
use tokio::task::spawn_local;

use super::driver::Driver;
use super::error::Violation;
use super::mail::Mail;
use super::session::{Event, Session};
use super::streams::Key;
use crate::connection::ReadBuffers;
use crate::failure::Failure;
use crate::socket::Socket;
use crate::stamp::{RxClock, RxTime};

/// A connection that carries many exchanges at once. When the last one who has it lets go, it is closed.
#[derive(Debug)]
pub(crate) struct Multiplexed {
    link: Rc<Link>,
    leases: Cell<u32>,
    most: u32,
    used: Cell<bool>,
}

impl Multiplexed {
    /// Starts the connection's driver on the current worker. It speaks first: nothing of the target is waited for.
    pub(crate) fn open<C: Clock + 'static>(
        socket: Socket,
        stamper: &Rc<RxClock<C>>,
        scratch: &Rc<RefCell<ReadBuffers>>,
        most: u32,
    ) -> Rc<Self> {
        let link = Rc::new(Link::default());
        let (stamper, scratch) = (Rc::clone(stamper), Rc::clone(scratch));
        spawn_local(Driver::new(Rc::clone(&link), socket, stamper, scratch).run());
        Rc::new(Self { link, leases: Cell::new(0), most, used: Cell::new(false) })
    }

    /// A place for one exchange, if there is one.
    pub(crate) fn lease(self: &Rc<Self>) -> Option<StreamSlot> {
        if self.is_closed() || self.leases.get() >= self.most {
            return None;
        }
        self.leases.set(self.leases.get() + 1);
        Some(StreamSlot { of: Rc::clone(self), mail: Mail::default() })
    }

    /// Does it take no further request?
    pub(crate) fn is_closed(&self) -> bool {
        self.link.closed.get()
    }
}

impl Drop for Multiplexed {
    fn drop(&mut self) {
        let mut state = self.link.state.borrow_mut();
        state.abandoned = true;
        state.ask_for_flush();
    }
}

/// A place for one exchange on a shared connection; given back when dropped.
#[derive(Debug)]
pub(crate) struct StreamSlot {
    of: Rc<Multiplexed>,
    /// Buffers of the exchange that uses it.
    mail: Mail,
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        self.of.leases.set(self.of.leases.get().saturating_sub(1));
    }
}

impl StreamSlot {
    /// Has the connection carried a request before?
    pub(crate) fn was_used(&self) -> bool {
        self.of.used.get()
    }

    /// What an exchange works with.
    pub(super) fn parts(&mut self) -> (&Link, &mut Mail) {
        self.of.used.set(true);
        (&self.of.link, &mut self.mail)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.of.is_closed()
    }
}

/// What the driver and the exchanges of a connection share. No borrow of it is held while foreign code runs.
#[derive(Debug, Default)]
pub(super) struct Link {
    pub(super) state: RefCell<State>,
    /// Will no further stream be opened?
    pub(super) closed: Cell<bool>,
}

/// The shared state.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) session: Session,
    /// By key.
    boxes: Vec<Mailbox>,
    /// Requests that are not written yet.
    unsent: VecDeque<Unsent>,
    /// Exchanges that wait until the target allows another stream, first come, first served.
    queue: VecDeque<(u64, Waker)>,
    tickets: u64,
    driver: Option<Waker>,
    flush_asked: bool,
    pub(super) abandoned: bool,
    /// Why it ended.
    pub(super) ended: Option<Failure>,
}

/// Where an exchange finds what came for it.
#[derive(Debug, Default)]
struct Mailbox {
    mail: Mail,
    waker: Option<Waker>,
    /// Was the exchange woken since it last looked?
    woken: bool,
}

/// A request whose last byte lies at `end` of all that was ever queued.
#[derive(Clone, Copy, Debug)]
struct Unsent {
    key: Key,
    end: u64,
    then: Sent,
}

/// What happens when a request is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// It is noted.
    Quietly,
    /// Its exchange is woken as well, so that others can use the buffers of its body while it waits.
    Loudly,
}

impl Mailbox {
    fn note_sent(&mut self, at: Moment, then: Sent) {
        self.mail.sent_at = Some(at);
        if then == Sent::Loudly {
            self.wake();
        }
    }

    fn wake(&mut self) {
        if !std::mem::replace(&mut self.woken, true)
            && let Some(waker) = &self.waker
        {
            waker.wake_by_ref();
        }
    }
}

/// For the exchanges.
impl State {
    /// The driver writes what is queued when all exchanges that can run now have run.
    pub(super) fn ask_for_flush(&mut self) {
        if !std::mem::replace(&mut self.flush_asked, true)
            && let Some(driver) = &self.driver
        {
            driver.wake_by_ref();
        }
    }

    /// Has this exchange its turn to open a stream? One without a ticket has it if nobody waits.
    pub(super) fn is_first(&self, ticket: Option<u64>) -> bool {
        self.queue.front().map(|(first, _)| *first) == ticket && self.session.has_place()
    }

    /// Joins the queue, or renews the waker there.
    pub(super) fn wait(&mut self, ticket: &mut Option<u64>, context: &Context<'_>) {
        let waker = context.waker();
        let number = *ticket.get_or_insert_with(|| {
            self.tickets += 1;
            self.tickets
        });
        match self.queue.iter_mut().find(|(waiting, _)| *waiting == number) {
            Some((_, known)) => known.clone_from(waker),
            None => self.queue.push_back((number, waker.clone())),
        }
    }

    /// Leaves the queue.
    pub(super) fn stop_waiting(&mut self, ticket: Option<u64>) {
        let Some(ticket) = ticket else { return };
        self.queue.retain(|(waiting, _)| *waiting != ticket);
        self.call_next();
    }

    /// Wakes whoever may open a stream now.
    fn call_next(&self) {
        if let Some((_, waker)) = self.queue.front()
            && (self.session.has_place() || self.ended.is_some() || !self.session.accepts_more())
        {
            waker.wake_by_ref();
        }
    }

    /// A mailbox for a new stream.
    pub(super) fn rent(&mut self, key: Key) {
        while self.boxes.len() <= key.0 {
            self.boxes.push(Mailbox::default());
        }
    }

    /// The request of a stream is queued to its end.
    pub(super) fn note_queued(&mut self, key: Key, then: Sent) {
        let (end, _) = self.session.progress();
        self.unsent.push_back(Unsent { key, end, then });
    }

    /// Swaps an empty mail for what came for a stream, if something did. The exchange is woken when more comes.
    pub(super) fn collect(&mut self, key: Key, empty: &mut Mail, context: &Context<'_>) -> bool {
        let Some(mailbox) = self.boxes.get_mut(key.0) else { return false };
        mailbox.woken = false;
        match &mut mailbox.waker {
            Some(waker) => waker.clone_from(context.waker()),
            None => mailbox.waker = Some(context.waker().clone()),
        }
        if mailbox.mail.is_empty() {
            return false;
        }
        std::mem::swap(&mut mailbox.mail, empty);
        true
    }

    /// So much of a stream's body was used, of which the target may be told.
    pub(super) fn consume(&mut self, key: Key, bytes: usize) {
        let (before, _) = self.session.progress();
        self.session.consume(key, bytes);
        self.flush_if_more_than(before);
    }

    fn flush_if_more_than(&mut self, before: u64) {
        if self.session.progress().0 > before {
            self.ask_for_flush();
        }
    }

    /// When the request of a stream was written, told once.
    pub(super) fn take_sent(&mut self, key: Key) -> Option<Moment> {
        self.boxes.get_mut(key.0)?.mail.sent_at.take()
    }

    /// Gives a stream back, whether it is over or not.
    pub(super) fn close(&mut self, key: Key) {
        let (before, _) = self.session.progress();
        self.session.close(key);
        self.flush_if_more_than(before);
        self.unsent.retain(|unsent| unsent.key != key);
        if let Some(mailbox) = self.boxes.get_mut(key.0) {
            mailbox.mail.clear();
            mailbox.woken = false;
        }
        self.call_next();
    }
}

/// For the driver.
impl State {
    /// Takes the driver's waker over; true if there is something to be written.
    pub(super) fn enter(&mut self, context: &Context<'_>) -> bool {
        match &mut self.driver {
            Some(waker) => waker.clone_from(context.waker()),
            None => self.driver = Some(context.waker().clone()),
        }
        std::mem::take(&mut self.flush_asked)
    }

    /// Takes bytes of one read over, and wakes whom they concern.
    pub(super) fn feed(&mut self, bytes: &[u8], arrival: RxTime) -> Result<(), Violation> {
        let Self { session, boxes, .. } = self;
        let fed = session.feed(bytes, &mut |key, event: Event<'_>| {
            if let Some(mailbox) = boxes.get_mut(key.0) {
                mailbox.mail.put(event, arrival);
                mailbox.wake();
            }
        });
        self.call_next();
        fed
    }

    /// All that was queued up to here is with the kernel.
    pub(super) fn note_written(&mut self, at: Moment) {
        let (_, written) = self.session.progress();
        while let Some(&unsent) = self.unsent.front().filter(|unsent| unsent.end <= written) {
            if let Some(mailbox) = self.boxes.get_mut(unsent.key.0) {
                mailbox.note_sent(at, unsent.then);
            }
            self.unsent.pop_front();
        }
    }

    /// The connection is over: everybody who waits is told why.
    pub(super) fn end(&mut self, failure: &Failure) {
        self.ended = Some(failure.clone());
        for mailbox in &mut self.boxes {
            if mailbox.mail.end.is_none() {
                mailbox.mail.end = Some(Err(failure.clone()));
            }
            mailbox.wake();
        }
        for (_, waker) in &self.queue {
            waker.wake_by_ref();
        }
    }

    /// Why no stream can be opened any more, if that is so.
    pub(super) fn refusal(&self) -> Option<Failure> {
        let closing = || {
            let detail = "the target closes the connection before the request was sent";
            Failure::new(ErrorClass::ClosedEarly, detail)
        };
        self.ended.clone().or_else(|| (!self.session.accepts_more()).then(closing))
    }
}
