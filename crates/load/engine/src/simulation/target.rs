//! The client side of the scripted target: a pool with the interface of the transport's.

use std::cell::RefCell;
use std::future::pending;
use std::ops::ControlFlow;
use std::rc::Rc;

use plimsoll_measure::{ConnectPhases, ErrorClass, Moment, Nanos};
use plimsoll_transport::{
    Connector, Failure, ReadBuffers, Request, ResponseHandler, ResponseHead, RxClock, RxTime,
};

use super::script::{CHAT_BODY, ReceivedRequest, Reply, ScriptedRead};
use super::world::{Simulated, sleep_until};

/// Idle connections to the scripted target.
#[derive(Debug, Default)]
pub(crate) struct ScriptedPool(RefCell<Vec<ScriptedConnection>>);

/// A connection, or why there is none, and how long it took to open it.
#[derive(Debug)]
pub(crate) struct ScriptedConnect {
    pub(crate) phases: ConnectPhases,
    pub(crate) connection: Result<ScriptedConnection, Failure>,
}

/// A connection to the scripted target.
#[derive(Debug)]
pub(crate) struct ScriptedConnection {
    number: u32,
    used: bool,
    /// The reply to the next request.
    reply: Reply,
}

impl ScriptedPool {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) async fn checkout<C: Simulated>(
        &self,
        _connector: &Connector,
        rx_clock: &Rc<RxClock<C>>,
    ) -> ScriptedConnect {
        let clock = rx_clock.clock();
        let simulation = clock.simulation().expect("the worker's clock shows virtual time");
        let (target, reply) = (&simulation.target, simulation.target.next_reply());
        if matches!(reply, Reply::Refuse) {
            let refused = Failure::new(ErrorClass::ConnectRefused, "scripted");
            return ScriptedConnect { phases: ConnectPhases::default(), connection: Err(refused) };
        }
        let idle = self.0.borrow_mut().pop();
        if let Some(connection) = idle {
            let connection = Ok(ScriptedConnection { reply, ..connection });
            return ScriptedConnect { phases: ConnectPhases::default(), connection };
        }
        sleep_until(clock, clock.now() + target.connect_time).await;
        let number = target.open_connection();
        ScriptedConnect {
            phases: ConnectPhases { tcp: Some(target.connect_time), ..ConnectPhases::default() },
            connection: Ok(ScriptedConnection { number, used: false, reply }),
        }
    }

    pub(crate) fn release(&self, connection: ScriptedConnection) {
        self.0.borrow_mut().push(connection);
    }
}

impl ScriptedConnection {
    pub(crate) const fn was_used(&self) -> bool {
        self.used
    }

    pub(crate) async fn exchange<C: Simulated, R: ResponseHandler>(
        &mut self,
        rx_clock: &RxClock<C>,
        _buffers: &RefCell<ReadBuffers>,
        request: Request<'_>,
        handler: &mut R,
    ) -> Result<bool, Failure> {
        self.used = true;
        let clock = rx_clock.clock();
        let simulation = clock.simulation().expect("the worker's clock shows virtual time");
        let start = clock.now();
        simulation.target.log(ReceivedRequest {
            at: start,
            connection: self.number,
            id: request.id.unwrap_or_default().to_owned(),
            body: String::from_utf8(request.encoded.body.clone()).unwrap(),
        });
        handler.sent(start, request.encoded);
        match self.reply {
            Reply::Refuse => unreachable!("a refused connection carries no request"),
            Reply::Hang => pending().await,
            Reply::Reset { after } => {
                sleep_until(clock, start + after).await;
                Err(Failure::new(ErrorClass::Reset, "scripted"))
            }
            Reply::Respond { after, status } => {
                sleep_until(clock, start + after).await;
                let at = receive(handler, rx_clock, CHAT_BODY, start + after);
                head(handler, status, "application/json");
                let _ = handler.body(CHAT_BODY.as_bytes(), at);
                Ok(true)
            }
            Reply::Reads(reads) => {
                scripted_reads(handler, clock, reads).await;
                Ok(true)
            }
            Reply::Stream { first, gap, events } => {
                stream(handler, rx_clock, start + first, gap, events).await;
                Ok(true)
            }
        }
    }
}

/// Streams content events, the end together with the last one. Events that came while the worker
/// was paused are read at once, with the time stamp of the last one.
async fn stream<C: Simulated>(
    handler: &mut impl ResponseHandler,
    rx_clock: &RxClock<C>,
    first: Moment,
    gap: Nanos,
    events: u32,
) {
    let clock = rx_clock.clock();
    let (mut next, mut event) = (first, 0);
    while event < events {
        sleep_until(clock, next).await;
        let (mut piece, mut arrived, is_first) = (String::new(), next, event == 0);
        while event < events && next <= clock.now() {
            arrived = next;
            next = next + gap;
            event += 1;
            piece.push_str(r#"data: {"choices":[{"index":0,"delta":{"content":"x"}}]}"#);
            piece.push_str("\n\n");
        }
        if event == events {
            piece.push_str(r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#);
            piece.push_str("\n\ndata: [DONE]\n\n");
        }
        let at = receive(handler, rx_clock, &piece, arrived);
        if is_first {
            head(handler, 200, "text/event-stream");
        }
        if handler.body(piece.as_bytes(), at) != ControlFlow::Continue(()) {
            return;
        }
    }
}

/// Streams reads as they are scripted.
async fn scripted_reads(
    handler: &mut impl ResponseHandler,
    clock: &impl Simulated,
    reads: &[ScriptedRead],
) {
    for (index, ScriptedRead { after, text, earlier_by }) in reads.iter().enumerate() {
        sleep_until(clock, clock.now() + *after).await;
        let at = clock.now();
        let [first_earlier_by, last_earlier_by] = *earlier_by;
        let rx_time = RxTime { first_earlier_by, last_earlier_by, ..RxTime::exact(at) };
        handler.received(text.len(), rx_time);
        if index == 0 {
            head(handler, 200, "text/event-stream");
        }
        if !text.is_empty() && handler.body(text.as_bytes(), at) != ControlFlow::Continue(()) {
            return;
        }
    }
}

/// Reads a piece of a response whose last byte arrived at `arrived`.
fn receive<C: Simulated>(
    handler: &mut impl ResponseHandler,
    rx_clock: &RxClock<C>,
    piece: &str,
    arrived: Moment,
) -> Moment {
    let now = rx_clock.clock().now();
    let rx_time = rx_clock.read_at(now, Some(now.since(arrived)));
    handler.received(piece.len(), rx_time);
    rx_time.at
}

fn head(handler: &mut impl ResponseHandler, status: u16, content_type: &str) {
    let headers = [
        httparse::Header { name: "content-type", value: content_type.as_bytes() },
        httparse::Header { name: "retry-after", value: b"2" },
    ];
    let count = if status == 429 { 2 } else { 1 };
    handler.head(&ResponseHead { status, headers: &headers[..count] });
}
