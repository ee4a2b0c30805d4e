//! What the target itself says of its time, in its headers.

use plimsoll_metrics::Metric;
use plimsoll_report::format::count;

use crate::load::Stage;
use crate::result::{NamedTime, OwnWord};

/// The share of responses whose parts cannot be true, from which on the header is not believed.
const DISCREDITED: f64 = 0.01;

/// The parts of a stage, or why they are not used. Neither without such headers.
pub(crate) fn of_stage(stage: &Stage<'_>) -> (Option<OwnWord>, Option<String>) {
    let Some(timing) = &stage.group.server_timing else { return (None, None) };
    let all = timing.responses + timing.refused;
    if timing.refused as f64 > all as f64 * DISCREDITED {
        let (refused, all) = (count(timing.refused), count(all));
        let why = format!(
            "what its headers state is not used: {refused} of {all} responses cannot be true"
        );
        return (None, Some(why));
    }
    let ttfb = stage.group.distribution(Metric::Ttfb);
    if ttfb.is_some_and(|times| times.mean_figure().sound().is_none()) {
        let why = "what its headers state is not used: the mean time to the first byte must not be";
        return (None, Some(why.to_owned()));
    }
    let own_word = timing.mean_ttfb_ms().map(|ttfb_ms| OwnWord {
        responses: timing.responses,
        ttfb_ms,
        parts: timing
            .means_ms()
            .map(|(name, mean_ms): (&str, f64)| NamedTime { name: name.to_owned(), mean_ms })
            .collect(),
        rest_ms: timing.rest_ms(),
    });
    (own_word, None)
}
