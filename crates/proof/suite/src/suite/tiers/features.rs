//! The overhead of each feature over the raw path: the same request to the gateway with the feature
//! and without it.

use super::length;
use crate::error::SuiteError;
use crate::measurement::Measurement;
use crate::report::Section;
use crate::runner::SuiteRunner;
use crate::suite::{PAIRS_PER_S, Variants, VariantsLoad, table};
use crate::target::Provider;

/// Measures each feature on the raw path, with a chat of 550 tokens.
pub(super) fn features(
    runner: &mut SuiteRunner<'_>,
    provider: Option<&Provider>,
) -> Result<Option<Section>, SuiteError> {
    runner.section = "Overhead by feature";
    if !runner.measures_own() {
        return Ok(None);
    }
    let gateways = runner.variants("llm", "feature", provider)?;
    let length = length(runner, 20);
    let load = VariantsLoad { label: "each feature", clients: 64, length, per_s: PAIRS_PER_S };
    let variants = Variants::measure(runner, &gateways, &load, |label, target| {
        Measurement::builtin(label, target, "perf-550-nonstream", &["headers.x-tenant-id=load"])
    });
    let table = table("Feature on the raw path", [&variants]);
    let title = "Overhead by feature over the raw path (550/150, not streamed)";
    Ok(Some(Section::new(title, table)))
}
