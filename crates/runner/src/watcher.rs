//! Who sees the runs of a search or a suite while they go on.

use plimsoll_engine::Progress;
use plimsoll_metrics::{RunMetadata, RunSummary, Snapshot};

/// Sees the many runs of a search or a suite while they go on. `()` looks away.
pub trait RunWatcher {
    /// A part of the work begins: a phase of a search, a measurement of a suite. `target` is empty
    /// where there is one without a name.
    fn part(&mut self, name: &str, target: &str);

    /// A run begins.
    fn begin(&mut self, run: RunMetadata);

    /// An interval of it is over, about a second.
    fn interval(&mut self, progress: &Progress<'_>);

    /// It is over, with these counts.
    fn end(&mut self, whole: &Snapshot, summary: &RunSummary);
}

impl RunWatcher for () {
    fn part(&mut self, _: &str, _: &str) {}

    fn begin(&mut self, _: RunMetadata) {}

    fn interval(&mut self, _: &Progress<'_>) {}

    fn end(&mut self, _: &Snapshot, _: &RunSummary) {}
}
