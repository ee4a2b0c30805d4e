//! Parts of its time that the target reports in its response headers.

use plimsoll_metrics::Metric;

use crate::load::Stage;
use crate::result::{NamedTime, TtfbParts};

/// Share of responses with impossible parts above which the header is ignored.
const DISCREDITED: f64 = 0.01;

/// The parts of a stage; `None` without such headers, or if they are not credible.
pub(crate) fn of_stage(stage: &Stage<'_>) -> Option<TtfbParts> {
    let timing = stage.group.server_timing.as_ref()?;
    let all = timing.responses + timing.refused;
    let ttfb = stage.group.distribution(Metric::Ttfb);
    let is_disturbed = ttfb.is_some_and(|times| times.mean_figure().sound().is_none());
    if is_disturbed || timing.refused as f64 > all as f64 * DISCREDITED {
        return None;
    }
    let parts = timing.means_ms();
    let parts =
        parts.map(|(name, mean_ms): (&str, f64)| NamedTime { name: name.to_owned(), mean_ms });
    timing.mean_ttfb_ms().map(|ttfb_ms| TtfbParts {
        responses: timing.responses,
        ttfb_ms,
        parts: parts.collect(),
        rest_ms: timing.rest_ms(),
    })
}
