//! Judges the whole by the findings about its shards.

use plimsoll_metrics::{Judgement, Level, RunSummary};

/// Findings of shards that did not carry the planned load.
const SHARDS: [u16; 2] = [109, 110];

/// Applies the rules to all shards. Limits are not judged if the load was not as planned.
pub(crate) fn apply(summary: &mut RunSummary) {
    summary.find();
    let is_of_shards = |code: &u16| SHARDS.contains(code);
    let why = summary
        .of_level(Level::Invalid)
        .find(|finding| is_of_shards(&finding.code))
        .map(|finding| finding.text().trim_end_matches('.').to_owned());
    let Some(why) = why else { return };
    for threshold in &mut summary.thresholds {
        threshold.judgement = Judgement::Inconclusive(why.clone());
        threshold.level = None;
    }
}
