//! A connection with several simultaneous exchanges, and the slots on it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use plimsoll_measure::Clock;
use tokio::task::spawn_local;

use super::connection_state::ConnectionHandle;
use super::driver::Driver;
use super::stream_inbox::StreamInbox;
use crate::buffers::ReadBuffers;
use crate::rx_timestamp::RxClock;
use crate::socket::Socket;

/// A connection with several simultaneous exchanges. It is closed when its last owner drops it.
#[derive(Debug)]
pub(crate) struct SharedConnection {
    handle: Rc<ConnectionHandle>,
    slots_in_use: Cell<u32>,
    max_slots: u32,
    used: Cell<bool>,
}

impl SharedConnection {
    /// Starts the connection's driver on the current worker. The client sends first, so requests
    /// can be queued before anything arrives from the target.
    pub(crate) fn open<C: Clock + 'static>(
        socket: Socket,
        rx_clock: &Rc<RxClock<C>>,
        buffers: &Rc<RefCell<ReadBuffers>>,
        max_slots: u32,
    ) -> Rc<Self> {
        let handle = Rc::new(ConnectionHandle::default());
        let (rx_clock, buffers) = (Rc::clone(rx_clock), Rc::clone(buffers));
        spawn_local(Driver::new(Rc::clone(&handle), socket, rx_clock, buffers).run());
        Rc::new(Self { handle, slots_in_use: Cell::new(0), max_slots, used: Cell::new(false) })
    }

    /// Takes a slot for one exchange, if one is free.
    pub(crate) fn take_slot(self: &Rc<Self>) -> Option<StreamSlot> {
        if self.is_closed() || self.slots_in_use.get() >= self.allowed() {
            return None;
        }
        self.slots_in_use.set(self.slots_in_use.get() + 1);
        Some(StreamSlot { connection: Rc::clone(self), inbox: StreamInbox::default() })
    }

    /// Number of simultaneous exchanges: limited by the options and by the target.
    fn allowed(&self) -> u32 {
        self.limit().map_or(self.max_slots, |limit| limit.clamp(1, self.max_slots))
    }

    /// Number of streams that the target allows; `None` before its first settings.
    pub(crate) fn limit(&self) -> Option<u32> {
        self.handle.state.borrow().session.stream_limit()
    }

    /// Whether it accepts no further request.
    pub(crate) fn is_closed(&self) -> bool {
        self.handle.closed.get()
    }
}

impl Drop for SharedConnection {
    fn drop(&mut self) {
        let mut state = self.handle.state.borrow_mut();
        state.abandoned = true;
        state.request_flush();
    }
}

/// A slot for one exchange on a shared connection. It is released when dropped.
#[derive(Debug)]
pub(crate) struct StreamSlot {
    connection: Rc<SharedConnection>,
    /// Buffers of the exchange that uses it.
    inbox: StreamInbox,
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let in_use = &self.connection.slots_in_use;
        in_use.set(in_use.get().saturating_sub(1));
    }
}

impl StreamSlot {
    /// Whether the connection has been used for a request before.
    pub(crate) fn was_used(&self) -> bool {
        self.connection.used.get()
    }

    /// The parts needed by an exchange.
    pub(super) fn parts(&mut self) -> (&ConnectionHandle, &mut StreamInbox) {
        self.connection.used.set(true);
        (&self.connection.handle, &mut self.inbox)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }
}
