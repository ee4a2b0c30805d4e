//! A run from its plan to its result.

use std::num::NonZero;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Barrier};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos, StageId, Stripe};
use plimsoll_metrics::{GroupStats, RunEnd, RunMetadata, Snapshot};
use plimsoll_profile::Plan;

use crate::control::Control;
use crate::error::EngineError;
use crate::facts;
use crate::health::process::{Processes, Watched};
use crate::health::{Baseline, Peaks};
use crate::pin;
use crate::prepare::Prepared;
use crate::probe::{self, ProbeReport};
use crate::progress::Progress;
use crate::result::{RunResult, assemble};
use crate::sink::{SampleSink, Sink};
use crate::ticker::Interval;
use crate::work::{Done, Post, Shared, work};

/// Time between the moment at which every worker is ready and the run's start.
const LEAD: Nanos = Nanos::from_millis(20);

/// A run that is ready to start.
#[derive(Debug)]
pub struct Run {
    prepared: Arc<Prepared>,
    clock: MonotonicClock,
    watched: Vec<Watched>,
}

impl Run {
    /// Loads and checks everything that the plan names; no request is sent yet.
    ///
    /// # Errors
    /// Whatever keeps the plan from being carried out.
    pub fn prepare(plan: Plan) -> Result<Self, EngineError> {
        let plan = without_quarrel(plan);
        let (prepared, clock) = (Arc::new(Prepared::new(plan)?), MonotonicClock::start());
        Ok(Self { prepared, clock, watched: Vec::new() })
    }

    /// Watches what these processes use while the load goes on, and what this one does.
    pub fn watch(&mut self, processes: Vec<Watched>) {
        self.watched = processes;
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.prepared.plan
    }

    /// The run's clock: samples are told in its moments.
    pub const fn clock(&self) -> MonotonicClock {
        self.clock
    }

    /// What is known before the load: names, stages, targets.
    pub fn facts(&self) -> RunMetadata {
        facts::planned(&self.prepared, &self.clock)
    }

    /// A hash of the schedule; shards with different ones are not parts of one run.
    pub fn schedule_fingerprint(&self) -> u64 {
        self.prepared.schedule.fingerprint()
    }

    /// Sends one request per target and dialect, and says what would make the load pointless. These requests are
    /// counted nowhere.
    ///
    /// # Errors
    /// Where we cannot even try.
    pub fn probe(&self) -> Result<ProbeReport, EngineError> {
        probe::probe(&self.prepared, self.clock)
    }

    /// Carries the run out. `observe` is called about once a second.
    ///
    /// # Errors
    /// Where *we* are broken; whatever the target does is part of the result.
    pub fn start(
        self,
        sink: Option<Box<dyn SampleSink>>,
        control: &Control,
        observe: &mut dyn FnMut(&Progress<'_>),
    ) -> Result<RunResult, EngineError> {
        let seed = self.plan().seed;
        let sink = sink.map(|sink| Sink::start(sink, seed)).transpose()?;
        let crew = Crew::hire(&self, sink.as_ref(), control)?;
        let baseline = Baseline::read(&self.clock);
        let origin = crew.begin();
        let mut watch = Watch::new(&self, origin, crew.workers.len());
        watch.follow(&crew.intervals, &crew.workers, observe);
        let done = crew.dismiss()?;
        let (mut facts, instrument) = (self.facts(), self.plan().instrument);
        facts.run.ended =
            if control.is_interrupted() { RunEnd::Interrupted } else { RunEnd::Complete };
        let mut result = assemble(facts, instrument, origin, watch.total, done);
        let (stages, counted) = (&result.facts.stages, &result.snapshot);
        result.processes = watch.processes.end(watch.ended, stages, counted);
        watch.peaks.fill(&mut result.health);
        baseline.fill(&self.clock, &mut result.health);
        result.close_sink(sink);
        Ok(result)
    }
}

/// The worker threads of a run.
struct Crew {
    shared: Shared,
    workers: Vec<JoinHandle<Result<Done, EngineError>>>,
    intervals: Receiver<Interval>,
}

impl Crew {
    fn hire(run: &Run, sink: Option<&Sink>, control: &Control) -> Result<Self, EngineError> {
        let count = workers(&run.prepared.plan);
        let shared = Shared {
            run: Arc::clone(&run.prepared),
            clock: run.clock,
            control: control.clone(),
            origin: Arc::default(),
            ready: Arc::new(Barrier::new(usize::from(count) + 1)),
        };
        let (sender, intervals) = channel();
        let mut crew = Self { shared, workers: Vec::new(), intervals };
        let pins = run.plan().instrument.pin_workers.then(|| pin::places(count)).flatten();
        for index in 0..count {
            let cpu = pins.as_ref().and_then(|pins| pins.get(usize::from(index)).copied());
            let stripe = crew.stripe(index, count);
            crew.hire_one(Post { index, stripe, cpu }, sink, sender.clone())?;
        }
        Ok(crew)
    }

    /// The part of the load that one of so many workers carries.
    fn stripe(&self, index: u16, count: u16) -> Stripe {
        let shard = self.shared.run.plan.shard;
        shard.divide(u64::from(index), u64::from(count)).unwrap_or(shard)
    }

    fn hire_one(
        &mut self,
        post: Post,
        sink: Option<&Sink>,
        intervals: Sender<Interval>,
    ) -> Result<(), EngineError> {
        let shared = self.shared.clone();
        let outbox = sink.map(Sink::outbox).unwrap_or_default();
        let thread = thread::Builder::new()
            .name(format!("plimsoll-{}", post.index))
            .spawn(move || work(&shared, post, outbox, intervals))
            .map_err(EngineError::Thread)?;
        self.workers.push(thread);
        Ok(())
    }

    /// Fixes the run's start when every worker is ready.
    fn begin(&self) -> Moment {
        self.shared.ready.wait();
        let origin = *self.shared.origin.get_or_init(|| self.shared.clock.now() + LEAD);
        self.shared.ready.wait();
        origin
    }

    fn dismiss(self) -> Result<Vec<Done>, EngineError> {
        let join =
            |thread: JoinHandle<_>| thread.join().map_err(|_| EngineError::WorkerPanicked)?;
        self.workers.into_iter().map(join).collect()
    }
}

/// Workers that share a CPU do not spin: while one waits for its deadline, another would miss its own.
fn without_quarrel(mut plan: Plan) -> Plan {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    if usize::from(workers(&plan)) > cores {
        plan.instrument.spin = Nanos::ZERO;
    }
    plan
}

/// As many workers as asked for, else one for each core that this process may use; never more than there is work for.
fn workers(plan: &Plan) -> u16 {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    plan.limits.workers.unwrap_or_else(|| u16::try_from(cores).unwrap_or(u16::MAX)).max(1)
}

/// Follows a run from outside.
struct Watch<'r> {
    run: &'r Run,
    origin: Moment,
    workers: usize,
    total: Snapshot,
    so_far: GroupStats,
    peaks: Peaks,
    processes: Processes,
    /// When the last worker was done.
    ended: Moment,
}

impl<'r> Watch<'r> {
    fn new(run: &'r Run, origin: Moment, workers: usize) -> Self {
        Self {
            run,
            origin,
            workers,
            total: Snapshot::new(),
            so_far: GroupStats::default(),
            peaks: Peaks::default(),
            processes: Processes::new(
                &run.watched,
                [origin]
                    .into_iter()
                    .chain(run.prepared.schedule.stages().iter().map(|stage| origin + stage.end)),
            ),
            ended: origin,
        }
    }

    /// Merges what the workers send, and tells `observe` whenever each has reported once, until all are done.
    fn follow<T>(
        &mut self,
        intervals: &Receiver<Interval>,
        workers: &[JoinHandle<T>],
        observe: &mut dyn FnMut(&Progress<'_>),
    ) {
        let mut last = self.origin;
        let mut round = Vec::with_capacity(self.workers);
        loop {
            self.processes.look(self.run.clock.now());
            match intervals.recv_timeout(Duration::from_millis(20)) {
                Ok(interval) => round.push(interval),
                Err(RecvTimeoutError::Timeout) if workers.iter().all(JoinHandle::is_finished) => {
                    break;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if round.len() >= self.workers {
                let now = round.iter().map(|interval| interval.at).max().unwrap_or(last);
                self.tell(std::mem::take(&mut round), now.since(last), now, observe);
                last = now;
            }
        }
        self.ended = self.run.clock.now();
        let mut rest = Snapshot::new();
        for interval in round {
            rest.merge(interval.snapshot);
        }
        self.total.append(rest);
    }

    fn tell(
        &mut self,
        round: Vec<Interval>,
        length: Nanos,
        now: Moment,
        observe: &mut dyn FnMut(&Progress<'_>),
    ) {
        let in_flight = round.iter().map(|interval| interval.in_flight).sum();
        let mut counted = Snapshot::new();
        for interval in round {
            counted.merge(interval.snapshot);
        }
        let interval = counted.total(|_| true);
        self.so_far.merge(&interval);
        self.total.append(counted);
        self.peaks.look();
        let schedule = &self.run.prepared.schedule;
        let elapsed = now.since(self.origin);
        let last =
            StageId(u16::try_from(schedule.stages().len().saturating_sub(1)).unwrap_or(u16::MAX));
        observe(&Progress {
            elapsed,
            duration: schedule.duration(),
            stage: schedule.stage_at(elapsed).unwrap_or(last),
            interval: &interval,
            interval_length: length,
            total: &self.so_far,
            in_flight,
        });
    }
}
