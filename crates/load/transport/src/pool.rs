//! Connections at hand.

use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_measure::{Clock, ConnectPhases, ErrorClass};
use tokio::sync::Mutex;

use crate::connect::{Connected, Connector};
use crate::connection::Connection;
use crate::http2::Multiplexed;
use crate::stamp::RxClock;

/// Connections to one target.
///
/// HTTP/1.1: idle ones, most recently used first, so that the ones that stay idle grow old together and can be closed
/// by the target without harm. HTTP/2: the same of places on shared ones, each of which has room for so many streams.
#[derive(Debug, Default)]
pub struct Pool {
    idle: RefCell<Vec<Connection>>,
    shared: RefCell<Vec<Rc<Multiplexed>>>,
    /// Held while a shared connection is being opened: those who come meanwhile wait for its room.
    opening: Mutex<()>,
}

impl Pool {
    /// An empty pool.
    pub fn new() -> Self {
        Self::default()
    }

    /// A connection that can carry a request: one at hand, else a new one.
    pub async fn acquire<C: Clock + 'static>(
        &self,
        connector: &Connector,
        stamper: &Rc<RxClock<C>>,
    ) -> Connected {
        if let Some(connection) = self.take() {
            return Connected { phases: ConnectPhases::default(), connection: Ok(connection) };
        }
        let Some(streams) = connector.streams_per_connection() else {
            return connector.connect(stamper.clock()).await;
        };
        let _opening = self.opening.lock().await;
        if let Some(connection) = self.take() {
            return Connected { phases: ConnectPhases::default(), connection: Ok(connection) };
        }
        let (phases, opened) = connector.connect_shared(stamper, streams).await;
        let connection = opened.and_then(|opened| {
            self.shared.borrow_mut().push(Rc::clone(&opened));
            opened.lease().map(Connection::http2).ok_or_else(|| ErrorClass::ClosedEarly.into())
        });
        Connected { phases, connection }
    }

    /// Puts a connection back that may carry another request.
    pub fn give(&self, connection: Connection) {
        self.idle.borrow_mut().push(connection);
    }

    /// A connection that is still open and silent, or room on a shared one. Closed ones are dropped on the way.
    fn take(&self) -> Option<Connection> {
        loop {
            // Not in the condition of a loop, where it would stay borrowed while the connection is dropped.
            let Some(mut connection) = self.idle.borrow_mut().pop() else { break };
            if connection.is_idle() {
                return Some(connection);
            }
        }
        let mut shared = self.shared.borrow_mut();
        let lease = shared.iter().find_map(Multiplexed::lease);
        if lease.is_none() {
            shared.retain(|connection| !connection.is_closed());
        }
        lease.map(Connection::http2)
    }
}
