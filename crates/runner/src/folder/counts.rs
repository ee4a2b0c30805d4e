//! `counts.bin`: what a shard counted, written again and again while it runs, so that a shard that
//! is killed loses the last second only; and `progress.json`, a line for whoever watches it.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use plimsoll_engine::{Progress, RunResult};
use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos};
use plimsoll_metrics::{RunInfo, TaskTally};
use plimsoll_run_files::{CountsView, ShardProgress, counts_bytes, shard_progress_json};

use super::{RunDir, file, replace};
use crate::error::RunnerError;

/// Writing takes at most one part in so many of the time.
const SHARE: u64 = 20;
/// All shards together replace their files 100 times a second: they may share a disk.
const PAUSE: u64 = 10;
/// Length of `progress.json`. Always the same, so that it is written in place.
const LINE: usize = 400;

/// The file of counts of a shard.
pub(crate) struct CountsFile {
    folder: PathBuf,
    version: String,
    shard: String,
    clock: MonotonicClock,
    /// When it may be written again, and the shortest time after that.
    next: Moment,
    pause: Nanos,
    progress: Option<File>,
}

impl CountsFile {
    pub(crate) fn new(folder: &RunDir, run: &RunInfo, count: u64, clock: MonotonicClock) -> Self {
        let (version, shard) = (run.tool_version.clone(), run.shard.clone());
        let (folder, pause) = (folder.path().to_owned(), Nanos::from_millis(PAUSE * count));
        Self { folder, version, shard, clock, next: Moment::EPOCH, pause, progress: None }
    }

    /// Writes the counts up to now. What cannot be written now may be later: the end decides.
    pub(crate) fn follow(&mut self, progress: &Progress<'_>) {
        // Nothing depends on it.
        let _ = self.say_progress(progress);
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
        let rest = Nanos::new(now.since(began).as_u64() * SHARE);
        // Intervals are a second long: a little less, so as not to miss the next one.
        self.next = now + rest.max(self.pause.scale(0.9));
    }

    fn say_progress(&mut self, progress: &Progress<'_>) -> Result<(), RunnerError> {
        let so_far = progress.total.counters();
        let line = shard_progress_json(&ShardProgress {
            shard: self.shard.clone(),
            elapsed_s: progress.elapsed.as_secs_f64(),
            duration_s: progress.duration.as_secs_f64(),
            in_flight: progress.in_flight,
            completed: so_far.completed,
            rejected: so_far.rejected,
            failed: so_far.failed + so_far.timed_out,
            ..ShardProgress::default()
        })?;
        let path = self.folder.join(file::PROGRESS);
        let file = match self.progress.take() {
            Some(open) => Ok(open),
            None => File::create(&path),
        };
        let line = format!("{:<LINE$}\n", line.trim_end());
        let written = file.and_then(|file| {
            file.write_all_at(line.as_bytes(), 0)?;
            Ok(file)
        });
        self.progress = Some(written.map_err(|source| RunnerError::Write { path, source })?);
        Ok(())
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
