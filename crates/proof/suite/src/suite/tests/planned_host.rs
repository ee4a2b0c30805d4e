//! A simulated host: its loads end at once, as planned, so tests of whole suites take no time.

use plimsoll_engine::{Control, Run, WatchedProcess};
use plimsoll_knee::{Counts, Measured, Objective, Planned};
use plimsoll_measure::{
    Block, Moment, Nanos, Outcome, PairedTurn, PolicyDecision, Sample, ScenarioId, StageId,
    TargetId,
};
use plimsoll_metrics::{
    HostLoad, InstrumentHealth, LoadModel, ProcessLoad, ProcessUse, Recorder, RunMetadata,
    RunSummary, StageResources,
};
use plimsoll_plan::Plan;
use plimsoll_runner::{RunnerError, facts};

use crate::child::{Child, ChildSpec};
use crate::error::SuiteError;
use crate::fixtures::{plan_path, sample};
use crate::host::{Compared, Host};

/// How a planned gateway answers a path, to the single requests before the load or in the load.
pub(super) type Answer = fn(path: &str, in_load: bool) -> (Outcome, u16, Nanos);

/// Requests of each stage: enough for a p99.
const REQUESTS: u64 = 1_000;

/// The planned host.
pub(super) struct PlannedHost {
    pub(super) answer: Answer,
    /// Makes every load invalid, as late requests do.
    pub(super) late: bool,
    /// The same of so many loads from the first on.
    pub(super) late_loads: usize,
    /// Every twentieth answer is read this much too late, which the generator knows.
    pub(super) late_reads: Nanos,
    /// Every request is dispatched this much too late, which it knows too.
    pub(super) late_dispatches: Nanos,
    /// Steal of the host.
    pub(super) steal: f64,
    /// Whether other programs fill its four CPUs.
    pub(super) full: bool,
    /// CPU use of the gateway's process.
    pub(super) gateway_cpu: Option<f64>,
    /// Files that each process may open.
    pub(super) files: u64,
    /// Additional time of a target in a comparison, by its name.
    pub(super) delays: Vec<(&'static str, Nanos)>,
    /// Capacity of a gateway in requests per second; requests beyond it are late.
    pub(super) carries: f64,
    /// The URLs of the probes of searches, in their order.
    pub(super) searched: Vec<String>,
    /// Children that were started.
    pub(super) started: u16,
    /// Why no target is reachable.
    pub(super) unreachable: Option<String>,
    /// Loads that have run, by path.
    pub(super) loaded: Vec<String>,
    /// The lengths of their measured stages, in seconds.
    pub(super) stages_s: Vec<f64>,
}

impl PlannedHost {
    /// A quiet host with a gateway that answers like this.
    pub(super) fn with(answer: Answer) -> Self {
        Self {
            answer,
            late: false,
            late_loads: 0,
            late_reads: Nanos::ZERO,
            late_dispatches: Nanos::ZERO,
            steal: 0.0,
            full: false,
            gateway_cpu: Some(0.97),
            files: 1_000_000,
            delays: Vec::new(),
            carries: 500.0,
            searched: Vec::new(),
            started: 0,
            unreachable: None,
            loaded: Vec::new(),
            stages_s: Vec::new(),
        }
    }

    fn health(&self) -> InstrumentHealth {
        InstrumentHealth {
            worker_cpu_shares: vec![0.3],
            worker_wait_shares: vec![0.01],
            steal_share: Some(self.steal),
            ..InstrumentHealth::default()
        }
    }
}

/// The path of a plan; the path of chats where the plan has none.
fn path(plan: &Plan) -> String {
    plan_path(plan).unwrap_or_else(|| "/v1/chat/completions".to_owned())
}

/// A request of a scenario with this outcome; a policy gateway that answers also blocks correctly.
fn ended(
    outcome: Outcome,
    status: u16,
    took: Nanos,
    scenario: usize,
    metadata: &RunMetadata,
) -> Sample {
    let expected = metadata.expectations.get(scenario).and_then(|own| own.policy_decision);
    let blocks = outcome == Outcome::Completed && expected == Some(PolicyDecision::Block);
    let (outcome, status) = if blocks { (Outcome::Rejected(403), 403) } else { (outcome, status) };
    let decision = match outcome {
        Outcome::Completed => Some(PolicyDecision::Allow),
        Outcome::Rejected(403) => Some(PolicyDecision::Block),
        Outcome::Rejected(429) => Some(PolicyDecision::RateLimited),
        Outcome::Rejected(_) => Some(PolicyDecision::Unexpected),
        _ => None,
    };
    let policy_decision = decision.filter(|_| expected.is_some());
    let scenario = ScenarioId(u16::try_from(scenario).unwrap());
    Sample { expected, policy_decision, scenario, ..sample(outcome, status, took) }
}

impl Host for PlannedHost {
    fn start(&mut self, _: &ChildSpec<'_>) -> Result<Child, SuiteError> {
        // Ports below 1,000 do not listen.
        self.started += 1;
        Ok(Child::new(None, format!("127.0.0.1:{}", self.started)))
    }

    fn run(
        &mut self,
        plan: Plan,
        _: Vec<WatchedProcess>,
        _: &Control,
    ) -> Result<RunSummary, SuiteError> {
        let path = path(&plan);
        let answer = (self.answer)(&path, true);
        self.loaded.push(path);
        let metadata = Run::prepare(plan).map_err(RunnerError::from)?.metadata();
        let measured = metadata.stages.iter().filter(|stage| !stage.warmup);
        self.stages_s.extend(measured.map(|stage| stage.duration_s));
        self.summary(metadata, answer)
    }

    /// Blocks of each scenario of a comparison forty times a second: on each target the planned
    /// answer, its delay, what all have in common, and a part of its own.
    fn compare(
        &mut self,
        plan: Plan,
        _: Vec<WatchedProcess>,
        _: &Control,
    ) -> Result<Compared, SuiteError> {
        let path = path(&plan);
        let answer = (self.answer)(&path, true);
        self.loaded.push(path);
        let run = Run::prepare(plan).map_err(RunnerError::from)?;
        let versus = run.plan().versus.clone().unwrap();
        let facts = facts::before(&run, &versus, None, &[]);
        let names: Vec<_> = facts.targets.iter().map(|target| &*target.name).collect();
        // The same number for each scenario.
        let scenarios = facts.scenarios.len() as u64;
        let block = |index: u64| Block {
            index,
            turn: 0,
            stage: StageId(1),
            scenario: ScenarioId(u16::try_from(index % scenarios).unwrap()),
            start: Nanos::from_micros(300_000 + 25_000 * index / scenarios),
            window: None,
            turns: names
                .iter()
                .enumerate()
                .map(|(place, name)| Some(self.turn(index, place, name, answer.0, answer.2)))
                .collect(),
        };
        let blocks = (0..400 * scenarios).map(block).collect();
        let summary = self.summary(run.metadata(), answer)?;
        Ok(Compared { facts, blocks, summary })
    }

    /// Batches of a quarter second: requests beyond the capacity miss the objective, and all of
    /// them do if the answer is bad or the generator late.
    fn knee_probe(
        &mut self,
        plan: &Plan,
        objective: &Objective,
        planned: Planned,
        _: &Control,
    ) -> Result<Measured, SuiteError> {
        self.searched.push(plan.targets[0].url.to_string());
        let (outcome, status, took) = (self.answer)(&path(plan), true);
        let metadata = Run::prepare(plan.clone()).map_err(RunnerError::from)?.metadata();
        let good = objective.is_kept_by(&moved(ended(outcome, status, took, 0, &metadata), 0.0))
            && !self.late;
        #[expect(clippy::cast_possible_truncation, reason = "small")]
        let batches = (1..=(planned.seconds * 4.0) as u32)
            .map(|index| {
                let all = requests_of_batch(planned.load, index);
                let missed = if good {
                    all.saturating_sub(requests_of_batch(self.carries, index))
                } else {
                    all
                };
                Counts { missed, doubtful: if self.late { missed } else { 0 }, all }
            })
            .collect();
        let (seconds, took_s) = (planned.seconds, planned.warmup_s + planned.seconds + 1.0);
        Ok(Measured { batches, seconds, took_s, ..Measured::default() })
    }

    fn reach(&mut self, _: Plan) -> Result<Option<String>, SuiteError> {
        Ok(self.unreachable.clone())
    }

    fn probe(&mut self, plan: Plan, _: &Control) -> Result<Vec<Sample>, SuiteError> {
        let (outcome, status, took) = (self.answer)(&path(&plan), false);
        let metadata = Run::prepare(plan).map_err(RunnerError::from)?.metadata();
        Ok((0..4).map(|_| ended(outcome, status, took, 0, &metadata)).collect())
    }

    fn open_files(&self, _: Option<u32>) -> Option<u64> {
        Some(self.files)
    }
}

fn requests_of_batch(rate: f64, batch: u32) -> u64 {
    requests_until(rate, batch) - requests_until(rate, batch - 1)
}

#[expect(clippy::cast_possible_truncation, reason = "small")]
fn requests_until(rate: f64, batch: u32) -> u64 {
    (rate * 0.25 * f64::from(batch)).round() as u64
}

/// Up to 40 us that look random.
fn noise(seed: u64) -> Nanos {
    let mixed = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    Nanos::new((mixed ^ (mixed >> 32)) % 40_000)
}

impl PlannedHost {
    /// The result of a target's turn in a block.
    fn turn(
        &self,
        block: u64,
        place: usize,
        name: &str,
        outcome: Outcome,
        took: Nanos,
    ) -> PairedTurn {
        let delay = self.delays.iter().find(|(slow, _)| *slow == name);
        let own = noise(1_000 * block + place as u64 + 1);
        let time = took + noise(1_000 * block) + own + delay.map_or(Nanos::ZERO, |(_, d)| *d);
        // Every target is equally often in every place.
        let position = u8::try_from((place as u64 + block) % 16).unwrap();
        PairedTurn {
            position,
            outcome,
            response: Some(time + self.late_dispatches),
            service: Some(time),
            ttft: None,
            last_token: None,
            longest_gap: None,
            gaps: 0,
            generator: plimsoll_measure::GeneratorShare {
                dispatch: self.late_dispatches,
                ..Default::default()
            },
            expected: None,
            decision: None,
            output_tokens: 0,
            input_tokens: 0,
            status: 200,
            finish_reason: None,
            content_bytes: 0,
            content_digest: 0,
            model: 0,
            reasoning: false,
            tool_calls: false,
            reused: true,
        }
    }

    fn summary(
        &self,
        mut metadata: RunMetadata,
        answer: (Outcome, u16, Nanos),
    ) -> Result<RunSummary, SuiteError> {
        metadata.run.ended = plimsoll_metrics::RunEnd::Complete;
        let ends = metadata
            .stages
            .iter()
            .map(|stage| Moment::EPOCH + Nanos::from_secs_f64(stage.start_s + stage.duration_s));
        let mut recorder = Recorder::new(ends.collect());
        let (outcome, status, took) = answer;
        for (index, stage) in metadata.stages.iter().enumerate() {
            let id = StageId(u16::try_from(index).unwrap());
            for n in 0..REQUESTS {
                let scenario = usize::try_from(n).unwrap() % metadata.scenarios.len();
                let ended = ended(outcome, status, took, scenario, &metadata);
                recorder.scheduled(id, ended.scenario, TargetId(0));
                // All within the stage, before its last half.
                let at = stage.start_s + stage.duration_s * 0.5 * n as f64 / REQUESTS as f64;
                let mut sample = Sample { stage: id, warmup: stage.warmup, ..ended };
                self.disturb(&mut sample, n % 20 == 0);
                recorder.record(&moved(sample, at), &[], &[]);
            }
        }
        let open = metadata.stages.iter().all(|stage| stage.model == LoadModel::Open);
        let arrivals = open.then_some(REQUESTS * metadata.stages.len() as u64);
        let (planned_arrivals, achieved_arrivals) = (arrivals, arrivals);
        let health = InstrumentHealth { planned_arrivals, achieved_arrivals, ..self.health() };
        let mut summary = RunSummary::build(metadata, health, &recorder.take(), &[])?;
        let stages = summary.metadata.stages.iter();
        let whole = stages.clone().map(|stage| Some(stage.name.clone())).chain([None]);
        summary.processes = whole.filter_map(|stage| self.process(stage)).collect();
        let measured = summary.metadata.stages.iter().filter(|stage| !stage.warmup);
        summary.resources = measured.map(|stage| self.resources(&stage.name)).collect();
        summary.find();
        if self.late || self.loaded.len() <= self.late_loads {
            let late = plimsoll_metrics::Finding::new(101).with("late", 30).with("planned", 100);
            summary.findings.insert(0, late.with("share", "30%").with("stage", "a stage"));
        }
        Ok(summary)
    }

    /// Adds the generator's own overhead to the times of a request.
    fn disturb(&self, sample: &mut Sample, is_read_late: bool) {
        let read = if is_read_late { self.late_reads } else { Nanos::ZERO };
        let line = &mut sample.timeline;
        for moment in [&mut line.dispatched, &mut line.connected, &mut line.sent] {
            *moment = moment.map(|moment| moment + self.late_dispatches);
        }
        for moment in [&mut line.first_byte, &mut line.finished] {
            *moment = moment.map(|moment| moment + self.late_dispatches + read);
        }
        let own = &mut sample.generator;
        own.dispatch = self.late_dispatches;
        (own.first_byte, own.finished) = (read, read);
    }

    /// The gateway has one core.
    fn resources(&self, stage: &str) -> StageResources {
        let gateway = self.gateway_cpu.map(|cores| ProcessLoad {
            name: "gateway".to_owned(),
            cores,
            cpus: Some(1),
            ..ProcessLoad::default()
        });
        let stage = stage.to_owned();
        let host = self.full.then_some(HostLoad { cpus: 4, busy: 1.0, stolen: 0.0 });
        StageResources { stage, wall_s: 1.0, processes: Vec::from_iter(gateway), host }
    }

    fn process(&self, stage: Option<String>) -> Option<ProcessUse> {
        let cores = self.gateway_cpu?;
        let name = "gateway".to_owned();
        let rss_bytes = 20_000_000;
        Some(ProcessUse { name, stage, wall_s: 1.0, cpu_s: cores, rss_bytes, ..Default::default() })
    }
}

/// The same request at another time.
fn moved(mut sample: Sample, seconds: f64) -> Sample {
    let by = Nanos::from_secs_f64(seconds);
    let timeline = &mut sample.timeline;
    timeline.intended = timeline.intended + by;
    for moment in [
        &mut timeline.dispatched,
        &mut timeline.connected,
        &mut timeline.sent,
        &mut timeline.first_byte,
        &mut timeline.finished,
    ] {
        *moment = moment.map(|moment| moment + by);
    }
    sample
}
