//! A small example run with a bit of everything.

use std::path::{Path, PathBuf};

use plimsoll_measure::{
    ConnectPhases, ConversationKey, ErrorClass, FinishReason, GapSummary, Moment, Nanos, Outcome,
    PolicyDecision, Sample, ScenarioId, StageId, StreamShape, TargetId, Timeline, TokenCount,
    Usage,
};
use plimsoll_metrics::{
    CalibrationQuote, Conversations, Environment, GroupKey, InstrumentHealth, Limit, LoadModel,
    Recorder, RunEnd, RunInfo, RunMetadata, RunSummary, Snapshot, StageInfo, TargetInfo,
};

/// A path in this crate.
pub(crate) fn path(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(relative)
}

fn at(us: u64) -> Moment {
    Moment::EPOCH + Nanos::from_micros(us)
}

/// A streamed turn with its intended start at `intended` us, dispatched 200 us later. It took
/// `service` us, with its first token at a tenth of that.
pub(crate) fn sample(stage: u16, scenario: u16, intended: u64, service: u64) -> Sample {
    let dispatched = intended + 200;
    let after = |us| Some(at(dispatched + us));
    Sample {
        stage: StageId(stage),
        scenario: ScenarioId(scenario),
        target: TargetId(0),
        conversation: match stage {
            2 => ConversationKey::arrival(intended),
            _ => ConversationKey::iteration(0, 0),
        },
        turn: 0,
        position: 0,
        operation: None,
        stream: true,
        warmup: stage == 0,
        reused: true,
        timeline: Timeline {
            intended: at(intended),
            dispatched: after(0),
            connected: after(0),
            sent: after(10),
            first_byte: after(service / 20),
            first_token: after(service / 10),
            first_output_token: after(service / 10),
            last_token: after(service - 100),
            finished: after(service),
        },
        connect: ConnectPhases::default(),
        retried_after: None,
        status: 200,
        outcome: Outcome::Completed,
        policy_decision: Some(PolicyDecision::Allow),
        expected: None,
        usage: Usage {
            prompt: TokenCount::reported(120),
            completion: TokenCount::reported(11),
            cached: 0,
            reasoning: 0,
            after_first: Some(10),
        },
        events: 11,
        gaps: GapSummary {
            count: 10,
            sum: Nanos::from_micros(service / 2),
            max: Nanos::from_micros(service / 5),
            largest_burst: 2,
            late_together: 0,
            ..GapSummary::default()
        },
        shape: Some(StreamShape::Intact),
        finish_reason: Some(FinishReason::Stop),
        bytes_out: 840,
        bytes_in: 4_200,
        read_lag: Some(Nanos::from_micros(20)),
        ..Sample::unsent(at(intended))
    }
}

/// The turn of [`sample`] with another end.
pub(crate) fn ended(mut sample: Sample, outcome: Outcome, status: u16) -> Sample {
    let line = &mut sample.timeline;
    (line.first_token, line.first_output_token, line.last_token) = (None, None, None);
    sample.usage = Usage::default();
    (sample.gaps, sample.events) = (GapSummary::default(), 0);
    (sample.shape, sample.finish_reason) = (None, None);
    sample.policy_decision = (status != 0).then(|| PolicyDecision::from_status(status));
    Sample { outcome, status, ..sample }
}

/// A warm-up of 1 s, 10 s of closed load, 10 s of open load.
pub(crate) fn metadata() -> RunMetadata {
    RunMetadata {
        run: RunInfo {
            name: "realistic".to_owned(),
            tool_version: "0.1.0".to_owned(),
            seed: 42,
            run_id: "5f0e3a9c41d7b682".to_owned(),
            plan_hash: "0123456789abcdef".to_owned(),
            shard: "0/1".to_owned(),
            started_unix_ns: 1_763_688_225_000_000_000,
            ended: RunEnd::Complete,
            ..RunInfo::default()
        },
        stages: vec![
            stage("w4:1s", LoadModel::Closed, 0.0, 1.0, Some(4)),
            stage("8:10s", LoadModel::Closed, 1.0, 10.0, Some(8)),
            stage("@100:10s", LoadModel::Open, 11.0, 10.0, Some(17)),
        ],
        scenarios: vec!["simple".to_owned(), "complex".to_owned()],
        targets: vec![TargetInfo {
            name: "gateway".to_owned(),
            url: "http://127.0.0.1:8080".to_owned(),
            model: "mock-small".to_owned(),
            direct: false,
            server: Some("nginx/1.26".to_owned()),
            failure: None,
            addresses: std::collections::BTreeMap::new(),
            tls: std::collections::BTreeMap::new(),
        }],
        environment: Environment {
            cpu_model: Some("Example CPU at 2.4 GHz".to_owned()),
            cpu_count: Some(8),
            memory_bytes: Some(16_000_000_000),
            kernel: Some("Linux 6.18".to_owned()),
            port_range: Some((32_768, 60_999)),
            load_average: Some((0.2, 0.1, 0.05)),
            versions: [("plimsoll".to_owned(), "0.1.0".to_owned())].into(),
            ..Environment::default()
        },
        notes: vec!["TLS verification is off (--insecure)".to_owned()],
        ..RunMetadata::default()
    }
}

fn stage(
    name: &str,
    model: LoadModel,
    start_s: f64,
    duration_s: f64,
    peak_in_flight: Option<u64>,
) -> StageInfo {
    StageInfo {
        name: name.to_owned(),
        model,
        warmup: name.starts_with('w'),
        start_s,
        duration_s,
        users: (model == LoadModel::Closed).then_some(if start_s > 0.0 { 8.0 } else { 4.0 }),
        peak_in_flight,
        ..StageInfo::default()
    }
}

pub(crate) fn health() -> InstrumentHealth {
    InstrumentHealth {
        planned_arrivals: Some(1_000),
        achieved_arrivals: Some(1_000),
        kernel_timestamps: Some(true),
        timer: Some("timerfd, precision 1ns".to_owned()),
        workers: Some(2),
        worker_cpu_shares: vec![0.21, 0.34],
        wall_s: Some(21.3),
        cpu_user_s: Some(4.2),
        cpu_system_s: Some(3.1),
        worker_wait_shares: vec![0.01, 0.02],
        steal_share: Some(0.0),
        throttled_share: Some(0.0),
        clock_step_ns: Some(21),
        ports_peak: Some(44),
        calibration: Some(CalibrationQuote {
            when: "2025-11-20 08:00:00 UTC".to_owned(),
            passed: 19,
            failed: 0,
            failed_tests: Vec::new(),
            floor_us: Some(14.0),
            max_rate: Some(152_000.0),
        }),
        fd_limit: Some(1_048_576),
        fd_peak: Some(41),
        ephemeral_ports: Some(28_232),
        peak_in_flight: Some(17),
        conversations: Some(Conversations {
            started: 2_000,
            finished: 1_990,
            ended_early: 10,
            ..Conversations::default()
        }),
        sink_offered: Some(2_080),
        sink_written: Some(2_080),
        sink_left_out: Some(0),
        sink_least_share_one_in: Some(1),
        sink_overflowed: Some(0),
        ..InstrumentHealth::default()
    }
}

/// Every turn of the run, in the order of their ends.
pub(crate) fn samples() -> Vec<Sample> {
    let mut samples: Vec<_> = (0..50).map(|i| sample(0, 0, i * 10_000, 60_000)).collect();
    for i in 0..1_000 {
        // Every length once, in an order without drift: 577 and 1,000 have no common divisor.
        let service = 50_000 + (i * 577 % 1_000) * 25;
        let scenario = u16::from(i % 4 == 0);
        samples.push(sample(1, scenario, 1_000_000 + i * 9_900, service));
        samples.push(sample(2, scenario, 11_000_000 + i * 10_000, service * 2));
    }
    samples[51].usage.completion = TokenCount::estimated(11);
    samples[52].reused = false;
    samples[52].connect.tcp = Some(Nanos::from_micros(85));
    let odd = sample(2, 0, 12_345_678, 1_500);
    samples.extend((0..20).map(|_| ended(odd, Outcome::Rejected(429), 429)));
    samples.extend((0..7).map(|_| ended(odd, Outcome::Failed(ErrorClass::ServerError), 503)));
    samples.extend((0..2).map(|_| ended(odd, Outcome::Failed(ErrorClass::Reset), 0)));
    samples.push(ended(sample(2, 1, 12_000_000, 30_000_000), Outcome::TimedOut, 0));
    samples.sort_by_key(|sample| sample.timeline.finished);
    samples
}

pub(crate) fn stage_ends() -> Vec<Moment> {
    vec![at(1_000_000), at(11_000_000), at(21_000_000)]
}

pub(crate) fn thresholds() -> Vec<Limit> {
    let bounds = [
        ("ttft", "p(95)<500ms"),
        ("ttft{scenario:complex}", "p(99.9)<500ms"),
        ("error_rate", "rate<0.1%"),
        ("throughput", ">=90"),
    ];
    bounds.iter().map(|(metric, bound)| Limit::parse(metric, bound).unwrap()).collect()
}

pub(crate) fn summary(metadata: RunMetadata, health: InstrumentHealth) -> RunSummary {
    summary_of(samples(), metadata, health)
}

/// The samples are counted in intervals of a second, as they are in a run.
pub(crate) fn summary_of(
    samples: Vec<Sample>,
    metadata: RunMetadata,
    health: InstrumentHealth,
) -> RunSummary {
    let mut recorder = Recorder::new(stage_ends());
    let mut snapshot = Snapshot::new();
    let mut second = 0;
    for sample in samples {
        let now = sample.timeline.finished.unwrap_or_default().as_nanos() / 1_000_000_000;
        if std::mem::replace(&mut second, now) != now {
            snapshot.append(recorder.take());
        }
        recorder.scheduled_in(GroupKey::for_sample(&sample));
        let gap = sample.gaps.sum.as_u64().checked_div(sample.gaps.count.into());
        let gaps = vec![Nanos::new(gap.unwrap_or_default()); sample.gaps.count as usize];
        recorder.record(&sample, &gaps, &[]);
    }
    snapshot.append(recorder.take());
    RunSummary::build(metadata, health, &snapshot, &thresholds()).unwrap()
}
