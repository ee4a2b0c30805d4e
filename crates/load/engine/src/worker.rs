//! One worker: a thread that owns its clock, connections, buffers and recorder, and shares nothing.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_measure::{
    Clock as _, ConversationKey, Moment, MonotonicClock, Nanos, Outcome, Sample, StageId, Stripe,
    TargetId,
};
use plimsoll_metrics::{Conversations, Distribution, Recorder, Snapshot};
use plimsoll_profile::Overflow;
use plimsoll_protocol::Decoder;
use plimsoll_schedule::{Arrival, ArrivalIter, Load};
use plimsoll_transport::{Connector, EncodedRequest, ReadBuffers, ResponseHead, RxClock};
use plimsoll_workload::id_rank;
use tokio::sync::Semaphore;

use crate::clock::WorkerClock;
use crate::error::EngineError;
use crate::hands::Hands;
use crate::policy_decision::Reading;
use crate::prepare::Prepared;
use crate::presence::{Presence, StagePresence};
use crate::sink::Outbox;
use crate::timer::Timer;
use crate::virtual_user::Connections;
use crate::watchdog::Watchdog;

/// Spare buffers of one kind that are kept for the next request.
const SPARES: usize = 64;
/// Largest buffer that is kept: beyond it, one huge prompt would be paid for until the end of the run.
const SPARE_BYTES: usize = 256 * 1024;

/// Why requests did not complete: how often, and what the first of them said.
pub(crate) type Causes = BTreeMap<String, (u64, String)>;

/// What belongs to one worker.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) run: Arc<Prepared>,
    pub(crate) clock: WorkerClock,
    pub(crate) rx_clock: Rc<RxClock<WorkerClock>>,
    /// The run's start: offsets of the schedule are counted from here.
    pub(crate) origin: Moment,
    /// No turn is started here or later. Moves forward in time only by an interrupt.
    pub(crate) until: Cell<Moment>,
    pub(crate) timer: Timer<WorkerClock>,
    pub(crate) scratch: RefCell<ReadBuffers>,
    /// Connections of the open model.
    pub(crate) connections: Rc<Connections>,
    /// Idle tasks of the open model.
    pub(crate) hands: Hands,
    connectors: Vec<Connector>,
    arrivals: RefCell<Peekable<ArrivalIter>>,
    slots: Semaphore,
    recorder: RefCell<Recorder>,
    outbox: RefCell<Outbox>,
    causes: RefCell<Causes>,
    spares: RefCell<Spares>,
    /// Is the pacer waiting for a slot?
    pub(crate) held: Cell<bool>,
    gauges: Gauges,
    /// `Server` headers by target, from the first answers.
    servers: RefCell<Vec<Option<String>>>,
    /// The most output tokens that are asked for, whatever the scenario says: for the probe.
    pub(crate) output_cap: Option<u32>,
}

/// Numbers that change while the run goes on.
#[derive(Debug)]
struct Gauges {
    presence: RefCell<Presence>,
    conversations: Cell<Conversations>,
    pacing_lag: RefCell<Distribution>,
    /// Planned, and released in time.
    arrivals: Cell<(u64, u64)>,
}

/// Buffers that are not in use.
#[derive(Debug, Default)]
struct Spares {
    wires: Vec<EncodedRequest>,
    gaps: Vec<Vec<Nanos>>,
    watchdogs: Vec<Watchdog>,
    readings: Vec<Reading>,
    /// By route. Boxed, so that lending one moves a pointer.
    #[expect(clippy::vec_box, reason = "they are lent for the length of a turn, and large")]
    decoders: Vec<Vec<Box<Decoder>>>,
}

impl Worker {
    /// A worker on the current runtime, for its part of the run.
    pub(crate) fn new(
        run: Arc<Prepared>,
        stripe: Stripe,
        clock: MonotonicClock,
        origin: Moment,
        outbox: Outbox,
    ) -> Result<Self, EngineError> {
        let (clock, limits) = (WorkerClock::new(clock), &run.plan.limits);
        let slots = usize::try_from(stripe.share(limits.max_in_flight)).unwrap_or(usize::MAX);
        let connectors = run
            .plan
            .targets
            .iter()
            .map(|target| run.connector(target))
            .collect::<Result<_, _>>()?;
        let stage_ends: Vec<_> =
            run.schedule.stages().iter().map(|stage| origin + stage.end).collect();
        let decoders = (0..run.routes()).map(|_| Vec::new()).collect();
        Ok(Self {
            rx_clock: Rc::new(RxClock::new(clock.clone())),
            origin,
            until: Cell::new(origin + run.schedule.duration()),
            timer: Timer::new(clock.clone(), run.plan.instrument.spin)
                .map_err(EngineError::Worker)?,
            scratch: RefCell::default(),
            connections: Rc::new(Connections::new(run.plan.targets.len())),
            hands: Hands::default(),
            connectors,
            arrivals: RefCell::new(run.schedule.arrivals(stripe).peekable()),
            slots: Semaphore::new(slots.clamp(1, Semaphore::MAX_PERMITS)),
            outbox: RefCell::new(outbox),
            causes: RefCell::default(),
            spares: RefCell::new(Spares { decoders, ..Spares::default() }),
            gauges: Gauges {
                presence: RefCell::new(Presence::new(origin, stage_ends.iter().copied())),
                conversations: Cell::default(),
                pacing_lag: RefCell::default(),
                arrivals: Cell::default(),
            },
            servers: RefCell::new(vec![None; run.plan.targets.len()]),
            output_cap: None,
            held: Cell::new(false),
            recorder: RefCell::new(Recorder::new(stage_ends)),
            clock,
            run,
        })
    }

    /// The stage that lasted at a moment; the last one after the end.
    pub(crate) fn stage_at(&self, moment: Moment) -> StageId {
        let last = self.run.schedule.stages().len().saturating_sub(1);
        let last = StageId(u16::try_from(last).unwrap_or(u16::MAX));
        self.run.schedule.stage_at(moment.since(self.origin)).unwrap_or(last)
    }

    /// Is what a stage records kept apart from the totals?
    pub(crate) fn is_warmup(&self, stage: StageId) -> bool {
        self.run.schedule.stages().get(stage.index()).is_some_and(|stage| stage.warmup)
    }

    /// Does a stage play the trace?
    pub(crate) fn plays_trace(&self, stage: StageId) -> bool {
        self.run
            .schedule
            .stages()
            .get(stage.index())
            .is_some_and(|stage| matches!(stage.load, Load::Trace))
    }

    /// Conversations are dealt to the targets in turn.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the remainder is below the number of targets, a u16"
    )]
    pub(crate) fn lane_of(&self, key: ConversationKey) -> TargetId {
        TargetId((key.0 % self.connectors.len().max(1) as u64) as u16)
    }

    pub(crate) fn connector(&self, target: TargetId) -> &Connector {
        &self.connectors[target.index()]
    }

    /// The earlier of an end and the run's own.
    pub(crate) fn end_of(&self, end: Moment) -> Moment {
        end.min(self.until.get())
    }

    /// Has this moment passed?
    pub(crate) fn is_past(&self, moment: Moment) -> bool {
        self.clock.now() >= moment
    }

    /// When the next arrival is intended.
    pub(crate) fn next_arrival(&self) -> Option<Moment> {
        self.arrivals.borrow_mut().peek().map(|arrival| self.origin + arrival.at)
    }

    /// Takes the next arrival out of the schedule.
    pub(crate) fn take_arrival(&self) -> Option<Arrival> {
        self.arrivals.borrow_mut().next()
    }
}

/// What is counted.
impl Worker {
    /// A turn is scheduled: from here on it is accounted for.
    pub(crate) fn count_scheduled(&self, sample: &Sample) {
        self.gauges.presence.borrow_mut().enter(self.clock.latest());
        self.recorder.borrow_mut().scheduled(sample.stage, sample.scenario, sample.target);
    }

    /// Records a turn that is over, with what was said about its failure.
    pub(crate) fn record(
        &self,
        sample: &Sample,
        gaps: &[Nanos],
        events: Option<Vec<Moment>>,
        detail: Option<String>,
    ) {
        self.gauges.presence.borrow_mut().leave(self.clock.latest());
        self.recorder.borrow_mut().record(sample, gaps);
        self.outbox.borrow_mut().offer(sample, events);
        if sample.as_expected() == Some(true) {
            return;
        }
        let cause = match sample.outcome {
            Outcome::Failed(class) => class.name().to_owned(),
            Outcome::Rejected(status) => format!("status {status}"),
            _ => return,
        };
        let mut causes = self.causes.borrow_mut();
        let (count, first) = causes.entry(cause).or_default();
        *count += 1;
        if first.is_empty() {
            *first = detail.unwrap_or_default();
        }
    }

    /// Room for the arrivals of a turn's content events, where its row shall tell them.
    pub(crate) fn event_times(&self, sample: &Sample) -> Option<Vec<Moment>> {
        let one_in = self.run.plan.instrument.event_times;
        let of = one_in > 0 && sample.stream && self.outbox.borrow().is_open();
        (of && is_among_one_in(one_in, id_rank(self.run.plan.seed, sample.conversation)))
            .then(Vec::new)
    }

    /// What was counted since the last call.
    pub(crate) fn take_snapshot(&self) -> Snapshot {
        self.recorder.borrow_mut().take()
    }

    /// Why requests did not complete, over the whole run.
    pub(crate) fn take_causes(&self) -> Causes {
        self.causes.take()
    }

    /// Hands samples over to the writer: without waiting while there is load to hold up.
    pub(crate) fn post_samples(&self, may_wait: bool) {
        let mut outbox = self.outbox.borrow_mut();
        if may_wait { outbox.send_all() } else { outbox.send() }
    }

    /// Turns that are scheduled and not recorded.
    pub(crate) fn in_flight(&self) -> u64 {
        self.gauges.presence.borrow().now()
    }

    /// The same by stage, up to `at`.
    pub(crate) fn take_presence(&self, at: Moment) -> Vec<StagePresence> {
        let mut presence = self.gauges.presence.borrow_mut();
        presence.advance(at);
        presence.stages().to_vec()
    }

    /// The pacer released an arrival, `late` by its own fault.
    pub(crate) fn count_released(&self, at: Moment, late: Nanos) {
        self.gauges.pacing_lag.borrow_mut().record(late);
        let stage_end = self
            .run
            .schedule
            .stages()
            .get(self.stage_at(at).index())
            .map(|stage| self.origin + stage.end);
        self.count_arrival(stage_end.is_none_or(|end| at + late < end));
    }

    /// An arrival is left over at the end: `released` if only the lack of a slot kept it from being dispatched.
    pub(crate) fn count_left_over(&self, released: bool) {
        self.count_arrival(released);
    }

    fn count_arrival(&self, achieved: bool) {
        let (planned, before) = self.gauges.arrivals.get();
        self.gauges.arrivals.set((planned + 1, before + u64::from(achieved)));
    }

    /// Arrivals planned, and released in time.
    pub(crate) fn arrivals(&self) -> (u64, u64) {
        self.gauges.arrivals.get()
    }

    /// How late arrivals were released.
    pub(crate) fn take_pacing_lag(&self) -> Distribution {
        self.gauges.pacing_lag.take()
    }

    pub(crate) fn conversation_started(&self) {
        let count = self.gauges.conversations.get();
        self.gauges.conversations.set(Conversations { started: count.started + 1, ..count });
    }

    pub(crate) fn conversation_finished(&self) {
        let count = self.gauges.conversations.get();
        self.gauges.conversations.set(Conversations { finished: count.finished + 1, ..count });
    }

    /// Conversations of the run; those begun and not finished were abandoned.
    pub(crate) fn conversations(&self) -> Conversations {
        let count = self.gauges.conversations.get();
        Conversations { ended_early: count.started.saturating_sub(count.finished), ..count }
    }

    /// Notes the `Server` header of a target's first answer.
    pub(crate) fn meet_server(&self, target: TargetId, head: &ResponseHead<'_>) {
        if let Some(server @ None) = self.servers.borrow_mut().get_mut(target.index()) {
            *server = Some(head.header("server").unwrap_or_default().to_owned());
        }
    }

    /// `Server` headers by target; empty where the target sent none.
    pub(crate) fn servers(&self) -> Vec<Option<String>> {
        self.servers.borrow().clone()
    }

    /// Is everything recorded that was to be started before the run's end?
    pub(crate) fn is_quiet(&self) -> bool {
        let until = self.until.get();
        self.in_flight() == 0 && self.next_arrival().is_none_or(|at| at >= until)
    }
}

/// Buffers that are lent, so that the steady state allocates nothing.
impl Worker {
    pub(crate) fn take_wire(&self) -> EncodedRequest {
        self.spares.borrow_mut().wires.pop().unwrap_or_default()
    }

    pub(crate) fn give_wire(&self, mut wire: EncodedRequest) {
        wire.head.clear();
        wire.body.clear();
        if wire.body.capacity() <= SPARE_BYTES {
            keep(&mut self.spares.borrow_mut().wires, wire);
        }
    }

    pub(crate) fn take_gaps(&self) -> Vec<Nanos> {
        self.spares.borrow_mut().gaps.pop().unwrap_or_default()
    }

    pub(crate) fn give_gaps(&self, mut gaps: Vec<Nanos>) {
        gaps.clear();
        keep(&mut self.spares.borrow_mut().gaps, gaps);
    }

    pub(crate) fn take_watchdog(&self) -> Watchdog {
        self.spares.borrow_mut().watchdogs.pop().unwrap_or_else(Watchdog::new)
    }

    pub(crate) fn give_watchdog(&self, watchdog: Watchdog) {
        keep(&mut self.spares.borrow_mut().watchdogs, watchdog);
    }

    pub(crate) fn take_reading(&self) -> Reading {
        self.spares.borrow_mut().readings.pop().unwrap_or_default()
    }

    pub(crate) fn give_reading(&self, reading: Reading) {
        keep(&mut self.spares.borrow_mut().readings, reading);
    }

    pub(crate) fn take_decoder(&self, sample: &Sample) -> Box<Decoder> {
        let spare = self.spares.borrow_mut().decoders
            [self.run.route_index(sample.scenario, sample.target)]
        .pop();
        spare.unwrap_or_else(|| Box::new(self.run.route(sample.scenario, sample.target).decoder()))
    }

    pub(crate) fn give_decoder(&self, sample: &Sample, mut decoder: Box<Decoder>) {
        decoder.reset();
        let route = self.run.route_index(sample.scenario, sample.target);
        keep(&mut self.spares.borrow_mut().decoders[route], decoder);
    }
}

/// Does an id at this place in the range of ids belong to the first `one_in`-th of them?
const fn is_among_one_in(one_in: u32, rank: u32) -> bool {
    rank as u64 * (one_in as u64) < 1 << 32
}

fn keep<T>(spares: &mut Vec<T>, spare: T) {
    if spares.len() < SPARES {
        spares.push(spare);
    }
}

/// A place among the requests that may be in flight at once in the open model; given back when dropped.
#[derive(Debug)]
pub(crate) struct Slot(Rc<Worker>);

impl Slot {
    /// Waits for a free place, first come, first served.
    pub(crate) async fn wait(worker: &Rc<Worker>) -> Option<Self> {
        // The semaphore is never closed, so this is always a place.
        let permit = worker.slots.acquire().await.ok()?;
        permit.forget();
        Some(Self(Rc::clone(worker)))
    }

    /// A free place, if there is one now.
    pub(crate) fn now(worker: &Rc<Worker>) -> Option<Self> {
        let permit = worker.slots.try_acquire().ok()?;
        permit.forget();
        Some(Self(Rc::clone(worker)))
    }

    /// A place for one request, as the plan's overflow policy gives it.
    pub(crate) async fn by_policy(worker: &Rc<Worker>) -> Option<Self> {
        match worker.run.plan.limits.overflow {
            Overflow::Queue => Self::wait(worker).await,
            Overflow::Drop => Self::now(worker),
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.slots.add_permits(1);
    }
}
