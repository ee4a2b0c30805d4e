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

/// The files of a run.
pub(crate) mod file {
    pub(crate) const PLAN: &str = "plan.json";
    pub(crate) const ROWS: &str = "results.jsonl";
    pub(crate) const SUMMARY: &str = "summary.json";
    pub(crate) const TEXT: &str = "report.txt";
    pub(crate) const CSV: &str = "report.csv";
    pub(crate) const PROMETHEUS: &str = "metrics.prom";
}

/// Less free space than this is worth a warning: about one and a half million rows.
const SCARCE: u64 = 1 << 30;

/// What is kept of a run.
#[derive(Debug)]
pub(crate) struct RunDirOptions {
    /// Where its folder is made.
    pub(crate) out: PathBuf,
    /// Is there a row for each request?
    pub(crate) rows: bool,
}

/// The folder of one run.
#[derive(Debug)]
pub(crate) struct RunDir {
    path: PathBuf,
    rows: bool,
}

impl RunDir {
    /// Makes `OUT/STAMP-NAME`, or `OUT/STAMP-NAME-2` and so on where another run was as quick.
    ///
    /// # Errors
    /// Where the folder cannot be made.
    pub(crate) fn create(keep: &RunDirOptions, stamp: &str, name: &str) -> Result<Self> {
        let RunDirOptions { out, rows } = keep;
        let made =
            fs::create_dir_all(out).and_then(|()| Self::fresh(out, &format!("{stamp}-{name}")));
        let path = made.map_err(|error| {
            let out = out.display();
            anyhow!("cannot write to the folder {out}: {error}; choose a writable one with --out")
        })?;
        Ok(Self { path, rows: *rows })
    }

    fn fresh(parent: &Path, name: &str) -> io::Result<PathBuf> {
        let mut path = parent.join(name);
        for number in 2.. {
            match fs::create_dir(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    path = parent.join(format!("{name}-{number}"));
                }
                done => return done.map(|()| path),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Is there a row for each request?
    pub(crate) const fn wants_rows(&self) -> bool {
        self.rows
    }

    /// What to tell the user where the disk is nearly full.
    pub(crate) fn warning(&self) -> Option<String> {
        let disk = statvfs(&self.path).ok()?;
        let free = disk.blocks_available() * disk.fragment_size();
        (free < SCARCE).then(|| {
            let (place, free) = (self.path.display(), free >> 20);
            format!("only {free} MiB are free for {place}; a request takes about 700 bytes (--no-jsonl takes none)")
        })
    }

    /// Writes a file as a whole: a reader sees the old one or the new one.
    pub(crate) fn write(&self, file: &str, content: &[u8]) -> Result<()> {
        let path = self.path.join(file);
        let new = self.path.join(format!(".{file}.new"));
        let written = fs::write(&new, content).and_then(|()| fs::rename(&new, &path));
        if written.is_err() {
            // It would only be half a file.
            let _ = fs::remove_file(&new);
        }
        written.with_context(|| format!("cannot write {}", path.display()))
    }

    /// Writes the summary in every form.
    pub(crate) fn write_summary(&self, summary: &RunSummary) -> Result<()> {
        self.write(file::SUMMARY, json(summary)?.as_bytes())?;
        self.write(file::TEXT, text(summary, Style::default()).as_bytes())?;
        self.write(file::CSV, csv(summary)?.as_bytes())?;
        self.write(file::PROMETHEUS, prometheus(summary).as_bytes())
    }

    /// Takes the folder away again: there was no run.
    pub(crate) fn discard(&self) {
        // What cannot be removed does no harm.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(out: &Path) -> RunDirOptions {
        RunDirOptions { out: out.to_owned(), rows: true }
    }

    #[test]
    fn two_runs_in_one_second_get_two_folders() {
        let parent = tempfile::tempdir().unwrap();
        let out = parent.path().join("a/b");
        let first = RunDir::create(&keep(&out), "S", "n").unwrap();
        let second = RunDir::create(&keep(&out), "S", "n").unwrap();
        assert_eq!((first.path(), second.path()), (&*out.join("S-n"), &*out.join("S-n-2")));
        second.discard();
        assert!(first.path().exists() && !out.join("S-n-2").exists());
    }

    #[test]
    fn a_place_that_is_no_folder_is_refused_with_the_mend() {
        let parent = tempfile::tempdir().unwrap();
        let file = parent.path().join("file");
        fs::write(&file, "").unwrap();
        let error = format!("{:#}", RunDir::create(&keep(&file), "S", "n").unwrap_err());
        assert!(error.contains("choose a writable one with --out"), "{error}");
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_leaves_no_other_behind() {
        let parent = tempfile::tempdir().unwrap();
        let run_dir = RunDir::create(&keep(parent.path()), "S", "n").unwrap();
        run_dir.write("x", b"one").unwrap();
        run_dir.write("x", b"two").unwrap();
        assert_eq!(fs::read(run_dir.path().join("x")).unwrap(), b"two");
        let mut files: Vec<_> =
            fs::read_dir(run_dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        files.sort();
        assert_eq!(files, ["x"]);
    }
}
