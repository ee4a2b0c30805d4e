//! One turn: from its schedule to its sample.

mod follow;
mod measurement;
mod over_websocket;
mod rpc;

use std::borrow::Cow;
use std::mem;
use std::ops::ControlFlow;
use std::pin::pin;
use std::rc::Rc;

use measurement::TurnMeasurement;
use plimsoll_measure::{
    Clock as _, ConnectPhases, ErrorClass, FinishReason, GeneratorShare, Moment, Nanos, Operation,
    Outcome, Sample, ServerParts, ServerReport, TargetId,
};
use plimsoll_metrics::{REFUSED_USAGE, UNLIKE_TOTAL};
use plimsoll_protocol::{Decoder, Kept, PlainAnswer, ToolCall};
use plimsoll_transport::{
    Adds, Demand, EncodedRequest, Failure, Request, RequestHead, ResponseHandler, ResponseHead,
    RxTime,
};
use plimsoll_workload::{Conversation, RequestId, RpcEnd};
use rpc::RpcTurn;

use crate::connections::{Acquired, ConnectionSet, Lease, Pool};
use crate::in_flight_limit::InFlightPermit;
use crate::policy_decision::DecisionScan;
use crate::redirect::redirects;
use crate::request_timeout::LazyTimeout;
use crate::response_headers::{self, RecordedHeader};
use crate::sink::RowExtras;
use crate::worker::Worker;
use crate::worker_stats::TurnExtras;

/// The message of [`ErrorClass::NoFinishReason`].
const NO_FINISH_REASON: &str = "the stream ended without a finish reason, which other streams of this target have: it may have been truncated before a gateway ended it";

/// How often a request is sent again on which the target has certainly not worked.
const MOST_REFUSALS: u8 = 4;

/// A turn that has been scheduled and not yet recorded.
///
/// Dropping it records it: as in flight if it was dispatched, as never sent if not. A turn is
/// therefore never lost, whatever ends its task.
pub(crate) struct OpenTurn {
    worker: Rc<Worker>,
    measurement: TurnMeasurement,
    /// The most output tokens that the request asks for.
    asked_output: Option<u32>,
    /// When its time limit passes.
    limit: Moment,
    decoder: Option<Box<Decoder>>,
    /// Only of a message to a tool server or an agent; boxed, so that all others stay small.
    rpc: Option<Box<RpcTurn>>,
    /// Only where the policy decision does not follow from the status alone.
    scan: Option<DecisionScan>,
    /// The message of a failure.
    detail: Option<String>,
    /// Wait time that the response requests.
    retry_after: Option<Nanos>,
    /// Headers that the profile records.
    headers: Vec<RecordedHeader>,
    /// Parts of the target's time, where the response names any.
    parts: Option<Box<ServerParts>>,
    /// Only where a request is sent more than once; boxed, so that all others stay small.
    resends: Option<Box<Resends>>,
}

/// The requests of a turn after the first.
#[derive(Debug, Default)]
struct Resends {
    /// Where the last answer redirects to, if that is to be followed.
    location: Option<Box<str>>,
    /// Redirects that were followed.
    followed: u8,
    /// How often the request was sent again to the same place.
    again: u8,
}

/// The end of a turn, as the conversation needs it.
#[derive(Debug)]
pub(crate) struct TurnEnd {
    /// When the turn ended.
    pub(crate) at: Moment,
    /// When it would have ended without the generator's overhead, and at its latest start without
    /// generator delay.
    pub(crate) without_generator: Moment,
    /// Whether the conversation may go on.
    pub(crate) completed: bool,
    /// Whether the request got as far as the kernel.
    pub(crate) sent: bool,
    /// The assistant's text; empty unless it is kept for the next turn.
    pub(crate) reply: String,
    /// The tools that it calls; likewise.
    pub(crate) tool_calls: Vec<ToolCall>,
    /// Further parts of its message; likewise.
    pub(crate) kept: Option<Kept>,
    /// The result of a tool, or an approval, where the turn of an agent asked for one.
    pub(crate) answer: Option<Box<PlainAnswer>>,
    /// How long the target asks to wait before the next request, where the plan honours that.
    pub(crate) retry_after: Option<Nanos>,
    /// How a message to a tool server or an agent ended.
    pub(crate) rpc: Option<Box<RpcEnd>>,
}

impl OpenTurn {
    /// A turn that is about to be scheduled. Inlined, so that it is made where it stays: it is
    /// large, and would be copied with each move.
    #[inline]
    pub(crate) fn new(worker: &Rc<Worker>, intended: Moment) -> Self {
        Self {
            worker: Rc::clone(worker),
            measurement: TurnMeasurement::new(intended, worker.buffers.gaps.acquire()),
            asked_output: None,
            limit: intended,
            decoder: None,
            rpc: None,
            scan: None,
            detail: None,
            headers: Vec::new(),
            parts: None,
            retry_after: None,
            resends: None,
        }
    }

    /// Schedules it as the current turn of a conversation: from here on it is accounted for.
    pub(crate) fn schedule(&mut self, conversation: &Conversation) {
        self.schedule_on(conversation, self.worker.target_of(conversation.key()));
    }

    /// The same for a target of the caller's choice.
    pub(crate) fn schedule_on(&mut self, conversation: &Conversation, target: TargetId) {
        let Self { worker, measurement, .. } = self;
        let sample = &mut measurement.sample;
        let intended = sample.timeline.intended;
        let (stage, scenario) = (worker.stage_at(intended), conversation.scenario_of_turn());
        self.rpc = RpcTurn::begin(conversation);
        let operation = self.rpc.as_ref().map(|rpc| rpc.operation());
        let route = worker.run.route(scenario, target);
        sample.stage = stage;
        sample.scenario = scenario;
        sample.target = target;
        sample.conversation = conversation.key();
        sample.turn = conversation.index();
        sample.operation = operation;
        sample.position = worker.position(conversation.key(), intended);
        sample.stream = conversation.streams().unwrap_or_else(|| route.streams())
            || operation == Some(Operation::SendStreamingMessage);
        sample.warmup = worker.is_warmup(stage);
        sample.expected = route.decisions.expected;
        worker.count_scheduled(sample);
        measurement.events = worker.event_times(sample);
    }

    /// The sample as measured up to now.
    pub(crate) const fn sample(&self) -> &Sample {
        &self.measurement.sample
    }

    /// The message of a failure.
    pub(crate) fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// Accounts for a turn that is not sent; `late` by the generator's fault, or zero.
    pub(crate) fn never_send(mut self, late: Nanos) {
        self.measurement.sample.generator.dispatch = late;
    }

    /// Sends the turn's request and reads the response, to its end or to the time limit. `slot` is
    /// its possible start in the open model.
    pub(crate) async fn execute(
        &mut self,
        conversation: &mut Conversation,
        connections: &ConnectionSet,
        timeout: &mut LazyTimeout,
        slot: Option<&InFlightPermit>,
    ) -> TurnEnd {
        let worker = Rc::clone(&self.worker);
        let (mut encoded, dispatched) = match self.dispatch(&worker, conversation, slot) {
            Ok(dispatched) => dispatched,
            Err(failure) => return self.finish(Some(Err(failure))),
        };
        self.asked_output = encoded.asked_output;
        self.measurement.sample.bytes_out = encoded.wire.len() as u64;
        let limit = self.limit;
        // The limits of one timeout must not get shorter, and this one is.
        let mut own = self.gives_up().then(|| LazyTimeout::new(&worker.clock));
        let timeout = own.as_mut().unwrap_or(timeout);
        let demand = Demand { adds: self.adds(), ..Demand::at(dispatched) };
        let result = {
            let sent = self.exchange(&worker, connections, conversation, &mut encoded, demand);
            let exchange = pin!(sent);
            timeout.run(&worker.clock, limit, exchange).await
        };
        self.finish(result)
    }

    /// Encodes the request and dispatches the turn, separately from the wait for the response,
    /// because a future reserves memory for every local that lives across an await.
    fn dispatch<'w>(
        &mut self,
        worker: &'w Worker,
        conversation: &mut Conversation,
        slot: Option<&InFlightPermit>,
    ) -> Result<(EncodedTurn<'w>, Moment), Failure> {
        let encoded = encode(worker, self.sample(), conversation);
        self.measurement.repeated = conversation.note_sent().unwrap_or_default();
        conversation.release_text();
        let dispatched = worker.clock.now();
        self.dispatched(dispatched, slot);
        Ok((encoded?, dispatched))
    }

    /// Notes the dispatch, and how late it is by the generator's fault.
    fn dispatched(&mut self, at: Moment, slot: Option<&InFlightPermit>) {
        let timeout = self.worker.run.plan.limits.timeout;
        self.limit = at + self.worker.time_cap.unwrap_or(timeout).min(timeout);
        if let Some(rpc) = &mut self.rpc {
            self.limit = rpc.limit(at, self.limit);
        }
        let Sample { timeline, generator, .. } = &mut self.measurement.sample;
        timeline.dispatched = Some(at);
        generator.dispatch = at.since(slot.map_or(timeline.intended, InFlightPermit::start));
        if let Some(slot) = slot {
            slot.started(generator.dispatch);
        }
    }

    /// When a connection is added for the turn.
    fn adds(&self) -> Adds {
        let Sample { conversation, generator, .. } = self.sample();
        if !conversation.is_arrival() {
            return Adds::AtOnce;
        }
        Adds::for_arrival(generator.dispatch)
    }

    /// Sends the request and, if the target has certainly not worked on it, sends it again.
    #[expect(clippy::manual_async_fn, reason = "an `async fn` would hold the arguments twice")]
    fn exchange<'w>(
        &mut self,
        worker: &'w Worker,
        connections: &ConnectionSet,
        conversation: &mut Conversation,
        encoded: &mut EncodedTurn<'w>,
        mut demand: Demand,
    ) -> impl Future<Output = Result<(), Failure>> {
        async move {
            let pool = connections.pool(self.sample().target);
            while let Err(failed) = self.attempt(worker, pool, demand, encoded).await {
                let unused = failed.connection_ended;
                *encoded = self.encode_again(worker, conversation, failed)?;
                demand = demand.again(worker.clock.now(), unused);
            }
            if self.resends.as_ref().is_some_and(|resends| resends.location.is_some()) {
                // Boxed: other turns need no room for it.
                Box::pin(self.follow(worker, connections, conversation, demand)).await?;
            }
            Ok(())
        }
    }

    /// The request for a second attempt, or why it is not repeated.
    fn encode_again<'w>(
        &mut self,
        worker: &'w Worker,
        conversation: &mut Conversation,
        failed: FailedAttempt,
    ) -> Result<EncodedTurn<'w>, Failure> {
        let idle = failed.unseen_after.filter(|_| worker.run.plan.http.retry_reused);
        // A target that rejected a request unprocessed may do so again.
        let most = if failed.failure.is_unprocessed { MOST_REFUSALS } else { 1 };
        let again = self.resends.as_ref().map_or(0, |resends| resends.again);
        let Some(idle) = idle.filter(|_| again < most) else {
            return Err(failed.failure);
        };
        self.resends.get_or_insert_default().again += 1;
        self.measurement.sample.retried_after.get_or_insert(idle);
        conversation.restore_text();
        let encoded = encode(worker, self.sample(), conversation)?;
        conversation.release_text();
        Ok(encoded)
    }

    /// Sends the request over one connection.
    #[expect(clippy::manual_async_fn, reason = "an `async fn` would hold the arguments twice")]
    fn attempt(
        &mut self,
        worker: &Worker,
        pool: &Pool,
        demand: Demand,
        encoded: &mut EncodedTurn<'_>,
    ) -> impl Future<Output = Result<(), FailedAttempt>> {
        async move {
            let acquired = pool.checkout(demand).await;
            let mut lease = self.acquired(acquired, demand)?;
            let request = Request {
                head: &encoded.head,
                id: Some(encoded.id.as_bytes()),
                encoded: mem::take(&mut encoded.wire),
                may_wait: !self.sample().conversation.is_arrival(),
            };
            match lease.exchange(&worker.rx_clock, &worker.read_buffers, request, self).await {
                Ok(true) if worker.run.keeps_connections(self.sample().target) => {
                    lease.release(worker.clock.latest());
                }
                Ok(_) => {}
                Err(failure) => {
                    let connection_ended = lease.has_ended();
                    let unseen = self.is_unseen(&failure, &lease);
                    let unseen_after = unseen.then(|| lease.idle_for());
                    return Err(FailedAttempt { failure, unseen_after, connection_ended });
                }
            }
            Ok(())
        }
    }

    /// Notes how the connection came, and takes it. Apart from the exchange, because whatever waits
    /// for a response holds memory for it.
    fn acquired<'p>(
        &mut self,
        acquired: Acquired<'p>,
        demand: Demand,
    ) -> Result<Lease<'p>, Failure> {
        let own = self.late_connection(&acquired, demand);
        let is_first = self.redirects_followed() == 0;
        let sample = &mut self.measurement.sample;
        sample.generator.dispatch += own.0;
        sample.generator.send += own.1;
        if !is_first {
            return acquired.connection;
        }
        if sample.retried_after.is_none() {
            sample.timeline.dispatched = Some(acquired.dispatched);
            sample.connect = acquired.phases;
        } else {
            // The time of the first attempt and the wait for the second belong to the request.
            sample.connect = ConnectPhases { wait: sample.connect.wait, ..acquired.phases };
        }
        let lease = acquired.connection?;
        sample.reused = lease.was_used();
        sample.timeline.connected = Some(acquired.connected);
        Ok(lease)
    }

    /// The generator's part of the wait for a connection and of its set-up. An arrival that was
    /// released late opens none, so that its wait is the generator's. Else the pool may have been
    /// too careful, and the connection may have been ready since the worker last looked.
    fn late_connection(&self, acquired: &Acquired<'_>, demand: Demand) -> (Nanos, Nanos) {
        let Acquired { phases, dispatched, own_wait, connected, .. } = acquired;
        let (wait, set_up) = (phases.wait.unwrap_or_default(), connected.since(*dispatched));
        if wait == Nanos::ZERO && set_up == Nanos::ZERO {
            return Default::default();
        }
        let late = self.worker.watch.looks.lateness(*connected).unwrap_or_default();
        let unseen = wait.min(late.saturating_sub(set_up));
        let of_wait = if demand.is_late() { wait } else { unseen.max(*own_wait) };
        (of_wait, set_up.min(late))
    }

    /// Whether the target did not process the request: it reports that, or closed a reused
    /// connection before the request arrived.
    fn is_unseen(&self, failure: &Failure, lease: &Lease<'_>) -> bool {
        let Sample { reused, bytes_in, timeline, .. } = *self.sample();
        if bytes_in > 0 || failure.is_unprocessed {
            return bytes_in == 0;
        }
        let sent = timeline.sent.unwrap_or_else(|| self.worker.clock.latest());
        let waited = self.worker.clock.now().since(sent);
        let closed = matches!(failure.class, ErrorClass::Reset | ErrorClass::ClosedEarly);
        reused && closed && lease.may_have_been_closed_idle(waited)
    }

    /// Ends the measurement and classifies the outcome. `None`: the time limit passed.
    fn finish(&mut self, result: Option<Result<(), Failure>>) -> TurnEnd {
        self.measurement.end();
        let outcome = self.outcome(result);
        let sample = &mut self.measurement.sample;
        // A response ends when its last byte arrives; a turn without a response ends now.
        let ran_out = matches!(outcome, Outcome::TimedOut | Outcome::Cancelled);
        let last_byte = sample.timeline.finished.filter(|_| !ran_out);
        let at = last_byte.unwrap_or_else(|| {
            let now = self.worker.clock.now();
            sample.generator.finished = match outcome {
                Outcome::TimedOut | Outcome::Cancelled => now.since(self.limit),
                _ => self.worker.watch.looks.lateness(now).unwrap_or_default(),
            };
            now
        });
        if ran_out && sample.timeline.connected.is_none() {
            sample.connect.wait = sample.timeline.dispatched.map(|since| at.since(since));
        }
        sample.timeline.finished = Some(at);
        sample.outcome = outcome;
        if outcome == Outcome::Completed && sample.events > 0 {
            self.measurement.judge_stream();
        }
        let TurnMeasurement { sample, repeated, .. } = &mut self.measurement;
        sample.generator = sample.generator.within(&sample.timeline);
        let GeneratorShare { dispatch, send, finished, .. } = sample.generator;
        let (mut reply, mut tool_calls, mut answer) = (String::new(), Vec::new(), None);
        let kept = self.decoder.as_ref().and_then(|decoder| decoder.kept().cloned());
        let route = self.worker.run.route(sample.scenario, sample.target);
        sample.policy_decision =
            route.decisions.classify(self.scan.as_ref(), outcome, sample.status);
        if let Some(decoder) = &mut self.decoder {
            decoder.check_usage(sample.bytes_out, self.asked_output);
            note_usage(&self.worker, sample, decoder, *repeated);
            decoder.text().clone_into(&mut reply);
            tool_calls.extend_from_slice(decoder.tool_calls());
            answer = decoder.take_plain_answer();
            if let Some(found) = decoder.error_detail()
                && (outcome != Outcome::Failed(ErrorClass::Redirect) || self.detail.is_none())
            {
                self.detail = Some(found.message.clone());
            }
        }
        let sent = sample.timeline.sent.is_some();
        TurnEnd {
            at,
            without_generator: at - (dispatch + send + finished),
            completed: outcome == Outcome::Completed,
            sent,
            reply,
            tool_calls,
            kept,
            answer,
            retry_after: self.retry_after,
            rpc: self.end_rpc(outcome),
        }
    }

    fn outcome(&mut self, result: Option<Result<(), Failure>>) -> Outcome {
        let gives_up = self.gives_up();
        match (result, &mut self.decoder) {
            (None, _) if gives_up => Outcome::Cancelled,
            (None, _) => Outcome::TimedOut,
            (Some(Err(failure)), decoder) => {
                // The decoder found its error first: it is why reading stopped.
                let found = decoder.as_ref().and_then(|decoder| decoder.failure());
                self.detail = Some(failure.detail).filter(|detail| !detail.is_empty());
                Outcome::Failed(found.unwrap_or(failure.class))
            }
            (Some(Ok(())), Some(decoder)) => {
                let outcome = decoder.finish();
                self.checked_end(outcome)
            }
            (Some(Ok(())), None) => Outcome::Failed(ErrorClass::LocalIo),
        }
    }

    /// Checks a response that was read to its end for signs that it lacks a part. A gateway may end
    /// a stream properly that was cut before it. Then the reason is missing why the model stopped;
    /// that counts against targets that give one.
    fn checked_end(&mut self, outcome: Outcome) -> Outcome {
        let Self { decoder: Some(decoder), measurement, worker, .. } = self else { return outcome };
        let sample = &mut measurement.sample;
        sample.finish_reason = decoder.finish_reason().map(FinishReason::from_name);
        sample.content = decoder.content();
        if outcome != Outcome::Completed || !decoder.is_stream() {
            return outcome;
        }
        if decoder.gives_finish_reasons() {
            if sample.finish_reason.is_some() {
                worker.run.note_finish_reason(sample.target);
            } else if worker.run.gives_finish_reasons(sample.target) {
                self.detail = Some(NO_FINISH_REASON.to_owned());
                return Outcome::Failed(ErrorClass::NoFinishReason);
            }
        }
        outcome
    }
}

/// Why one attempt to send a request failed.
struct FailedAttempt {
    failure: Failure,
    /// The target has not worked on the request: how long its connection had been idle.
    unseen_after: Option<Nanos>,
    /// Not only the exchange has ended.
    connection_ended: bool,
}

impl From<Failure> for FailedAttempt {
    fn from(failure: Failure) -> Self {
        Self { failure, unseen_after: None, connection_ended: false }
    }
}

/// Notes the tokens of a turn, of which a part of the text was sent before.
fn note_usage(worker: &Worker, sample: &mut Sample, decoder: &Decoder, [part, whole]: [u32; 2]) {
    sample.usage = decoder.usage();
    let tokens = u64::from(sample.usage.prompt.count);
    let repeated = tokens * u64::from(part) / u64::from(whole.max(1));
    sample.repeated_tokens = u32::try_from(repeated).unwrap_or(u32::MAX);
    if let Some(spending) = &worker.run.spending {
        spending.add(&sample.usage, decoder.reported_total(), sample.bytes_out);
    }
    if let Some(refused) = decoder.refused_usage() {
        sample.usage_refused = true;
        worker.stats().add_cause(REFUSED_USAGE, sample, refused);
    }
    if let Some(counts) = decoder.contradiction() {
        worker.stats().add_cause(UNLIKE_TOTAL, sample, &counts);
    }
}

/// The encoded request of a turn.
struct EncodedTurn<'w> {
    head: Cow<'w, RequestHead>,
    id: RequestId,
    wire: EncodedRequest,
    /// The most output tokens that it asks for.
    asked_output: Option<u32>,
}

/// Encodes a request before its turn is dispatched: the time that takes is ours, not the target's.
fn encode<'w>(
    worker: &'w Worker,
    sample: &Sample,
    conversation: &Conversation,
) -> Result<EncodedTurn<'w>, Failure> {
    let route = worker.run.route(sample.scenario, sample.target);
    let Some(turn) = conversation.turn() else {
        let detail = "the conversation has no turn".to_owned();
        return Err(Failure::new(ErrorClass::LocalIo, detail));
    };
    let buffers = &worker.buffers.requests;
    worker.send_queue.take_spent(|spent| buffers.release(spent));
    let mut wire = buffers.acquire();
    route
        .encoder
        .encode_body(&turn, &mut wire.body)
        .map_err(|error| Failure::new(ErrorClass::LocalIo, error.to_string()))?;
    let head =
        route.head(&turn).map_err(|error| Failure::new(ErrorClass::LocalIo, error.to_string()))?;
    let id = conversation.request_id();
    if !route.is_websocket() {
        head.render(Some(id.as_bytes()), wire.body.len(), &mut wire.head);
    }
    Ok(EncodedTurn { head, id, wire, asked_output: turn.max_tokens })
}

impl ResponseHandler for OpenTurn {
    fn sent(&mut self, at: Moment, wire: EncodedRequest) {
        let is_first = self.redirects_followed() == 0;
        let sample = &mut self.measurement.sample;
        sample.timeline.sent = Some(at);
        // A worker that slept meanwhile waited for the target: the socket was full.
        let from = sample.timeline.connected.unwrap_or(at);
        let waited =
            sample.flow.send_stall.is_some() || self.worker.watch.looks.slept_between(from, at);
        if !waited && is_first {
            sample.generator.send += at.since(from);
        }
        self.worker.buffers.requests.release(wire);
    }

    fn received(&mut self, bytes: usize, rx_time: RxTime) {
        self.worker.heard[self.measurement.sample.target.index()].set(rx_time.at);
        let is_next = self.measurement.received(bytes, rx_time);
        if let Some(decoder) = self.decoder.as_mut().filter(|_| is_next) {
            decoder.next_read();
        }
    }

    fn head(&mut self, head: &ResponseHead<'_>) {
        self.measurement.sample.status = head.status;
        if redirects(head.status) {
            self.redirected(head);
        }
        let asked = matches!(head.status, 429 | 503 | 529).then(|| response_headers::asked(head));
        let asked = asked.flatten();
        if head.status != 529 && self.worker.run.plan.limits.honour_retry_after {
            self.retry_after = asked;
        }
        let Self { worker, measurement, decoder, rpc, scan, .. } = self;
        let (server, timing) = worker.run.headers.read(head);
        measurement.sample.server = ServerReport { retry_after: asked.is_some(), ..server };
        self.parts = timing.then(|| worker.run.headers.parts(head)).flatten().map(Box::new);
        if worker.run.headers.records() {
            self.headers = worker.run.headers.recorded(head);
        }
        let Sample { scenario, target, stream, .. } = measurement.sample;
        worker.stats().note_server(target, head);
        let (route, buffers) = (worker.run.route(scenario, target), &worker.buffers);
        // Not before now: while a request waits for its response, others use the decoder, whose
        // memory stays in the cache.
        let decoders = &buffers.decoders[worker.run.route_index(scenario, target)];
        let decoder = decoder.insert(decoders.acquire_or(|| Box::new(route.decoder())));
        if let Some(rpc) = rpc {
            rpc.head(head, decoder);
        }
        decoder.expect_stream(stream);
        decoder.head(head.status, head.content_type());
        if let Some(expected) = route.expects(head.status) {
            decoder.status_is_expected(head.status, expected);
        }
        decoder.content_encoding(head.header("content-encoding"));
        if route.decisions.needs_scan() {
            let scan = scan.get_or_insert_with(|| buffers.scans.acquire());
            route.decisions.scan_head(scan, head);
        }
    }

    fn send_stalled(&mut self, waited: Nanos) {
        self.measurement.sample.flow.send_stall = Some(waited);
    }

    fn receive_stalled(&mut self) {
        self.measurement.sample.flow.receive_stall = true;
    }

    fn body(&mut self, bytes: &[u8], at: Moment) -> ControlFlow<()> {
        let Self { decoder: Some(decoder), measurement, scan, worker, .. } = self else {
            return ControlFlow::Break(());
        };
        if let Some(scan) = scan {
            let Sample { scenario, target, .. } = measurement.sample;
            worker.run.route(scenario, target).decisions.scan_body(scan, bytes);
        }
        decoder.feed(bytes, &mut |delta| measurement.content(delta.kind, at));
        if decoder.is_stream() {
            measurement.fed(decoder);
        }
        if decoder.failure().is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Drop for OpenTurn {
    fn drop(&mut self) {
        let Self { worker, measurement, decoder, scan, detail, headers, parts, .. } = self;
        let TurnMeasurement { sample, gaps, late_reads, events, .. } = measurement;
        if sample.timeline.dispatched.is_some() && sample.outcome == Outcome::NeverSent {
            sample.outcome = Outcome::InFlight;
            sample.timeline.finished = None;
        }
        let parts = parts.take().map(|parts| Box::new(parts.within(sample.timeline.ttfb())));
        let row = RowExtras {
            events: events.take(),
            headers: mem::take(headers),
            parts: parts.as_ref().map_or_else(Vec::new, |parts| worker.named_parts(parts)),
            error_detail: detail
                .take()
                .filter(|detail| sample.outcome != Outcome::Completed && !detail.is_empty()),
            decoded_bytes: decoder.as_ref().and_then(|decoder| decoder.decoded_bytes()),
        };
        let (gaps, late_reads) = (mem::take(gaps), mem::take(late_reads));
        worker.record(sample, TurnExtras { gaps, late_reads, parts, row });
        let buffers = &worker.buffers;
        if let Some(decoder) = decoder.take() {
            let route = worker.run.route_index(sample.scenario, sample.target);
            buffers.decoders[route].release(decoder);
        }
        if let Some(scan) = scan.take() {
            buffers.scans.release(scan);
        }
    }
}

#[cfg(test)]
mod tests;
