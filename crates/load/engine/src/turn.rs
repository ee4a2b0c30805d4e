//! One turn: from its schedule to its sample.

mod measurement;

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::pin::pin;
use std::rc::Rc;

use plimsoll_measure::{
    Clock as _, ConnectPhases, ErrorClass, FlowControl, GapSummary, Moment, Nanos, Outcome, Sample,
    TargetId, Timeline, Usage,
};
use plimsoll_protocol::Decoder;
use plimsoll_transport::{
    EncodedRequest, Failure, Request, RequestHead, ResponseHandler, ResponseHead, RxTime,
};
use plimsoll_workload::Conversation;

use crate::connections::ConnectionSet;
use crate::policy_decision::DecisionScan;
use crate::request_timeout::LazyTimeout;
use crate::worker::Worker;
use measurement::TurnMeasurement;

/// A turn that has been scheduled and not yet recorded.
///
/// Dropping it records it: as in flight if it was dispatched, as never sent if not. So a turn
/// cannot get lost, whatever ends its task.
pub(crate) struct OpenTurn {
    worker: Rc<Worker>,
    measurement: TurnMeasurement,
    decoder: Option<Box<Decoder>>,
    /// Only where the policy decision does not follow from the status alone.
    scan: Option<DecisionScan>,
    /// The message of a failure.
    detail: Option<String>,
    /// What the response asks to wait.
    retry_after: Option<Nanos>,
}

/// The end of a turn, as the conversation needs it.
#[derive(Debug)]
pub(crate) struct TurnEnd {
    /// When the turn ended.
    pub(crate) at: Moment,
    /// Whether the conversation may go on.
    pub(crate) completed: bool,
    /// Whether the request got as far as the kernel.
    pub(crate) sent: bool,
    /// The assistant's text; empty unless it is kept for the next turn.
    pub(crate) reply: String,
    /// How long the target asks to wait before the next request, where the plan honours that.
    pub(crate) retry_after: Option<Nanos>,
}

impl OpenTurn {
    /// Schedules the current turn of a conversation: from here on it is accounted for.
    pub(crate) fn schedule(
        worker: &Rc<Worker>,
        conversation: &Conversation,
        intended: Moment,
    ) -> Self {
        Self::schedule_on(worker, conversation, worker.target_of(conversation.key()), intended)
    }

    /// The same for a target of the caller's choice.
    pub(crate) fn schedule_on(
        worker: &Rc<Worker>,
        conversation: &Conversation,
        target: TargetId,
        intended: Moment,
    ) -> Self {
        let (stage, scenario) = (worker.stage_at(intended), conversation.scenario());
        let sample = Sample {
            stage,
            scenario,
            target,
            conversation: conversation.key(),
            turn: conversation.index(),
            stream: worker.run.route(scenario, target).streams(),
            warmup: worker.is_warmup(stage),
            reused: false,
            timeline: Timeline::intended(intended),
            connect: ConnectPhases::default(),
            status: 0,
            outcome: Outcome::NeverSent,
            policy_decision: None,
            expected: worker.run.route(scenario, target).decisions.expected,
            usage: Usage::default(),
            events: 0,
            gaps: GapSummary::default(),
            bytes_out: 0,
            bytes_in: 0,
            flow: FlowControl::default(),
            read_lag: None,
        };
        worker.count_scheduled(&sample);
        let events = worker.event_times(&sample);
        let measurement = TurnMeasurement {
            sample,
            gaps: worker.buffers.gaps.acquire(),
            events,
            burst: 0,
            late: false,
        };
        Self {
            worker: Rc::clone(worker),
            measurement,
            decoder: None,
            scan: None,
            detail: None,
            retry_after: None,
        }
    }

    /// The sample as measured up to now.
    pub(crate) const fn sample(&self) -> &Sample {
        &self.measurement.sample
    }

    /// The message of a failure.
    pub(crate) fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// Sends the turn's request and reads the response, to its end or to the time limit.
    pub(crate) async fn execute(
        &mut self,
        conversation: &mut Conversation,
        connections: &ConnectionSet,
        timeout: &mut LazyTimeout,
    ) -> TurnEnd {
        let worker = Rc::clone(&self.worker);
        let mut wire = worker.buffers.requests.acquire();
        let request_id = conversation.request_id();
        let id = request_id.as_str();
        let prepared = encode(&worker, self.sample(), conversation, id, &mut wire);
        conversation.release_text();
        let dispatched = worker.clock.now();
        self.measurement.sample.timeline.dispatched = Some(dispatched);
        let result = match prepared {
            Err(failure) => Some(Err(failure)),
            Ok(shape) => {
                self.measurement.sample.bytes_out = wire.len() as u64;
                let request = Request { head: &shape, id: Some(id), encoded: wire };
                let limit = dispatched + worker.run.plan.limits.timeout;
                let exchange = pin!(self.exchange(connections, request));
                timeout.run(&worker.clock, limit, exchange).await
            }
        };
        self.finish(result)
    }

    async fn exchange(
        &mut self,
        connections: &ConnectionSet,
        request: Request<'_>,
    ) -> Result<(), Failure> {
        let worker = Rc::clone(&self.worker);
        let target = self.sample().target;
        let pool = connections.pool(target);
        let acquired = pool.checkout(worker.connector(target), &worker.rx_clock).await;
        self.measurement.sample.connect = acquired.phases;
        let mut connection = acquired.connection?;
        let sample = &mut self.measurement.sample;
        sample.reused = connection.was_used();
        sample.timeline.connected =
            if sample.reused { sample.timeline.dispatched } else { Some(worker.clock.now()) };
        if connection.exchange(&worker.rx_clock, &worker.read_buffers, request, self).await? {
            pool.release(connection);
        }
        Ok(())
    }

    /// Ends the measurement and classifies the outcome. `None`: the time limit passed.
    fn finish(&mut self, result: Option<Result<(), Failure>>) -> TurnEnd {
        self.measurement.end_of_read();
        let outcome = self.outcome(result);
        let sample = &mut self.measurement.sample;
        // A response ends when its last byte arrives; a turn without a response ends now.
        let last_byte = sample.timeline.finished.filter(|_| outcome != Outcome::TimedOut);
        let at = last_byte.unwrap_or_else(|| self.worker.clock.now());
        sample.timeline.finished = Some(at);
        sample.outcome = outcome;
        let mut reply = String::new();
        let route = self.worker.run.route(sample.scenario, sample.target);
        sample.policy_decision =
            route.decisions.classify(self.scan.as_ref(), outcome, sample.status);
        if let Some(decoder) = &self.decoder {
            sample.usage = decoder.usage();
            decoder.text().clone_into(&mut reply);
            if let Some(detail) = decoder.error_detail() {
                self.detail = Some(detail.message.clone());
            }
        }
        TurnEnd {
            at,
            completed: outcome == Outcome::Completed,
            sent: sample.timeline.sent.is_some(),
            reply,
            retry_after: self.retry_after,
        }
    }

    fn outcome(&mut self, result: Option<Result<(), Failure>>) -> Outcome {
        match (result, &mut self.decoder) {
            (None, _) => Outcome::TimedOut,
            (Some(Err(failure)), decoder) => {
                // The decoder found its error first: it is why reading stopped.
                let found = decoder.as_ref().and_then(|decoder| decoder.failure());
                self.detail = Some(failure.detail).filter(|detail| !detail.is_empty());
                Outcome::Failed(found.unwrap_or(failure.class))
            }
            (Some(Ok(())), Some(decoder)) => decoder.finish(),
            (Some(Ok(())), None) => Outcome::Failed(ErrorClass::LocalIo),
        }
    }
}

/// Encodes a request before its turn is dispatched: the time that takes is ours, not the target's.
fn encode<'w>(
    worker: &'w Worker,
    sample: &Sample,
    conversation: &Conversation,
    request_id: &str,
    wire: &mut EncodedRequest,
) -> Result<Cow<'w, RequestHead>, Failure> {
    let route = worker.run.route(sample.scenario, sample.target);
    let broken = |detail: String| Failure::new(ErrorClass::LocalIo, detail);
    let Some(mut turn) = conversation.turn() else {
        return Err(broken("the conversation has no turn".to_owned()));
    };
    if let Some(cap) = worker.output_cap {
        turn.max_tokens = turn.max_tokens.map(|tokens| tokens.min(cap));
    }
    route.encoder.encode_body(&turn, &mut wire.body).map_err(|error| broken(error.to_string()))?;
    let head = route.head(&turn).map_err(|error| broken(error.to_string()))?;
    head.render(Some(request_id), wire.body.len(), &mut wire.head);
    Ok(head)
}

impl ResponseHandler for OpenTurn {
    fn sent(&mut self, at: Moment, wire: EncodedRequest) {
        self.measurement.sample.timeline.sent = Some(at);
        self.worker.buffers.requests.release(wire);
    }

    fn received(&mut self, bytes: usize, rx_time: RxTime) {
        self.measurement.received(bytes, rx_time);
    }

    fn head(&mut self, head: &ResponseHead<'_>) {
        self.measurement.sample.status = head.status;
        if matches!(head.status, 429 | 503) && self.worker.run.plan.limits.honour_retry_after {
            self.retry_after = head.header("retry-after").and_then(retry_after);
        }
        let Self { worker, measurement, decoder, scan, .. } = self;
        let Sample { scenario, target, .. } = measurement.sample;
        worker.stats().note_server(target, head);
        let (route, buffers) = (worker.run.route(scenario, target), &worker.buffers);
        // Not before now: while a request waits for its response, others use the decoder, whose
        // memory stays in the cache.
        let decoders = &buffers.decoders[worker.run.route_index(scenario, target)];
        let decoder = decoder.insert(decoders.acquire_or(|| Box::new(route.decoder())));
        decoder.head(head.status, head.header("content-type"));
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
        if decoder.failure().is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// The seconds of a `Retry-After` header (RFC 9110, 10.2.3). The other form, a date, depends on two
/// clocks and is not honoured.
fn retry_after(value: &str) -> Option<Nanos> {
    value.trim().parse::<u32>().ok().map(|seconds| Nanos::from_secs(seconds.into()))
}

impl Drop for OpenTurn {
    fn drop(&mut self) {
        let Self { worker, measurement, decoder, scan, detail, .. } = self;
        let TurnMeasurement { sample, gaps, events, .. } = measurement;
        if sample.timeline.dispatched.is_some() && sample.outcome == Outcome::NeverSent {
            sample.outcome = Outcome::InFlight;
            sample.timeline.finished = None;
        }
        worker.record(sample, gaps, events.take(), detail.take());
        let buffers = &worker.buffers;
        buffers.gaps.release(std::mem::take(gaps));
        if let Some(decoder) = decoder.take() {
            let route = worker.run.route_index(sample.scenario, sample.target);
            buffers.decoders[route].release(decoder);
        }
        if let Some(scan) = scan.take() {
            buffers.scans.release(scan);
        }
    }
}
