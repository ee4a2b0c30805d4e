//! T15: a generator that cannot reach the planned rate always says so.

use std::time::Duration;

use plimsoll_harness::time::sleep;

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
/// has exit code 3. With a tenth of the rate of a whole core it is valid.
pub(super) fn t15_throttled(runner: &Runner) -> Result<Observations, CalibrateError> {
    let floor = runner.floor().ok_or_else(|| {
        CalibrateError::Missing(
            "the highest rate of this host is not known: run T1 as well".to_owned(),
        )
    })?;
    let server = runner.serve(ServerSpec::Null(NullSpec::default()))?;
    let repeats = runner.usual_or_full(2, 10);
    let (mut invalid, mut valid, mut healthy_reasons) = (0, 0, Vec::new());
    for repeat in 0..repeats {
        let saturated = throttled_run(runner, &server, repeat, floor.highest_rate)?;
        invalid += usize::from(saturated.exit == Some(3) && !saturated.reasons().is_empty());
        let healthy = healthy_run(runner, &server, repeat, floor.highest_rate / 10.0)?;
        valid += usize::from(healthy.exit == Some(0));
        healthy_reasons.extend(healthy.reasons().into_iter().map(str::to_owned));
    }
    let checks = vec![
        Check::exact("saturated runs that were invalid, exit code 3", invalid, repeats),
        Check::exact("runs at a tenth of capacity that were valid", valid, repeats),
    ];
    let note = |reason| format!("at a tenth of capacity, not valid for: {reason}");
    Ok(Observations { checks, notes: healthy_reasons.into_iter().map(note).collect() })
}

fn throttled_run(
    runner: &Runner,
    server: &Server,
    repeat: usize,
    rate: f64,
) -> Result<ToolResult, CalibrateError> {
    let flags = format!("--rate {rate:.0} --duration 1s --seed {repeat}");
    let mut tool =
        ToolProcess::http(runner, &format!("t15-throttled-{repeat}"), &server.url(), &flags)?;
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
