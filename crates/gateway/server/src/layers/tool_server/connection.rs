//! One worker's protocol state for each tool server: one handshake, one session.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use hyper::header::{HeaderName, HeaderValue};
use plimsoll_gateway_mcp::client::{Answer, Call, Connected, Handshake, Outgoing, ReplyBody, Step};
use plimsoll_gateway_mcp::{Tool, ToolResult, ToolTable};
use tokio::sync::Mutex;
use tokio::task::spawn_local;
use tokio::time::timeout;

use super::exchange::{Services, exchange};
use super::failure::Failure;
use super::link::ServerLink;
use crate::base::memory::MemoryReservation;

/// One worker's connections to all tool servers, by name.
#[derive(Debug, Default)]
pub(crate) struct ToolConnections(RefCell<HashMap<Arc<str>, Rc<Connection>>>);

impl ToolConnections {
    /// The connection to a server. One with another link is dropped.
    pub(crate) fn to(&self, link: &Arc<ServerLink>) -> Rc<Connection> {
        let mut all = self.0.borrow_mut();
        if let Some(known) = all.get(&link.name)
            && Arc::ptr_eq(&known.link, link)
        {
            return Rc::clone(known);
        }
        let connection = Rc::new(Connection::new(link));
        all.insert(Arc::clone(&link.name), Rc::clone(&connection));
        connection
    }
}

/// One worker's protocol state for one server.
#[derive(Debug)]
pub(crate) struct Connection {
    link: Arc<ServerLink>,
    /// Locked during a handshake, so that concurrent calls share one.
    connected: Mutex<Option<Rc<Connected>>>,
    ids: Cell<u64>,
}

impl Connection {
    fn new(link: &Arc<ServerLink>) -> Self {
        Self { link: Arc::clone(link), connected: Mutex::new(None), ids: Cell::new(0) }
    }

    /// Calls a tool. The bytes of its result count as memory in use until they are dropped.
    ///
    /// # Errors
    /// The call has no result.
    pub(crate) async fn call(
        &self,
        services: Services<'_>,
        call: Call<'_>,
        trace: &[(HeaderName, HeaderValue)],
    ) -> Result<(ToolResult, Option<MemoryReservation>), Failure> {
        let (result, held) = self
            .ask(services, |connected: &Connected, id| connected.call_tool(id, call), trace)
            .await?;
        Ok((ToolResult::read(&result)?, held))
    }

    /// All tools of the server.
    ///
    /// # Errors
    /// They cannot be listed.
    pub(crate) async fn list(&self, services: Services<'_>) -> Result<Vec<Tool>, Failure> {
        let (mut table, mut cursor) = (ToolTable::default(), None);
        loop {
            let (page, _held) = self
                .ask(
                    services,
                    |connected: &Connected, id| connected.list_tools(id, cursor.as_deref()),
                    &[],
                )
                .await?;
            cursor = table.add(&page).map_err(Failure::Other)?;
            if cursor.is_none() {
                return Ok(table.into_tools());
            }
        }
    }

    /// Requests a result. If the server lost the session, a new one is opened once, because it did
    /// not process the request.
    async fn ask(
        &self,
        services: Services<'_>,
        write: impl Fn(&Connected, u64) -> Outgoing,
        trace: &[(HeaderName, HeaderValue)],
    ) -> Result<(String, Option<MemoryReservation>), Failure> {
        let connected = self.connected(services).await?;
        let (mut answer, mut held) = self.ask_once(services, &connected, &write, trace).await?;
        if connected.is_lost(&answer) {
            self.forget(&connected).await;
            let connected = self.connected(services).await?;
            (answer, held) = self.ask_once(services, &connected, &write, trace).await?;
        }
        Ok((result(answer)?, held))
    }

    async fn ask_once(
        &self,
        services: Services<'_>,
        connected: &Connected,
        write: &impl Fn(&Connected, u64) -> Outgoing,
        trace: &[(HeaderName, HeaderValue)],
    ) -> Result<(Answer, Option<MemoryReservation>), Failure> {
        let id = self.next_id();
        let mut unanswered =
            Unanswered { services, link: &self.link, asked: Some((connected, id)) };
        let answer = exchange(services, &self.link, write(connected, id), trace).await;
        unanswered.asked = None;
        answer
    }

    /// The negotiated protocol, after a handshake if needed.
    async fn connected(&self, services: Services<'_>) -> Result<Rc<Connected>, Failure> {
        let mut known = self.connected.lock().await;
        if let Some(connected) = &*known {
            return Ok(Rc::clone(connected));
        }
        let (mut handshake, mut outgoing) = Handshake::start(self.link.protocol, self.next_id());
        loop {
            let (answer, _held) = exchange(services, &self.link, outgoing, &[]).await?;
            match handshake.next(&answer, self.next_id()) {
                Step::Send(next) => outgoing = next,
                Step::Failed(reason) => return Err(Failure::Other(reason)),
                Step::Done(connected) => {
                    let connected = Rc::new(connected);
                    *known = Some(Rc::clone(&connected));
                    return Ok(connected);
                }
            }
        }
    }

    /// Drops the negotiated protocol, unless it was renewed.
    async fn forget(&self, lost: &Rc<Connected>) {
        let mut known = self.connected.lock().await;
        if known.as_ref().is_some_and(|known| Rc::ptr_eq(known, lost)) {
            *known = None;
        }
    }

    fn next_id(&self) -> u64 {
        self.ids.set(self.ids.get() + 1);
        self.ids.get()
    }
}

/// A request in flight. Dropping it early sends a cancellation to the server.
struct Unanswered<'a> {
    services: Services<'a>,
    link: &'a Arc<ServerLink>,
    /// The negotiated protocol, and the id of the request.
    asked: Option<(&'a Connected, u64)>,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        let cancel = self.asked.and_then(|(connected, id)| connected.cancel(id));
        let Some(cancel) = cancel else { return };
        let (pool, memory) = (Rc::clone(self.services.pool), Arc::clone(self.services.memory));
        let link = Arc::clone(self.link);
        spawn_local(async move {
            // If it does not reach the server, no caller waits for the answer anyway.
            let services = Services { pool: &pool, memory: &memory };
            let told = exchange(services, &link, cancel, &[]);
            let _ = timeout(link.timeout, told).await;
        });
    }
}

fn result(answer: Answer) -> Result<String, Failure> {
    match answer.body {
        ReplyBody::Result(result) => Ok(result),
        ReplyBody::Error(error) => Err(Failure::Rpc(error)),
        ReplyBody::Accepted | ReplyBody::Status => {
            Err(Failure::Other(format!("it answered status {}", answer.status)))
        }
    }
}
