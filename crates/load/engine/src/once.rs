//! One request of each scenario and its answer, as they are on the wire.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;

use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos, ScenarioId, TargetId};
use plimsoll_plan::Plan;
use plimsoll_transport::{
    Adds, Demand, EncodedRequest, Pool, PoolLimits, ReadBuffers, Request, ResponseHandler,
    ResponseHead, RxClock, RxTime, TargetOpener,
};
use plimsoll_workload::AgentRole;
use tokio::runtime::{Builder, LocalOptions};

use crate::error::EngineError;
use crate::prepared::PreparedRun;
use crate::probe::keys_of;

/// Most bytes of an answer that are kept.
const MOST_BYTES: usize = 1 << 20;

/// A request, and its answer.
#[derive(Clone, Debug, Default)]
pub struct ExchangedOnce {
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the target.
    pub target: String,
    /// The head of the request, in the form of HTTP/1.1.
    pub request_head: Vec<u8>,
    /// Its body.
    pub request_body: Vec<u8>,
    /// Status of the answer; 0 for none.
    pub status: u16,
    /// Its headers, in their order.
    pub headers: Vec<(String, String)>,
    /// Its body, as it came; the first MiB.
    pub body: Vec<u8>,
    /// Time until the connection was there.
    pub connected: Option<Nanos>,
    /// From the dispatch to the first byte of the answer.
    pub first_byte: Option<Nanos>,
    /// From the dispatch to its last byte.
    pub finished: Option<Nanos>,
    /// Why there is no answer, or no whole one.
    pub failure: Option<String>,
}

/// Sends the first request of each scenario to each target, one after another, and gives all that
/// was sent and received.
///
/// # Errors
/// Where the plan cannot be carried out.
pub fn exchange_once(plan: Plan) -> Result<Vec<ExchangedOnce>, EngineError> {
    let run = PreparedRun::new(plan)?;
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .map_err(EngineError::Worker)?;
    runtime.block_on(async {
        let mut all = Vec::new();
        for (target, connector) in run.connectors()?.into_iter().enumerate() {
            let rx_clock = Rc::new(RxClock::new(MonotonicClock::start()));
            let opener = TargetOpener::new(&Rc::new(connector), &rx_clock);
            let pool = Pool::new(opener, PoolLimits::default());
            let scenarios = run.plan.scenarios.iter().enumerate();
            let own =
                scenarios.filter(|(_, spec)| !spec.agent.as_ref().is_some_and(AgentRole::is_part));
            for (scenario, _) in own {
                all.push(exchange(&run, &pool, &rx_clock, scenario, target).await);
            }
        }
        Ok(all)
    })
}

async fn exchange(
    run: &PreparedRun,
    pool: &Pool<TargetOpener<MonotonicClock>>,
    rx_clock: &RxClock<MonotonicClock>,
    scenario: usize,
    target: usize,
) -> ExchangedOnce {
    let mut seen = Seen {
        exchanged: ExchangedOnce {
            scenario: run.plan.scenarios[scenario].name.clone(),
            target: run.plan.targets[target].name.clone(),
            ..ExchangedOnce::default()
        },
        dispatched: rx_clock.clock().now(),
    };
    let whom = Whom {
        scenario: ScenarioId(u16::try_from(scenario).unwrap_or(u16::MAX)),
        target: TargetId(u16::try_from(target).unwrap_or(u16::MAX)),
    };
    let limit = run.plan.limits.timeout;
    let sent = send(run, pool, rx_clock, whom, &mut seen);
    let failure = match tokio::time::timeout(limit.to_duration(), sent).await {
        Ok(sent) => sent.err(),
        Err(_) => Some(format!("no whole answer within {limit}")),
    };
    ExchangedOnce { failure, ..seen.exchanged }
}

async fn send(
    run: &PreparedRun,
    pool: &Pool<TargetOpener<MonotonicClock>>,
    rx_clock: &RxClock<MonotonicClock>,
    whom: Whom,
    seen: &mut Seen,
) -> Result<(), String> {
    let Whom { scenario, target } = whom;
    let route = run.route(scenario, target);
    if route.is_websocket() {
        return Err("it goes over a WebSocket, of which no single request can be shown".to_owned());
    }
    let row = run.plan.trace.is_some().then_some(0);
    let key = keys_of(run, scenario, target).next().ok_or("its weight is 0: nothing is sent")?;
    let conversation = run.workload.conversation(key, row);
    let turn = conversation.turn().ok_or("the conversation has no turn")?;
    let head = route.head(&turn).map_err(|error| error.to_string())?;
    let mut encoded = EncodedRequest { head: Vec::new(), body: Vec::new() };
    let written = route.encoder.encode_body(&turn, &mut encoded.body);
    written.map_err(|error| error.to_string())?;
    let request_id = conversation.request_id();
    head.render(Some(request_id.as_bytes()), encoded.body.len(), &mut encoded.head);
    seen.exchanged.request_head.clone_from(&encoded.head);
    seen.exchanged.request_body.clone_from(&encoded.body);
    seen.dispatched = rx_clock.clock().now();
    let acquired =
        pool.checkout(Demand { adds: Adds::AtOnce, ..Demand::at(seen.dispatched) }).await;
    let mut lease = acquired.connection.map_err(|failure| failure.to_string())?;
    seen.exchanged.connected = Some(acquired.connected.since(seen.dispatched));
    let buffers = RefCell::new(ReadBuffers::default());
    let request =
        Request { head: &head, id: Some(request_id.as_bytes()), encoded, may_wait: false };
    let reusable = lease.exchange(rx_clock, &buffers, request, seen).await;
    if reusable.map_err(|failure| failure.to_string())? {
        lease.release(rx_clock.clock().now());
    }
    Ok(())
}

/// Whose request it is, and who gets it.
#[derive(Clone, Copy)]
struct Whom {
    scenario: ScenarioId,
    target: TargetId,
}

/// An exchange, as it goes on.
struct Seen {
    exchanged: ExchangedOnce,
    dispatched: Moment,
}

impl ResponseHandler for Seen {
    fn sent(&mut self, _: Moment, _: EncodedRequest) {}

    fn received(&mut self, _: usize, rx_time: RxTime) {
        let after = rx_time.at.since(self.dispatched);
        self.exchanged.first_byte.get_or_insert(after);
        self.exchanged.finished = Some(after);
    }

    fn head(&mut self, head: &ResponseHead<'_>) {
        self.exchanged.status = head.status;
        let headers = head.headers.iter();
        self.exchanged.headers = headers
            .map(|header| {
                (header.name.to_owned(), String::from_utf8_lossy(header.value).into_owned())
            })
            .collect();
    }

    fn body(&mut self, bytes: &[u8], _: Moment) -> ControlFlow<()> {
        let body = &mut self.exchanged.body;
        let room = MOST_BYTES.saturating_sub(body.len()).min(bytes.len());
        body.extend_from_slice(&bytes[..room]);
        ControlFlow::Continue(())
    }
}
