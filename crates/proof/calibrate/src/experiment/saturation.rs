//! T15: a generator that cannot keep up always reports it.

use std::time::Duration;

use plimsoll_engine::Progress;
use plimsoll_metrics::{Bias, Metric};
use plimsoll_process_metrics::resident;
use plimsoll_runner::time::sleep;
use plimsoll_stats::descriptive::mean;

use super::{NUMBERED, Observations};
use crate::error::CalibrateError;
use crate::finding::Check;
use crate::record::Floor;
use crate::runner::{Runner, plan};
use crate::server::{NullSpec, Server, ServerSpec};
use crate::tool_process::{ToolProcess, ToolResult};

/// The throttled generator runs for two of every ten milliseconds.
const ON: Duration = Duration::from_millis(2);
const OFF: Duration = Duration::from_millis(8);

/// The share by which a throughput may differ between two runs.
const OFF_SHARE: f64 = 0.1;

/// With a fifth of a core and five times the rate that it can send, an open run is INVALID with
/// exit code 3, whether every arrival opens a connection or few are allowed. The throughput limit
/// of a closed loop reaches the throughput of a whole core. With a tenth of the rate of a whole
/// core, a run is VALID.
pub(super) fn t15_throttled(runner: &Runner) -> Result<Observations, CalibrateError> {
    let floor = runner.floor.get().ok_or_else(|| {
        CalibrateError::Missing(
            "the highest rate of this host is not known: run T1 as well".to_owned(),
        )
    })?;
    let server = runner.serve(ServerSpec::Null(NullSpec::default()))?;
    let rate = floor.highest_rate;
    let cases = [
        ("without a limit", format!("--rate {rate:.0} -c 10000")),
        ("64 in flight at most", format!("--rate {rate:.0} -c 64")),
    ];
    let repeats = runner.usual_or_full(1, 5);
    let (mut checks, mut notes) = (Vec::new(), Vec::new());
    for (case, flags) in cases {
        let mut invalid = 0;
        for repeat in 0..repeats {
            let saturated =
                throttled_run(runner, &server, &format!("t15-{case}-{repeat}"), &flags)?;
            invalid += usize::from(saturated.exit == Some(3) && !saturated.reasons().is_empty());
        }
        let what = format!("{case}: saturated runs that were invalid, exit code 3");
        checks.push(Check::exact(what, invalid, repeats));
    }
    // A closed loop plans no rate: it is VALID, and its limits include the throughput measured with
    // a whole core. (The upper limit of that run is no truth: it leaves out the core's own work.)
    for users in [16, 64] {
        let (name, flags) = (format!("t15-free-{users}"), format!("-c {users} --duration 1s"));
        let free = ToolProcess::http(runner, &name, &server.url(), &flags)?.finish()?;
        let carried = free.throughput().map_or(f64::NAN, |rate| rate.value) * (1.0 - OFF_SHARE);
        for repeat in 0..repeats {
            let (name, flags) = (format!("t15-closed-{users}-{repeat}"), format!("-c {users}"));
            let saturated = throttled_run(runner, &server, &name, &flags)?;
            let what = format!("closed loop of {users}, saturated: throughput, its upper limit");
            checks.push(Check::at_least(what, "/s", highest(&saturated), carried));
        }
    }
    let mut valid = 0;
    for repeat in 0..repeats {
        let flags = format!("--rate {:.0} --duration 1s --seed {repeat}", rate / 10.0);
        let name = format!("t15-healthy-{repeat}");
        let healthy = ToolProcess::http(runner, &name, &server.url(), &flags)?.finish()?;
        valid += usize::from(healthy.exit == Some(0));
        let reasons = healthy.reasons().into_iter();
        notes.extend(reasons.map(|why| format!("at a tenth of capacity, not valid for: {why}")));
    }
    checks.push(Check::exact("runs at a tenth of capacity that were valid", valid, repeats));
    Ok(Observations { checks, notes })
}

/// Upper limit of the throughput without the generator's overhead.
fn highest(result: &ToolResult) -> f64 {
    result.throughput().map_or(f64::NAN, |rate| rate.limits(Bias::Takes)[1])
}

/// Runs the tool for a second with a fifth of a core.
pub(super) fn throttled_run(
    runner: &Runner,
    server: &Server,
    name: &str,
    flags: &str,
) -> Result<ToolResult, CalibrateError> {
    let flags = format!("{flags} --duration 1s");
    let mut tool = ToolProcess::http(runner, &name.replace(' ', "-"), &server.url(), &flags)?;
    while !tool.has_ended() {
        tool.resume()?;
        sleep(ON);
        tool.suspend()?;
        sleep(OFF);
    }
    tool.finish()
}

// T1: the null server shows the limits of the load generator itself.

/// The smallest response time and the highest rate of this host. Later experiments refer to them.
pub(super) fn t1_null_server(runner: &Runner) -> Result<Observations, CalibrateError> {
    let seconds = runner.usual_or_full(1, 10);
    let server = runner.serve(ServerSpec::Null(NullSpec::default()))?;
    let one_user = runner.run(&server.url(), &format!("{NUMBERED}stages: '1:{seconds}s'"))?;
    let many_users = runner.run(&server.url(), &format!("{NUMBERED}stages: '64:{seconds}s'"))?;
    let floor = Floor {
        response_time_p50_us: one_user.quantile_us(Metric::ServiceTime, 0.5),
        response_time_p99_us: one_user.quantile_us(Metric::ServiceTime, 0.99),
        highest_rate: many_users.accounting().completed as f64 / f64::from(seconds),
    };
    runner.floor.get_or_init(|| floor);
    let (one, all) = (one_user.accounting(), many_users.accounting());
    let unanswered = (one.scheduled - one.completed) + (all.scheduled - all.completed);
    Ok(Observations {
        checks: vec![
            Check::at_most("requests unanswered", "", unanswered as f64, 0.0),
            Check::at_least("requests answered", "", one.completed as f64, 100.0),
        ],
        notes: vec![format!(
            "response time p50 {:.1} us, p99 {:.1} us; {:.0} requests/s by one worker over 64 connections",
            floor.response_time_p50_us, floor.response_time_p99_us, floor.highest_rate
        )],
    })
}

// T18: memory does not grow with time.

const RATE: f64 = 20_000.0;
const MIB: f64 = 1_048_576.0;

/// Memory in use over minutes at 20,000 requests per second: in the second tenth of the time and in
/// the last.
pub(super) fn t18_memory(runner: &Runner) -> Result<Observations, CalibrateError> {
    let minutes = runner.effort().soak_minutes.max(1);
    let server = runner.serve(ServerSpec::Null(NullSpec::default()))?;
    let plan = plan(&server.url(), &format!("{NUMBERED}stages: '@{RATE}:{minutes}m'\n"), None)?;
    let mut used = Vec::new();
    let run = runner.run_without_samples(plan, &mut |_: &Progress<'_>| {
        used.extend(resident("self").map(|bytes| bytes / MIB));
    })?;
    let tenth = (used.len() / 10).max(1);
    let (early, late) = (used.iter().skip(tenth).take(tenth), used.iter().rev().take(tenth));
    let early = mean(&early.copied().collect::<Vec<_>>());
    let late = mean(&late.copied().collect::<Vec<_>>());
    let accounting = run.accounting();
    let expected = RATE * 60.0 * f64::from(minutes);
    Ok(Observations {
        checks: vec![
            Check::at_most("memory gained", "MiB", late - early, early * 0.05 + 2.0),
            Check::within("requests scheduled", "", accounting.scheduled as f64, expected, 1.0),
            Check::holds(accounting.to_string(), accounting.balanced()),
        ],
        notes: vec![format!(
            "{minutes} min at {RATE}/s: {early:.1} MiB in the second tenth, {late:.1} MiB in the last"
        )],
    })
}
