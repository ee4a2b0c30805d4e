//! T4 and T5: the target stands still, or we do.

use std::time::Duration;

use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos, StageId};
use plimsoll_metrics::Metric;

use super::{Found, NUMBERED};
use crate::bench::Bench;
use crate::child::Tool;
use crate::error::CalibrateError;
use crate::finding::Check;
use crate::ran::Ran;
use crate::server::{Pause, ServerSpec, ZeroSpec};
use crate::wait;

/// A stall in a run at a constant rate.
#[derive(Clone, Copy)]
struct Stall {
    name: &'static str,
    /// Requests per second.
    rate: f64,
    /// When it begins, as a share of the run.
    begin: f64,
    run: Duration,
    length: Duration,
}

/// Requests per second and seconds of the classic experiment: a second's stall in ten.
const FULL: (f64, u64) = (1_000.0, 10);

/// Before the measured stage the server pauses under load, so that as many connections are open as the stall needs:
/// opening a thousand at its end would keep the server busy beyond it.
const CROWDED: &str = "w@4000:300ms,w@100:700ms";
const CROWD: Pause = Pause { after: Duration::ZERO, length: Duration::from_millis(320) };
const WARM_UP: Duration = Duration::from_secs(1);
/// The stage that is measured.
const MEASURED: StageId = StageId(2);

impl Stall {
    /// A tenth of the run, always.
    const fn new(name: &'static str, begin: f64, (rate, seconds): (f64, u64)) -> Self {
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

    /// Seconds of the stall in which requests were due.
    fn share_in_run(&self) -> f64 {
        self.length.min(self.run.saturating_sub(self.after())).as_secs_f64()
    }

    /// Requests due during the stall wait for its end: from all of it down to `S - d`, evenly, where `S` is its
    /// length and `d` the part of it that lies in the run. The mean over all requests is the area of that wedge over
    /// the length of the run.
    fn mean_s(&self) -> f64 {
        let (stall, inside) = (self.length.as_secs_f64(), self.share_in_run());
        inside * (stall - inside / 2.0) / self.run.as_secs_f64()
    }

    /// One request in a hundred waited longer: the first of the wedge, which falls by a second per second.
    fn p99_s(&self) -> f64 {
        self.length.as_secs_f64() - self.run.as_secs_f64() / 100.0
    }

    fn checks(&self, how: &str, ran: &Ran) -> [Check; 3] {
        let what = |figure: &str| format!("{} {how}, {figure}", self.name);
        let (p99, mean) = (self.p99_s() * 1e3, self.mean_s() * 1e3);
        let cell = ran.result.snapshot.total(|key| key.stage == MEASURED);
        let times = cell.distribution(Metric::ResponseTime);
        let ms = |time: Option<Nanos>| time.map_or(f64::NAN, Nanos::as_millis_f64);
        let measured_p99 = ms(times.and_then(|times| times.nearest_rank(0.99)));
        let measured_mean = ms(times.and_then(plimsoll_metrics::Distribution::mean));
        let expected = self.rate * self.run.as_secs_f64();
        [
            Check::within(what("p99"), "ms", measured_p99, p99, p99 * 0.01),
            Check::within(what("mean"), "ms", measured_mean, mean, mean * 0.02),
            Check::within(
                what("requests answered"),
                "",
                cell.accounting().completed as f64,
                expected,
                1.0,
            ),
        ]
    }

    fn stages(&self) -> String {
        format!("{NUMBERED}stages: '{CROWDED},@{}:{}ms'", self.rate, self.run.as_millis())
    }
}

/// The whole target stands still for a tenth of the run: by a pause inside the server, and by stopping its process.
pub(super) fn t4_stalled_target(bench: &Bench) -> Result<Found, CalibrateError> {
    // At its end the server works off what has come meanwhile, which takes time of its own, about 20 us each: at half
    // the rate that is half as much of the wedge.
    let load = bench.either((500.0, 4), FULL);
    let (mut checks, mut notes) = (Vec::new(), Vec::new());
    for stall in [
        Stall::new("at the start", 0.0, load),
        // Half of the stall lies after the last arrival.
        Stall::new("over the end", 0.95, load),
    ] {
        checks.extend(stall.checks("by a pause", &pause(bench, &stall)?));
    }
    let stall = Stall::new("in the middle", 0.4, FULL);
    match stop(bench, &stall) {
        Ok(ran) => checks.extend(stall.checks("by stopping the process, 1 s in 10 s", &ran)),
        Err(CalibrateError::Missing(why)) => notes.push(format!("stopping its process: {why}")),
        Err(error) => return Err(error),
    }
    Ok(Found { checks, notes })
}

fn pause(bench: &Bench, stall: &Stall) -> Result<Ran, CalibrateError> {
    let pause = Pause { after: WARM_UP + stall.after(), length: stall.length };
    let zero =
        bench.serve(ServerSpec::Zero(ZeroSpec { pauses: vec![CROWD, pause], log: false }))?;
    bench.run(&zero.url(), &stall.stages())
}

fn stop(bench: &Bench, stall: &Stall) -> Result<Ran, CalibrateError> {
    let zero = bench.serve(ServerSpec::Zero(ZeroSpec { pauses: vec![CROWD], log: false }))?;
    let process = zero.process().ok_or_else(|| {
        CalibrateError::Missing("the reference server has no process of its own".to_owned())
    })?;
    let (run, url) = (stall.stages(), zero.url());
    std::thread::scope(|scope| {
        let ran = scope.spawn(|| bench.run(&url, &run));
        wait::rest(WARM_UP + stall.after());
        process.stop()?;
        wait::rest(stall.length);
        process.go_on()?;
        ran.join().unwrap_or_else(|_| Err(CalibrateError::panicked()))
    })
}

/// Our own process stands still for 300 ms of 3 s.
pub(super) fn t5_stalled_generator(bench: &Bench) -> Result<Found, CalibrateError> {
    let zero = bench.serve(ServerSpec::Zero(ZeroSpec::default()))?;
    let tool = Tool::http(bench, "t5", &zero.url(), "--rate 1000 --duration 3s")?;
    wait::rest(Duration::from_millis(1_200));
    let clock = MonotonicClock::start();
    tool.stop()?;
    wait::rest(Duration::from_millis(300));
    tool.go_on()?;
    let stopped_ms = clock.now().since(Moment::EPOCH).as_millis_f64();
    let outcome = tool.finish()?;
    let (total, lag) = (&outcome.summary.results.total, outcome.summary.health.lateness());
    let response = total.distribution(Metric::ResponseTime);
    // The requests due meanwhile, one per millisecond, wait for the end: as in T4.
    let (p99, mean) = (stopped_ms - 30.0, stopped_ms * stopped_ms / 2.0 / 3_000.0);
    let reported = |of: Option<f64>| of.unwrap_or(f64::NAN);
    Ok(vec![
        Check::within("requests sent", "", total.counters.scheduled as f64, 3_000.0, 1.0),
        Check::within(
            "worst lag, charged",
            "ms",
            reported(lag.map(|lag| lag.max)),
            stopped_ms,
            stopped_ms * 0.03,
        ),
        Check::within(
            "response p99",
            "ms",
            reported(response.and_then(|r| r.p99)),
            p99,
            p99 * 0.03,
        ),
        Check::within("response mean", "ms", reported(response.map(|r| r.mean)), mean, mean * 0.06),
        Check::holds(
            "run flagged for lateness",
            outcome.reasons().contains(&"lateness of the generator"),
        ),
        Check::within("exit code", "", outcome.exit.map_or(f64::NAN, f64::from), 3.0, 0.0),
    ]
    .into())
}
