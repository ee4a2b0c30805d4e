//! T11 and T12: streams in which the time of every write is known.

use std::time::Duration;

use plimsoll_measure::{ErrorClass, Nanos, Outcome, Sample, ScenarioId, StageId};
use plimsoll_metrics::{Distribution, Finding, Level, Metric, StreamWord};
use plimsoll_mock::LogRecord;
use plimsoll_runner::Finished;
use plimsoll_stats::descriptive::{ascending, quantile};

use super::{Observations, SMALL};
use crate::error::CalibrateError;
use crate::experiment::{join, true_service_us};
use crate::finding::Check;
use crate::runner::Runner;
use crate::server::{Script, ServerSpec, Step};

const STREAM: &str =
    "content: {mode: sized, approx_input_tokens: 16}\nstream: true\nmax_tokens: 4096\n";

/// The stage after two warm-ups: one that opens connections, and one in which their streams end.
const MEASURED: StageId = StageId(2);

/// The streams that servers write.
const STREAMS: &str = include_str!("streams.txt");

/// An event.
fn event(name: &str) -> String {
    let text = STREAMS.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
    format!("{}\r\n\r\n", text.unwrap_or_default())
}

/// A stream by its name.
fn script(name: &str, max_write: Option<usize>) -> Script {
    let found = STREAMS.split("\n# ").find_map(|text| text.strip_prefix(name)?.strip_prefix('\n'));
    let (mut at, mut steps) = (Duration::ZERO, Vec::new());
    for line in found.unwrap_or_default().lines().filter(|line| !line.is_empty()) {
        let (after, events) = line.split_once(' ').unwrap_or_default();
        let (millis, times) = after.split_once('*').unwrap_or((after, "1"));
        let [millis, times] = [millis, times].map(|number| number.parse().unwrap_or(0));
        for _ in 0..times {
            at += Duration::from_millis(millis);
            steps.push(Step { at, text: events.split(' ').map(event).collect() });
        }
    }
    Script { steps, max_write }
}

/// Streams with six tokens that are correct or wrong in one way: name, script, largest write, and
/// the expected outcome.
const CASES: [(&str, &str, Option<usize>, Outcome); 6] = [
    ("1-byte writes", "whole", Some(1), Outcome::Completed),
    ("3-byte writes", "whole", Some(3), Outcome::Completed),
    ("7-byte writes", "whole", Some(7), Outcome::Completed),
    ("comments", "comments", None, Outcome::Completed),
    ("missing [DONE]", "without end", None, Outcome::Failed(ErrorClass::StreamTruncated)),
    ("error event", "broken", None, Outcome::Failed(ErrorClass::StreamError)),
];

/// T11: one stream to the tenth of a millisecond, and six special cases.
pub(super) fn t11_known_stream(runner: &Runner) -> Result<Observations, CalibrateError> {
    // Five streams that start apart, so that no two of their writes are due together; before that
    // as many open their connections.
    let stages = "w@7:700ms,w@0..0.001:1300ms,@7:700ms";
    let mut checks = known_times(&run_scripted(runner, script("known", None), stages)?);
    for (name, stream, max_write, outcome) in CASES {
        let completed = run_scripted(runner, script(stream, max_write), "@20:200ms")?;
        let correct = completed.samples.iter().filter(|s| s.outcome == outcome && s.events == 6);
        let what = format!("{name}: streams with the right outcome");
        checks.push(Check::exact(what, correct.count(), 4));
        if name == "comments" {
            let ttft = completed.quantile_us(Metric::Ttft, 0.5) / 1e3;
            checks.push(Check::within("comments are no token: TTFT", "ms", ttft, 62.0, 0.2));
        }
    }
    Ok(checks.into())
}

fn run_scripted(runner: &Runner, script: Script, stages: &str) -> Result<Finished, CalibrateError> {
    let server = runner.serve(ServerSpec::Scripted(script))?;
    runner.run(&server.url(), &format!("{STREAM}stages: '{stages}'\n"))
}

fn known_times(completed: &Finished) -> Vec<Check> {
    let stats = completed.result.snapshot.total(|key| key.stage == MEASURED);
    let ms = |metric, q| {
        let value = stats.distribution(metric).and_then(|d| d.nearest_rank(q));
        value.map_or(f64::NAN, Nanos::as_millis_f64)
    };
    let count = |is: fn(&Sample) -> bool| {
        completed.samples.iter().filter(|sample| sample.stage == MEASURED && is(sample)).count()
    };
    vec![
        Check::within("TTFB", "ms", ms(Metric::Ttfb, 0.5), 20.0, 0.2),
        Check::within("TTFT", "ms", ms(Metric::Ttft, 0.5), 120.0, 0.2),
        Check::within("gap p50", "ms", ms(Metric::Itl, 0.5), 10.0, 0.1),
        // The histogram has three digits.
        Check::within("gap max", "ms", ms(Metric::Itl, 1.0), 500.0, 0.7),
        Check::exact("streams with 107 tokens", count(|s| s.output_tokens() == Some(107)), 5),
        Check::exact("streams with 107 events", count(|s| s.events == 107), 5),
        Check::exact("streams with 102 gaps", count(|s| s.gaps.count == 102), 5),
        Check::exact("streams with a burst of 5", count(|s| s.gaps.largest_burst == 5), 5),
        Check::exact("streams completed", count(|s| s.outcome == Outcome::Completed), 5),
    ]
}

/// T12: the same stream alone and with many others.
pub(super) fn t12_many_streams(runner: &Runner) -> Result<Observations, CalibrateError> {
    let (mut checks, mut notes) = (Vec::new(), Vec::new());
    // Streams of 2 s, started evenly over one: as many at once as the rate.
    let crowds = [(1, "@1:1s"), (100, "@100:1s"), (1_000, "@1000:1s")];
    let crowd = crowds.into_iter().chain(runner.usual_or_full(None, Some((5_000, "@2500:2s"))));
    for (streams, stages) in crowd {
        let mock = runner.mock("ttft: 100ms, gap: 100ms")?;
        let profile = format!("{STREAM}max_tokens: 20\nstages: '{stages}'\n")
            .replace("max_tokens: 4096\n", "");
        let completed = runner.run(&mock.url(), &profile)?;
        let log = mock.finish()?.requests;
        let found = [shift(&completed, &log, first_us), shift(&completed, &log, gaps_us)];
        // The run's own status is not an excuse: a host on which the run is INVALID does not pass.
        let summary = completed.summary(&[])?;
        checks
            .push(Check::holds(format!("{streams} at once: the run is VALID"), summary.is_valid()));
        let named: Vec<_> = summary.of_level(Level::Invalid).map(Finding::text).collect();
        if !named.is_empty() {
            notes.push(format!("{streams} at once: INVALID: {}", named.join(" ")));
        }
        checks.extend(["TTFT", "longest gap"].into_iter().zip(found).map(|(what, p99)| {
            Check::at_most(format!("{streams} at once: {what} shifted, p99"), "us", p99, 200.0)
        }));
    }
    Ok(Observations { checks, notes })
}

/// The difference of a stream's figure from the server's record, 99th percentile.
fn shift(
    completed: &Finished,
    log: &[LogRecord],
    error: impl Fn(&Sample, &LogRecord) -> Option<f64>,
) -> f64 {
    let pairs = join(completed, log).into_iter();
    quantile(&ascending(pairs.filter_map(|(sample, record)| error(sample, record)).collect()), 0.99)
}

fn contents(record: &LogRecord) -> impl DoubleEndedIterator<Item = u64> {
    record.chunks.iter().filter(|chunk| chunk.tokens > 0).map(|chunk| chunk.written)
}

fn first_us(sample: &Sample, record: &LogRecord) -> Option<f64> {
    let truth = contents(record).next()?.checked_sub(record.arrived)?;
    Some((sample.timeline.ttft()?.as_micros_f64() - truth as f64 / 1e3).abs())
}

/// The longest gap of each stream: on the wire, and as it was measured.
fn gaps_us(sample: &Sample, record: &LogRecord) -> Option<f64> {
    let times: Vec<u64> = contents(record).collect();
    let truth = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).max()?;
    Some((sample.gaps.max.as_micros_f64() - Nanos::new(truth).as_micros_f64()).abs())
}

/// T28: a target, or a proxy in front of it, that sends 18 events at once every 180 ms. No report
/// may attribute the merged events to the generator.
pub(super) fn t28_merged_by_the_target(runner: &Runner) -> Result<Observations, CalibrateError> {
    let run = run_scripted(runner, script("merged", None), "@20:1s")?;
    let summary = run.summary(&[])?;
    let word = summary.results.total.streams.as_ref().map(|streams| streams.word);
    let burst = run.samples.iter().filter(|sample| sample.gaps.largest_burst >= 18).count();
    let merged = word == Some(StreamWord::Merged);
    Ok(vec![
        Check::exact("streams that came as they were sent", burst, 20),
        Check::holds("the report says that the target merged them", merged),
    ]
    .into())
}

// T2 and T3: the server takes a known time, and records how long it really took.

/// The stage after a warm-up that opens the connections, because opening a connection counts as
/// service time but is not a delay of the server. The warm-up therefore lasts longer than the
/// longest delay.
const DELAYS_MEASURED: StageId = StageId(1);

/// The larger of 50 us and half a percent.
fn tolerance_us(truth: f64) -> f64 {
    (truth * 0.005).max(50.0)
}

/// T2: constant delays in one mixed run.
pub(super) fn t2_constant_delays(runner: &Runner) -> Result<Observations, CalibrateError> {
    let mut delays = vec!["1ms", "5ms", "50ms", "500ms"];
    delays.extend(runner.effort().full.then_some("5s"));
    let scenarios: String = delays.iter().map(delay_scenario).collect();
    let stage = runner.usual_or_full("w@400:1s,@400:2s", "w@400:6s,@400:30s");
    let mock = runner.mock("")?;
    let run =
        runner.run(&mock.url(), &format!("{SMALL}stages: '{stage}'\nscenarios:\n{scenarios}"))?;
    let log = mock.finish()?.requests;
    let mut checks = Vec::new();
    for (delay, index) in delays.iter().zip(0..) {
        let truth = truth_of(&run, &log, index);
        let (snapshot, scenario) = (&run.result.snapshot, ScenarioId(index));
        let stats = snapshot.total(|key| key.scenario == scenario && key.stage == DELAYS_MEASURED);
        for (q, name) in [(0.5, "p50"), (0.99, "p99")] {
            let truth = quantile(&truth, q);
            let measured = reported(stats.distribution(Metric::ServiceTime), q);
            let what = format!("{delay} {name}");
            checks.push(Check::within(what, "us", measured, truth, tolerance_us(truth)));
        }
    }
    Ok(checks.into())
}

fn delay_scenario(delay: &&str) -> String {
    format!("  - {{name: {delay}, headers: {{x-mock-ttft: {delay}}}}}\n")
}

fn truth_of(run: &Finished, log: &[LogRecord], scenario: u16) -> Vec<f64> {
    let pairs = join(run, log);
    let measured = pairs.iter().filter(|(sample, _)| {
        sample.scenario == ScenarioId(scenario) && sample.stage == DELAYS_MEASURED
    });
    ascending(measured.filter_map(|(_, record)| true_service_us(record)).collect())
}

/// A quantile as reports show it, in microseconds.
fn reported(distribution: Option<&Distribution>, q: f64) -> f64 {
    let value = distribution.and_then(|distribution| distribution.nearest_rank(q));
    value.map_or(f64::NAN, Nanos::as_micros_f64)
}

/// A Pareto distribution of shape 1.5 from 1 ms, by some of its quantiles: `(1 - p)^(-1/1.5)` ms.
const PARETO: &str = "quantiles: [[0, 1ms], [0.5, 1.5874ms], [0.9, 4.6416ms], [0.99, 21.544ms], [0.999, 100ms], [1, 200ms]]";

const DISTRIBUTIONS: [(&str, &str); 4] = [
    ("exponential", "exponential: {mean: 5ms}"),
    ("lognormal", "lognormal: {median: 5ms, p95: 20ms}"),
    ("bimodal", "bimodal: {low: 1ms, high: 200ms, high_share: 0.01}"),
    ("Pareto", PARETO),
];

/// T3: distributions of delays, against the quantiles of the server's record of the same requests.
pub(super) fn t3_distributions(runner: &Runner) -> Result<Observations, CalibrateError> {
    let seconds = runner.usual_or_full(1, 20);
    let mut checks = Vec::new();
    for (name, distribution) in DISTRIBUTIONS {
        let mock = runner.mock(&format!("ttft: {{{distribution}}}"))?;
        let run = runner.run(&mock.url(), &format!("{SMALL}stages: '@1000:{seconds}s'"))?;
        let log = mock.finish()?.requests;
        let truth = ascending(log.iter().filter_map(true_service_us).collect());
        let total = run.total();
        for (q, label) in [(0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9")] {
            let measured = reported(total.distribution(Metric::ServiceTime), q);
            checks.push(between_neighbours(&format!("{name} {label}"), measured, &truth, q));
        }
    }
    Ok(checks.into())
}

/// A quantile must lie within the tolerance of the true one, beyond the samples next to it: between
/// two samples the quantile is not defined.
fn between_neighbours(what: &str, measured: f64, truth: &[f64], q: f64) -> Check {
    let step = 1.0 / truth.len() as f64;
    let (low, at, high) =
        (quantile(truth, q - step), quantile(truth, q), quantile(truth, (q + step).min(1.0)));
    let side = if measured < at { at - low } else { high - at };
    Check::within(what, "us", measured, at, tolerance_us(at) + side)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_stream_is_as_documented() {
        let script = script("known", None);
        let at: Vec<u128> = script.steps.iter().map(|step| step.at.as_millis()).collect();
        assert_eq!((at[0], at[1], at[101], at[102], at[103]), (20, 120, 1_120, 1_620, 1_630));
        let events =
            script.steps.iter().map(|step| step.text.matches("aé€😀").count()).sum::<usize>();
        assert_eq!((events, script.steps.len()), (107, 105));
    }
}

#[cfg(test)]
mod delays_tests {
    use super::*;

    #[test]
    fn a_quantile_may_lie_between_the_samples_next_to_it() {
        let truth: Vec<f64> = (1..=100).map(|n| f64::from(n) * 1_000.0).collect();
        for (measured, passes) in [
            (50_000.0, true),
            (51_200.0, true),
            (48_800.0, true),
            (51_300.0, false),
            (48_700.0, false),
        ] {
            let check = between_neighbours("p50", measured, &truth, 0.5);
            assert_eq!(check.passes(), passes, "{check}");
        }
    }
}
