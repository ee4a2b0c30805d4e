//! The state of one worker: a thread with a clock, connections, buffers and counters that nobody
//! else has.

use std::cell::{Cell, RefCell, RefMut};
use std::iter::Peekable;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_measure::{Clock as _, ConversationKey, Moment, Nanos, Sample, StageId, TargetId};
use plimsoll_schedule::{Arrival, ArrivalIter, Load, StagePlan};
use plimsoll_transport::{Connector, ReadBuffers, RxClock};
use plimsoll_workload::id_rank;

use crate::buffer_pool::BufferPool;
use crate::clock::WorkerClock;
use crate::connections::{ConnectionSet, WorkerConnections, limits_of_user};
use crate::in_flight_limit::InFlightLimit;
use crate::loop_watch::LoopWatch;
use crate::prepared::PreparedRun;
use crate::sink::{RowBatcher, RowExtras};
use crate::timer::Timer;
use crate::worker_stats::{MeasuredTurn, WorkerStats};

/// Everything that belongs to one worker.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) run: Arc<PreparedRun>,
    pub(crate) clock: WorkerClock,
    pub(crate) timer: Timer,
    /// The run's start: offsets of the schedule are counted from here.
    pub(crate) origin: Moment,
    /// No turn is started here or later. An interrupt makes it earlier.
    pub(crate) end: Cell<Moment>,
    /// Connections of the open model, and of all users of HTTP/2.
    pub(crate) connections: Rc<ConnectionSet>,
    pub(crate) rx_clock: Rc<RxClock<WorkerClock>>,
    pub(crate) watch: LoopWatch,
    pub(crate) read_buffers: RefCell<ReadBuffers>,
    pub(crate) buffers: BufferPool,
    pub(crate) in_flight_limit: Rc<InFlightLimit>,
    /// Whether the pacer waits for a permit.
    pub(crate) pacer_waits: Cell<bool>,
    /// The most output tokens that are asked for, whatever the scenario says: for the probe.
    pub(crate) output_cap: Option<u32>,
    /// By target: whether its streams say why the model stopped. The probe learned it, or this
    /// worker from its first streams.
    pub(crate) finish_reasons: Vec<Cell<bool>>,
    connectors: Vec<Rc<Connector>>,
    /// None where other workers have all slots of the open model.
    arrivals: RefCell<Option<Peekable<ArrivalIter>>>,
    stats: RefCell<WorkerStats>,
    rows: RefCell<RowBatcher>,
}

impl Worker {
    /// A worker for its part of the run, by the clock of `timer`.
    pub(crate) fn new(
        run: Arc<PreparedRun>,
        timer: Timer,
        origin: Moment,
        connections: WorkerConnections,
        rows: RowBatcher,
    ) -> Self {
        let clock = timer.clock();
        let (targets, limits) = (run.plan.targets.len(), &run.plan.limits);
        let WorkerConnections { part, looks, connectors, rx_clock, shared } = connections;
        let stage_ends = run.schedule.stages().iter().map(|stage| origin + stage.end).collect();
        let arrivals = part.arrivals.map(|stripe| run.schedule.arrivals(stripe).peekable());
        let max_in_flight = part.max_in_flight(limits.max_in_flight);
        Self {
            origin,
            end: Cell::new(origin + run.schedule.duration()),
            connections: shared,
            rx_clock,
            watch: LoopWatch::new(looks),
            read_buffers: RefCell::default(),
            buffers: BufferPool::new(run.routes()),
            in_flight_limit: Rc::new(InFlightLimit::new(max_in_flight, limits.overflow)),
            pacer_waits: Cell::new(false),
            output_cap: None,
            finish_reasons: run.finish_reasons().map(Cell::new).collect(),
            connectors,
            arrivals: RefCell::new(arrivals),
            stats: RefCell::new(WorkerStats::new(origin, stage_ends, targets)),
            rows: RefCell::new(rows),
            timer,
            clock,
            run,
        }
    }

    fn stages(&self) -> &[StagePlan] {
        self.run.schedule.stages()
    }

    /// The stage at a moment; the last one after the end.
    pub(crate) fn stage_at(&self, moment: Moment) -> StageId {
        let last = self.stages().len().saturating_sub(1);
        let last = StageId(u16::try_from(last).unwrap_or(u16::MAX));
        self.run.schedule.stage_at(moment.since(self.origin)).unwrap_or(last)
    }

    /// Whether a stage is a warm-up, which is kept apart from the totals.
    pub(crate) fn is_warmup(&self, stage: StageId) -> bool {
        self.stages().get(stage.index()).is_some_and(|stage| stage.warmup)
    }

    /// Whether a stage plays the trace.
    pub(crate) fn plays_trace(&self, stage: StageId) -> bool {
        let stage = self.stages().get(stage.index());
        stage.is_some_and(|stage| matches!(stage.load, Load::Trace))
    }

    /// The target of a conversation: they are dealt to the targets in turn.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the remainder is below the number of targets, a u16"
    )]
    pub(crate) fn target_of(&self, key: ConversationKey) -> TargetId {
        TargetId((key.0 % self.connectors.len().max(1) as u64) as u16)
    }

    /// Pools of their own for one virtual user.
    pub(crate) fn connections_of_user(&self) -> ConnectionSet {
        let limits = limits_of_user(&self.run.plan.http);
        ConnectionSet::new(&self.connectors, &self.rx_clock, limits)
    }

    /// The end of a stage.
    pub(crate) fn stage_end(&self, stage: StageId) -> Moment {
        self.stages().get(stage.index()).map_or(self.origin, |stage| self.origin + stage.end)
    }

    /// The earlier of a moment and the run's end.
    pub(crate) fn end_by(&self, moment: Moment) -> Moment {
        moment.min(self.end.get())
    }

    /// Whether a moment has passed.
    pub(crate) fn is_past(&self, moment: Moment) -> bool {
        self.clock.now() >= moment
    }

    /// Takes one of the requests that the run may send, for a turn that is intended at `at`. If
    /// none is left, or this is the last one, the run ends there: nothing later is started or
    /// counted.
    pub(crate) fn take_request(&self, at: Moment) -> bool {
        let taken = self.run.take_request();
        if !self.run.has_requests_left() {
            self.end.set(self.end_by(if taken { at + Nanos::new(1) } else { at }));
        }
        taken
    }

    /// Whether the run may send another request.
    pub(crate) fn has_requests_left(&self) -> bool {
        self.run.has_requests_left()
    }

    /// When the next arrival is intended.
    pub(crate) fn next_arrival(&self) -> Option<Moment> {
        let mut arrivals = self.arrivals.borrow_mut();
        arrivals.as_mut()?.peek().map(|arrival| self.origin + arrival.at)
    }

    /// Takes the next arrival out of the schedule.
    pub(crate) fn take_arrival(&self) -> Option<Arrival> {
        self.arrivals.borrow_mut().as_mut()?.next()
    }

    /// The counters of this worker.
    pub(crate) fn stats(&self) -> RefMut<'_, WorkerStats> {
        self.stats.borrow_mut()
    }

    /// Counts a turn that is scheduled: from here on it is accounted for.
    pub(crate) fn count_scheduled(&self, sample: &Sample) {
        let now = self.clock.latest();
        self.watch.scheduled(sample.timeline.intended, now);
        self.stats().scheduled(sample, now);
    }

    /// Records a turn that is over; `detail` is the message of its failure.
    pub(crate) fn record(&self, turn: MeasuredTurn<'_>, extras: RowExtras, detail: Option<String>) {
        let now = self.clock.latest();
        self.stats().record(turn, detail, now);
        self.watch.note(turn.sample, now);
        self.rows.borrow_mut().offer(turn.sample, extras);
    }

    /// An empty list for the times of a turn's content events, where its row shall have them.
    pub(crate) fn event_times(&self, sample: &Sample) -> Option<Vec<Moment>> {
        let one_in = self.run.plan.instrument.event_times;
        let eligible = one_in > 0 && sample.stream && self.rows.borrow().is_open();
        (eligible && is_among_one_in(one_in, id_rank(self.run.ids, sample.conversation)))
            .then(Vec::new)
    }

    /// Sends the rows so far to the writer, without waiting for it.
    pub(crate) fn send_rows(&self) {
        self.rows.borrow_mut().send();
    }

    /// Sends the rows so far to the writer, and from now on waits where it is slow: there is no
    /// load to delay any more.
    pub(crate) fn flush_rows(&self) {
        self.rows.borrow_mut().flush();
    }

    /// Whether everything is recorded that was to be started before the run's end.
    pub(crate) fn is_quiet(&self) -> bool {
        let end = self.end.get();
        self.stats().in_flight() == 0 && self.next_arrival().is_none_or(|at| at >= end)
    }
}

/// Whether an id with this rank among all ids belongs to the first `one_in`-th of them.
const fn is_among_one_in(one_in: u32, rank: u32) -> bool {
    rank as u64 * (one_in as u64) < 1 << 32
}
