//! One turn: from its schedule to its sample.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::pin::pin;
use std::rc::Rc;

use plimsoll_measure::{
    Clock as _, ConnectPhases, ErrorClass, FlowControl, GapSummary, LATE_READ, Moment, Nanos,
    Outcome, Sample, TargetId, Timeline, Usage,
};
use plimsoll_protocol::{Decoder, DeltaKind};
use plimsoll_transport::{
    EncodedRequest, Failure, Request, RequestHead, ResponseHandler, ResponseHead, RxTime,
};
use plimsoll_workload::Conversation;

use crate::policy_decision::Reading;
use crate::virtual_user::Connections;
use crate::watchdog::Watchdog;
use crate::worker::Worker;

/// A turn that has been scheduled and not yet recorded.
///
/// Dropping it records it: as in flight if it was dispatched, as never sent if not. So a turn cannot get lost,
/// whatever ends its task.
pub(crate) struct OpenTurn {
    worker: Rc<Worker>,
    measured: Measured,
    decoder: Option<Box<Decoder>>,
    /// Only where the policy decision is not in the status alone.
    reading: Option<Reading>,
    detail: Option<String>,
}

/// What the conversation needs to know of a turn that is over.
#[derive(Debug)]
pub(crate) struct RunEnd {
    /// When the turn was over.
    pub(crate) at: Moment,
    /// May the conversation go on?
    pub(crate) completed: bool,
    /// Did the request get as far as the kernel?
    pub(crate) sent: bool,
    /// The assistant's text; empty unless it is kept for the next turn.
    pub(crate) reply: String,
}

impl OpenTurn {
    /// Schedules the current turn of a conversation: from here on it is accounted for.
    pub(crate) fn schedule(
        worker: &Rc<Worker>,
        conversation: &Conversation,
        intended: Moment,
    ) -> Self {
        Self::schedule_on(worker, conversation, worker.lane_of(conversation.key()), intended)
    }

    /// The same on a target of the caller's choice.
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
            expected: worker.run.route(scenario, target).policy_decisions.expected,
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
        let measured = Measured { sample, gaps: worker.take_gaps(), burst: 0, late: false, events };
        Self { worker: Rc::clone(worker), measured, decoder: None, reading: None, detail: None }
    }

    /// What has been measured up to now.
    pub(crate) const fn sample(&self) -> &Sample {
        &self.measured.sample
    }

    /// What was said about a failure.
    pub(crate) fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// Sends the turn and reads its answer to the end or to its time limit.
    pub(crate) async fn carry_out(
        &mut self,
        conversation: &mut Conversation,
        connections: &Connections,
        watchdog: &mut Watchdog,
    ) -> RunEnd {
        let worker = Rc::clone(&self.worker);
        let mut wire = worker.take_wire();
        let request_id = conversation.request_id();
        let id = request_id.as_str();
        let prepared = encode(&worker, self.sample(), conversation, id, &mut wire);
        conversation.let_go();
        let dispatched = worker.clock.now();
        self.measured.sample.timeline.dispatched = Some(dispatched);
        let result = match prepared {
            Err(failure) => Some(Err(failure)),
            Ok(shape) => {
                self.measured.sample.bytes_out = wire.len() as u64;
                let request = Request { head: &shape, id: Some(id), encoded: wire };
                let limit = dispatched + worker.run.plan.limits.timeout;
                let exchange = pin!(self.exchange(connections, request));
                watchdog.guard(&worker.clock, limit, exchange).await
            }
        };
        self.conclude(result)
    }

    async fn exchange(
        &mut self,
        connections: &Connections,
        request: Request<'_>,
    ) -> Result<(), Failure> {
        let worker = Rc::clone(&self.worker);
        let target = self.sample().target;
        let pool = connections.to(target);
        let acquired = pool.checkout(worker.connector(target), &worker.rx_clock).await;
        self.measured.sample.connect = acquired.phases;
        let mut connection = acquired.connection?;
        let sample = &mut self.measured.sample;
        sample.reused = connection.was_used();
        sample.timeline.connected =
            if sample.reused { sample.timeline.dispatched } else { Some(worker.clock.now()) };
        if connection.exchange(&worker.rx_clock, &worker.scratch, request, self).await? {
            pool.release(connection);
        }
        Ok(())
    }

    /// Judges the answer. `None`: the time limit passed.
    fn conclude(&mut self, result: Option<Result<(), Failure>>) -> RunEnd {
        self.measured.end_of_read();
        let outcome = self.judge(result);
        let sample = &mut self.measured.sample;
        // The end of an answer is the arrival of its last byte; of a turn without one, it is now.
        let arrived = sample.timeline.finished.filter(|_| outcome != Outcome::TimedOut);
        let at = arrived.unwrap_or_else(|| self.worker.clock.now());
        sample.timeline.finished = Some(at);
        sample.outcome = outcome;
        let mut reply = String::new();
        let policy_decisions =
            &self.worker.run.route(sample.scenario, sample.target).policy_decisions;
        sample.policy_decision =
            policy_decisions.policy_decision(self.reading.as_ref(), outcome, sample.status);
        if let Some(decoder) = &self.decoder {
            sample.usage = decoder.usage();
            decoder.text().clone_into(&mut reply);
            if let Some(detail) = decoder.error_detail() {
                self.detail = Some(detail.message.clone());
            }
        }
        RunEnd {
            at,
            completed: outcome == Outcome::Completed,
            sent: sample.timeline.sent.is_some(),
            reply,
        }
    }

    fn judge(&mut self, result: Option<Result<(), Failure>>) -> Outcome {
        match (result, &mut self.decoder) {
            (None, _) => Outcome::TimedOut,
            (Some(Err(failure)), decoder) => {
                // What the decoder found wrong came first, and explains why reading stopped.
                let found = decoder.as_ref().and_then(|decoder| decoder.failure());
                self.detail = Some(failure.detail).filter(|detail| !detail.is_empty());
                Outcome::Failed(found.unwrap_or(failure.class))
            }
            (Some(Ok(())), Some(decoder)) => decoder.finish(),
            (Some(Ok(())), None) => Outcome::Failed(ErrorClass::LocalIo),
        }
    }
}

/// Encodes a request before its turn is dispatched: preparing is our time, not the target's.
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
        self.measured.sample.timeline.sent = Some(at);
        self.worker.give_wire(wire);
    }

    fn received(&mut self, bytes: usize, arrival: RxTime) {
        self.measured.received(bytes, arrival);
    }

    fn head(&mut self, head: &ResponseHead<'_>) {
        self.measured.sample.status = head.status;
        self.worker.meet_server(self.sample().target, head);
        // Not before now: while a request waits for its answer, others use the decoder, whose memory stays near.
        let decoder = self.worker.take_decoder(self.sample());
        self.decoder.insert(decoder).head(head.status, head.header("content-type"));
        let policy_decisions =
            &self.worker.run.route(self.sample().scenario, self.sample().target).policy_decisions;
        if policy_decisions.needs_reading() {
            let worker = &self.worker;
            let reading = self.reading.get_or_insert_with(|| worker.take_reading());
            policy_decisions.head(reading, head);
        }
    }

    fn send_stalled(&mut self, waited: Nanos) {
        self.measured.sample.flow.send_stall = Some(waited);
    }

    fn receive_stalled(&mut self) {
        self.measured.sample.flow.receive_stall = true;
    }

    fn body(&mut self, bytes: &[u8], at: Moment) -> ControlFlow<()> {
        let Self { decoder: Some(decoder), measured, reading, worker, .. } = self else {
            return ControlFlow::Break(());
        };
        if let Some(reading) = reading {
            let Sample { scenario, target, .. } = measured.sample;
            worker.run.route(scenario, target).policy_decisions.body(reading, bytes);
        }
        decoder.feed(bytes, &mut |delta| measured.content(delta.kind, at));
        if decoder.failure().is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Drop for OpenTurn {
    fn drop(&mut self) {
        let Measured { sample, gaps, events, .. } = &mut self.measured;
        if sample.timeline.dispatched.is_some() && sample.outcome == Outcome::NeverSent {
            sample.outcome = Outcome::InFlight;
            sample.timeline.finished = None;
        }
        self.worker.record(sample, gaps, events.take(), self.detail.take());
        self.worker.give_gaps(std::mem::take(gaps));
        if let Some(decoder) = self.decoder.take() {
            self.worker.give_decoder(sample, decoder);
        }
        if let Some(reading) = self.reading.take() {
            self.worker.give_reading(reading);
        }
    }
}

/// What has been measured of a turn.
struct Measured {
    sample: Sample,
    gaps: Vec<Nanos>,
    /// Content events of the read that is being processed.
    burst: u32,
    /// Did that read come late?
    late: bool,
    /// When each content event arrived, where rows shall tell it.
    events: Option<Vec<Moment>>,
}

impl Measured {
    fn received(&mut self, bytes: usize, arrival: RxTime) {
        let RxTime { at, read_lag } = arrival;
        let sample = &mut self.sample;
        sample.read_lag = sample.read_lag.max(read_lag);
        self.late = read_lag.is_some_and(|lag| lag > LATE_READ);
        sample.bytes_in += bytes as u64;
        sample.timeline.first_byte.get_or_insert(at);
        // Records of one read share its time stamp, and so one burst.
        if sample.timeline.finished.replace(at) != Some(at) {
            self.end_of_read();
        }
    }

    /// Counts what the read at hand brought; the next one may be a gap later.
    fn end_of_read(&mut self) {
        self.sample.gaps.largest_burst = self.sample.gaps.largest_burst.max(self.burst);
        self.burst = 0;
    }

    fn content(&mut self, kind: DeltaKind, at: Moment) {
        let Sample { timeline, gaps, events, .. } = &mut self.sample;
        if self.burst == 0 {
            if let Some(last) = timeline.last_token {
                let gap = at.since(last);
                self.gaps.push(gap);
                gaps.count += 1;
                gaps.sum += gap;
                gaps.max = gaps.max.max(gap);
            }
            timeline.first_token.get_or_insert(at);
            timeline.last_token = Some(at);
        } else {
            gaps.late_together += u32::from(self.late);
        }
        if let Some(events) = &mut self.events {
            events.push(at);
        }
        if kind != DeltaKind::Reasoning {
            timeline.first_output_token.get_or_insert(at);
        }
        self.burst += 1;
        *events += 1;
    }
}
