//! The state of one worker: a thread with a clock, connections, buffers and counters that nobody
//! else has.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_measure::{
    Block, Clock as _, ConversationKey, Moment, Nanos, Sample, ServerParts, StageId, TargetId,
    TaskSample,
};
use plimsoll_protocol::Decoder;
use plimsoll_schedule::{Load, StagePlan};
use plimsoll_transport::{Connector, EncodedRequest, Failure, ReadBuffers, RxClock, SendQueue};
use plimsoll_workload::id_rank;

use crate::arrival_source::{ArrivalSource, ArrivalStream};
use crate::clock::WorkerClock;
use crate::connections::{ConnectionSet, WorkerConnections, limits_of_user};
use crate::in_flight_limit::InFlightLimit;
use crate::loop_watch::LoopWatch;
use crate::pairs::PairCollector;
use crate::policy_decision::DecisionScan;
use crate::prepared::{PreparedRun, RequestBudget};
use crate::request_timeout::LazyTimeout;
use crate::response_headers::NamedPart;
use crate::sink::RowBatcher;
use crate::timer::Timer;
use crate::worker_share::WorkerShare;
use crate::worker_stats::{FinishedTurns, TurnExtras, WorkerStats};

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
    /// Where requests wait while the worker is busy.
    pub(crate) send_queue: Rc<SendQueue>,
    pub(crate) watch: LoopWatch,
    pub(crate) read_buffers: RefCell<ReadBuffers>,
    pub(crate) buffers: BufferPool,
    /// One source of arrivals; in a comparison one for each target.
    pub(crate) sources: Vec<ArrivalSource>,
    /// By target: the last read of a response.
    pub(crate) heard: Box<[Cell<Moment>]>,
    /// The longest time of a request, if that is less than the plan's: for the probe.
    pub(crate) time_cap: Option<Nanos>,
    /// Tasks of agents that have begun and not ended.
    pub(crate) open_tasks: Cell<u64>,
    connectors: Vec<Rc<Connector>>,
    /// Connectors to servers that are not targets, by origin.
    elsewhere: RefCell<BTreeMap<String, Rc<Connector>>>,
    /// Number of targets.
    targets: u16,
    /// Only in a comparison.
    pairs: Option<RefCell<PairCollector>>,
    stats: RefCell<WorkerStats>,
    rows: RefCell<RowBatcher>,
    /// Turns that are over and not yet counted.
    finished: RefCell<FinishedTurns>,
}

/// Which prompt a conversation has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextPrompt {
    /// One by its own seed.
    Any,
    /// The one at this place of a list.
    Listed(u64),
    /// The list is used up.
    None,
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
        let targets = run.plan.targets.len();
        let WorkerConnections { part, looks, connectors, rx_clock, shared, send_queue } =
            connections;
        let stage_ends = run.schedule.stages().iter().map(|stage| origin + stage.end).collect();
        let pairs = run.pairs.clone().map(|pairs| PairCollector::new(pairs, origin));
        let stats = WorkerStats::new(origin, stage_ends, targets, run.plan.goodput.clone());
        Self {
            origin,
            end: Cell::new(origin + run.schedule.duration()),
            connections: shared,
            rx_clock,
            send_queue,
            watch: LoopWatch::new(looks),
            read_buffers: RefCell::default(),
            buffers: BufferPool::new(run.routes()),
            sources: sources(&run, part),
            heard: vec![Cell::new(origin); targets].into(),
            time_cap: None,
            open_tasks: Cell::new(0),
            connectors,
            elsewhere: RefCell::default(),
            targets: u16::try_from(targets).unwrap_or(u16::MAX),
            pairs: pairs.map(RefCell::new),
            stats: RefCell::new(stats),
            rows: RefCell::new(rows),
            finished: RefCell::default(),
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
    #[inline]
    pub(crate) fn target_of(&self, key: ConversationKey) -> TargetId {
        key.block(self.targets).1
    }

    /// The conversation of a block on a target.
    pub(crate) const fn conversation_on(
        &self,
        block: ConversationKey,
        target: TargetId,
    ) -> ConversationKey {
        block.on(target, self.targets)
    }

    /// The source of arrivals on a target.
    #[inline]
    pub(crate) fn source_of(&self, target: TargetId) -> &ArrivalSource {
        &self.sources[target.index().min(self.sources.len() - 1)]
    }

    /// The place of a turn in the order of the targets; 0 where nothing is compared.
    #[inline]
    pub(crate) fn position(&self, key: ConversationKey, intended: Moment) -> u8 {
        let Some(pairs) = &self.run.pairs else { return 0 };
        pairs.spot(key, intended.since(self.origin)).position
    }

    /// When a conversation ends at the latest that arrives at `at`: with the window of its target,
    /// where targets take turns.
    #[inline]
    pub(crate) fn conversation_end(&self, key: ConversationKey, at: Moment) -> Moment {
        let never = Moment::from_nanos(u64::MAX);
        let Some(pairs) = &self.run.pairs else { return never };
        let end = pairs.window_end(self.target_of(key), at.since(self.origin));
        end.map_or(never, |end| self.origin + end)
    }

    /// Stops the load on targets that were dropped from the comparison.
    pub(crate) fn end_taken_out(&self, now: Moment) {
        for index in (0..self.sources.len()).filter(|index: &usize| self.run.is_taken_out(*index)) {
            let end = &self.sources[index].end;
            end.set(end.get().min(now));
        }
    }

    /// The blocks that ended since the last call, by the turns that are counted; `all` adds those
    /// that lack a turn.
    pub(crate) fn take_blocks(&self, all: bool) -> Vec<Block> {
        let Some(pairs) = &self.pairs else { return Vec::new() };
        let mut pairs = pairs.borrow_mut();
        if all { pairs.take_all() } else { pairs.take() }
    }

    /// Pools of their own for one virtual user.
    pub(crate) fn connections_of_user(&self) -> ConnectionSet {
        let limits = limits_of_user(&self.run.plan.http);
        ConnectionSet::new(&self.connectors, &self.rx_clock, limits)
    }

    /// Opens connections to a target that belong to no pool.
    pub(crate) fn connector(&self, target: TargetId) -> &Connector {
        &self.connectors[target.index()]
    }

    /// Connections by address, for each target whose name has several.
    pub(crate) fn addresses(&self) -> Vec<Vec<(SocketAddr, u64)>> {
        self.connectors.iter().map(|connector| connector.addresses()).collect()
    }

    /// Connections by the parameters negotiated in their TLS handshakes, for each target.
    pub(crate) fn negotiated(&self) -> Vec<BTreeMap<String, u64>> {
        self.connectors.iter().map(|connector| connector.negotiated()).collect()
    }

    /// Opens connections to a server that is not a target.
    pub(crate) fn connector_to(&self, origin: &str) -> Result<Rc<Connector>, Failure> {
        if let Some(connector) = self.elsewhere.borrow().get(origin) {
            return Ok(Rc::clone(connector));
        }
        let connector = self.run.connector_to(origin)?.sending_through(&self.send_queue);
        let connector = Rc::new(connector);
        self.elsewhere.borrow_mut().insert(origin.to_owned(), Rc::clone(&connector));
        Ok(connector)
    }

    /// The end of a stage.
    pub(crate) fn stage_end(&self, stage: StageId) -> Moment {
        self.stages().get(stage.index()).map_or(self.origin, |stage| self.origin + stage.end)
    }

    /// The earlier of a moment and the run's end.
    pub(crate) fn end_by(&self, moment: Moment) -> Moment {
        moment.min(self.end.get())
    }

    /// The moment from which a conversation that may go on until `end` starts no turn. If the run
    /// ends as planned, a task of an agent continues in the drain time: the longest tasks would be
    /// missing otherwise.
    #[inline]
    pub(crate) fn last_start(&self, end: Moment, is_task: bool) -> Moment {
        let last = self.end_by(end);
        if is_task && self.ends_as_planned() && end >= self.end.get() {
            return last + self.run.plan.limits.drain;
        }
        last
    }

    /// Whether the run goes on until the end of its last stage.
    fn ends_as_planned(&self) -> bool {
        self.end.get() == self.origin + self.run.schedule.duration()
    }

    /// Whether a task of an agent has begun and will go on.
    fn has_open_tasks(&self) -> bool {
        self.open_tasks.get() > 0 && self.ends_as_planned()
    }

    /// Whether a moment has passed.
    pub(crate) fn is_past(&self, moment: Moment) -> bool {
        self.clock.now() >= moment
    }

    /// Takes one of the requests that the run may send, for a turn that is intended at `at`. If
    /// none is left, or this is the last one, the run ends there: nothing later is started or
    /// counted. Those of a warm-up are not limited.
    pub(crate) fn take_request(&self, at: Moment) -> bool {
        if self.run.is_spent() {
            self.end_early(at);
            return false;
        }
        let Some(budget) = self.run.request_budget() else { return true };
        if self.is_warmup(self.stage_at(at)) {
            return true;
        }
        let taken = budget.take(at);
        if !taken {
            self.end.set(self.end_by(at));
        }
        self.end_with_budget();
        taken
    }

    /// The prompt of a conversation that starts at `at`. A warm-up takes none from a list.
    pub(crate) fn next_prompt(&self, at: Moment) -> NextPrompt {
        if !self.run.sends_in_order() || self.is_warmup(self.stage_at(at)) {
            return NextPrompt::Any;
        }
        self.run.take_prompt().map_or(NextPrompt::None, NextPrompt::Listed)
    }

    /// Whether the run may send another request.
    pub(crate) fn has_requests_left(&self) -> bool {
        !self.run.is_spent() && self.run.request_budget().is_none_or(|budget| !budget.is_spent())
    }

    /// Ends the load at `at`, if it is not to end earlier: nothing later is started, and answers
    /// that come later count to no stage's throughput.
    pub(crate) fn end_early(&self, at: Moment) {
        self.end.set(self.end_by(at));
        self.stats().end_early(at);
    }

    /// Ends the load if its requests are used up. At a rate it lasts until another request would be
    /// due: 20 requests at 100 per second take 0.2 s. Users send the last ones while they wait for
    /// others, and the times of a trace are as they are: such a load lasts until the last answer,
    /// and all answers count.
    fn end_with_budget(&self) {
        let Some(end) = self.run.request_budget().and_then(RequestBudget::end) else { return };
        self.end.set(self.end_by(end));
        let stage = self.stages().get(self.stage_at(end).index());
        let mut stats = self.stats();
        match stage.filter(|_| self.run.pairs.is_none()) {
            Some(stage @ StagePlan { load: Load::Open { .. }, .. }) => {
                stats.end_early(self.origin + stage.next_due(end.since(self.origin)));
            }
            Some(_) => stats.lasts_until_answered(end),
            None => stats.end_early(end),
        }
    }

    /// When the next arrival of a source is intended.
    pub(crate) fn next_arrival(&self, source: &ArrivalSource) -> Option<Moment> {
        source.peek().map(|arrival| self.origin + arrival.at)
    }

    /// The counters of this worker.
    pub(crate) fn stats(&self) -> RefMut<'_, WorkerStats> {
        self.stats.borrow_mut()
    }

    /// Counts a turn that is scheduled: from here on it is accounted for.
    pub(crate) fn count_scheduled(&self, sample: &Sample) {
        let now = self.clock.latest();
        self.watch.scheduled(sample, now);
        self.stats().scheduled(sample, now);
    }

    /// Records a turn that is over: it is in flight no longer, and is counted with others that
    /// ended.
    pub(crate) fn record(&self, sample: &Sample, extras: TurnExtras) {
        let at = self.clock.latest();
        self.end_with_budget();
        self.stats().ended(sample, at);
        let enough = self.finished.borrow_mut().push(sample, extras);
        if enough {
            self.count_finished();
        }
    }

    /// Counts the turns that ended since the last time.
    pub(crate) fn count_finished(&self) {
        self.end_with_budget();
        let mut stats = self.stats();
        let (mut rows, mut pairs) =
            (self.rows.borrow_mut(), self.pairs.as_ref().map(RefCell::borrow_mut));
        self.finished.borrow_mut().drain(|sample, extras| {
            self.run.disturbances.mark(sample);
            stats.record(sample, &extras);
            if let Some(pairs) = &mut pairs {
                pairs.add(sample, |target| self.run.is_taken_out(target));
            }
            rows.offer(sample, extras.row);
            self.buffers.gaps.release(extras.gaps);
        });
    }

    /// Parts of a target's time by their names, where rows are written.
    pub(crate) fn named_parts(&self, parts: &ServerParts) -> Vec<NamedPart> {
        if self.rows.borrow().is_open() { self.run.headers.named(parts) } else { Vec::new() }
    }

    /// Records the task of an agent that is over.
    pub(crate) fn record_task(&self, task: &TaskSample) {
        self.stats().record_task(task);
        self.rows.borrow_mut().offer_task(task);
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

    /// Sends the rows so far to the writer, and from now on waits if it is slow, because no load is
    /// left to delay.
    pub(crate) fn flush_rows(&self) {
        self.rows.borrow_mut().flush();
    }

    /// Whether everything is recorded that was to be started before the run's end.
    pub(crate) fn is_quiet(&self) -> bool {
        let end = self.end.get();
        let open = self.stats().oldest_open();
        let mut waits = (0..).zip(open).filter(|(target, _)| !self.run.is_taken_out(*target));
        let is_idle = waits.all(|(_, oldest)| oldest.is_none()) && !self.has_open_tasks();
        is_idle
            && self.sources.iter().all(|source: &ArrivalSource| {
                let end = end.min(source.end.get());
                self.next_arrival(source).is_none_or(|at| at >= end)
            })
    }
}

/// The sources of a worker's part of the arrivals. In a comparison each target has room of its own.
fn sources(run: &PreparedRun, part: WorkerShare) -> Vec<ArrivalSource> {
    let limits = &run.plan.limits;
    let most = part.max_in_flight(limits.max_in_flight);
    let Some(pairs) = &run.pairs else {
        let arrivals = part.arrivals.map(|stripe| run.schedule.arrivals(stripe));
        let limit = InFlightLimit::new(most, limits.overflow);
        return vec![ArrivalSource::new(arrivals.map(ArrivalStream::Single), limit)];
    };
    (0..pairs.targets())
        .map(TargetId)
        .map(|target| {
            let arrivals = part.arrivals.map(|stripe| Box::new(pairs.arrivals(stripe, target)));
            let limit = InFlightLimit::new(most, limits.overflow);
            ArrivalSource::new(arrivals.map(ArrivalStream::Paired), limit)
        })
        .collect()
}

/// Whether an id with this rank among all ids belongs to the first `one_in`-th of them.
const fn is_among_one_in(one_in: u32, rank: u32) -> bool {
    rank as u64 * (one_in as u64) < 1 << 32
}

/// Idle buffers of one kind that are kept.
const MAX_IDLE: usize = 64;
/// Largest request body that is kept: otherwise one huge prompt would hold its memory until the end
/// of the run.
const MAX_KEPT_BYTES: usize = 256 * 1024;

/// The idle buffers of one worker, by kind.
///
/// Buffers are reused, so the steady state does not allocate.
#[derive(Debug, Default)]
pub(crate) struct BufferPool {
    pub(crate) requests: FreeList<EncodedRequest>,
    pub(crate) gaps: FreeList<Vec<Nanos>>,
    pub(crate) timeouts: FreeList<LazyTimeout>,
    pub(crate) scans: FreeList<DecisionScan>,
    /// By route. Boxed, so that moving one moves a pointer.
    pub(crate) decoders: Vec<FreeList<Box<Decoder>>>,
}

impl BufferPool {
    /// No buffers yet; decoders for this number of routes.
    pub(crate) fn new(routes: usize) -> Self {
        Self { decoders: (0..routes).map(|_| FreeList::default()).collect(), ..Self::default() }
    }
}

/// Idle buffers of one kind, the one used last on top: its memory is most likely still in the
/// cache.
#[derive(Debug)]
pub(crate) struct FreeList<T>(RefCell<Vec<T>>);

impl<T> Default for FreeList<T> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<T: Recycle> FreeList<T> {
    /// An idle buffer, or a new one.
    pub(crate) fn acquire(&self) -> T
    where
        T: Default,
    {
        self.acquire_or(T::default)
    }

    /// An idle buffer, or the one that `make` makes.
    pub(crate) fn acquire_or(&self, make: impl FnOnce() -> T) -> T {
        // The list is not borrowed while `make` runs.
        let idle = self.0.borrow_mut().pop();
        idle.unwrap_or_else(make)
    }

    /// Puts a buffer back.
    pub(crate) fn release(&self, mut buffer: T) {
        if buffer.recycle() {
            let mut idle = self.0.borrow_mut();
            if idle.len() < MAX_IDLE {
                idle.push(buffer);
            }
        }
    }
}

/// A buffer that can be used again.
pub(crate) trait Recycle {
    /// Empties the buffer; false if it is not worth keeping.
    fn recycle(&mut self) -> bool;
}

impl Recycle for EncodedRequest {
    fn recycle(&mut self) -> bool {
        self.head.clear();
        self.body.clear();
        // A request without buffers is equivalent to a new one.
        let has_memory = self.head.capacity() > 0 || self.body.capacity() > 0;
        has_memory && self.body.capacity() <= MAX_KEPT_BYTES
    }
}

impl Recycle for Vec<Nanos> {
    fn recycle(&mut self) -> bool {
        self.clear();
        self.capacity() > 0
    }
}

impl Recycle for LazyTimeout {
    fn recycle(&mut self) -> bool {
        self.forget_task();
        true
    }
}

/// Emptied when the next response begins.
impl Recycle for DecisionScan {
    fn recycle(&mut self) -> bool {
        true
    }
}

impl Recycle for Box<Decoder> {
    fn recycle(&mut self) -> bool {
        self.reset();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_released_buffer_comes_back_empty_and_a_huge_one_does_not() {
        let requests: FreeList<EncodedRequest> = FreeList::default();
        for (capacity, kept) in [(1_000, true), (MAX_KEPT_BYTES + 1, false)] {
            let mut request = EncodedRequest::default();
            request.body.reserve_exact(capacity);
            request.body.push(b'x');
            requests.release(request);
            let next = requests.acquire();
            assert_eq!((next.body.len(), next.body.capacity() >= capacity), (0, kept));
        }
    }

    #[test]
    fn no_more_than_the_limit_is_kept() {
        let gaps: FreeList<Vec<Nanos>> = FreeList::default();
        (0..MAX_IDLE + 9).for_each(|_| gaps.release(Vec::with_capacity(4)));
        assert_eq!(gaps.0.borrow().len(), MAX_IDLE);
    }
}
