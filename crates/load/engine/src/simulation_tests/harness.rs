//! One worker in a simulation, from a profile's text to its samples.

use std::io;
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use plimsoll_measure::{Moment, Nanos, Sample, TaskSample};
use plimsoll_metrics::{Distribution, Recorder};
use plimsoll_plan::Plan;
use plimsoll_profile::{EnvVars, Overrides, Profile, Purpose, load};
use tokio::task::LocalSet;

use super::{ReceivedRequest, ScriptedTarget, Simulation, run_simulated};
use crate::clock::WorkerClock;
use crate::connections::WorkerConnections;
use crate::control::Control;
use crate::prepared::PreparedRun;
use crate::sink::{SampleBatch, SampleSink, Sink};
use crate::timer::Timer;
use crate::worker::Worker;
use crate::worker_share::WorkerShare;
use crate::worker_thread::{WorkerOutput, collect, run_load};

/// A chat of one turn.
pub(crate) const CHAT: &str =
    "content: {mode: sized, approx_input_tokens: 8}\nmax_tokens: 8\ndrain: 5s\n";

/// The moment these milliseconds after the run's start.
pub(crate) fn at(ms: u64) -> Moment {
    Moment::EPOCH + Nanos::from_millis(ms)
}

/// Whole milliseconds; a time that is not whole is a failure.
pub(crate) fn millis(time: Nanos) -> u64 {
    assert_eq!(time.as_u64() % 1_000_000, 0, "{time}");
    time.as_u64() / 1_000_000
}

/// When these turns were to start, when they were sent and when they ended, in milliseconds after
/// the run's start.
pub(crate) fn times(samples: &[Sample]) -> Vec<(u64, Option<u64>, Option<u64>)> {
    let offset = |moment: Moment| millis(moment.since(Moment::EPOCH));
    samples
        .iter()
        .map(|sample: &Sample| {
            let line = sample.timeline;
            (offset(line.intended), line.dispatched.map(offset), line.finished.map(offset))
        })
        .collect()
}

/// A worker whose run starts at the epoch of virtual time.
pub(crate) struct Harness {
    pub(crate) simulation: Rc<Simulation>,
    pub(crate) worker: Rc<Worker>,
    part: WorkerShare,
    tasks: LocalSet,
    sink: Sink,
    rows: Rows,
}

/// A whole run of one worker.
pub(crate) struct Simulated {
    /// In the order of their intended starts.
    pub(crate) samples: Vec<Sample>,
    /// Tasks of agents, in the order in which they ended.
    pub(crate) agent_tasks: Vec<TaskSample>,
    pub(crate) requests: Vec<ReceivedRequest>,
    pub(crate) output: WorkerOutput,
    /// How late the generator dispatched arrivals at most; `None` without any.
    pub(crate) pacing_lag: Option<Nanos>,
    /// When the run was over.
    pub(crate) end: Moment,
    /// Arrivals: planned, dispatched within their stage, and kept from it by the generator.
    pub(crate) arrivals: [u64; 3],
}

/// The arrivals among the samples of a worker, and how late the generator dispatched them at most,
/// as its recorder counts them.
fn count_arrivals(stage_ends: Vec<Moment>, samples: &[Sample]) -> ([u64; 3], Option<Nanos>) {
    let mut recorder = Recorder::new(stage_ends);
    for sample in samples {
        recorder.record(sample, &[], &[]);
    }
    let counted = recorder.take().total(|_| true);
    let counters = counted.counters();
    let arrivals = [
        counters.arrivals_planned,
        counters.arrivals_in_stage,
        counters.arrivals_late_by_generator,
    ];
    (arrivals, counted.pacing_lag().and_then(Distribution::max))
}

impl Harness {
    /// A worker with the whole load of a profile.
    pub(crate) fn new(profile: &str, target: ScriptedTarget) -> Self {
        Self::of_plan(plan(profile), target)
    }

    /// A worker with the whole load of a plan, or of a shard.
    pub(crate) fn of_plan(plan: Plan, target: ScriptedTarget) -> Self {
        let part = WorkerShare::new(plan.shard, 0, 1, plan.limits.max_in_flight);
        let simulation = Simulation::new(target);
        let run = Arc::new(PreparedRun::new(plan).unwrap());
        let rows = Rows::default();
        let sink = Sink::start(Box::new(rows.clone()), run.ids).unwrap();
        let timer = Timer::Simulated(WorkerClock::simulated(Rc::clone(&simulation)));
        let (batcher, looks) = (sink.row_batcher(), Arc::clone(&simulation.looks));
        let clock = timer.clock();
        let connections = WorkerConnections::new(&run, part, &clock, &looks).unwrap();
        let origin = simulation.now();
        let worker = Worker::new(run, timer, origin, connections, batcher);
        Self { simulation, worker: Rc::new(worker), part, tasks: LocalSet::new(), sink, rows }
    }

    /// Runs a future in virtual time.
    pub(crate) fn run<F: Future>(&self, future: F) -> F::Output {
        run_simulated(&self.simulation, &self.tasks, future)
    }

    /// Runs the whole load, as a worker's thread does.
    pub(crate) fn run_load(self, control: &Control) -> Simulated {
        let (sender, intervals) = channel();
        let end = self.run(run_load(&self.worker, self.part, control, sender));
        let mut simulated = self.finish(end);
        simulated.output.blocks.extend(intervals.try_iter().flat_map(|interval| interval.blocks));
        simulated.output.blocks.sort_by_key(|block| (block.index, block.turn));
        simulated
    }

    /// Ends all tasks, and collects the counts.
    pub(crate) fn finish(self, end: Moment) -> Simulated {
        drop(self.tasks);
        let output = collect(&self.worker, end);
        let requests = self.simulation.target.requests();
        // With the worker ends its sending side, and with that the writer.
        let worker = Rc::try_unwrap(self.worker).expect("every task is gone");
        let stages = worker.run.schedule.stages().iter();
        let stage_ends = stages.map(|stage| worker.origin + stage.end).collect();
        drop(worker);
        let report = self.sink.finish();
        let (mut samples, agent_tasks) = self.rows.0.lock().unwrap().clone();
        let (arrivals, pacing_lag) = count_arrivals(stage_ends, &samples);
        assert_eq!(report.written, samples.len() as u64);
        samples.sort_by_key(|sample| sample.timeline.intended);
        Simulated { samples, agent_tasks, requests, output, pacing_lag, end, arrivals }
    }
}

/// Runs the whole load of a profile.
pub(crate) fn simulate(profile: &str, target: ScriptedTarget) -> Simulated {
    Harness::new(profile, target).run_load(&Control::new())
}

/// The plan of a profile.
pub(crate) fn plan(profile: &str) -> Plan {
    plan_for(&format!("target: http://scripted.test\n{profile}"), Purpose::Run)
}

/// The plan of a comparison of this number of targets.
pub(crate) fn comparison(profile: &str, targets: u16) -> Plan {
    let targets: Vec<_> =
        (0..targets).map(|n| format!("{{name: t{n}, url: 'http://t{n}.test'}}")).collect();
    plan_for(&format!("targets: [{}]\n{profile}", targets.join(", ")), Purpose::Versus)
}

fn plan_for(profile: &str, purpose: Purpose) -> Plan {
    let text = format!("model: mock\nkey: test\n{profile}\n");
    let profile = Profile::new("test.yaml".as_ref(), text.into_bytes());
    let overrides = Overrides { run_id: Some("simulated".to_owned()), ..Overrides::default() };
    load(&profile, &EnvVars::default(), &overrides, purpose).unwrap()
}

/// Keeps the samples and the tasks of agents.
#[derive(Clone, Debug, Default)]
struct Rows(Arc<Mutex<(Vec<Sample>, Vec<TaskSample>)>>);

impl SampleSink for Rows {
    fn write(&mut self, batch: &SampleBatch) -> io::Result<()> {
        let mut kept = self.0.lock().unwrap();
        kept.0.extend_from_slice(&batch.samples);
        kept.1.extend_from_slice(&batch.tasks);
        Ok(())
    }
}
