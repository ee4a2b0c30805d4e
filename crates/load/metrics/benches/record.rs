//! The cost of counting a request, for the worker that sends it.
//!
//! `cargo bench -p plimsoll-metrics`. Each figure is of one call; the targets are 150 ns for a
//! plain request, so that counting takes 2 % of a core at 150,000 requests/s, and no allocation.

use divan::{Bencher, black_box};
use plimsoll_measure::{
    ConnectPhases, ConversationKey, FlowControl, GapSummary, Moment, Nanos, Outcome,
    PolicyDecision, Sample, ScenarioId, ServerReport, StageId, TargetId, Timeline, TokenCount,
    Usage,
};
use plimsoll_metrics::{Recorder, Snapshot};

fn main() {
    divan::main();
}

/// Number of different requests, so that buckets and branches vary.
const SAMPLES: usize = 1_024;

fn at(us: u64) -> Moment {
    Moment::EPOCH + Nanos::from_micros(us)
}

/// A plain HTTP request: no tokens, no stream, a reused connection, kernel time stamps.
fn plain(index: usize) -> Sample {
    let start = 1_000_000 + index as u64 * 7;
    let service = 300 + (index as u64 * 37) % 200;
    Sample {
        stage: StageId(1),
        scenario: ScenarioId(u16::from(index.is_multiple_of(4))),
        target: TargetId(0),
        conversation: ConversationKey::arrival(index as u64),
        position: 0,
        turn: 0,
        stream: false,
        warmup: false,
        reused: true,
        timeline: Timeline {
            intended: at(start),
            dispatched: Some(at(start + 3)),
            connected: Some(at(start + 3)),
            sent: Some(at(start + 9)),
            first_byte: Some(at(start + service)),
            finished: Some(at(start + service + 2)),
            ..Timeline::default()
        },
        connect: ConnectPhases::default(),
        retried_after: None,
        status: 200,
        outcome: Outcome::Completed,
        policy_decision: Some(PolicyDecision::Allow),
        expected: None,
        usage: Usage::default(),
        events: 0,
        gaps: GapSummary::default(),
        bytes_out: 120,
        bytes_in: 400,
        flow: FlowControl::default(),
        server: ServerReport::default(),
        read_lag: Some(Nanos::from_micros(15 + index as u64 % 10)),
        ..Sample::unsent(at(start))
    }
}

fn streamed(index: usize) -> Sample {
    let mut sample = plain(index);
    let start = sample.timeline.intended;
    let after = |us| Some(start + Nanos::from_micros(us));
    sample.stream = true;
    sample.timeline.first_token = after(20_000);
    sample.timeline.first_output_token = after(20_000);
    sample.timeline.last_token = after(1_300_000);
    sample.timeline.finished = after(1_300_100);
    sample.usage.prompt = TokenCount::reported(500);
    sample.usage.completion = TokenCount::reported(129);
    sample.usage.after_first = Some(128);
    sample.events = 129;
    sample
}

fn samples(make: fn(usize) -> Sample) -> Vec<Sample> {
    (0..SAMPLES).map(make).collect()
}

/// A worker's recorder in the second of three stages, in which every cell exists.
fn warm(samples: &[Sample]) -> Recorder {
    let mut recorder = Recorder::new(vec![at(500_000), at(60_000_000), at(120_000_000)]);
    for sample in samples {
        recorder.scheduled(sample.stage, sample.scenario, sample.target);
        recorder.record(sample, &[Nanos::from_millis(10)], &[]);
    }
    recorder
}

#[divan::bench]
fn plain_request(bencher: Bencher<'_, '_>) {
    let samples = samples(plain);
    let mut recorder = warm(&samples);
    let mut next = samples.iter().cycle();
    bencher.bench_local(|| {
        let Some(sample) = next.next() else { return };
        recorder.scheduled(sample.stage, sample.scenario, sample.target);
        recorder.record(black_box(sample), &[], &[]);
    });
}

#[divan::bench]
fn streamed_request_with_128_gaps(bencher: Bencher<'_, '_>) {
    let samples = samples(streamed);
    let gaps: Vec<_> = (0..128).map(|i| Nanos::from_micros(9_000 + i * 17)).collect();
    let mut recorder = warm(&samples);
    let mut next = samples.iter().cycle();
    bencher.bench_local(|| {
        let Some(sample) = next.next() else { return };
        recorder.scheduled(sample.stage, sample.scenario, sample.target);
        recorder.record(black_box(sample), black_box(&gaps), &[]);
    });
}

/// The worker's part at the end of an interval.
#[divan::bench]
fn take(bencher: Bencher<'_, '_>) {
    let samples = samples(streamed);
    bencher.with_inputs(|| warm(&samples)).bench_local_refs(Recorder::take);
}

/// The collector's part, after ten intervals.
#[divan::bench]
fn merge_an_interval(bencher: Bencher<'_, '_>) {
    let samples = samples(streamed);
    let interval = warm(&samples).take();
    let mut total = Snapshot::new();
    (0..10).for_each(|_| total.merge(interval.clone()));
    bencher.with_inputs(|| (total.clone(), interval.clone())).bench_local_values(
        |(mut total, interval)| {
            total.merge(interval);
            total
        },
    );
}
