//! The client side of the scripted target: opens its connections for the transport's pool.

use std::cell::RefCell;
use std::future::pending;
use std::ops::ControlFlow;
use std::rc::Rc;

use plimsoll_measure::{Clock as _, ConnectPhases, ErrorClass, Moment, Nanos};
use plimsoll_transport::{
    Connector, Failure, Opened, Opener, Poolable, ReadBuffers, Request, ResponseHandler,
    ResponseHead, RxClock, RxTime,
};

use super::{
    CHAT_BODY, FLIGHT, ReceivedRequest, Reply, ScriptedRead, Simulated, Simulation, sleep_until,
};
use crate::clock::WorkerClock;

/// Opens connections to the scripted target.
#[derive(Debug)]
pub(crate) struct ScriptedOpener(Rc<RxClock<WorkerClock>>);

/// A connection to the scripted target.
#[derive(Debug)]
pub(crate) struct ScriptedConnection {
    number: u32,
    used: bool,
    /// When its last response ended.
    idle_since: Moment,
    rx_clock: Rc<RxClock<WorkerClock>>,
}

impl ScriptedOpener {
    pub(crate) fn new(_: &Rc<Connector>, rx_clock: &Rc<RxClock<WorkerClock>>) -> Self {
        Self(Rc::clone(rx_clock))
    }

    /// Opens connections to the target of this clock's world.
    pub(crate) fn of_clock(clock: &WorkerClock) -> Self {
        Self(Rc::new(RxClock::new(clock.clone())))
    }

    fn simulation(&self) -> &Rc<Simulation> {
        self.0.clock().simulation().expect("the worker's clock shows virtual time")
    }
}

impl Opener for ScriptedOpener {
    type Connection = ScriptedConnection;

    fn now(&self) -> Moment {
        self.0.clock().now()
    }

    async fn sleep(&self, time: Nanos) {
        let clock = self.0.clock();
        sleep_until(clock, clock.now() + time).await;
    }

    async fn open(&self) -> Opened<ScriptedConnection> {
        let target = &self.simulation().target;
        if target.refuses() {
            let refused = Failure::new(ErrorClass::ConnectRefused, "scripted");
            return Opened { phases: ConnectPhases::default(), connection: Err(refused) };
        }
        let began = self.now();
        self.sleep(target.connect_time).await;
        if let Some(server) = &target.serial {
            server.connect(self.0.clock());
            if server.costs.handshake > Nanos::ZERO {
                server.perform(self.0.clock(), server.costs.handshake).await;
            }
        }
        let tcp = Some(self.now().since(began));
        let phases = ConnectPhases { tcp, ..ConnectPhases::default() };
        let connection = ScriptedConnection {
            number: target.open_connection(),
            used: false,
            idle_since: self.now(),
            rx_clock: Rc::clone(&self.0),
        };
        Opened { phases, connection: Ok(connection) }
    }
}

impl Poolable for ScriptedConnection {
    fn was_used(&self) -> bool {
        self.used
    }

    fn is_idle(&mut self) -> bool {
        self.idle_beyond(FLIGHT).is_none()
    }

    fn has_ended(&self) -> bool {
        true
    }
}

impl ScriptedConnection {
    /// Whether the target closed it, longer than `flight` ago.
    fn idle_beyond(&self, flight: Nanos) -> Option<()> {
        let clock = self.rx_clock.clock();
        let timeout = clock.simulation()?.target.idle_timeout?;
        (clock.now() >= self.idle_since + timeout + flight).then_some(())
    }

    /// Simulates a request without content: the target works or waits for this time.
    pub(crate) async fn carry(&mut self, time: Nanos) {
        self.used = true;
        let clock = self.rx_clock.clock();
        let simulation = clock.simulation().expect("the worker's clock shows virtual time");
        match &simulation.target.serial {
            Some(server) => server.perform(clock, time).await,
            None => sleep_until(clock, clock.now() + time).await,
        }
        self.idle_since = clock.now();
    }

    /// Sends a request and reads its response, as the script has it.
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
            id: String::from_utf8(request.id.unwrap_or_default().to_vec()).unwrap(),
            body: String::from_utf8(request.encoded.body.clone()).unwrap(),
        });
        handler.sent(start, request.encoded);
        if self.idle_beyond(Nanos::ZERO).is_some() {
            sleep_until(clock, start + FLIGHT).await;
            return Err(Failure::new(ErrorClass::ClosedEarly, "scripted"));
        }
        if let Some(server) = &simulation.target.serial {
            server.perform(self.rx_clock.clock(), server.costs.request).await;
        }
        let result = reply(simulation.target.next_reply(), handler, rx_clock, start).await;
        self.idle_since = clock.now();
        result
    }
}

/// Replies to a request that was sent at `start`.
async fn reply(
    reply: Reply,
    handler: &mut impl ResponseHandler,
    rx_clock: &RxClock<impl Simulated>,
    start: Moment,
) -> Result<bool, Failure> {
    let clock = rx_clock.clock();
    match reply {
        Reply::Refuse => unreachable!("a refused connection carries no request"),
        Reply::Hang => pending().await,
        Reply::Reset { after } => {
            sleep_until(clock, start + after).await;
            Err(Failure::new(ErrorClass::Reset, "scripted"))
        }
        Reply::Respond { after, status } => {
            let arrived = clock.now().max(start + after);
            sleep_until(clock, start + after).await;
            let at = receive(handler, rx_clock, CHAT_BODY, arrived);
            head(handler, status, "application/json");
            let _ = handler.body(CHAT_BODY.as_bytes(), at);
            Ok(true)
        }
        Reply::Body(body) => {
            let at = receive(handler, rx_clock, body, start);
            head(handler, 200, "application/json");
            let _ = handler.body(body.as_bytes(), at);
            Ok(true)
        }
        Reply::BodyAfter { after, body } => {
            sleep_until(clock, start + after).await;
            let at = receive(handler, rx_clock, body, start + after);
            head(handler, 200, "application/json");
            let _ = handler.body(body.as_bytes(), at);
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
    // A refusal asks to wait for two seconds: 429 by their number, 503 by a date.
    let asked: &[(&str, &str)] = match status {
        429 => &[("retry-after", "2")],
        503 => &[
            ("date", "Fri, 31 Dec 1999 23:59:58 GMT"),
            ("retry-after", "Sat, 01 Jan 2000 00:00:00 GMT"),
        ],
        _ => &[],
    };
    let headers = [("content-type", content_type)].into_iter().chain(asked.iter().copied());
    let headers: Vec<_> =
        headers.map(|(name, value)| httparse::Header { name, value: value.as_bytes() }).collect();
    handler.head(&ResponseHead { status, headers: &headers });
}
