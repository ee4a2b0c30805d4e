//! The folder of a run and its files.

mod plan;
mod rows;

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use nix::sys::statvfs::statvfs;
use plimsoll_metrics::RunSummary;
use plimsoll_report::{Style, csv, json, prometheus, text};

pub(crate) use plan::{StoredPlan, bands, store_plan, thresholds};
pub(crate) use rows::RowFile;

/// The names of a run's files.
pub(crate) mod file {
    pub(crate) const PLAN: &str = "plan.json";
    pub(crate) const ROWS: &str = "results.jsonl";
    pub(crate) const SUMMARY: &str = "summary.json";
    pub(crate) const TEXT: &str = "report.txt";
    pub(crate) const CSV: &str = "report.csv";
    pub(crate) const PROMETHEUS: &str = "metrics.prom";
}

/// Free space below which the user is warned: room for about 1.5 million rows.
const LOW_DISK_BYTES: u64 = 1 << 30;

/// The options of a run's folder.
#[derive(Debug)]
pub(crate) struct RunDirOptions {
    /// The parent folder.
    pub(crate) out: PathBuf,
    /// Whether results.jsonl is written, with one row per request.
    pub(crate) rows: bool,
}

/// The folder of one run.
#[derive(Debug)]
pub(crate) struct RunDir {
    path: PathBuf,
    rows: bool,
}

impl RunDir {
    /// Creates `OUT/STAMP-NAME`, or `OUT/STAMP-NAME-2` and so on where that exists already.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub(crate) fn create(options: &RunDirOptions, stamp: &str, name: &str) -> Result<Self> {
        let RunDirOptions { out, rows } = options;
        let created = fs::create_dir_all(out)
            .and_then(|()| Self::create_unique(out, &format!("{stamp}-{name}")));
        let path = created.map_err(|error| {
            let out = out.display();
            anyhow!("cannot write to the folder {out}: {error}; choose a writable one with --out")
        })?;
        Ok(Self { path, rows: *rows })
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
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether results.jsonl is written.
    pub(crate) const fn keeps_rows(&self) -> bool {
        self.rows
    }

    /// The warning for the user, if the disk is nearly full.
    pub(crate) fn low_disk_warning(&self) -> Option<String> {
        let disk = statvfs(&self.path).ok()?;
        let free = disk.blocks_available() * disk.fragment_size();
        (free < LOW_DISK_BYTES).then(|| {
            let (path, free) = (self.path.display(), free >> 20);
            format!(
                "the disk of {path} has only {free} MiB left; results.jsonl takes about 700 bytes per request (--no-jsonl leaves it out)"
            )
        })
    }

    /// Replaces a file atomically: a reader sees the old one or the new one.
    pub(crate) fn write(&self, file: &str, content: &[u8]) -> Result<()> {
        let path = self.path.join(file);
        let new = self.path.join(format!(".{file}.new"));
        let written = fs::write(&new, content).and_then(|()| fs::rename(&new, &path));
        if written.is_err() {
            // It may be half written.
            let _ = fs::remove_file(&new);
        }
        written.with_context(|| format!("cannot write {}", path.display()))
    }

    /// Writes the summary in every format.
    pub(crate) fn write_summary(&self, summary: &RunSummary) -> Result<()> {
        self.write(file::SUMMARY, json(summary)?.as_bytes())?;
        self.write(file::TEXT, text(summary, Style::default()).as_bytes())?;
        self.write(file::CSV, csv(summary)?.as_bytes())?;
        self.write(file::PROMETHEUS, prometheus(summary).as_bytes())
    }

    /// Removes the folder, because there was no run.
    pub(crate) fn discard(&self) {
        // A folder that cannot be removed does no harm.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(out: &Path) -> RunDirOptions {
        RunDirOptions { out: out.to_owned(), rows: true }
    }

    #[test]
    fn two_runs_in_one_second_get_two_folders() {
        let parent = tempfile::tempdir().unwrap();
        let out = parent.path().join("a/b");
        let first = RunDir::create(&options(&out), "S", "n").unwrap();
        let second = RunDir::create(&options(&out), "S", "n").unwrap();
        assert_eq!((first.path(), second.path()), (&*out.join("S-n"), &*out.join("S-n-2")));
        second.discard();
        assert!(first.path().exists() && !out.join("S-n-2").exists());
    }

    #[test]
    fn a_file_in_place_of_the_folder_is_an_error_that_names_the_fix() {
        let parent = tempfile::tempdir().unwrap();
        let file = parent.path().join("file");
        fs::write(&file, "").unwrap();
        let error = format!("{:#}", RunDir::create(&options(&file), "S", "n").unwrap_err());
        assert!(error.contains("choose a writable one with --out"), "{error}");
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
