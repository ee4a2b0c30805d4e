//! T18: memory does not grow with time.

use plimsoll_engine::Progress;
use plimsoll_process_metrics::resident;
use plimsoll_stats::descriptive::mean;

use super::{NUMBERED, Observations};
use crate::error::CalibrateError;
use crate::finding::Check;
use crate::runner::{Runner, plan};
use crate::server::{NullSpec, ServerSpec};

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
