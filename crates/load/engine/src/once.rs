//! One request of each scenario and its answer, as they are on the wire.

use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos, ScenarioId, TargetId};
use plimsoll_plan::Plan;
use plimsoll_transport::{Request, SingleClient, SingleResponse};
use plimsoll_workload::AgentRole;

use crate::error::EngineError;
use crate::prepared::PreparedRun;
use crate::probe::{keys_of, local_runtime};

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
    /// Its body as received; the first MiB.
    pub body: Vec<u8>,
    /// Time until the connection was there.
    pub connected: Option<Nanos>,
    /// From the dispatch to the first byte of the answer.
    pub first_byte: Option<Nanos>,
    /// From the dispatch to its last byte.
    pub finished: Option<Nanos>,
    /// Reason why the answer is missing or incomplete.
    pub failure: Option<String>,
}

/// Sends the first request of each scenario to each target, one after another, and gives all that
/// was sent and received.
///
/// # Errors
/// Where the plan cannot be carried out.
pub fn exchange_once(plan: Plan) -> Result<Vec<ExchangedOnce>, EngineError> {
    let (run, clock) = (PreparedRun::new(plan)?, MonotonicClock::start());
    local_runtime()?.block_on(async {
        let mut all = Vec::new();
        for (target, connector) in run.connectors()?.into_iter().enumerate() {
            let client = SingleClient::over(connector, clock);
            let scenarios = run.plan.scenarios.iter().enumerate();
            let own =
                scenarios.filter(|(_, spec)| !spec.agent.as_ref().is_some_and(AgentRole::is_part));
            for (scenario, _) in own {
                let one = Once { run: &run, client: &client, clock, scenario, target };
                all.push(one.exchange().await);
            }
        }
        Ok(all)
    })
}

/// One request of a scenario to a target.
struct Once<'r> {
    run: &'r PreparedRun,
    client: &'r SingleClient,
    clock: MonotonicClock,
    scenario: usize,
    target: usize,
}

impl Once<'_> {
    async fn exchange(&self) -> ExchangedOnce {
        let plan = &self.run.plan;
        let mut exchanged = ExchangedOnce {
            scenario: plan.scenarios[self.scenario].name.clone(),
            target: plan.targets[self.target].name.clone(),
            ..ExchangedOnce::default()
        };
        let mut response = SingleResponse::keeping(MOST_BYTES);
        let mut dispatched = self.clock.now();
        let limit = plan.limits.timeout;
        let sent = self.send(&mut exchanged, &mut dispatched, &mut response);
        let failure = match tokio::time::timeout(limit.to_duration(), sent).await {
            Ok(sent) => sent.err(),
            Err(_) => Some(format!("no complete response within {limit}")),
        };
        let SingleResponse { status, headers, body, received, .. } = response;
        ExchangedOnce {
            status,
            headers,
            body,
            first_byte: received.map(|(first, _)| first.since(dispatched)),
            finished: received.map(|(_, last)| last.since(dispatched)),
            failure,
            ..exchanged
        }
    }

    async fn send(
        &self,
        exchanged: &mut ExchangedOnce,
        dispatched: &mut Moment,
        response: &mut SingleResponse,
    ) -> Result<(), String> {
        let scenario = ScenarioId(u16::try_from(self.scenario).unwrap_or(u16::MAX));
        let target = TargetId(u16::try_from(self.target).unwrap_or(u16::MAX));
        let row = self.run.plan.trace.is_some().then_some(0);
        let mut keys = keys_of(self.run, scenario, target);
        let key = keys.next().ok_or("its weight is 0: nothing is sent")?;
        let conversation = self.run.workload.conversation(key, row);
        let route = self.run.route(conversation.scenario_of_turn(), target);
        if route.is_websocket() {
            let cause = "it uses a WebSocket, so no single request can be shown";
            return Err(cause.to_owned());
        }
        let turn = conversation.turn().ok_or("the conversation has no turn")?;
        let id = conversation.request_id();
        let (head, encoded) = route.encode(&turn, Some(id.as_bytes()))?;
        exchanged.request_head.clone_from(&encoded.head);
        exchanged.request_body.clone_from(&encoded.body);
        *dispatched = self.clock.now();
        let connection = self.client.connect().await.map_err(|failure| failure.to_string())?;
        exchanged.connected = Some(self.clock.now().since(*dispatched));
        let request = Request { head: &head, id: Some(id.as_bytes()), encoded, may_wait: false };
        connection.exchange(request, response).await.map_err(|failure| failure.to_string())
    }
}
