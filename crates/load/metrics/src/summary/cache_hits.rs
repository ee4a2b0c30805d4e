//! Cache hits where there should be none.

use crate::run_metadata::RunMetadata;
use crate::snapshot::Snapshot;
use crate::validity::Reason;

/// A warning if a cache answered requests of scenarios that are unique (`cache_mode: bust`): their
/// times are not those of the model. Warm-up counts, too: what it left in a cache matters.
pub(super) fn warning(metadata: &RunMetadata, snapshot: &Snapshot) -> Option<Reason> {
    let total = snapshot.total(|key| {
        let name = metadata.scenarios.get(key.scenario.index());
        name.is_some_and(|name| metadata.cache_busting.contains(name))
    });
    let counters = total.counters();
    let said = counters.cache_hits + counters.cache_misses + counters.cache_bypassed;
    (counters.cache_hits > 0).then(|| Reason {
        what: "cache hits under cache_mode: bust".to_owned(),
        measured: format!(
            "{} of the {said} responses that name their cache state are hits",
            counters.cache_hits
        ),
        bound: "none, because no two prompts are the same".to_owned(),
        fix: "their times are the cache's, not the model's: does the target look at the whole \
              prompt, or at its meaning? Switch its cache off, or write `cache_mode: allow` if \
              hits are wanted"
            .to_owned(),
        causes: Vec::new(),
        figure: None,
    })
}
