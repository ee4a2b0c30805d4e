//! T4 and T5: the target stalls, or the generator does.

use std::time::Duration;

use plimsoll_measure::{Nanos, StageId};
use plimsoll_metrics::Metric;
use plimsoll_runner::Finished;
use plimsoll_runner::time::sleep;

use super::planted::time_within_limits;
use super::{NUMBERED, Observations};
use crate::error::CalibrateError;
use crate::finding::Check;
use crate::runner::Runner;
use crate::server::{NullSpec, Pause, ServerSpec};
use crate::tool_process::ToolProcess;

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
