//! Contents of a folder: a run, a suite, a comparison or a knee; or such folders, where the latest
//! counts.

use std::cmp::Ordering;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use plimsoll_report::format::utc_compact;
use plimsoll_runner::folder::file;

use crate::exit::UsageError;

/// Kind of result in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::command) enum Kind {
    Run,
    Suite,
    Comparison,
    Knee,
}

impl Kind {
    /// The word in singular or plural.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Run => ("run", "runs"),
            Self::Suite => ("suite", "suites"),
            Self::Comparison => ("comparison", "comparisons"),
            Self::Knee => ("knee", "knees"),
        }
    }

    /// Found by the files of a folder, with the file whose time counts.
    fn in_folder(folder: &Path) -> Option<(Self, PathBuf)> {
        let files = [
            (Self::Run, file::SUMMARY),
            // A run that was killed.
            (Self::Run, file::PLAN),
            (Self::Suite, file::SUITE),
            (Self::Comparison, file::COMPARISON),
            (Self::Knee, file::KNEE),
        ];
        let found = files.into_iter().map(|(kind, name)| (kind, folder.join(name)));
        { found }.find(|(_, path)| path.is_file())
    }
}

/// A result to show.
#[derive(Debug)]
pub(in crate::command) struct Found {
    pub(in crate::command) kind: Kind,
    pub(in crate::command) folder: PathBuf,
    /// Note that the result is the latest of several.
    pub(in crate::command) note: Option<String>,
}

/// Finds the result in a folder, or the latest of the folders in it.
pub(in crate::command) fn find(folder: &Path) -> Result<Found> {
    if let Some((kind, _)) = Kind::in_folder(folder) {
        return Ok(Found { kind, folder: folder.to_owned(), note: None });
    }
    let mut stored = stored_in(folder);
    stored.sort_by(Stored::by_time);
    let latest = stored.last().ok_or_else(|| nothing_in(folder))?;
    let shown = latest.folder.display();
    let note = format!("showing {shown}, the latest of {}", counted(&stored));
    Ok(Found { kind: latest.kind, folder: latest.folder.clone(), note: Some(note) })
}

/// The only run in a folder that is not itself a run; `None` for any other folder.
pub(in crate::command) fn only_run_in(folder: &Path) -> Option<PathBuf> {
    if Kind::in_folder(folder).is_some() {
        return None;
    }
    let mut runs = stored_in(folder).into_iter().filter(|stored| stored.kind == Kind::Run);
    let only = runs.next().filter(|_| runs.next().is_none())?;
    Some(only.folder)
}

fn nothing_in(folder: &Path) -> UsageError {
    let cause = "is not a run folder: it has neither summary.json nor plan.json";
    UsageError(format!(
        "{} {cause}, and it contains no run folder; pass the path that `plimsoll run` printed after `files:`",
        folder.display()
    ))
}

/// A result in a folder of results.
struct Stored {
    kind: Kind,
    folder: PathBuf,
    /// When it began, as names of folders have it; of one without such a name when it was written.
    stamp: String,
    written: SystemTime,
}

impl Stored {
    fn read(folder: PathBuf) -> Option<Self> {
        let (kind, result) = Kind::in_folder(&folder)?;
        let written = fs::metadata(result).and_then(|file| file.modified()).unwrap_or(UNIX_EPOCH);
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let stamp = name.as_deref().and_then(stamp_of).map_or_else(|| utc(written), str::to_owned);
        Some(Self { kind, folder, stamp, written })
    }

    fn by_time(one: &Self, other: &Self) -> Ordering {
        (&one.stamp, one.written, &one.folder).cmp(&(&other.stamp, other.written, &other.folder))
    }
}

fn stored_in(folder: &Path) -> Vec<Stored> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.filter_map(|entry| Stored::read(entry.ok()?.path())).collect()
}

/// The `20260102T030405Z` with which a name begins.
fn stamp_of(name: &str) -> Option<&str> {
    let stamp = name.get(..16)?;
    let like = "00000000T000000Z".bytes();
    let fits = stamp
        .bytes()
        .zip(like)
        .all(|(byte, like)| if like == b'0' { byte.is_ascii_digit() } else { byte == like });
    fits.then_some(stamp)
}

fn utc(written: SystemTime) -> String {
    let since = written.duration_since(UNIX_EPOCH).unwrap_or_default();
    utc_compact(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// How many there are: `3 runs and 1 suite`.
fn counted(stored: &[Stored]) -> String {
    let parts = [Kind::Run, Kind::Suite, Kind::Comparison, Kind::Knee].map(|kind| {
        let count = stored.iter().filter(|found| found.kind == kind).count();
        let (one, several) = kind.words();
        (count > 0).then(|| format!("{count} {}", if count == 1 { one } else { several }))
    });
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_is_that_of_the_latest_stamp_and_then_of_the_latest_file() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: &str, file: &str, seconds: u64| {
            let folder = parent.path().join(name);
            fs::create_dir(&folder).unwrap();
            let file = fs::File::create(folder.join(file)).unwrap();
            let written = UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            file.set_modified(written).unwrap();
        };
        // Copied later than the others, and made before them. 1,798,000,000 s is in December 2026.
        make("20260102T030405Z-b", "summary.json", 1_798_000_000);
        make("20260302T030405Z-suite-x", "suite.json", 1_790_000_000);
        let latest = || find(parent.path()).unwrap();
        let found = latest();
        assert_eq!(found.kind, Kind::Suite);
        assert!(found.note.unwrap().ends_with("the latest of 1 run, 1 suite"));
        // Within the same second, the later file counts: `-10` comes before `-2` in the alphabet.
        make("20260402T030405Z-a-2", "summary.json", 1_790_000_002);
        make("20260402T030405Z-a-10", "plan.json", 1_790_000_010);
        assert!(latest().folder.ends_with("20260402T030405Z-a-10"));
        // A result whose name has no time uses the time of its file.
        make("nightly", "comparison.json", 1_798_000_000);
        let found = latest();
        assert!(found.folder.ends_with("nightly") && found.kind == Kind::Comparison);
        assert!(found.note.unwrap().contains("3 runs, 1 suite, 1 comparison"));
        let own = parent.path().join("nightly");
        assert_eq!(find(&own).unwrap().note, None);
        // The folder has several runs, so the choice is ambiguous.
        assert_eq!(only_run_in(parent.path()), None);
    }

    #[test]
    fn the_only_run_of_a_folder_is_found_beside_other_results() {
        let parent = tempfile::tempdir().unwrap();
        let run = parent.path().join("20260102T030405Z-a");
        for (folder, result) in [(&run, "summary.json"), (&parent.path().join("s"), "suite.json")] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join(result), "").unwrap();
        }
        assert_eq!(only_run_in(parent.path()), Some(run.clone()));
        assert_eq!(only_run_in(&run), None);
        assert_eq!(only_run_in(&parent.path().join("s")), None);
    }

    #[test]
    fn a_folder_without_any_result_is_wrong_usage() {
        let parent = tempfile::tempdir().unwrap();
        fs::create_dir(parent.path().join("20260102T030405Z-empty")).unwrap();
        let error = find(parent.path()).unwrap_err();
        assert!(
            error.is::<UsageError>() && error.to_string().contains("it contains no run folder")
        );
    }

    #[test]
    fn stamps_are_whole() {
        assert_eq!(stamp_of("20260102T030405Z-run"), Some("20260102T030405Z"));
        for name in ["20260102T03040", "2026-01-02T03:04", "20260102 030405Z", "ä0260102T030405Z"]
        {
            assert_eq!(stamp_of(name), None, "{name}");
        }
    }
}
