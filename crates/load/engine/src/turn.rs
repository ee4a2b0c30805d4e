//! One turn: from its schedule to its sample.

mod measurement;

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::pin::pin;
use std::rc::Rc;

use plimsoll_measure::{
    Clock as _, ErrorClass, FinishReason, GeneratorShare, Moment, Nanos, Outcome, Sample, TargetId,
};
use plimsoll_protocol::Decoder;
use plimsoll_transport::{
    EncodedRequest, Failure, Request, RequestHead, ResponseHandler, ResponseHead, RxTime,
};
use plimsoll_workload::Conversation;

use crate::connections::ConnectionSet;
use crate::in_flight_limit::InFlightPermit;
use crate::policy_decision::DecisionScan;
use crate::request_timeout::LazyTimeout;
use crate::response_headers::RecordedHeader;
use crate::sink::RowExtras;
use crate::worker::Worker;
use measurement::TurnMeasurement;

/// The message of [`ErrorClass::NoFinishReason`].
const NO_FINISH_REASON: &str = "the stream has its end, but no reason why the model stopped, which this target gives in \
     other streams: it may have been cut before a gateway ended it";

/// A turn that has been scheduled and not yet recorded.
///
/// Dropping it records it: as in flight if it was dispatched, as never sent if not. So a turn
/// cannot get lost, whatever ends its task.
pub(crate) struct OpenTurn {
    worker: Rc<Worker>,
    measurement: TurnMeasurement,
    /// The most output tokens that the request asks for.
    asked_output: Option<u32>,
    decoder: Option<Box<Decoder>>,
    /// Only where the policy decision does not follow from the status alone.
    scan: Option<DecisionScan>,
    /// The message of a failure.
    detail: Option<String>,
    /// What the response asks to wait.
    retry_after: Option<Nanos>,
    /// Headers that the profile records.
    headers: Vec<RecordedHeader>,
}

/// The end of a turn, as the conversation needs it.
#[derive(Debug)]
pub(crate) struct TurnEnd {
    /// When the turn ended.
    pub(crate) at: Moment,
    /// When it would have ended without what the generator added, at the latest start that the
    /// generator is not to blame for.
    pub(crate) without_generator: Moment,
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
            expected: worker.run.route(scenario, target).decisions.expected,
            ..Sample::unsent(intended)
        };
        worker.count_scheduled(&sample);
        let events = worker.event_times(&sample);
        let measurement = TurnMeasurement::new(sample, worker.buffers.gaps.acquire(), events);
        Self {
            worker: Rc::clone(worker),
            measurement,
            asked_output: None,
            decoder: None,
            scan: None,
            detail: None,
            headers: Vec::new(),
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

    /// Accounts for a turn that is not sent; `late` by the generator's fault, or zero.
    pub(crate) fn never_send(mut self, late: Nanos) {
        self.measurement.sample.generator.dispatch = late;
    }

    /// Sends the turn's request and reads the response, to its end or to the time limit. `slot`
    /// says when it might have started, in the open model.
    pub(crate) async fn execute(
        &mut self,
        conversation: &mut Conversation,
        connections: &ConnectionSet,
        timeout: &mut LazyTimeout,
        slot: Option<&InFlightPermit>,
    ) -> TurnEnd {
        let worker = Rc::clone(&self.worker);
        let mut wire = worker.buffers.requests.acquire();
        let request_id = conversation.request_id();
        let id = request_id.as_str();
        let prepared = encode(&worker, self.sample(), conversation, id, &mut wire);
        conversation.release_text();
        let dispatched = worker.clock.now();
        self.dispatched(dispatched, slot);
        let result = match prepared {
            Err(failure) => Some(Err(failure)),
            Ok((head, asked_output)) => {
                self.asked_output = asked_output;
                self.measurement.sample.bytes_out = wire.len() as u64;
                let request = Request { head: &head, id: Some(id), encoded: wire };
                let limit = dispatched + worker.run.plan.limits.timeout;
                let exchange = pin!(self.exchange(connections, request));
                timeout.run(&worker.clock, limit, exchange).await
            }
        };
        self.finish(result)
    }

    /// Notes the dispatch, and how late it is by the generator's fault.
    fn dispatched(&mut self, at: Moment, slot: Option<&InFlightPermit>) {
        let Sample { timeline, generator, .. } = &mut self.measurement.sample;
        timeline.dispatched = Some(at);
        generator.dispatch = at.since(slot.map_or(timeline.intended, InFlightPermit::start));
        if let Some(slot) = slot {
            slot.started(generator.dispatch);
        }
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
        sample.timeline.connected = sample.timeline.dispatched;
        if !sample.reused {
            let now = worker.clock.now();
            sample.timeline.connected = Some(now);
            // It may have been ready since the worker last looked, but not before the dispatch.
            let late = worker.watch.looks.lateness(now).unwrap_or_default();
            let dispatched = sample.timeline.dispatched.unwrap_or(now);
            sample.generator.send = late.min(now.since(dispatched));
        }
        if connection.exchange(&worker.rx_clock, &worker.read_buffers, request, self).await? {
            pool.release(connection);
        }
        Ok(())
    }

    /// Ends the measurement and classifies the outcome. `None`: the time limit passed.
    fn finish(&mut self, result: Option<Result<(), Failure>>) -> TurnEnd {
        self.measurement.end();
        let outcome = self.outcome(result);
        let sample = &mut self.measurement.sample;
        // A response ends when its last byte arrives; a turn without a response ends now.
        let last_byte = sample.timeline.finished.filter(|_| outcome != Outcome::TimedOut);
        let at = last_byte.unwrap_or_else(|| {
            let now = self.worker.clock.now();
            sample.generator.finished = match outcome {
                Outcome::TimedOut => {
                    let limit = self.worker.run.plan.limits.timeout;
                    now.since(sample.timeline.dispatched.unwrap_or(now) + limit)
                }
                _ => self.worker.watch.looks.lateness(now).unwrap_or_default(),
            };
            now
        });
        sample.timeline.finished = Some(at);
        sample.outcome = outcome;
        if outcome == Outcome::Completed && sample.events > 0 {
            self.measurement.judge_stream();
        }
        let sample = &mut self.measurement.sample;
        let GeneratorShare { dispatch, send, finished, .. } = sample.generator;
        let mut reply = String::new();
        let route = self.worker.run.route(sample.scenario, sample.target);
        sample.policy_decision =
            route.decisions.classify(self.scan.as_ref(), outcome, sample.status);
        if let Some(decoder) = &mut self.decoder {
            decoder.check_usage(sample.bytes_out, self.asked_output);
            sample.usage = decoder.usage();
            if let Some(refused) = decoder.refused_usage() {
                sample.usage_refused = true;
                self.worker.stats().note_refused_usage(refused);
            }
            decoder.text().clone_into(&mut reply);
            if let Some(detail) = decoder.error_detail() {
                self.detail = Some(detail.message.clone());
            }
        }
        TurnEnd {
            at,
            without_generator: at - (dispatch + send + finished),
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
        sample.finish_reason = decoder.finish_reason().map(FinishReason::of);
        if outcome != Outcome::Completed || !decoder.is_stream() {
            return outcome;
        }
        if sample.finish_reason.is_some() {
            worker.finish_reasons[sample.target.index()].set(true);
        } else if worker.finish_reasons[sample.target.index()].get() {
            self.detail = Some(NO_FINISH_REASON.to_owned());
            return Outcome::Failed(ErrorClass::NoFinishReason);
        }
        sample.fewer_tokens = decoder.has_fewer_tokens();
        outcome
    }
}

/// Encodes a request before its turn is dispatched: the time that takes is ours, not the target's.
/// Gives its head, and the most output tokens that it asks for.
fn encode<'w>(
    worker: &'w Worker,
    sample: &Sample,
    conversation: &Conversation,
    request_id: &str,
    wire: &mut EncodedRequest,
) -> Result<(Cow<'w, RequestHead>, Option<u32>), Failure> {
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
    Ok((head, turn.max_tokens))
}

impl ResponseHandler for OpenTurn {
    fn sent(&mut self, at: Moment, wire: EncodedRequest) {
        let sample = &mut self.measurement.sample;
        sample.timeline.sent = Some(at);
        // A worker that slept meanwhile waited for the target: the socket was full.
        let from = sample.timeline.connected.unwrap_or(at);
        let waited =
            sample.flow.send_stall.is_some() || self.worker.watch.looks.slept_between(from, at);
        if !waited {
            sample.generator.send += at.since(from);
        }
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
        measurement.sample.server = worker.run.headers.read(head);
        if worker.run.headers.records() {
            self.headers = worker.run.headers.recorded(head);
        }
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
        if decoder.is_stream() {
            measurement.fed(decoder);
        }
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
        let Self { worker, measurement, decoder, scan, detail, headers, .. } = self;
        let TurnMeasurement { sample, gaps, late_reads, events, .. } = measurement;
        if sample.timeline.dispatched.is_some() && sample.outcome == Outcome::NeverSent {
            sample.outcome = Outcome::InFlight;
            sample.timeline.finished = None;
        }
        let extras = RowExtras { events: events.take(), headers: std::mem::take(headers) };
        worker.record(sample, gaps, late_reads, extras, detail.take());
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

#[cfg(test)]
mod tests;
