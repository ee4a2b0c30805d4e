//! Facts for the judge of a comparison, besides its blocks.

use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind, Write as _};
use std::path::Path;

use plimsoll_engine::{ProbeAnswer, ProbeReport, Run, substrate};
use plimsoll_measure::Nanos;
use plimsoll_metrics::{
    Level, LoadModel, ProcessTrack, ProcessUse, RunSummary, ServerTiming, StageInfo,
};
use plimsoll_plan::{Plan, Target, TargetRole, VersusPlan};
use plimsoll_rules::Finding;
use plimsoll_run_files::pairs::{Pairs, PairsWriter};
use plimsoll_schedule::{Load, PairMode};
use plimsoll_versus::{
    AddedThreshold, CpuReading, Facts, Looks, OVERLOAD, Role, Schedule, StageFacts, Stated,
    Streams, TakenOut, TargetFacts, Versus,
};
use serde::{Deserialize, Serialize};

use crate::error::RunnerError;
use crate::folder::{RunDir, file, read_blocks};

/// Why a target is taken out of a comparison.
pub const FAILING: &str = "none of its requests succeeded for 10 s or more";

/// Facts that are known after the load, besides the blocks.
#[derive(Clone, Copy, Debug)]
pub struct After<'a> {
    /// Its summary.
    pub summary: &'a RunSummary,
    /// By target: when it was taken out, after the run's start.
    pub taken_out: &'a [Option<Nanos>],
    /// The CPU time of watched processes over time; a process has the name of its target.
    pub tracks: &'a [ProcessTrack],
    /// Whether seconds were left out by sampling, with the divisor.
    pub one_in: u32,
}

/// Facts that are known before the load.
pub fn before(
    run: &Run,
    versus: &VersusPlan,
    probe: Option<&ProbeReport>,
    thresholds: &[AddedThreshold],
) -> Facts {
    let plan = run.plan();
    let stages = run.metadata().stages;
    let substrates = substrates(plan);
    let duration_s: f64 =
        stages.iter().filter(|stage| !stage.warmup).map(|stage| stage.duration_s).sum();
    Facts {
        name: plan.name.clone(),
        targets: plan
            .targets
            .iter()
            .map(|target| target_facts(plan, target, probe, &substrates))
            .collect(),
        schedule: schedule(run, versus, &stages),
        stages: stages
            .iter()
            .map(|stage| StageFacts { name: stage.name.clone(), model: stage.model })
            .collect(),
        scenarios: plan.scenarios.iter().map(|scenario| scenario.name.clone()).collect(),
        planned_blocks: run.planned_blocks(),
        rate: rate(plan).map(|rate| rate / plan.shard.count() as f64),
        duration_s,
        loaded_s: loaded_s(run),
        one_in: 1,
        same_host: plan.targets.iter().all(|target| target.url.is_loopback()),
        thresholds: thresholds.to_vec(),
        margin: versus.margin,
        looks: if versus.decide { Looks::Always } else { Looks::Once },
        decided_at: None,
        variants: false,
    }
}

/// Adds the facts that are known after the load.
pub fn complete(facts: &mut Facts, after: &After<'_>) {
    facts.one_in = after.one_in;
    let summary = after.summary;
    let loaded = facts.loaded_s / facts.duration_s;
    let is_known = facts.schedule == Schedule::Turns;
    let is_open = facts.stages.iter().any(|stage| stage.model == LoadModel::Open);
    for (index, target) in facts.targets.iter_mut().enumerate() {
        let out = after.taken_out.get(index).copied().flatten();
        target.taken_out = out.map(|at| TakenOut { at, why: FAILING.to_owned() });
        let overloads = summary
            .findings
            .iter()
            .filter(|finding| finding.code == OVERLOAD && finding.targets.contains(&target.name));
        target.setup.extend(overloads.cloned());
        // The process of the upstream also serves the gateways, so its CPU time is not due to
        // direct requests alone.
        let track = after.tracks.iter().find(|track| track.name == target.name && !target.direct);
        let readings = track.iter().flat_map(|track| &track.readings);
        target.cpu = readings.map(|(at, cpu)| CpuReading { at: *at, cpu: *cpu }).collect();
        let mut whole_run = summary.processes.iter().filter(|used| used.stage.is_none());
        let used = whole_run.find(|used| used.name == target.name);
        target.memory_bytes = used.map(|used| used.rss_bytes);
        target.failure =
            summary.metadata.targets.get(index).and_then(|known| known.failure.clone());
        if let Some(group) = summary.results.by_target.get(index) {
            target.streams = group.streams.as_ref().map(Streams::from);
            target.stated = group.server_timing.as_ref().and_then(stated);
            // A run that ends early ends for all targets. The backlog of an open stage is answered
            // while the others are loaded, too.
            let is_loaded = loaded > 0.0 && out.is_none() && !is_open;
            let rate = group.rates.throughput_per_s.filter(|_| is_loaded);
            target.throughput = rate.map(|rate| rate / loaded);
            let sent = group.counters.dispatched_in_stage;
            let cpu_s = cpu_of_measured_stages(summary, &target.name);
            let cpu_s = cpu_s.filter(|_| is_known && sent > 0 && !target.direct);
            target.cpu_us_per_request = cpu_s.map(|cpu_s| cpu_s * 1e6 / sent as f64);
        }
    }
}

/// An invalid run invalidates the comparison. A late or disturbed generator does not: it disturbs
/// all targets, and each difference is judged without the part of the generator.
pub fn take_over(summary: &RunSummary, result: &mut Versus) {
    result.duration_s = result.duration_s.min(summary.results.total.duration_s);
    let findings = summary.of_level(Level::Invalid);
    for finding in findings.filter(|finding| !matches!(finding.code, 101 | 102)) {
        result.invalidate(finding.text());
    }
}

/// Times that a target states in its response headers; `None` if none of them can be true.
fn stated(timing: &ServerTiming) -> Option<Stated> {
    let mean_ns = timing.means_ms().map(|(name, mean_ms)| (name.to_owned(), mean_ms * 1e6));
    (timing.responses > 0)
        .then(|| Stated { responses: timing.responses, mean_ns: mean_ns.collect() })
}

/// The CPU time of a watched process in the measured stages, in seconds.
fn cpu_of_measured_stages(summary: &RunSummary, name: &str) -> Option<f64> {
    let stages = &summary.metadata.stages;
    let own =
        summary.processes.iter().filter(|used| used.name == name).filter(|used: &&ProcessUse| {
            match &used.stage {
                // A run of one stage has its use as a whole alone.
                None => stages.len() == 1,
                Some(name) => stages.iter().any(|stage| !stage.warmup && stage.name == *name),
            }
        });
    own.map(|used| used.cpu_s).reduce(|sum, cpu_s| sum + cpu_s)
}

/// How the targets share the time of the measured stages.
fn schedule(run: &Run, versus: &VersusPlan, stages: &[StageInfo]) -> Schedule {
    let pairs = run.pairs();
    let measured = run.schedule().stages().iter().zip(stages).filter(|(_, info)| !info.warmup);
    let open = measured.filter(|(_, info)| info.model == LoadModel::Open);
    let gap = open.filter_map(|(stage, _)| pairs?.gap(stage.id)).min();
    match (versus.schedule, gap) {
        (PairMode::Turns, _) => Schedule::Turns,
        (PairMode::Spread, Some(gap)) => Schedule::Spread { gap },
        (PairMode::Together, _) | (_, None) => Schedule::Together,
    }
}

/// How long each target is loaded in the measured stages, in seconds.
fn loaded_s(run: &Run) -> f64 {
    let Some(pairs) = run.pairs() else { return 0.0 };
    let measured = run.schedule().stages().iter().filter(|stage| !stage.warmup);
    measured.map(|stage| pairs.loaded(stage.id).as_secs_f64()).sum()
}

/// Blocks per second, where all measured stages are open and have one rate.
fn rate(plan: &Plan) -> Option<f64> {
    let measured = plan.stages.0.iter().filter(|stage| !stage.warmup);
    let (mut arrivals, mut length) = (0.0, 0.0);
    for stage in measured {
        let Load::Open { from, to } = stage.load else { return None };
        let seconds = stage.duration.map(Nanos::as_secs_f64)?;
        arrivals += f64::midpoint(from, to) * seconds;
        length += seconds;
    }
    (length > 0.0).then(|| arrivals / length)
}

/// Platform of a compared target.
struct Substrate {
    target: String,
    runs: String,
}

/// Platforms of the compared targets, as far as this host can tell. The reference is left out,
/// because the upstream of a gateway may run anywhere.
fn substrates(plan: &Plan) -> Vec<Substrate> {
    let compared = plan.targets.iter().filter(|target| target.role == TargetRole::Candidate);
    compared
        .filter_map(|target| {
            let runs = if target.url.is_loopback() {
                substrate(target.url.port())?
            } else {
                "elsewhere".to_owned()
            };
            Some(Substrate { target: target.name.clone(), runs })
        })
        .collect()
}

/// A difference between a target and another one, known before the load.
fn differs(target: &Target, what: &str, own: &str, other: (&str, &str)) -> Finding {
    let (reference, of_reference) = other;
    let finding = Finding::new(402).with("target", &target.name).with("what", what);
    finding.with("own", own).with("reference", reference).with("other", of_reference)
}

/// The difference between a target's platform and the platform of the first compared target.
fn other_substrate(target: &Target, all: &[Substrate]) -> Option<Finding> {
    let first = all.first()?;
    let own = all.iter().find(|other: &&Substrate| other.target == target.name)?;
    (own.runs != first.runs)
        .then(|| differs(target, "runs", &own.runs, (&first.target, &first.runs)))
}

fn target_facts(
    plan: &Plan,
    target: &Target,
    probe: Option<&ProbeReport>,
    substrates: &[Substrate],
) -> TargetFacts {
    TargetFacts {
        name: target.name.clone(),
        url: target.url.to_string(),
        model: target.model.clone(),
        protocol: protocol(plan, target).to_owned(),
        role: match target.role {
            TargetRole::Reference => Role::Reference,
            TargetRole::Control => Role::Control,
            TargetRole::Candidate => Role::Target,
        },
        direct: target.direct,
        setup: setup(plan, target, probe)
            .into_iter()
            .chain(other_substrate(target, substrates))
            .collect(),
        ..TargetFacts::default()
    }
}

/// How a target is spoken to.
fn protocol(plan: &Plan, target: &Target) -> &'static str {
    let of_scenarios = plan.scenarios.first().map(|scenario| scenario.protocol);
    target.protocol.or(of_scenarios).unwrap_or_default().name()
}

/// How a target differs from the reference before the load. Gateways put the provider before the
/// name of a model: `openai/gpt-4o-mini` is `gpt-4o-mini`.
fn setup(plan: &Plan, target: &Target, probe: Option<&ProbeReport>) -> Vec<Finding> {
    let Some(reference) = plan.targets.iter().find(|other| other.role == TargetRole::Reference)
    else {
        return Vec::new();
    };
    let facts = |target: &Target| {
        let model = target.model.rsplit('/').next().unwrap_or_default().to_owned();
        let protocol = protocol(plan, target).to_owned();
        [
            ("model", model),
            ("protocol", protocol),
            ("scheme", target.url.scheme().name().to_owned()),
        ]
    };
    let known = facts(target).into_iter().zip(facts(reference));
    let of_answers = probe.into_iter().flat_map(|probe| {
        let own = answers_of(plan, target, probe);
        own.flat_map(|own| {
            let mut others = answers_of(plan, reference, probe);
            let other = others.find(|other| other.scenario == own.scenario);
            other.into_iter().flat_map(|other| of_answer(own).into_iter().zip(of_answer(other)))
        })
    });
    let tokens = of_answers.filter(|(own, other)| !own.1.is_empty() && !other.1.is_empty());
    known
        .chain(tokens)
        .filter(|((_, own), (_, other))| own != other)
        .map(|((what, own), (_, other))| differs(target, what, &own, (&reference.name, &other)))
        .collect()
}

/// Status and input tokens of the answer to the prompt of the probe.
fn of_answer(answer: &ProbeAnswer) -> [(&'static str, String); 2] {
    let tokens = answer.input_tokens.map(|tokens| tokens.to_string()).unwrap_or_default();
    [("answers", answer.status.to_string()), ("input tokens of the same prompt", tokens)]
}

/// The answers of a target.
fn answers_of<'p>(
    plan: &'p Plan,
    target: &'p Target,
    probe: &'p ProbeReport,
) -> impl Iterator<Item = &'p ProbeAnswer> {
    probe.answers.iter().filter(|answer| {
        plan.targets.get(answer.target.index()).is_some_and(|known| known.name == target.name)
    })
}

/// Rounds of windows that an interval needs at least, with a margin: not all windows have the same
/// number of requests.
pub const ROUNDS: u32 = 10;

/// Which stages are too short for targets that take turns in them, and how long they should be.
pub fn short_turns(run: &Run, versus: &VersusPlan) -> Vec<String> {
    let Some(pairs) = run.pairs() else { return Vec::new() };
    let (schedule, stages) = (run.schedule().stages(), run.metadata().stages);
    let measured = schedule.iter().zip(&stages).filter(|(_, info)| !info.warmup);
    let in_turns = measured.filter(|(stage, _)| pairs.gap(stage.id).is_none());
    let short = in_turns.filter(|(stage, _)| pairs.rounds(stage.id) < ROUNDS as usize);
    let least = versus.window.scale(f64::from(ROUNDS) * f64::from(pairs.targets()));
    short
        .map(|(stage, info)| {
            let (rounds, name) = (pairs.rounds(stage.id), &info.name);
            format!(
                "in stage {name} each target has {rounds} windows, and an interval needs {ROUNDS}: make it {least} or longer, or `versus.window` shorter"
            )
        })
        .collect()
}

// Facts of a comparison's shard besides its blocks: `facts.json` in its folder.

/// Facts of a comparison's shard besides its blocks, or of several shards together.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ShardFacts {
    /// Facts that were known before the load.
    pub facts: Facts,
    /// By target: when it was taken out, after the run's start.
    pub taken_out: Vec<Option<Nanos>>,
    /// The CPU time of watched processes over time.
    pub tracks: Vec<ProcessTrack>,
}

impl ShardFacts {
    /// Writes them into the folder of a shard.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn store(&self, folder: &RunDir) -> Result<(), RunnerError> {
        folder.write(file::FACTS, &serde_json::to_vec(self)?)
    }

    /// Facts in the folder of a shard; `None` if it compared nothing.
    ///
    /// # Errors
    /// The file cannot be read, or is of another version.
    pub fn read(folder: &Path) -> Result<Option<Self>, RunnerError> {
        let path = folder.join(file::FACTS);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(RunnerError::Read { path, source }),
        };
        let parsed = serde_json::from_slice(&bytes);
        parsed.map(Some).map_err(|source| RunnerError::Facts { path, source })
    }

    /// Adds another shard of the same run: plans add up, and an observation of one shard applies to
    /// the whole. A process that several shards watched is one process: the longest record of it
    /// counts.
    fn add(&mut self, other: Self) {
        let facts = &mut self.facts;
        facts.planned_blocks += other.facts.planned_blocks;
        facts.rate = facts.rate.zip(other.facts.rate).map(|rates| rates.0 + rates.1);
        facts.same_host &= other.facts.same_host;
        for (target, other) in facts.targets.iter_mut().zip(other.facts.targets) {
            let new = other.setup.into_iter().filter(|how| !target.setup.contains(how));
            target.setup.extend(new.collect::<Vec<_>>());
        }
        for (out, other) in self.taken_out.iter_mut().zip(other.taken_out) {
            *out = [*out, other].into_iter().flatten().min();
        }
        for track in other.tracks {
            match self.tracks.iter_mut().find(|known| known.name == track.name) {
                Some(known) if known.readings.len() < track.readings.len() => *known = track,
                Some(_) => {}
                None => self.tracks.push(track),
            }
        }
    }
}

/// The shards of a comparison together.
#[derive(Clone, Debug)]
pub struct ComparedShards {
    known: ShardFacts,
    /// All blocks.
    pub pairs: Pairs,
    /// Files that cannot be read, and how: the blocks of their shards are not among these.
    pub damaged: Vec<String>,
}

impl ComparedShards {
    /// Reads the folders of shards; `None` if they compared nothing. A shard that was late has no
    /// blocks.
    pub fn read<'f>(folders: impl IntoIterator<Item = &'f Path>) -> Option<Self> {
        let (mut all, mut damaged): (Option<Self>, _) = (None, Vec::new());
        for folder in folders {
            match (&mut all, Self::read_one(folder)) {
                (_, Ok(None)) => {}
                (_, Err(error)) => damaged.push(error.to_string()),
                (Some(all), Ok(Some(shard))) => {
                    all.known.add(shard.known);
                    all.pairs.add(shard.pairs);
                }
                (none, Ok(shard)) => *none = shard,
            }
        }
        all.map(|all| Self { damaged, ..all })
    }

    /// A single shard, if it compared targets and began.
    fn read_one(folder: &Path) -> Result<Option<Self>, RunnerError> {
        let Some(known) = ShardFacts::read(folder)? else { return Ok(None) };
        if !folder.join(file::PAIRS).exists() {
            return Ok(None);
        }
        let pairs = read_blocks(folder)?;
        Ok(Some(Self { known, pairs, damaged: Vec::new() }))
    }

    /// Facts for the judge, once the counts of the shards are added up.
    pub fn facts(&self, summary: &RunSummary) -> Facts {
        let ShardFacts { facts, taken_out, tracks } = &self.known;
        let mut facts = facts.clone();
        let one_in = self.pairs.one_in;
        complete(&mut facts, &After { summary, taken_out, tracks, one_in });
        facts
    }

    /// Writes the blocks into the folder of the whole.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn store(&self, folder: &RunDir) -> Result<(), RunnerError> {
        let path = folder.path().join(file::PAIRS);
        let written = File::create(&path).and_then(|out| {
            let mut out = BufWriter::new(out);
            PairsWriter::write_pairs(&mut out, &self.pairs)?;
            out.flush()
        });
        written.map_err(|source| RunnerError::Write { path, source })
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_metrics::{Group, Rates};
    use plimsoll_rules::Finding;
    use plimsoll_versus::TargetFacts;

    use super::*;

    fn shard(setup: &[&str], out_s: Option<u64>, readings: u64) -> ShardFacts {
        let target = TargetFacts {
            name: "a".to_owned(),
            setup: setup.iter().map(|what| Finding::new(402).with("what", what)).collect(),
            ..TargetFacts::default()
        };
        let second = Nanos::from_secs;
        ShardFacts {
            facts: Facts {
                targets: vec![target],
                planned_blocks: 100,
                rate: Some(5.0),
                same_host: readings > 0,
                ..Facts::default()
            },
            taken_out: vec![out_s.map(second)],
            tracks: vec![ProcessTrack {
                name: "a".to_owned(),
                readings: (0..readings).map(|s| (second(s), second(s))).collect(),
            }],
        }
    }

    #[test]
    fn plans_add_up_and_what_one_shard_saw_holds_for_the_whole() {
        let mut all = shard(&["model"], None, 0);
        all.add(shard(&["model", "answers"], Some(9), 4));
        all.add(shard(&[], Some(7), 2));
        assert_eq!((all.facts.planned_blocks, all.facts.rate), (300, Some(15.0)));
        let setup = all.facts.targets[0].setup.iter().map(|finding| &*finding.values["what"]);
        assert_eq!(setup.collect::<Vec<_>>(), ["model", "answers"]);
        assert_eq!(all.taken_out, [Some(Nanos::from_secs(7))]);
        assert_eq!((all.tracks.len(), all.tracks[0].readings.len()), (1, 4));
        assert!(!all.facts.same_host);
    }

    #[test]
    fn a_comparison_states_the_time_that_was_loaded() {
        for (loaded_s, stated_s) in [(3.2, 3.2), (10.0, 10.0), (10.4, 10.0)] {
            let mut summary = RunSummary::default();
            summary.results.total.duration_s = loaded_s;
            let mut result = Versus { duration_s: 10.0, ..Versus::default() };
            take_over(&summary, &mut result);
            assert!((result.duration_s - stated_s).abs() < 1e-9, "{loaded_s}");
        }
    }

    /// 60 responses in 10 s, for half of which the target was loaded: users had 12 a second, and a
    /// backlog may have been answered in the other half.
    #[test]
    fn only_users_have_a_rate_while_the_target_is_loaded() {
        for (model, per_s) in [(LoadModel::Closed, Some(12.0)), (LoadModel::Open, None)] {
            let mut summary = RunSummary::default();
            let rates = Rates { throughput_per_s: Some(6.0), ..Rates::default() };
            summary.results.by_target = vec![Group { rates, ..Group::default() }];
            let mut facts = shard(&[], None, 0).facts;
            (facts.duration_s, facts.loaded_s) = (10.0, 5.0);
            facts.stages = vec![StageFacts { name: "a".to_owned(), model }];
            let (taken_out, tracks) = (&[][..], &[][..]);
            complete(&mut facts, &After { summary: &summary, taken_out, tracks, one_in: 1 });
            assert_eq!(facts.targets[0].throughput, per_s);
        }
    }

    #[test]
    fn a_file_of_facts_reads_back() {
        let known = shard(&["answers 500, d 200"], Some(9), 3);
        let text = serde_json::to_vec(&known).unwrap();
        let again: ShardFacts = serde_json::from_slice(&text).unwrap();
        assert_eq!(serde_json::to_vec(&again).unwrap(), text);
        assert_eq!((again.taken_out, again.tracks), (known.taken_out, known.tracks));
    }
}
