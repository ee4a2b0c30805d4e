//! `counts.bin`: what a shard counted, written again and again while it runs, so that a shard that
//! is killed loses the last second only.

use std::path::PathBuf;

use plimsoll_engine::{Progress, RunResult};
use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos};
use plimsoll_metrics::TaskTally;
use plimsoll_run_files::{CountsView, counts_bytes};

use super::{RunDir, file, replace};
use crate::error::RunnerError;

/// Writing takes at most one part in so many of the time.
const SHARE: u64 = 20;

/// The file of counts of a shard.
pub(crate) struct CountsFile {
    folder: PathBuf,
    version: String,
    clock: MonotonicClock,
    /// When it may be written again.
    next: Moment,
}

impl CountsFile {
    pub(crate) fn new(folder: &RunDir, version: &str, clock: MonotonicClock) -> Self {
        let (folder, version) = (folder.path().to_owned(), version.to_owned());
        Self { folder, version, clock, next: Moment::EPOCH }
    }

    /// Writes the counts up to now. What cannot be written now may be later: the end decides.
    pub(crate) fn follow(&mut self, progress: &Progress<'_>) {
        let began = self.clock.now();
        if began < self.next {
            return;
        }
        let mut snapshot = progress.before.clone();
        snapshot.append(progress.cells.clone());
        let tasks = TaskTally::default();
        let _ = self.write(&CountsView {
            complete: false,
            snapshot: &snapshot,
            series: progress.series,
            tasks: &tasks,
        });
        let now = self.clock.now();
        self.next = now + Nanos::new(now.since(began).as_u64() * SHARE);
    }

    /// Writes the counts of a shard that ended.
    pub(crate) fn finish(&self, result: &RunResult) -> Result<(), RunnerError> {
        let (snapshot, series, tasks) = (&result.snapshot, &result.series, &result.tasks);
        self.write(&CountsView { complete: true, snapshot, series, tasks })
    }

    fn write(&self, counts: &CountsView<'_>) -> Result<(), RunnerError> {
        replace(&self.folder, file::COUNTS, &counts_bytes(counts, &self.version)?)
    }
}
