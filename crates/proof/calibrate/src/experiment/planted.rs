//! T22 to T27: planted causes of false verdicts. The generator is disturbed, or the target behaves
//! in a way that was once mistaken for a disturbance; every reported figure must still be right.

use std::time::Duration;

use plimsoll_metrics::{Bias, BoundedFigure, Metric, Refusal};
use plimsoll_mock::LogRecord;
use plimsoll_runner::time::sleep;
use plimsoll_stats::descriptive::{mean, quantile_of};

use super::saturation::throttled_run;
use super::{Observations, SMALL};
use crate::error::CalibrateError;
use crate::experiment::true_service_us;
use crate::finding::Check;
use crate::runner::Runner;
use crate::server::{NullSpec, Server, ServerSpec};
use crate::tool_process::{ToolProcess, ToolResult};

/// From the start of the tool's process until its first stage begins, about.
const START: Duration = Duration::from_millis(200);
/// The share by which the truth may lie outside the limits of a figure.
const OFF: f64 = 0.05;

/// Checks that the truth lies within the printed limits.
pub(super) fn truth_within_limits(
    what: &str,
    unit: &str,
    limits: [f64; 2],
    truth: f64,
    tolerance: f64,
) -> Check {
    let [low, high] = limits;
    let what = format!("{what}, its limits");
    // The value within the printed limits that is nearest to the truth.
    Check::within(what, unit, truth.max(low).min(high), truth, tolerance)
}

/// A time to which the generator only adds.
pub(super) fn time_within_limits(
    what: &str,
    figure: &BoundedFigure,
    truth: f64,
    tolerance: f64,
) -> Check {
    truth_within_limits(what, "ms", figure.limits(Bias::Adds), truth, tolerance)
}

/// Compares response-time percentiles with the server's log: the percentiles that the number of
/// requests supports, and always the p50.
fn against_log(result: &ToolResult, log: &[LogRecord]) -> Vec<Check> {
    let truth: Vec<f64> = log.iter().filter_map(true_service_us).map(|us| us / 1e3).collect();
    let p50 = result.percentile(Metric::ResponseTime, "p50").is_some();
    let printed =
        [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)].into_iter().filter_map(|(name, q)| {
            let truth = quantile_of(&truth, q);
            // The way through the network adds some tenths of a millisecond on a slow host.
            let tolerance = truth.mul_add(OFF, 0.2);
            let figure = result.percentile(Metric::ResponseTime, name)?;
            Some(time_within_limits(&format!("response {name}"), &figure, truth, tolerance))
        });
    std::iter::once(Check::holds("response p50 is printed", p50)).chain(printed).collect()
}

/// Completed requests per second of users who lose no time between an answer and the next
/// request: users over the mean time that the server took.
fn closed_rate(users: f64, log: &[LogRecord]) -> f64 {
    users / mean(&log.iter().filter_map(true_service_us).collect::<Vec<_>>()) * 1e6
}

/// The generator only holds a throughput back.
fn throughput(result: &ToolResult, truth: f64) -> Check {
    let limits = result.throughput().map_or([f64::NAN; 2], |rate| rate.limits(Bias::Takes));
    truth_within_limits("throughput", "/s", limits, truth, truth * OFF)
}

/// Starts the tool, stops it after `after` for `stop`, and returns its result.
fn stopped_run(
    runner: &Runner,
    server: &Server,
    name: &str,
    profile: &str,
    after: Duration,
    stop: Duration,
) -> Result<ToolResult, CalibrateError> {
    let tool = ToolProcess::profile(runner, name, &server.url(), profile)?;
    sleep(START + after);
    tool.suspend_for(stop)?;
    tool.finish()
}

/// T22: a stop within a short stage, after a warm-up with twenty times as many requests.
pub(super) fn t22_after_warm_up(runner: &Runner) -> Result<Observations, CalibrateError> {
    let mock = runner.mock("ttft: 20ms")?;
    let profile = format!("{SMALL}stages: 'w@800:1500ms,@40:2s'\n");
    let (after, stop) = (Duration::from_millis(2_200), Duration::from_millis(600));
    let result = stopped_run(runner, &mock, "t22", &profile, after, stop)?;
    Ok(against_log(&result, &mock.finish()?.requests).into())
}

/// T23: an open stage asks a generator with a fifth of a core for the highest rate of a whole core,
/// while a limit on requests in flight hides the delay.
pub(super) fn t23_behind_a_limit(runner: &Runner) -> Result<Observations, CalibrateError> {
    let server = runner.serve(ServerSpec::Null(NullSpec::default()))?;
    let rate = runner.floor.get().map_or(100_000.0, |floor| floor.highest_rate);
    let result = throttled_run(runner, &server, "t23", &format!("--rate {rate:.0} -c 64"))?;
    // The server has carried this rate, so that whatever waits waits for the generator.
    let [response, service] = [Metric::ResponseTime, Metric::ServiceTime]
        .map(|metric| result.percentile(metric, "p50"))
        .map(|figure| figure.unwrap_or_else(|| BoundedFigure::exact(f64::NAN)));
    let truth = service.value;
    let exit = result.exit.and_then(|code| usize::try_from(code).ok()).unwrap_or_default();
    let p50 = time_within_limits("response p50", &response, truth, truth + 1.0);
    Ok(vec![p50, Check::exact("exit code", exit, 3)].into())
}

/// T24: a closed loop whose generator stands still for a fifth of the time.
pub(super) fn t24_closed_loop(runner: &Runner) -> Result<Observations, CalibrateError> {
    let mock = runner.mock("ttft: 20ms")?;
    let profile = format!("{SMALL}stages: '2:2s'\n");
    let (after, stop) = (Duration::from_millis(700), Duration::from_millis(400));
    let result = stopped_run(runner, &mock, "t24", &profile, after, stop)?;
    let log = mock.finish()?.requests;
    Ok(vec![throughput(&result, closed_rate(2.0, &log))].into())
}

/// T25: without the kernel's receive time stamps, a generator that is stopped again and again reads
/// late and cannot know it from them.
pub(super) fn t25_without_stamps(runner: &Runner) -> Result<Observations, CalibrateError> {
    let mock = runner.mock("ttft: 5ms")?;
    let profile = format!("{SMALL}stages: '@500:1500ms'\nkernel_timestamps: false\n");
    let mut tool = ToolProcess::profile(runner, "t25", &mock.url(), &profile)?;
    sleep(START);
    while !tool.has_ended() {
        tool.suspend_for(Duration::from_millis(15))?;
        sleep(Duration::from_millis(15));
    }
    let result = tool.finish()?;
    let used = result.summary.health.kernel_timestamps == Some(true);
    let mut checks = against_log(&result, &mock.finish()?.requests);
    checks.push(Check::holds("the report does not claim the kernel's time stamps", !used));
    Ok(checks.into())
}

/// T26: a tenth of the requests hang, until every user waits forever. A stage without responses for
/// most of its time has no percentiles, and no threshold on them passes.
pub(super) fn t26_hanging(runner: &Runner) -> Result<Observations, CalibrateError> {
    let mock = runner.mock("ttft: 10ms, faults: [{fault: hang, share: 0.1}]")?;
    let profile = format!(
        "{SMALL}stages: '60:1500ms'\ndrain: 100ms\nthresholds: {{response_time: ['p(95)<1s']}}\n"
    );
    let result = ToolProcess::profile(runner, "t26", &mock.url(), &profile)?.finish()?;
    let hanging = mock.finish()?.requests.iter().filter(|r| true_service_us(r).is_none()).count();
    let p95 = result.percentile(Metric::ResponseTime, "p95");
    let is_open = p95.is_none_or(|figure| figure.refused == Some(Refusal::Censored));
    Ok(vec![
        Check::at_least("requests that hung", "", hanging as f64, 30.0),
        Check::holds("response p95 is not given, or said to be longer", is_open),
        Check::holds("the threshold does not pass: exit code", result.exit != Some(0)),
    ]
    .into())
}
