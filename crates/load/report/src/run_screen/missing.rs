//! The stages of the screen, and what their table cannot say.

use plimsoll_metrics::{Group, QUANTILES, RunSummary, samples_needed};

use crate::format;
use crate::screen::{Item, Tone};

/// The place of the 99th percentile in `QUANTILES`.
pub(super) const P99: usize = 3;

/// The stages of the screen: all but warm-up.
pub(super) fn measured_stages(summary: &RunSummary) -> impl Iterator<Item = &Group> {
    summary.results.by_stage.iter().filter(|stage| !stage.warmup)
}

/// That no stage has answers enough for a median; `None` if one has. Percentiles beyond the median
/// that have too few values are no news.
pub(super) fn item(summary: &RunSummary) -> Option<Item> {
    let metric = summary.metadata.headline_time();
    let times = measured_stages(summary).filter_map(|stage| stage.distribution(metric));
    let most = times.map(|times| times.count).max()?;
    let needed = samples_needed(QUANTILES[0].q);
    if most >= needed {
        return None;
    }
    let needed = format::count(needed);
    let unit = if most == 1 { "answer" } else { "answers" };
    let text = format!("{} {unit}: a median needs {needed}", format::count(most));
    let fix = match summary.metadata.max_requests {
        Some(_) => "send more requests (-n), or leave -n out",
        None => "make the stage longer, or its load higher",
    };
    Some(Item::new(Tone::Unsure, &text).fix(fix))
}
