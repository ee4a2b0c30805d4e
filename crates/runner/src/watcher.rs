//! Watchers of runs in progress.

use plimsoll_engine::Progress;
use plimsoll_metrics::{RunMetadata, RunSummary, Snapshot};

/// Watches a run, or the runs of a search or a suite, in progress. `()` ignores everything.
pub trait RunWatcher {
    /// A part of the work begins: a phase of a search, a measurement of a suite. `target` is empty
    /// where there is one without a name.
    fn part(&mut self, _name: &str, _target: &str) {}

    /// A run begins.
    fn begin(&mut self, _run: RunMetadata) {}

    /// An interval of it is over, about a second.
    fn interval(&mut self, _progress: &Progress<'_>) {}

    /// It is over, with these counts.
    fn end(&mut self, _whole: &Snapshot, _summary: &RunSummary) {}
}

impl RunWatcher for () {}

/// Sees the intervals only.
impl<F: FnMut(&Progress<'_>)> RunWatcher for F {
    fn interval(&mut self, progress: &Progress<'_>) {
        self(progress);
    }
}
