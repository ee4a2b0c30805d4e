//! T29: what requests, streams and shards cost this host, for `plimsoll fleet`.

use std::time::Duration;

use plimsoll_measure::{
    Clock as _, Moment, MonotonicClock, Nanos, Outcome, Sample, ScenarioId, Seed, StageId,
    TargetId, Timeline,
};
use plimsoll_metrics::{Recorder, Snapshot, TaskTally, TimeSeries};
use plimsoll_mock::LogRecord;
use plimsoll_process_metrics::resident;
use plimsoll_run_files::{CountsView, counts_bytes, read_counts};
use plimsoll_runner::Finished;
use plimsoll_runner::time::sleep;
use plimsoll_stats::descriptive::{mean, quantile_of};

use super::{NUMBERED, Observations, SMALL};
use crate::error::CalibrateError;
use crate::experiment::join;
use crate::finding::Check;
use crate::record::Costs;
use crate::runner::Runner;
use crate::server::{NullSpec, ServerSpec};
use crate::tool_process::ToolProcess;

/// Chats that are answered at once.
const CHATS: &str = "content: {mode: sized, approx_input_tokens: 550}\nmax_tokens: 1\n";
/// Streams of 100 events, 20 ms apart.
const STREAMS: &str =
    "content: {mode: sized, approx_input_tokens: 550}\nstream: true\nmax_tokens: 100\n";
const EVENTS: f64 = 100.0;
/// Their rates, up to 100,000 events per second. An event costs the less the more events one
/// wake-up reads, so its cost is that at the highest rate that this host keeps.
const STREAM_RATES: [u32; 3] = [50, 250, 1_000];
/// Streams at once, for their memory: few enough for every limit on open files.
const AT_ONCE: u32 = 400;
/// Shards whose merging is timed.
const SHARDS: u64 = 8;
/// Seconds of a shard, and the samples of each.
const SECONDS: u64 = 60;
const PER_SECOND: u64 = 333;

/// Measures CPU time, memory and merging in separate runs. It proves only that all were measured.
pub(super) fn t29_costs(runner: &Runner) -> Result<Observations, CalibrateError> {
    let seconds = runner.usual_or_full(1, 5);
    let null = runner.serve(ServerSpec::Null(NullSpec::default()))?;
    let plain = runner.run(&null.url(), &format!("{NUMBERED}stages: '64:{seconds}s'"))?;
    let mock = runner.mock("ttft: 0ms, gap: 0ms")?;
    let chats = runner.run(&mock.url(), &format!("{CHATS}stages: '64:{seconds}s'"))?;
    let chat_us = cpu_us(&chats);
    let memory = memory_of_streams(runner)?;
    let merging = merging()?;
    let event_us = event_us(runner, seconds + 2, chat_us)?;
    let all = [cpu_us(&plain), chat_us, event_us, memory, merging.as_millis_f64()];
    let [
        cpu_us_per_request,
        cpu_us_per_chat,
        cpu_us_per_event,
        bytes_per_stream,
        merge_ms_per_shard,
    ] = all;
    runner.costs.get_or_init(|| Costs {
        cpu_us_per_request,
        cpu_us_per_chat,
        cpu_us_per_event,
        bytes_per_stream,
        merge_ms_per_shard,
    });
    let measured = all.iter().filter(|cost| cost.is_finite() && **cost > 0.0).count();
    let kibibytes = bytes_per_stream / 1024.0;
    Ok(Observations {
        checks: vec![Check::exact("costs measured", measured, all.len())],
        notes: vec![format!(
            "CPU: a request {cpu_us_per_request:.1} us, a chat {cpu_us_per_chat:.1} us, an event {cpu_us_per_event:.2} us; an open stream {kibibytes:.0} KiB; merging a shard {merge_ms_per_shard:.2} ms"
        )],
    })
}

/// CPU time of an event at the highest rate of streams that was kept.
fn event_us(runner: &Runner, seconds: u64, chat_us: f64) -> Result<f64, CalibrateError> {
    let mock = runner.mock("ttft: 20ms, gap: 20ms")?;
    let mut event_us = 0.0_f64;
    for rate in STREAM_RATES {
        let streams = runner.run(&mock.url(), &format!("{STREAMS}stages: '@{rate}:{seconds}s'"))?;
        let counted = streams.accounting();
        let kept = counted.completed.saturating_sub(counted.arrivals_late_by_generator);
        if event_us > 0.0 && kept * 100 < counted.arrivals_planned * 99 {
            break;
        }
        event_us = ((cpu_us(&streams) - chat_us) / EVENTS).max(0.0);
    }
    Ok(event_us)
}

/// CPU time of the generator for each request that ended.
fn cpu_us(run: &Finished) -> f64 {
    let health = &run.result.health;
    let used = health.cpu_user_s.zip(health.cpu_system_s).map(|(user, system)| user + system);
    used.unwrap_or(f64::NAN) * 1e6 / run.accounting().completed as f64
}

/// Resident memory per open stream, beyond a process with one stream.
fn memory_of_streams(runner: &Runner) -> Result<f64, CalibrateError> {
    let mock = runner.mock("ttft: 100ms, gap: 20ms")?;
    let few = peak_memory(runner, &mock.url(), 1)?;
    let many = peak_memory(runner, &mock.url(), AT_ONCE)?;
    Ok((many - few) / f64::from(AT_ONCE - 1))
}

/// Of a process with this number of streams at once. (This process reuses the memory of earlier
/// experiments.)
fn peak_memory(runner: &Runner, url: &str, streams: u32) -> Result<f64, CalibrateError> {
    let profile = format!("{STREAMS}stages: '{streams}:3s'");
    let mut tool = ToolProcess::profile(runner, &format!("t29-{streams}"), url, &profile)?;
    let mut most = 0.0_f64;
    while !tool.has_ended() {
        most = most.max(resident(&tool.pid()).unwrap_or_default());
        sleep(Duration::from_millis(50));
    }
    Ok(most)
}

#[expect(clippy::needless_pass_by_value, reason = "the argument of `map_err`")]
fn broken(error: plimsoll_run_files::RunFileError) -> CalibrateError {
    CalibrateError::Missing(error.to_string())
}

/// A request that was sent on time and took this long.
fn completed(intended: Moment, service: Nanos) -> Sample {
    Sample {
        timeline: Timeline {
            dispatched: Some(intended),
            finished: Some(intended + service),
            ..Timeline { intended, ..Timeline::default() }
        },
        outcome: Outcome::Completed,
        ..Sample::unsent(intended)
    }
}

/// Reading the counts of a shard of 60 seconds, and adding them to others.
fn merging() -> Result<Nanos, CalibrateError> {
    let mut rng = Seed(29).rng("costs", 0);
    let mut recorder = Recorder::new(vec![Moment::from_nanos(u64::MAX)]);
    let (mut snapshot, mut series) = (Snapshot::new(), TimeSeries::new(Moment::EPOCH));
    for end in (1..=SECONDS).map(|second| Moment::EPOCH + Nanos::from_secs(second)) {
        for _ in 0..PER_SECOND {
            // From 0.1 ms to 1 s.
            let service = Nanos::from_secs_f64(10f64.powf(rng.uniform() * 4.0 - 4.0));
            recorder.scheduled(StageId(0), ScenarioId(0), TargetId(0));
            recorder.record(&completed(end, service), &[], &[]);
        }
        let interval = recorder.take();
        series.add(end, &interval);
        snapshot.append(interval);
    }
    let tasks = TaskTally::default();
    let view = CountsView { complete: true, snapshot: &snapshot, series: &series, tasks: &tasks };
    let bytes = counts_bytes(&view, "costs").map_err(broken)?;
    let clock = MonotonicClock::start();
    for _ in 0..SHARDS {
        let shard = read_counts(&bytes, "costs").map_err(broken)?;
        snapshot.merge(shard.snapshot);
        series.merge(&shard.series);
    }
    Ok(Nanos::new(clock.now().since(Moment::EPOCH).as_u64() / SHARDS))
}

// T14: the server adds an overhead of 250 us, and a paired comparison finds it.

/// The overhead that is planted, in microseconds.
const PLANTED: f64 = 250.0;

/// Three series in each repeat, request by request in random order: the target, the target with the
/// overhead, and the target again, which must show no difference.
const SERIES: &str = include_str!("overhead.yaml");
const DIRECT: ScenarioId = ScenarioId(0);
const OVERHEAD: ScenarioId = ScenarioId(1);
const AGAIN: ScenarioId = ScenarioId(2);

/// Slices of a repeat. Only requests of the same slice, which are neighbours in time, are compared.
const SLICES: usize = 20;

/// Repeats of a paired comparison.
pub(super) fn t14_planted_overhead(runner: &Runner) -> Result<Observations, CalibrateError> {
    let (mut planted, mut none) = (Vec::new(), Vec::new());
    for repeat in 0..runner.usual_or_full(3, 40) {
        let mock = runner.mock("")?;
        let profile = format!("{SMALL}stages: '@600:1s'\nseed: {repeat}\n{SERIES}");
        let run = runner.run(&mock.url(), &profile)?;
        let log = mock.finish()?.requests;
        planted.push(difference(&run, &log, OVERHEAD));
        none.push(difference(&run, &log, AGAIN));
    }
    let (found, zero) = (mean(&planted), mean(&none));
    Ok(vec![
        Check::within("planted overhead, mean of all repeats", "us", found, PLANTED, 10.0),
        Check::within("A against A, mean of all repeats", "us", zero, 0.0, 10.0),
    ]
    .into())
}

/// The difference of medians to the direct series in microseconds, as its mean over the slices.
fn difference(run: &Finished, log: &[LogRecord], series: ScenarioId) -> f64 {
    let mut pairs = join(run, log);
    pairs.sort_unstable_by_key(|(sample, _)| sample.timeline.intended);
    let slice = pairs.len().div_ceil(SLICES).max(1);
    let slices = pairs.chunks(slice);
    let differences = slices.map(|slice| median_of(slice, series) - median_of(slice, DIRECT));
    mean(&differences.collect::<Vec<_>>())
}

type Pair<'l> = (&'l Sample, &'l LogRecord);

fn median_of(pairs: &[Pair<'_>], series: ScenarioId) -> f64 {
    let of = pairs.iter().filter(|(sample, _)| sample.scenario == series);
    let times = of.filter_map(|(sample, _)| sample.timeline.service_time());
    quantile_of(&times.map(Nanos::as_micros_f64).collect::<Vec<_>>(), 0.5)
}
