//! A connection pool.

use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_measure::{Clock, ConnectPhases, ErrorClass};
use tokio::sync::Mutex;

use crate::connect::{Connected, Connector};
use crate::connection::Connection;
use crate::http2::SharedConnection;
use crate::rx_timestamp::RxClock;

/// Connections to one target.
///
/// HTTP/1.1: idle connections, most recently used first. So the least used ones stay idle, and the
/// target can close them without harm. HTTP/2: idle stream slots, most recently used first, on
/// shared connections with a limited number of slots each.
#[derive(Debug, Default)]
pub struct Pool {
    idle: RefCell<Vec<Connection>>,
    shared: RefCell<Vec<Rc<SharedConnection>>>,
    /// Held while a shared connection is being opened. Other tasks wait for its slots.
    opening: Mutex<()>,
}

impl Pool {
    /// An empty pool.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a connection that can carry a request: a pooled one if there is one, else a new one.
    pub async fn checkout<C: Clock + 'static>(
        &self,
        connector: &Connector,
        rx_clock: &Rc<RxClock<C>>,
    ) -> Connected {
        if let Some(connection) = self.take_idle() {
            return Connected { phases: ConnectPhases::default(), connection: Ok(connection) };
        }
        let Some(streams) = connector.streams_per_connection() else {
            return connector.connect(rx_clock.clock()).await;
        };
        let _opening = self.opening.lock().await;
        if let Some(connection) = self.take_idle() {
            return Connected { phases: ConnectPhases::default(), connection: Ok(connection) };
        }
        let (phases, opened) = connector.connect_shared(rx_clock, streams).await;
        let connection = opened.and_then(|opened| {
            self.shared.borrow_mut().push(Rc::clone(&opened));
            opened.take_slot().map(Connection::http2).ok_or_else(|| ErrorClass::ClosedEarly.into())
        });
        Connected { phases, connection }
    }

    /// Returns a connection that can carry another request to the pool.
    pub fn release(&self, connection: Connection) {
        self.idle.borrow_mut().push(connection);
    }

    /// Takes an idle connection or a free slot on a shared one. Closed connections are dropped.
    fn take_idle(&self) -> Option<Connection> {
        loop {
            // In a loop condition the pool would stay borrowed while the connection is dropped.
            let Some(mut connection) = self.idle.borrow_mut().pop() else { break };
            if connection.is_idle() {
                return Some(connection);
            }
        }
        let mut shared = self.shared.borrow_mut();
        let slot = shared.iter().find_map(SharedConnection::take_slot);
        if slot.is_none() {
            shared.retain(|connection| !connection.is_closed());
        }
        slot.map(Connection::http2)
    }
}
