//! A run of 900 requests in 10 s, counted by one process or by several.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_measure::{
    ConnectPhases, ConversationKey, FlowControl, GapSummary, GeneratorShare, Moment, Nanos,
    Outcome, PolicyDecision, RpcReport, Sample, ScenarioId, ServerReport, StageId, Stripe,
    TargetId, Timeline, TokenCount, Usage,
};
use plimsoll_metrics::{
    InstrumentHealth, LoadModel, Recorder, RunEnd, RunInfo, RunMetadata, RunSummary, ShardState,
    Snapshot, StageInfo, TargetInfo, TaskTally, TimeSeries,
};
use plimsoll_run_files::{CountsView, ShardStatus, counts_bytes, shard_status_json, summary_json};
use serde_json::{Value, json};

pub(crate) const REQUESTS: u64 = 900;
const VERSION: &str = "0.2.0-test";
const SECOND: Nanos = Nanos::from_secs(1);

/// The service time of a request, in microseconds: from 0.5 ms to about 3 s, in no order.
pub(crate) const fn service_us(n: u64) -> u64 {
    500 + (n * 7_919) % 1_009 * (n % 3 + 1) * 1_000
}

/// Request `n`, due 10 ms after the one before. Every tenth fails; scenarios take turns.
fn sample(n: u64) -> Sample {
    let at = |us: u64| Moment::EPOCH + Nanos::from_micros(us);
    let (due, service) = (n * 10_000, service_us(n));
    let (outcome, status) = match n % 10 {
        9 => (Outcome::Rejected(429), 429),
        _ => (Outcome::Completed, 200),
    };
    Sample {
        stage: StageId(0),
        scenario: ScenarioId(u16::from(n % 2 == 1)),
        target: TargetId(0),
        conversation: ConversationKey::arrival(n),
        position: 0,
        turn: 0,
        operation: None,
        stream: false,
        warmup: false,
        reused: true,
        timeline: Timeline {
            intended: at(due),
            dispatched: Some(at(due + 5)),
            first_byte: Some(at(due + 5 + service / 2)),
            finished: Some(at(due + 5 + service)),
            ..Timeline::default()
        },
        connect: ConnectPhases::default(),
        retried_after: None,
        status,
        outcome,
        policy_decision: Some(PolicyDecision::from_status(status)),
        expected: None,
        usage: Usage {
            prompt: TokenCount::reported(10),
            completion: TokenCount::reported(3),
            cached: 0,
            reasoning: 0,
            after_first: Some(2),
        },
        events: 0,
        gaps: GapSummary::default(),
        shape: None,
        finish_reason: None,
        content: plimsoll_measure::AnswerContent::default(),
        repeated_tokens: 0,
        usage_refused: false,
        affected: false,
        rpc: RpcReport::default(),
        bytes_out: 100 + n,
        bytes_in: 1_000,
        flow: FlowControl::default(),
        server: ServerReport::default(),
        read_lag: None,
        generator: GeneratorShare::default(),
    }
}

/// Counts by one process of the requests of its part, second by second.
pub(crate) fn count(part: Stripe) -> (Snapshot, TimeSeries) {
    count_until(part, 10)
}

/// The same of the first seconds.
pub(crate) fn count_until(part: Stripe, seconds: u32) -> (Snapshot, TimeSeries) {
    let mut recorder = Recorder::new(vec![Moment::EPOCH + Nanos::from_secs(10)]);
    let mut counted = (Snapshot::new(), TimeSeries::new(Moment::EPOCH));
    for second in 0..seconds {
        for n in (0..REQUESTS).filter(|n| n / 100 == u64::from(second) && part.owns(*n)) {
            let sample = sample(n);
            recorder.scheduled(sample.stage, sample.scenario, sample.target);
            recorder.record(&sample, &[], &[]);
        }
        let interval = recorder.take();
        let at = Moment::EPOCH + Nanos::new(SECOND.as_u64() * u64::from(second + 1));
        counted.1.add(at, &interval);
        counted.0.append(interval);
    }
    counted.1.end(Moment::EPOCH + Nanos::from_secs(seconds.into()));
    counted
}

pub(crate) fn metadata(part: Stripe) -> RunMetadata {
    RunMetadata {
        run: RunInfo {
            name: "test".to_owned(),
            tool_version: VERSION.to_owned(),
            build: "dist full".to_owned(),
            seed: 7,
            run_id: "r1".to_owned(),
            launch: "first".to_owned(),
            shard: format!("{}/{}", part.index(), part.count()),
            started_unix_ns: 1_763_688_225_000_000_000,
            ended: RunEnd::Complete,
            ..RunInfo::default()
        },
        stages: vec![StageInfo {
            name: "@100:10s".to_owned(),
            model: LoadModel::Open,
            duration_s: 10.0,
            arrivals: Some(REQUESTS),
            ..StageInfo::default()
        }],
        scenarios: vec!["simple".to_owned(), "complex".to_owned()],
        targets: vec![TargetInfo { name: "gateway".to_owned(), ..TargetInfo::default() }],
        ..RunMetadata::default()
    }
}

/// The run as one process sums it up.
pub(crate) fn summary(part: Stripe) -> RunSummary {
    let health = InstrumentHealth::default();
    RunSummary::build(metadata(part), health, &count(part).0, &[]).unwrap()
}

/// `plan.json` of a shard.
pub(crate) fn plan(part: Stripe) -> Value {
    let shard = format!("{}/{}", part.index(), part.count());
    json!({
        "schema": "plimsoll.plan/1",
        "schedule_fingerprint": "00000000deadbeef",
        "plan": {"shard": shard, "limits": {"timeout": "30s"}, "thresholds": {}},
        "metadata": metadata(part),
    })
}

/// Writes the folder of a shard that ended, and returns it.
pub(crate) fn shard(parent: &Path, part: Stripe) -> PathBuf {
    let name = format!("shard-{:05}-of-{:05}", part.index(), part.count());
    let folder = parent.join(name);
    fs::create_dir(&folder).unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).unwrap();
    write("plan.json", plan(part).to_string().as_bytes());
    write_counts(&folder, part, true);
    write("summary.json", summary_json(&summary(part)).unwrap().as_bytes());
    let status = ShardStatus {
        shard: format!("{}/{}", part.index(), part.count()),
        launch: "first".to_owned(),
        state: ShardState::Done,
        ..ShardStatus::default()
    };
    write("shard.json", shard_status_json(&status).unwrap().as_bytes());
    folder
}

/// Writes the counts of a shard; if not `complete`, the counts when it was cut off.
pub(crate) fn write_counts(folder: &Path, part: Stripe, complete: bool) {
    write(folder, &count(part), complete);
}

/// Writes the last counts of a shard that ended after so many seconds.
pub(crate) fn write_counts_until(folder: &Path, part: Stripe, seconds: u32) {
    write(folder, &count_until(part, seconds), true);
}

pub(crate) fn write(folder: &Path, counted: &(Snapshot, TimeSeries), complete: bool) {
    let (snapshot, series) = counted;
    let tasks = TaskTally::default();
    let view = CountsView { complete, snapshot, series, tasks: &tasks };
    fs::write(folder.join("counts.bin"), counts_bytes(&view, VERSION).unwrap()).unwrap();
}

/// The folders of all shards of a run with so many.
pub(crate) fn shards(parent: &Path, count: u64) -> Vec<PathBuf> {
    (0..count).map(|index| shard(parent, Stripe::new(index, count).unwrap())).collect()
}
