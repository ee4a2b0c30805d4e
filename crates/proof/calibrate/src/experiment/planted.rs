//! T22 to T27: planted causes of false verdicts. The generator is disturbed, or the target behaves
//! in a way that was once mistaken for a disturbance; every reported figure must still be right.

use std::time::Duration;

use plimsoll_measure::{Nanos, StageId};
use plimsoll_metrics::{Bias, BoundedFigure, Metric, Refusal};
use plimsoll_mock::LogRecord;
use plimsoll_runner::Finished;
use plimsoll_runner::time::sleep;
use plimsoll_stats::descriptive::{mean, quantile_of};

use super::saturation::throttled_run;
use super::{NUMBERED, Observations, SMALL};
use crate::error::CalibrateError;
use crate::experiment::true_service_us;
use crate::finding::Check;
use crate::runner::Runner;
use crate::server::{NullSpec, Pause, Server, ServerSpec};
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

// T4 and T5: the target stalls, or the generator does.

/// A stall in a run at a constant rate.
#[derive(Clone, Copy)]
struct Stall {
    name: &'static str,
    /// Requests per second.
    rate: f64,
    /// Its start, as a share of the run.
    begin: f64,
    run: Duration,
    length: Duration,
}

/// Requests per second, and seconds, of the classic experiment: a stall of one second in ten.
const FULL: (f64, u64) = (1_000.0, 10);

/// Before the measured stage the server pauses under load, so that as many connections are open as
/// the stall needs: opening a thousand at its end would keep the server busy beyond it.
const CROWDED: &str = "w@4000:300ms,w@100:700ms";
const CROWD: Pause = Pause { after: Duration::ZERO, length: Duration::from_millis(320) };
const WARM_UP: Duration = Duration::from_secs(1);
/// The stage that is measured.
const MEASURED: StageId = StageId(2);

impl Stall {
    /// A stall of a tenth of the run.
    const fn new(name: &'static str, begin: f64, rate: f64, seconds: u64) -> Self {
        Self {
            name,
            rate,
            begin,
            run: Duration::from_secs(seconds),
            length: Duration::from_millis(seconds * 100),
        }
    }

    fn after(&self) -> Duration {
        self.run.mul_f64(self.begin)
    }

    /// Seconds of the stall in which requests are due.
    fn share_in_run(&self) -> f64 {
        self.length.min(self.run.saturating_sub(self.after())).as_secs_f64()
    }

    /// Requests due during the stall wait for its end: evenly from `S` down to `S - d`, where `S`
    /// is its length and `d` the part of it that lies in the run. The mean over all requests is the
    /// area of that wedge over the length of the run.
    fn mean_s(&self) -> f64 {
        let (stall, inside) = (self.length.as_secs_f64(), self.share_in_run());
        inside * (stall - inside / 2.0) / self.run.as_secs_f64()
    }

    /// One request in a hundred waits longer. They are the first of the wedge, which falls by a
    /// second per second.
    fn p99_s(&self) -> f64 {
        self.length.as_secs_f64() - self.run.as_secs_f64() / 100.0
    }

    fn checks(&self, run: &Finished) -> [Check; 3] {
        let what = self.name;
        let (p99, mean) = (self.p99_s() * 1e3, self.mean_s() * 1e3);
        let stats = run.result.snapshot.total(|key| key.stage == MEASURED);
        let times = stats.distribution(Metric::ResponseTime);
        let measured_p99 = millis_or_nan(times.and_then(|times| times.nearest_rank(0.99)));
        let measured_mean = millis_or_nan(times.and_then(plimsoll_metrics::Distribution::mean));
        let expected = self.rate * self.run.as_secs_f64();
        let (answered, count) = (stats.counters().completed as f64, "requests answered");
        [
            Check::within(format!("{what}, p99"), "ms", measured_p99, p99, p99 * 0.01),
            Check::within(format!("{what}, mean"), "ms", measured_mean, mean, mean * 0.02),
            Check::within(format!("{what}, {count}"), "", answered, expected, 1.0),
        ]
    }

    fn stages(&self) -> String {
        format!("{NUMBERED}stages: '{CROWDED},@{}:{}ms'", self.rate, self.run.as_millis())
    }
}

fn millis_or_nan(time: Option<Nanos>) -> f64 {
    time.map_or(f64::NAN, Nanos::as_millis_f64)
}

/// T4: the whole target stalls for a tenth of the run, by a pause of the server's only thread.
pub(super) fn t4_stalled_target(runner: &Runner) -> Result<Observations, CalibrateError> {
    // After the stall the server takes about 20 us for each request that has arrived meanwhile. At
    // half the rate that is half as much of the wedge.
    let (rate, seconds) = runner.usual_or_full((500.0, 4), FULL);
    let middle = Stall::new("in the middle", 0.4, rate, seconds);
    // Half of the stall lies after the last arrival.
    let end = Stall::new("over the end", 0.95, rate, seconds);
    let start = runner.usual_or_full(None, Some(Stall::new("at the start", 0.0, rate, seconds)));
    let mut checks = Vec::new();
    for stall in [middle, end].into_iter().chain(start) {
        let pause = Pause { after: WARM_UP + stall.after(), length: stall.length };
        let spec = NullSpec { pauses: vec![CROWD, pause], log: false };
        let server = runner.serve(ServerSpec::Null(spec))?;
        checks.extend(stall.checks(&runner.run(&server.url(), &stall.stages())?));
    }
    Ok(checks.into())
}

/// The run of T5: a request every millisecond, so `s` requests wait during a stall of `s` ms.
const T5_MS: f64 = 2_000.0;
/// After a stop the requests that wait leave one after another. Each takes about 25us, and on a
/// busy host up to 100: this share of the time between two arrivals.
const CATCH_UP: f64 = 0.1;
/// Upper limit of the response time of an idle server, including the network.
const NEXT_TO_NOTHING_MS: f64 = 1.0;

/// T5: the generator's process is suspended for 3 and 30 % of 2 s. Its lateness is charged to the
/// requests, and no percentile that it moved can be taken for the server's.
pub(super) fn t5_stalled_generator(runner: &Runner) -> Result<Observations, CalibrateError> {
    let mut checks = Vec::new();
    let more = runner.usual_or_full(None, Some(200));
    for stop in [60, 600].into_iter().chain(more) {
        checks.extend(stopped(runner, Duration::from_millis(stop))?);
    }
    Ok(checks.into())
}

fn stopped(runner: &Runner, stop: Duration) -> Result<Vec<Check>, CalibrateError> {
    let server = runner.serve(ServerSpec::Null(NullSpec::default()))?;
    let name = format!("t5-{}", stop.as_millis());
    let tool = ToolProcess::http(runner, &name, &server.url(), "--rate 1000 --duration 2s")?;
    sleep(Duration::from_millis(900));
    let stopped_ms = tool.suspend_for(stop)?;
    let outcome = tool.finish()?;
    let (total, lag) = (&outcome.summary.results.total, outcome.summary.health.lateness());
    // The requests due meanwhile, one per millisecond, wait for its end, as in T4, and then for
    // those before them.
    let stop_alone = stopped_ms * stopped_ms / 2.0 / T5_MS;
    let mean = stop_alone * (1.0 + CATCH_UP / 2.0);
    let response = outcome.times(Metric::ResponseTime).map(|times| times.mean_figure().value);
    let how = format!("stopped for {stop:?}");
    let (sent, worst) = (total.counters.scheduled as f64, or_nan(lag.map(|lag| lag.max)));
    let (lag_slack, mean_slack) =
        (stopped_ms * 0.03 + 1.0, stop_alone * (0.06 + CATCH_UP / 2.0) + 0.2);
    let mut checks = vec![
        Check::within(format!("{how}: requests sent"), "", sent, T5_MS, 1.0),
        Check::within(format!("{how}: worst lag"), "ms", worst, stopped_ms, lag_slack),
        Check::within(format!("{how}: response mean"), "ms", or_nan(response), mean, mean_slack),
    ];
    checks.extend(["p50", "p90", "p95", "p99"].into_iter().filter_map(|percentile| {
        let truth = NEXT_TO_NOTHING_MS / 2.0;
        let figure = outcome.percentile(Metric::ResponseTime, percentile)?;
        Some(time_within_limits(&format!("{how}: response {percentile}"), &figure, truth, truth))
    }));
    Ok(checks)
}

fn or_nan(of: Option<f64>) -> f64 {
    of.unwrap_or(f64::NAN)
}
