//! T15: a generator that cannot keep up always says so.

use std::time::Duration;

use plimsoll_runner::time::sleep;

use super::Observations;
use crate::error::CalibrateError;
use crate::finding::Check;
use crate::runner::Runner;
use crate::server::{NullSpec, Server, ServerSpec};
use crate::tool_process::{ToolProcess, ToolResult};

/// The throttled generator runs for two of every ten milliseconds.
const ON: Duration = Duration::from_millis(2);
const OFF: Duration = Duration::from_millis(8);

/// With a fifth of a core, and five times the rate that a fifth can do, a run is always invalid and
/// has exit code 3: whether every arrival opens a connection or few are allowed, and in a closed
/// loop; where that has few connections, its throughput is refused. With a tenth of the rate of a
/// whole core it is valid.
pub(super) fn t15_throttled(runner: &Runner) -> Result<Observations, CalibrateError> {
    let floor = runner.floor().ok_or_else(|| {
        CalibrateError::Missing(
            "the highest rate of this host is not known: run T1 as well".to_owned(),
        )
    })?;
    let server = runner.serve(ServerSpec::Null(NullSpec::default()))?;
    let rate = floor.highest_rate;
    let cases = [
        ("without a limit", format!("--rate {rate:.0} -c 10000")),
        ("64 in flight at most", format!("--rate {rate:.0} -c 64")),
        ("closed loop", "-c 64".to_owned()),
    ];
    let repeats = runner.usual_or_full(1, 5);
    let (mut checks, mut notes) = (Vec::new(), Vec::new());
    for (case, flags) in cases {
        let mut invalid = 0;
        for repeat in 0..repeats {
            let saturated = throttled_run(runner, &server, &format!("{case}-{repeat}"), &flags)?;
            invalid += usize::from(saturated.exit == Some(3) && !saturated.reasons().is_empty());
        }
        let what = format!("{case}: saturated runs that were invalid, exit code 3");
        checks.push(Check::exact(what, invalid, repeats));
    }
    // A fast core serves few connections a dozen times between two stops, and the generator's part
    // in each answer is short. The run may be valid, but has no throughput that may be used.
    let mut given = 0;
    for repeat in 0..repeats {
        let few = throttled_run(runner, &server, &format!("few-{repeat}"), "-c 16")?;
        given += usize::from(few.usable_throughput().is_some());
    }
    checks.push(Check::exact("closed loop of 16: saturated runs that gave a throughput", given, 0));
    let mut valid = 0;
    for repeat in 0..repeats {
        let healthy = healthy_run(runner, &server, repeat, rate / 10.0)?;
        valid += usize::from(healthy.exit == Some(0));
        notes.extend(
            healthy
                .reasons()
                .into_iter()
                .map(|reason| format!("at a tenth of capacity, not valid for: {reason}")),
        );
    }
    checks.push(Check::exact("runs at a tenth of capacity that were valid", valid, repeats));
    Ok(Observations { checks, notes })
}

fn throttled_run(
    runner: &Runner,
    server: &Server,
    name: &str,
    flags: &str,
) -> Result<ToolResult, CalibrateError> {
    let name = format!("t15-{}", name.replace(' ', "-"));
    let flags = format!("{flags} --duration 1s");
    let mut tool = ToolProcess::http(runner, &name, &server.url(), &flags)?;
    while !tool.has_ended() {
        tool.resume()?;
        sleep(ON);
        tool.suspend()?;
        sleep(OFF);
    }
    tool.finish()
}

fn healthy_run(
    runner: &Runner,
    server: &Server,
    repeat: usize,
    rate: f64,
) -> Result<ToolResult, CalibrateError> {
    let flags = format!("--rate {rate:.0} --duration 1s --seed {repeat}");
    ToolProcess::http(runner, &format!("t15-healthy-{repeat}"), &server.url(), &flags)?.finish()
}
