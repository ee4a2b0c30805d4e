//! One turn: from its schedule to its sample.

use std::rc::Rc;

use plimsoll_measure::{
    Clock as _, ErrorClass, GapSummary, LaneId, Moment, Nanos, Outcome, Sample, Timeline, Usage,
    Verdict,
};
use plimsoll_protocol::{Decoder, DeltaKind, WireEvent};
use plimsoll_transport::{Arrival, Connection, Failure, Flow, Receiver, Request, ResponseHead};
use plimsoll_workload::Conversation;

use crate::virtual_user::Connections;
use crate::watchdog::Watchdog;
use crate::worker::Worker;

/// A turn that has been scheduled and not yet recorded.
///
/// Dropping it records it: as in flight if it was dispatched, as never sent if not. So a turn cannot get lost,
/// whatever ends its task.
pub(crate) struct OpenTurn {
    worker: Rc<Worker>,
    sample: Sample,
    gaps: Vec<Nanos>,
    decoder: Option<Decoder>,
    /// Content events of the read that is being processed.
    burst: u32,
    detail: Option<String>,
}

/// A turn that is over.
pub(crate) struct Ended {
    /// What was recorded.
    pub(crate) sample: Sample,
    /// What was said about its failure.
    pub(crate) detail: Option<String>,
    /// The assistant's text; empty unless it is kept for the next turn.
    pub(crate) reply: String,
}

impl Ended {
    /// May the conversation go on?
    pub(crate) fn completed(&self) -> bool {
        self.sample.outcome == Outcome::Completed
    }

    /// When the turn was over.
    pub(crate) fn at(&self) -> Moment {
        self.sample.timeline.finished.unwrap_or(self.sample.timeline.intended)
    }

    /// Did the request get as far as the kernel?
    pub(crate) fn sent(&self) -> bool {
        self.sample.timeline.sent.is_some()
    }
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

    /// The same on a lane of the caller's choice.
    pub(crate) fn schedule_on(
        worker: &Rc<Worker>,
        conversation: &Conversation,
        lane: LaneId,
        intended: Moment,
    ) -> Self {
        let (stage, scenario) = (worker.stage_at(intended), conversation.scenario());
        let sample = Sample {
            stage,
            scenario,
            lane,
            conversation: conversation.key(),
            turn: conversation.index(),
            stream: worker.run.route(scenario, lane).streams(),
            warmup: worker.is_warmup(stage),
            reused: false,
            timeline: Timeline::intended(intended),
            connect: plimsoll_measure::ConnectPhases::default(),
            status: 0,
            outcome: Outcome::NeverSent,
            verdict: None,
            usage: Usage::default(),
            events: 0,
            gaps: GapSummary::default(),
            bytes_out: 0,
            bytes_in: 0,
            read_lag: None,
        };
        worker.count_scheduled(&sample);
        let (gaps, decoder) = (worker.take_gaps(), None);
        Self { worker: Rc::clone(worker), sample, gaps, decoder, burst: 0, detail: None }
    }

    /// Sends the turn and reads its answer to the end or to its time limit.
    pub(crate) async fn carry_out(
        mut self,
        conversation: &mut Conversation,
        connections: &Connections,
        watchdog: &mut Watchdog,
    ) -> Ended {
        let worker = Rc::clone(&self.worker);
        let mut wire = worker.take_wire();
        let prepared = self.encode(conversation, &mut wire);
        let dispatched = worker.clock.now();
        self.sample.timeline.dispatched = Some(dispatched);
        let result = match prepared {
            Err(failure) => Some(Err(failure)),
            Ok(is_head) => {
                let request = Request { head: &wire.head, body: &wire.body, is_head };
                self.sample.bytes_out = (request.head.len() + request.body.len()) as u64;
                let limit = dispatched + worker.run.plan.limits.timeout;
                watchdog.guard(&worker.clock, limit, self.exchange(connections, request)).await
            }
        };
        worker.give_wire(wire);
        self.conclude(result)
    }

    /// Encodes the request before the turn is dispatched: preparing is our time, not the target's.
    fn encode(
        &mut self,
        conversation: &mut Conversation,
        wire: &mut WireBuffers,
    ) -> Result<bool, Failure> {
        let route = self.worker.run.route(self.sample.scenario, self.sample.lane);
        let broken = |detail: String| Failure::new(ErrorClass::LocalIo, detail);
        let Some(mut turn) = conversation.turn() else {
            return Err(broken("the conversation has no turn".to_owned()));
        };
        if let Some(cap) = self.worker.output_cap {
            turn.max_tokens = turn.max_tokens.map(|tokens| tokens.min(cap));
        }
        route
            .encoder
            .encode_body(&turn, &mut wire.body)
            .map_err(|error| broken(error.to_string()))?;
        let head = route.head(&turn).map_err(|error| broken(error.to_string()))?;
        head.render(Some(conversation.request_id().as_str()), wire.body.len(), &mut wire.head);
        Ok(head.is_head())
    }

    async fn exchange(
        &mut self,
        connections: &Connections,
        request: Request<'_>,
    ) -> Result<(), Failure> {
        let worker = Rc::clone(&self.worker);
        self.decoder = Some(worker.take_decoder(&self.sample));
        let lane = self.sample.lane;
        let mut connection = match connections.take(lane) {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        self.sample.reused = connection.was_used();
        self.sample.timeline.connected = Some(if connection.was_used() {
            self.sample.timeline.dispatched.unwrap_or_default()
        } else {
            worker.clock.now()
        });
        if connection.exchange(&worker.stamper, &worker.scratch, request, self).await? {
            connections.give(lane, connection);
        }
        Ok(())
    }

    async fn connect(&mut self) -> Result<Connection, Failure> {
        let connected = self.worker.connector(self.sample.lane).connect(&self.worker.clock).await;
        self.sample.connect = connected.phases;
        connected.connection
    }

    /// Judges the answer and records the turn. `None`: the time limit passed.
    fn conclude(mut self, result: Option<Result<(), Failure>>) -> Ended {
        self.end_of_read();
        let finished = self.worker.clock.now();
        let outcome = match (result, self.decoder.as_mut()) {
            (None, _) => Outcome::TimedOut,
            (Some(Err(failure)), decoder) => {
                // What the decoder found wrong came first, and explains why reading stopped.
                let class = decoder.and_then(|decoder| decoder.failure()).unwrap_or(failure.class);
                self.detail = Some(failure.detail).filter(|detail| !detail.is_empty());
                Outcome::Failed(class)
            }
            (Some(Ok(())), Some(decoder)) => decoder.finish(&mut |_| {}),
            (Some(Ok(())), None) => Outcome::Failed(ErrorClass::LocalIo),
        };
        // The end of an answer that arrived is the read that brought its last byte.
        let last_read =
            self.sample.timeline.finished.filter(|_| !matches!(outcome, Outcome::TimedOut));
        self.sample.timeline.finished = last_read.or(Some(finished));
        self.sample.outcome = outcome;
        self.take_what_was_decoded();
        let reply =
            self.decoder.as_ref().map(|decoder| decoder.text().to_owned()).unwrap_or_default();
        Ended { sample: self.sample, detail: self.detail.clone(), reply }
    }

    fn take_what_was_decoded(&mut self) {
        let Some(decoder) = &self.decoder else { return };
        self.sample.usage = decoder.usage();
        if let Some(detail) = decoder.error_detail() {
            self.detail = Some(detail.message.clone());
        }
        if self.sample.status != 0 {
            self.sample.verdict = Some(Verdict::of_status(self.sample.status));
        }
    }

    /// Counts what the read at hand brought; the next one may be a gap later.
    fn end_of_read(&mut self) {
        self.sample.gaps.largest_burst = self.sample.gaps.largest_burst.max(self.burst);
        self.burst = 0;
    }

    fn content(&mut self, kind: DeltaKind, at: Moment) {
        let timeline = &mut self.sample.timeline;
        if self.burst == 0 {
            if let Some(last) = timeline.last_token {
                let gap = at.since(last);
                self.gaps.push(gap);
                let gaps = &mut self.sample.gaps;
                gaps.count += 1;
                gaps.sum += gap;
                gaps.max = gaps.max.max(gap);
            }
            timeline.first_token.get_or_insert(at);
            timeline.last_token = Some(at);
        }
        if kind != DeltaKind::Reasoning {
            timeline.first_output_token.get_or_insert(at);
        }
        self.burst += 1;
        self.sample.events += 1;
    }
}

impl Receiver for OpenTurn {
    fn sent(&mut self, at: Moment) {
        self.sample.timeline.sent = Some(at);
    }

    fn received(&mut self, bytes: usize, arrival: Arrival) {
        let Arrival { at, read_lag } = arrival;
        self.sample.read_lag = self.sample.read_lag.max(read_lag);
        let timeline = &mut self.sample.timeline;
        timeline.first_byte.get_or_insert(at);
        // Records of one read share its time stamp, and so one burst.
        if timeline.finished.replace(at) != Some(at) {
            self.end_of_read();
        }
        self.sample.bytes_in += bytes as u64;
    }

    fn head(&mut self, head: &ResponseHead<'_>) {
        self.sample.status = head.status;
        self.worker.meet_server(self.sample.lane, head);
        if let Some(decoder) = &mut self.decoder {
            decoder.head(head.status, head.header("content-type"));
        }
    }

    fn body(&mut self, bytes: &[u8], at: Moment) -> Flow {
        let Some(mut decoder) = self.decoder.take() else { return Flow::Stop };
        decoder.feed(bytes, &mut |event| {
            if let WireEvent::Delta { kind, .. } = event {
                self.content(kind, at);
            }
        });
        let flow = if decoder.failure().is_some() { Flow::Stop } else { Flow::Continue };
        self.decoder = Some(decoder);
        flow
    }
}

impl Drop for OpenTurn {
    fn drop(&mut self) {
        let sample = &mut self.sample;
        if sample.timeline.dispatched.is_some() && sample.outcome == Outcome::NeverSent {
            sample.outcome = Outcome::InFlight;
            sample.timeline.finished = None;
        }
        self.worker.record(sample, &self.gaps, self.detail.take());
        self.worker.give_gaps(std::mem::take(&mut self.gaps));
        if let Some(decoder) = self.decoder.take() {
            self.worker.give_decoder(sample, decoder);
        }
    }
}

/// The bytes of a request while it is being sent.
#[derive(Debug, Default)]
pub(crate) struct WireBuffers {
    pub(crate) head: Vec<u8>,
    pub(crate) body: Vec<u8>,
}
