//! The folder of a run and its files.

mod rows;
mod signs;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use nix::errno::Errno;
use nix::fcntl::posix_fallocate;
use nix::sys::statvfs::statvfs;
use plimsoll_engine::{BlockSink, Progress, Run, RunResult};
use plimsoll_measure::{Block, Clock as _, Moment, MonotonicClock, Nanos, Stripe};
use plimsoll_metrics::time_series::MAX_INTERVALS;
use plimsoll_metrics::{Limit, RunInfo, RunMetadata, TaskTally};
use plimsoll_plan::Plan;
use plimsoll_run_files::pairs::{Pairs, PairsHeader, PairsWriter, read_pairs};
use plimsoll_run_files::{
    CountsView, FileDigest, RowFormat, ShardProgress, ShardStatus, counts_bytes,
    shard_progress_json, shard_status_json,
};
pub(crate) use rows::RowFile;
use serde::{Deserialize, Serialize};
pub(crate) use signs::{CommonStop, read_sign, write_sign};

use crate::error::RunnerError;

/// The names of a run's files.
pub mod file {
    /// The plan, and the data that a summary needs besides the rows.
    pub const PLAN: &str = "plan.json";
    /// One row for each request.
    pub const ROWS: &str = "results.jsonl";
    /// The tasks of agents, one row each.
    pub const TASKS: &str = "tasks.jsonl";
    /// Every figure of the run.
    pub const SUMMARY: &str = "summary.json";
    /// The figures of each level of load.
    pub const LEVELS: &str = "levels.json";
    /// The report as text.
    pub const TEXT: &str = "report.txt";
    /// The report as a page.
    pub const PAGE: &str = "report.html";
    /// The figures as a table.
    pub const CSV: &str = "report.csv";
    /// The figures of whole stages as a table.
    pub const STAGES_CSV: &str = "stages.csv";
    /// The blocks of a comparison.
    pub const PAIRS: &str = "pairs.bin";
    /// The result of a comparison.
    pub const VERSUS: &str = "versus.json";
    /// The same as a table for spreadsheets.
    pub const VERSUS_CSV: &str = "versus.csv";
    /// The figures in the format of Prometheus.
    pub const PROMETHEUS: &str = "metrics.prom";
    /// Timeline of the run.
    pub const TIMELINE: &str = "timeline.json";
    /// The same as an interval log of HdrHistogram.
    pub const INTERVAL_LOG: &str = "histograms.hlog";
    /// Counts of a shard.
    pub const COUNTS: &str = "counts.bin";
    /// Facts of a comparison's shard, besides its blocks.
    pub const FACTS: &str = "facts.json";
    /// The end of a run or a shard, and the digests of its files: it is written last.
    pub const SHARD: &str = "shard.json";
    /// A shard waits for the common start.
    pub const READY: &str = "ready.json";
    /// When all shards begin; beside their folders.
    pub const START: &str = "start.json";
    /// Stops all shards, because one of them ended early; stored beside their folders.
    pub const STOP: &str = "stop.json";
    /// How far a shard is.
    pub const PROGRESS: &str = "progress.json";
    /// The result of a suite.
    pub const SUITE: &str = "suite.json";
    /// Data about the run from a gateway's log.
    pub const JOIN: &str = "join.json";
    /// The requests, joined with a gateway's log.
    pub const JOINED: &str = "joined.jsonl";
    /// The result of `knee`.
    pub const KNEE: &str = "knee.json";
    /// The profile of a run with every default, without credentials.
    pub const PROFILE: &str = "profile.yaml";
    /// The result of `compare`.
    pub const COMPARISON: &str = "comparison.json";
    /// Analysis of the load's bottleneck.
    pub const WHY: &str = "why.json";
    /// Holds the space of the summary while the rows are written.
    pub const RESERVED: &str = ".reserved";
}

/// Free space below which the user is warned: room for about 1.5 million rows.
const LOW_DISK_BYTES: u64 = 1 << 30;

/// Space of a run's results besides its rows: a fixed part, and one for each group of requests (its
/// histograms in summary.json, its lines in the other files). Generous: a group takes 10 to 50 KiB.
const RESERVED_BYTES: u64 = 1 << 20;
const RESERVED_BYTES_PER_GROUP: u64 = 64 << 10;
/// Space of an interval of the timeline and its histograms, for each target.
const RESERVED_BYTES_PER_INTERVAL: u64 = 12 << 10;
/// The most that is reserved.
const MOST_RESERVED: u64 = 256 << 20;

/// The space to reserve for the results of a run.
pub(crate) fn space_of_results(metadata: &RunMetadata) -> u64 {
    let [stages, scenarios, targets] =
        [metadata.stages.len(), metadata.scenarios.len(), metadata.targets.len()]
            .map(|count| u64::try_from(count).unwrap_or(u64::MAX));
    let cells = stages.saturating_mul(scenarios).saturating_mul(targets);
    let groups = [1, stages, scenarios, scenarios, targets, cells];
    let groups = groups.into_iter().fold(0, u64::saturating_add);
    let seconds: f64 = metadata.stages.iter().map(|stage| stage.duration_s.ceil()).sum();
    let intervals = (1..MAX_INTERVALS).find(|n| f64::from(*n) >= seconds).unwrap_or(MAX_INTERVALS);
    let intervals = targets.saturating_mul(intervals.into());
    RESERVED_BYTES
        .saturating_add(groups.saturating_mul(RESERVED_BYTES_PER_GROUP))
        .saturating_add(intervals.saturating_mul(RESERVED_BYTES_PER_INTERVAL))
        .min(MOST_RESERVED)
}

/// The options of a run's folder.
#[derive(Clone, Debug)]
pub struct RunDirOptions {
    /// The parent folder.
    pub out: PathBuf,
    /// How results.jsonl is kept, with one row per request; `None` if it is not written.
    pub rows: Option<RowFormat>,
    /// Whether report.html is written.
    pub page: bool,
}

/// The folder of one run.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    options: RunDirOptions,
    /// The space of the results, until they are written.
    reservation: Option<Reservation>,
    kept: bool,
}

impl RunDir {
    /// Creates `OUT/STAMP-NAME`, or `OUT/STAMP-NAME-2` and so on where that exists already.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn create(options: &RunDirOptions, stamp: &str, name: &str) -> Result<Self, RunnerError> {
        let out = &options.out;
        let created = fs::create_dir_all(out)
            .and_then(|()| Self::create_unique(out, &format!("{stamp}-{name}")));
        let path = created.map_err(|source| RunnerError::Folder { folder: out.clone(), source })?;
        Ok(Self { path, options: options.clone(), reservation: None, kept: false })
    }

    /// Creates `OUT/RUN_ID/shard-KKKKK-of-NNNNN` for a shard of this run.
    ///
    /// # Errors
    /// The folder cannot be created, or this run id has run there.
    pub fn create_shard(
        options: &RunDirOptions,
        run: &RunInfo,
        shard: Stripe,
    ) -> Result<Self, RunnerError> {
        let parent = options.out.join(&run.run_id);
        let path = parent.join(shard_name(shard.index(), shard.count()));
        let other = fs::create_dir_all(&parent).and_then(|()| other_run(&parent, run, shard));
        let created = match other {
            Ok(Some(folder)) => return Err(RunnerError::ShardExists(folder)),
            other => other.and_then(|_| fs::create_dir(&path)),
        };
        created.map_err(|source| match source.kind() {
            ErrorKind::AlreadyExists => RunnerError::ShardExists(path.clone()),
            _ => RunnerError::Folder { folder: parent, source },
        })?;
        Ok(Self { path, options: options.clone(), reservation: None, kept: false })
    }

    fn create_unique(parent: &Path, name: &str) -> io::Result<PathBuf> {
        let mut path = parent.join(name);
        for number in 2.. {
            match fs::create_dir(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    path = parent.join(format!("{name}-{number}"));
                }
                result => return result.map(|()| path),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a page, which is made only if one is wanted.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_page(&self, page: impl FnOnce() -> String) -> Result<(), RunnerError> {
        if self.options.page { self.write(file::PAGE, page().as_bytes()) } else { Ok(()) }
    }

    /// How results.jsonl is kept, if it is written.
    pub const fn rows(&self) -> Option<RowFormat> {
        self.options.rows
    }

    /// The warning for the user, if the disk is nearly full.
    pub fn low_disk_warning(&self) -> Option<String> {
        let disk = statvfs(&self.path).ok()?;
        let free = disk.blocks_available() * disk.fragment_size();
        (free < LOW_DISK_BYTES).then(|| {
            let (path, free) = (self.path.display(), free >> 20);
            format!(
                "the disk of {path} has only {free} MiB left; results.jsonl takes about 700 bytes per request (--no-jsonl leaves it out)"
            )
        })
    }

    /// Reserves the space of the summary and the reports, so that the rows cannot take it. They are
    /// then written even if the disk fills up during the run.
    ///
    /// # Errors
    /// The disk is full already.
    pub(crate) fn reserve(&mut self, bytes: u64) -> Result<(), RunnerError> {
        let reserved = Reservation::create(&self.path, bytes);
        let reservation = reserved.map_err(|source| {
            let (folder, mib) = (self.path.clone(), bytes.div_ceil(1 << 20));
            RunnerError::NoSpace { folder, mib, source }
        })?;
        self.reservation = Some(reservation);
        Ok(())
    }

    /// Replaces a file of the folder.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, file: &str, content: &[u8]) -> Result<(), RunnerError> {
        replace(&self.path, file, content)
    }

    /// Writes the last file of a run or a shard, which has the digests of all others.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn commit(&self, status: &ShardStatus) -> Result<(), RunnerError> {
        let files = digests(&self.path);
        let files =
            files.map_err(|source| RunnerError::Read { path: self.path.clone(), source })?;
        let status = ShardStatus { files, ..status.clone() };
        self.write(file::SHARD, shard_status_json(&status)?.as_bytes())
    }

    /// Gives the reserved space back, for the results.
    pub fn release_space(&self) {
        if let Some(reservation) = &self.reservation {
            reservation.release();
        }
    }

    /// Removes the folder after all when it is dropped: the run did not begin.
    pub(crate) const fn discard(&mut self) {
        self.kept = false;
    }

    /// Keeps the folder. Without this call, dropping the value removes it, because no run took
    /// place.
    pub const fn keep(&mut self) {
        self.kept = true;
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        if !self.kept {
            // A folder that cannot be removed does no harm.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// The folder of a shard from another run: it has another number of shards, or its plan another
/// launch or build. Checking one plan is enough.
fn other_run(parent: &Path, run: &RunInfo, shard: Stripe) -> io::Result<Option<PathBuf>> {
    let entries = fs::read_dir(parent)?.map(|entry| entry.map(|entry| entry.file_name()));
    let names: Vec<_> = entries.collect::<io::Result<_>>()?;
    let names = names.iter().map(|name| name.to_string_lossy());
    let mut shards: Vec<_> = names.filter(|name| name.starts_with("shard-")).collect();
    shards.sort();
    let count = format!("-of-{:05}", shard.count());
    if let Some(other) = shards.iter().find(|name| !name.ends_with(&count)) {
        return Ok(Some(parent.join(&**other)));
    }
    let first = shards.first().map(|name| parent.join(&**name));
    let build = |run: &RunInfo| [&run.launch, &run.tool_version, &run.build].map(String::clone);
    Ok(first.filter(|folder| {
        let plan = plimsoll_input::read(&folder.join(file::PLAN)).ok();
        let plan = plan.and_then(|bytes| StoredPlan::parse(&bytes).ok());
        plan.is_some_and(|plan| build(&plan.metadata.run) != build(run))
    }))
}

/// The digests of a folder's files, except for files that only record progress.
fn digests(folder: &Path) -> io::Result<BTreeMap<String, FileDigest>> {
    let mut digests = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        let name = name.to_string_lossy().into_owned();
        if path.is_file()
            && !name.starts_with('.')
            && ![file::READY, file::PROGRESS].contains(&&*name)
        {
            digests.insert(name, FileDigest::of(&path)?);
        }
    }
    Ok(digests)
}

/// The name of the folder of a shard.
pub fn shard_name(index: u64, count: u64) -> String {
    format!("shard-{index:05}-of-{count:05}")
}

/// Replaces a file of a folder atomically: a reader sees the old one or the new one.
///
/// # Errors
/// It cannot be written.
pub fn replace(folder: &Path, file: &str, content: &[u8]) -> Result<(), RunnerError> {
    let path = folder.join(file);
    let new = folder.join(format!(".{file}.new"));
    let written = fs::write(&new, content).and_then(|()| fs::rename(&new, &path));
    if written.is_err() {
        // It may be half written.
        let _ = fs::remove_file(&new);
    }
    written.map_err(|source| RunnerError::Write { path, source })
}

/// Wall-clock time, after which folders are named, in nanoseconds since 1970 UTC.
#[expect(clippy::disallowed_methods, reason = "the name of the folder is wall-clock time")]
pub fn unix_nanos() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Inverse of the maximum share of time spent on writing.
const SHARE: u64 = 20;
/// All shards together replace their files 100 times a second: they may share a disk.
const PAUSE: u64 = 10;
/// Length of `progress.json`. Always the same, so that it is written in place.
const LINE: usize = 400;

/// The file of counts of a shard.
///
/// `counts.bin` is rewritten while a shard runs, so a killed shard loses only the last second;
/// `progress.json` is one line for a watching parent process.
pub(crate) struct CountsFile {
    folder: PathBuf,
    version: String,
    shard: String,
    clock: MonotonicClock,
    /// Time of the next write, and the minimum interval between writes.
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

    /// Writes the counts so far. A failure here is ignored; only the final write counts.
    pub(crate) fn follow(&mut self, progress: &Progress<'_>) {
        // The progress file is optional.
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

/// Sees blocks as they come, about once a second.
pub type BlockWatcher = Box<dyn FnMut(&[Block]) + Send>;

/// The file of blocks. Each call is one unbuffered write of whole records.
pub(crate) struct PairFile {
    writer: PairsWriter<File>,
    watcher: Option<BlockWatcher>,
}

impl PairFile {
    /// Creates the file before the load, so an error shows before any request. `watcher` sees every
    /// written row.
    pub(crate) fn create(
        run_dir: &RunDir,
        metadata: &RunMetadata,
        watcher: Option<BlockWatcher>,
    ) -> Result<Self, RunnerError> {
        let path = run_dir.path().join(file::PAIRS);
        let header = PairsHeader {
            targets: metadata.targets.iter().map(|target| target.name.clone()).collect(),
            seed: metadata.run.seed,
            started_unix_ns: metadata.run.started_unix_ns,
        };
        let writer = File::create_new(&path).and_then(|out| PairsWriter::new(out, header));
        let writer = writer.map_err(|source| RunnerError::Write { path, source })?;
        Ok(Self { writer, watcher })
    }
}

/// Reads the blocks of a run that compared targets.
///
/// # Errors
/// The folder has no such file, or it cannot be read.
pub fn read_blocks(run: &Path) -> Result<Pairs, RunnerError> {
    let path = run.join(file::PAIRS);
    let opened = match plimsoll_input::open(&path) {
        Ok(opened) => opened,
        Err(source) => return Err(RunnerError::Read { path, source }),
    };
    read_pairs(&mut BufReader::new(opened)).map_err(|source| RunnerError::Blocks { path, source })
}

impl BlockSink for PairFile {
    fn write(&mut self, blocks: &[Block]) -> io::Result<()> {
        if let Some(watcher) = &mut self.watcher {
            watcher(blocks);
        }
        self.writer.write(blocks)
    }
}

/// Version of the layout of `plan.json`.
const SCHEMA: &str = "plimsoll.plan/1";

/// `plan.json` holds the plan of a run, and everything besides the rows that a summary needs.
#[derive(Serialize)]
struct NewPlan<'a> {
    schema: &'static str,
    /// The same for all shards of one run.
    schedule_fingerprint: String,
    plan: &'a Plan,
    metadata: &'a RunMetadata,
}

impl RunDir {
    /// Writes the plan of a run that is about to begin. It contains no credentials.
    pub(crate) fn store_plan(&self, run: &Run, metadata: &RunMetadata) -> Result<(), RunnerError> {
        let plan = NewPlan {
            schema: SCHEMA,
            schedule_fingerprint: format!("{:016x}", run.schedule_fingerprint()),
            plan: run.plan(),
            metadata,
        };
        let mut text = serde_json::to_vec_pretty(&plan)?;
        text.push(b'\n');
        self.write(file::PLAN, &text)
    }
}

/// Notes in the plan of a folder when its load began: the rows of a run that is killed count from
/// there.
pub(crate) fn note_start(folder: &Path, origin: Moment) -> Result<(), RunnerError> {
    let path = folder.join(file::PLAN);
    let plan = fs::read_to_string(&path).map_err(|source| RunnerError::Read { path, source })?;
    let began_s = origin.since(Moment::EPOCH).as_secs_f64();
    let plan = plan.replacen("{\n", &format!("{{\n  \"began_s\": {began_s},\n"), 1);
    replace(folder, file::PLAN, plan.as_bytes())
}

/// The part of a stored plan that is needed to compute the summary again.
#[derive(Debug, Deserialize)]
pub struct StoredPlan {
    schema: String,
    /// When the load began, after the start of the run's clock; 0 where it is not known.
    #[serde(default)]
    began_s: f64,
    plan: StoredBounds,
    /// Names, stages, targets, the machine.
    pub metadata: RunMetadata,
}

#[derive(Debug, Deserialize)]
struct StoredBounds {
    thresholds: BTreeMap<String, Vec<String>>,
}

impl StoredPlan {
    /// Reads `plan.json`.
    ///
    /// # Errors
    /// It is not a plan of this version.
    pub fn parse(bytes: &[u8]) -> Result<Self, RunnerError> {
        let mut plan: Self = serde_json::from_slice(bytes).map_err(|error| {
            RunnerError::StoredPlan(format!(
                "this is not a plan.json that this version of plimsoll can read: {error}"
            ))
        })?;
        if plan.schema != SCHEMA {
            return Err(RunnerError::StoredPlan(format!(
                "its schema is `{}`, but this version reads `{SCHEMA}`; use the version of plimsoll that wrote it",
                plan.schema
            )));
        }
        for stage in &mut plan.metadata.stages {
            stage.start_s += plan.began_s;
        }
        Ok(plan)
    }

    /// The limits of the run.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub fn limits(&self) -> Result<Vec<Limit>, RunnerError> {
        limits(&self.plan.thresholds)
    }
}

/// Parses the limits of a plan.
///
/// # Errors
/// One of them cannot be read: it says which and why.
pub fn limits(written: &BTreeMap<String, Vec<String>>) -> Result<Vec<Limit>, RunnerError> {
    let written = written.iter().flat_map(|(metric, all)| all.iter().map(move |one| (metric, one)));
    written.map(|(metric, limit)| Ok(Limit::parse(metric, limit)?)).collect()
}

// Disk space reserved for the results of a run in progress.

/// The space, in a file that is locked as long as the run lasts.
#[derive(Debug)]
struct Reservation {
    path: PathBuf,
    locked: File,
}

impl Reservation {
    /// Reserves space in the folder of a run.
    fn create(run: &Path, bytes: u64) -> io::Result<Self> {
        let path = run.join(file::RESERVED);
        let length = i64::try_from(bytes).unwrap_or(i64::MAX);
        let reserved = File::create(&path)?;
        match posix_fallocate(&reserved, 0, length) {
            // This filesystem cannot reserve, or the size of a file is limited: there may be room.
            Ok(()) | Err(Errno::EOPNOTSUPP | Errno::ENOSYS | Errno::EINVAL | Errno::EFBIG) => {}
            Err(error) => return Err(error.into()),
        }
        // Where files cannot be locked, a killed run leaves this one behind.
        let _ = reserved.lock();
        Ok(Self { path, locked: reserved })
    }

    /// Gives the space back, for the results.
    fn release(&self) {
        // The file is still open: without its name alone it would keep the space.
        let _ = self.locked.set_len(0);
        // A file that cannot be removed only is in the way.
        let _ = fs::remove_file(&self.path);
    }
}

/// Releases the space of a killed run; a run in progress still has the lock.
pub fn release_of_killed(run: &Path) {
    let path = run.join(file::RESERVED);
    let is_free = File::open(&path).is_ok_and(|reserved| reserved.try_lock().is_ok());
    if is_free {
        // Errors are ignored here as well; the folder may also be read-only.
        let _ = fs::remove_file(&path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(out: &Path) -> RunDirOptions {
        RunDirOptions { out: out.to_owned(), rows: Some(RowFormat::Plain), page: true }
    }

    #[test]
    fn two_runs_in_one_second_get_two_folders() {
        let parent = tempfile::tempdir().unwrap();
        let out = parent.path().join("a/b");
        let mut first = RunDir::create(&options(&out), "S", "n").unwrap();
        first.keep();
        let second = RunDir::create(&options(&out), "S", "n").unwrap();
        assert_eq!((first.path(), second.path()), (&*out.join("S-n"), &*out.join("S-n-2")));
        drop((first, second));
        assert!(out.join("S-n").exists() && !out.join("S-n-2").exists());
    }

    #[test]
    fn a_file_in_place_of_the_folder_is_an_error_that_names_the_fix() {
        let parent = tempfile::tempdir().unwrap();
        let file = parent.path().join("file");
        fs::write(&file, "").unwrap();
        let error = RunDir::create(&options(&file), "S", "n").unwrap_err().to_string();
        assert!(error.contains("choose a writable one with --out"), "{error}");
    }

    #[test]
    fn space_is_reserved_for_the_results_and_given_to_them() {
        let parent = tempfile::tempdir().unwrap();
        let mut run_dir = RunDir::create(&options(parent.path()), "S", "n").unwrap();
        let bytes = space_of_results(&RunMetadata::default());
        run_dir.reserve(bytes).unwrap();
        let reserved = run_dir.path().join(file::RESERVED);
        let blocks = std::os::unix::fs::MetadataExt::blocks(&fs::metadata(&reserved).unwrap());
        assert!(blocks * 512 >= bytes, "{blocks} blocks of 512 bytes for {bytes} bytes");
        run_dir.release_space();
        assert!(!reserved.exists());
    }

    #[test]
    fn only_the_space_of_a_run_that_ended_is_given_back() {
        let parent = tempfile::tempdir().unwrap();
        let mut run_dir = RunDir::create(&options(parent.path()), "S", "n").unwrap();
        run_dir.reserve(1 << 20).unwrap();
        run_dir.keep();
        let (folder, reserved) = (run_dir.path().to_owned(), run_dir.path().join(file::RESERVED));
        release_of_killed(&folder);
        assert!(reserved.exists(), "the run still goes on");
        // Closes the file and its lock, as the kernel does when the process is killed.
        drop(run_dir);
        release_of_killed(&folder);
        assert!(!reserved.exists());
        release_of_killed(&folder);
    }

    #[test]
    fn a_file_is_replaced_atomically_without_leftovers() {
        let parent = tempfile::tempdir().unwrap();
        let run_dir = RunDir::create(&options(parent.path()), "S", "n").unwrap();
        run_dir.write("x", b"one").unwrap();
        run_dir.write("x", b"two").unwrap();
        assert_eq!(fs::read(run_dir.path().join("x")).unwrap(), b"two");
        let mut files: Vec<_> =
            fs::read_dir(run_dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        files.sort();
        assert_eq!(files, ["x"]);
    }
}
