//! Interfaces of a pool to its connections, and to opening them.

use std::cell::{Cell, RefCell};
use std::fmt::Debug;
use std::rc::Rc;

use plimsoll_measure::{Clock, ErrorClass, Moment, Nanos};

use crate::connect::Connector;
use crate::connection::Connection;
use crate::http2::SharedConnection;
use crate::opened::Opened;
use crate::rx_timestamp::RxClock;

/// A connection that a pool can keep.
pub trait Poolable: Debug + 'static {
    /// Whether it has been used for a request before.
    fn was_used(&self) -> bool;
    /// Whether it is open and has no unexpected data.
    fn is_idle(&mut self) -> bool;
    /// Whether the connection itself ended, rather than only the failed exchange.
    fn has_ended(&self) -> bool;
}

/// Opens the connections of a pool.
pub trait Opener: Debug + 'static {
    /// Type of the connections.
    type Connection: Poolable;

    /// The current time.
    fn now(&self) -> Moment;

    /// Sleeps, with the precision of a millisecond.
    fn sleep(&self, time: Nanos) -> impl Future<Output = ()>;

    /// Opens a connection.
    fn open(&self) -> impl Future<Output = Opened<Self::Connection>>;

    /// HTTP/2: a free slot on an open connection.
    fn free_slot(&self) -> Option<Self::Connection> {
        None
    }

    /// Number of simultaneous requests per connection.
    fn slots(&self) -> usize {
        1
    }

    /// HTTP/2: number of open connections.
    fn shared_connections(&self) -> Option<usize> {
        None
    }
}

/// Opens connections to one target.
#[derive(Debug)]
pub struct TargetOpener<C> {
    connector: Rc<Connector>,
    rx_clock: Rc<RxClock<C>>,
    shared: RefCell<Vec<Rc<SharedConnection>>>,
    /// HTTP/2: the target's limit of streams per connection, once known.
    limit: Cell<Option<u32>>,
}

impl<C: Clock + 'static> TargetOpener<C> {
    /// Creates an opener that uses this connector on the current worker.
    pub fn new(connector: &Rc<Connector>, rx_clock: &Rc<RxClock<C>>) -> Self {
        let (connector, rx_clock) = (Rc::clone(connector), Rc::clone(rx_clock));
        Self { connector, rx_clock, shared: RefCell::default(), limit: Cell::new(None) }
    }
}

/// Number of checks for the limit of a new connection, and the time between them.
const LOOKS: u32 = 25;
const LOOK: Nanos = Nanos::from_millis(1);

impl<C: Clock + Debug + 'static> TargetOpener<C> {
    /// Waits for the first settings of the target's first connection. Without them, requests beyond
    /// the target's limit would be sent there and wait. A target that sends none in time counts as
    /// unlimited.
    async fn learn_limit(&self, opened: &SharedConnection) {
        for _ in 0..LOOKS {
            if let Some(limit) = opened.limit() {
                return self.limit.set(Some(limit));
            }
            self.sleep(LOOK).await;
        }
    }
}

impl<C: Clock + Debug + 'static> Opener for TargetOpener<C> {
    type Connection = Connection;

    fn now(&self) -> Moment {
        self.rx_clock.clock().now()
    }

    async fn sleep(&self, time: Nanos) {
        tokio::time::sleep(time.to_duration()).await;
    }

    async fn open(&self) -> Opened<Connection> {
        let Some(streams) = self.connector.streams_per_connection() else {
            return self.connector.connect(self.rx_clock.clock()).await;
        };
        // The limit known from another connection applies until this one's settings have arrived.
        let streams = self.limit.get().map_or(streams, |limit| limit.clamp(1, streams));
        let (phases, opened) = self.connector.connect_shared(&self.rx_clock, streams).await;
        if let (Ok(opened), None) = (&opened, self.limit.get()) {
            self.learn_limit(opened).await;
        }
        let connection = opened.and_then(|opened| {
            self.shared.borrow_mut().push(Rc::clone(&opened));
            opened.take_slot().map(Connection::http2).ok_or_else(|| ErrorClass::ClosedEarly.into())
        });
        Opened { phases, connection }
    }

    fn free_slot(&self) -> Option<Connection> {
        let mut shared = self.shared.borrow_mut();
        let slot = shared.iter().find_map(SharedConnection::take_slot);
        if slot.is_none() {
            shared.retain(|connection| !connection.is_closed());
        }
        slot.map(Connection::http2)
    }

    fn slots(&self) -> usize {
        let streams = self.connector.streams_per_connection().unwrap_or(1);
        let limit = self.limit.get().unwrap_or(streams).max(1);
        usize::try_from(streams.min(limit)).unwrap_or(usize::MAX)
    }

    fn shared_connections(&self) -> Option<usize> {
        self.connector.streams_per_connection()?;
        let shared = self.shared.borrow();
        Some(shared.iter().filter(|connection| !connection.is_closed()).count())
    }
}

impl Poolable for Connection {
    fn was_used(&self) -> bool {
        Self::was_used(self)
    }

    fn is_idle(&mut self) -> bool {
        Self::is_idle(self)
    }

    fn has_ended(&self) -> bool {
        Self::has_ended(self)
    }
}
