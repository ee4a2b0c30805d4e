//! The script of a simulated target, and the log of its requests.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use plimsoll_measure::{Moment, Nanos};

use super::serial_server::{Costs, SerialServer};

/// The time that the news of a closed connection takes to the client.
pub(crate) const FLIGHT: Nanos = Nanos::from_millis(1);

/// A response of a chat in one piece.
pub(crate) const CHAT_BODY: &str = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"fine"},"finish_reason":"stop"}],"usage":{"prompt_tokens":8,"completion_tokens":1}}"#;

/// The reaction of the target to one request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reply {
    /// Refuses the connection.
    Refuse,
    /// Responds in one piece, so long after the request.
    Respond { after: Nanos, status: u16 },
    /// Responds with this body at once.
    Body(&'static str),
    /// The same, so long after the request.
    BodyAfter { after: Nanos, body: &'static str },
    /// Streams so many content events: the first so long after the request, the others with gaps.
    Stream { first: Nanos, gap: Nanos, events: u32 },
    /// Streams these reads.
    Reads(&'static [ScriptedRead]),
    /// Never responds.
    Hang,
    /// Resets the connection, so long after the request.
    Reset { after: Nanos },
}

/// One read of a streamed response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScriptedRead {
    /// Time since the read before, or since the request.
    pub(crate) after: Nanos,
    /// Its bytes, after the head.
    pub(crate) text: &'static str,
    /// How much earlier its first byte may have arrived, and its last one.
    pub(crate) earlier_by: [Nanos; 2],
}

/// A completed response, `ms` milliseconds after the request.
pub(crate) const fn respond_after(ms: u64) -> Reply {
    Reply::Respond { after: Nanos::from_millis(ms), status: 200 }
}

/// A request as the target received it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReceivedRequest {
    pub(crate) at: Moment,
    /// Connections are numbered from 1.
    pub(crate) connection: u32,
    pub(crate) id: String,
    pub(crate) body: String,
}

/// A target that follows a script.
#[derive(Debug)]
pub(crate) struct ScriptedTarget {
    script: RefCell<VecDeque<Reply>>,
    /// After the end of the script.
    otherwise: Reply,
    /// Time to open a connection.
    pub(crate) connect_time: Nanos,
    /// The target closes a connection that has been idle for so long. The client learns it
    /// [`FLIGHT`] later.
    pub(crate) idle_timeout: Option<Nanos>,
    /// Does one thing at a time, and answers each request when it is done.
    pub(crate) serial: Option<Rc<SerialServer>>,
    connections: Cell<u32>,
    requests: RefCell<Vec<ReceivedRequest>>,
}

impl ScriptedTarget {
    /// Treats every request the same.
    pub(crate) fn always(reply: Reply) -> Self {
        Self::script([], reply)
    }

    /// Treats the first requests by a script, and all others the same.
    pub(crate) fn script(first: impl IntoIterator<Item = Reply>, otherwise: Reply) -> Self {
        Self {
            script: RefCell::new(first.into_iter().collect()),
            otherwise,
            connect_time: Nanos::ZERO,
            idle_timeout: None,
            serial: None,
            connections: Cell::new(0),
            requests: RefCell::default(),
        }
    }

    /// A target that does one thing at a time.
    pub(crate) fn serial(costs: Costs) -> Self {
        let serial = Some(SerialServer::new(costs));
        Self { serial, ..Self::always(respond_after(0)) }
    }

    /// Whether it refuses the next connection.
    pub(super) fn refuses(&self) -> bool {
        let mut script = self.script.borrow_mut();
        let refuses = matches!(script.front().unwrap_or(&self.otherwise), Reply::Refuse);
        if refuses {
            script.pop_front();
        }
        refuses
    }

    /// The reply to the next request.
    pub(super) fn next_reply(&self) -> Reply {
        self.script.borrow_mut().pop_front().unwrap_or(self.otherwise)
    }

    /// The number of a new connection.
    pub(super) fn open_connection(&self) -> u32 {
        self.connections.set(self.connections.get() + 1);
        self.connections.get()
    }

    pub(super) fn log(&self, request: ReceivedRequest) {
        self.requests.borrow_mut().push(request);
    }

    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.borrow().clone()
    }
}
