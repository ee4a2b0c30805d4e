//! T15: a generator that cannot do what it is asked for says so, always.

use std::time::Duration;

use super::Found;
use crate::bench::Bench;
use crate::child::{ChildResult, Tool};
use crate::error::CalibrateError;
use crate::finding::Check;
use crate::server::{Server, ServerSpec, ZeroSpec};
use crate::wait;

/// Of every ten milliseconds the squeezed generator gets two.
const ON: Duration = Duration::from_millis(2);
const OFF: Duration = Duration::from_millis(8);

/// A fifth of a core, asked for five times what a fifth can do: always invalid, exit code 3. And a tenth of what
/// a whole core can do: valid.
pub(super) fn t15_squeezed(bench: &Bench) -> Result<Found, CalibrateError> {
    let floor = bench.floor().ok_or_else(|| {
        CalibrateError::Missing(
            "the highest rate of this host is not known: run T1 as well".to_owned(),
        )
    })?;
    let zero = bench.serve(ServerSpec::Zero(ZeroSpec::default()))?;
    let repeats = bench.either(2, 10);
    let (mut invalid, mut valid, mut healthy_reasons) = (0, 0, Vec::new());
    for repeat in 0..repeats {
        let saturated = squeeze(bench, &zero, repeat, floor.highest_rate)?;
        invalid += usize::from(saturated.exit == Some(3) && !saturated.reasons().is_empty());
        let healthy = load(bench, &zero, repeat, floor.highest_rate / 10.0)?;
        valid += usize::from(healthy.exit == Some(0));
        healthy_reasons.extend(healthy.reasons().into_iter().map(str::to_owned));
    }
    let checks = vec![
        Check::exact("saturated runs that were invalid, exit code 3", invalid, repeats),
        Check::exact("runs at a tenth of capacity that were valid", valid, repeats),
    ];
    let note = |reason| format!("at a tenth of capacity, not valid for: {reason}");
    Ok(Found { checks, notes: healthy_reasons.into_iter().map(note).collect() })
}

fn squeeze(
    bench: &Bench,
    zero: &Server,
    repeat: usize,
    rate: f64,
) -> Result<ChildResult, CalibrateError> {
    let flags = format!("--rate {rate:.0} --duration 1s --seed {repeat}");
    let mut tool = Tool::http(bench, &format!("t15-squeezed-{repeat}"), &zero.url(), &flags)?;
    while !tool.has_ended() {
        tool.go_on()?;
        wait::rest(ON);
        tool.stop()?;
        wait::rest(OFF);
    }
    tool.finish()
}

fn load(
    bench: &Bench,
    zero: &Server,
    repeat: usize,
    rate: f64,
) -> Result<ChildResult, CalibrateError> {
    let flags = format!("--rate {rate:.0} --duration 1s --seed {repeat}");
    Tool::http(bench, &format!("t15-healthy-{repeat}"), &zero.url(), &flags)?.finish()
}
