//! A file of JSON lines.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{Batch, Failure, Sink};

/// File mode before the umask: rows name clients, so others may not read them.
const MODE: u32 = 0o640;

/// Appends to a file, and follows its path when somebody moves or removes it.
#[derive(Debug)]
pub(crate) struct FileSink {
    path: PathBuf,
    file: Option<File>,
    /// The file ends within a line.
    torn: bool,
    /// Since when bytes wait for `fsync`.
    dirty: Option<Instant>,
    sync_every: Duration,
}

/// The file that the path refers to now.
enum PathState {
    Here,
    Moved,
    Removed,
}

impl FileSink {
    pub(crate) fn open(path: &Path, sync_every: Duration) -> io::Result<Self> {
        let mut sink =
            Self { path: path.to_owned(), file: None, torn: false, dirty: None, sync_every };
        sink.reopen()?;
        Ok(sink)
    }

    fn reopen(&mut self) -> io::Result<()> {
        let file = OpenOptions::new().append(true).create(true).mode(MODE).open(&self.path)?;
        self.torn = ends_within_a_line(&self.path).unwrap_or(false);
        // Syncs the folder too, so that the file's name is durable. Some file systems do not
        // support that, but the rows are safe.
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or_else(|| Path::new("."));
        drop(File::open(folder).and_then(|folder| folder.sync_all()));
        self.file = Some(file);
        Ok(())
    }

    fn write(&mut self, batch: &mut Batch<'_>) -> io::Result<()> {
        if self.file.is_none() {
            self.reopen()?;
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        if batch.done == 0 && self.torn {
            file.write_all(b"\n")?;
            self.torn = false;
        }
        self.dirty = self.dirty.or_else(|| Some(now()));
        while let Some(rest) = batch.lines.get(batch.done..).filter(|rest| !rest.is_empty()) {
            match file.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => batch.done += count,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
            self.torn = !batch.lines.get(..batch.done).is_some_and(|done| done.ends_with(b"\n"));
        }
        Ok(())
    }

    /// Removes the start of a row whose rest did not fit, because the disk may stay full.
    fn take_back(&mut self, batch: &mut Batch<'_>) -> io::Result<()> {
        let done = batch.lines.get(..batch.done).unwrap_or_default();
        let part = done.rsplit(|byte| *byte == b'\n').next().map_or(0, <[u8]>::len);
        let Some(file) = self.file.as_ref().filter(|_| part > 0) else { return Ok(()) };
        file.set_len(file.metadata()?.len().saturating_sub(part as u64))?;
        (batch.done, self.torn) = (batch.done - part, false);
        Ok(())
    }

    /// Whether the path still refers to the file that was written.
    fn path_state(&self) -> io::Result<PathState> {
        let Some(file) = &self.file else { return Ok(PathState::Removed) };
        let ours = file.metadata()?;
        let here = std::fs::metadata(&self.path);
        Ok(match here {
            Ok(here) if (here.dev(), here.ino()) == (ours.dev(), ours.ino()) => PathState::Here,
            _ if ours.nlink() > 0 => PathState::Moved,
            _ => PathState::Removed,
        })
    }

    /// If the file was moved, the next batch goes to a new file at the old path. If it was removed,
    /// this batch does, too.
    fn follow(&mut self, batch: &mut Batch<'_>) -> io::Result<()> {
        match self.path_state()? {
            PathState::Here => Ok(()),
            PathState::Moved => {
                self.sync_file()?;
                self.file = None;
                Ok(())
            }
            PathState::Removed => {
                self.file = None;
                batch.done = 0;
                Err(io::Error::other("the file was removed"))
            }
        }
    }

    fn sync_file(&mut self) -> io::Result<()> {
        if self.dirty.take().is_some()
            && let Some(file) = &self.file
        {
            return synced(file);
        }
        Ok(())
    }

    fn failure(&self, error: &io::Error) -> Failure {
        Failure::Again(format!(
            "cannot write the audit file {}: {error}; free disk space, or make its folder writable",
            self.path.display()
        ))
    }
}

impl Sink for FileSink {
    fn put(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let written = self.write(batch).and_then(|()| self.follow(batch));
        // A row that stays torn is completed by the next attempt.
        let written = written.inspect_err(|_| drop(self.take_back(batch)));
        written.map_err(|error| self.failure(&error))
    }

    fn sync(&mut self, last: bool) -> Result<(), Failure> {
        let due = self.dirty.is_some_and(|since| since.elapsed() >= self.sync_every);
        let synced = if last || due { self.sync_file() } else { Ok(()) };
        synced.map_err(|error| self.failure(&error))
    }
}

/// Pipes and devices cannot be synced and return an error.
fn synced(file: &File) -> io::Result<()> {
    file.sync_data().or_else(|e| match e.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported => Ok(()),
        _ => Err(e),
    })
}

fn ends_within_a_line(path: &Path) -> io::Result<bool> {
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_file() || metadata.len() == 0 {
        return Ok(false);
    }
    let mut file = File::open(path)?;
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

#[expect(clippy::disallowed_methods, reason = "the age of unsynced bytes; rows do not contain it")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(sink: &mut FileSink, lines: &[u8]) -> Result<(), Failure> {
        sink.put(&mut Batch { number: 0, lines, done: 0 })
    }

    #[test]
    fn a_torn_line_of_an_earlier_process_stays_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit");
        std::fs::write(&path, "{\"a\":1}\n{\"b").unwrap();
        let mut sink = FileSink::open(&path, Duration::ZERO).unwrap();
        put(&mut sink, b"{}\n").unwrap();
        put(&mut sink, b"{}\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"a\":1}\n{\"b\n{}\n{}\n");
    }

    #[test]
    fn an_attempt_goes_on_where_the_last_one_ended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit");
        let mut sink = FileSink::open(&path, Duration::ZERO).unwrap();
        sink.put(&mut Batch { number: 0, lines: b"{1}\n{2}\n", done: 4 }).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{2}\n");
    }

    #[test]
    fn a_row_whose_rest_does_not_fit_is_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit");
        let mut sink = FileSink::open(&path, Duration::ZERO).unwrap();
        put(&mut sink, b"{0}\n").unwrap();
        put(&mut sink, b"{1}\n{2").unwrap();
        let mut batch = Batch { number: 0, lines: b"{1}\n{2}\n", done: 6 };
        sink.take_back(&mut batch).unwrap();
        assert_eq!((std::fs::read_to_string(&path).unwrap(), batch.done), ("{0}\n{1}\n".into(), 4));
        sink.put(&mut batch).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{0}\n{1}\n{2}\n");
    }

    #[test]
    fn a_moved_file_keeps_its_batch_and_a_new_one_takes_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let (path, old) = (folder.path().join("audit"), folder.path().join("old"));
        let mut sink = FileSink::open(&path, Duration::ZERO).unwrap();
        std::fs::rename(&path, &old).unwrap();
        put(&mut sink, b"{1}\n").unwrap();
        put(&mut sink, b"{2}\n").unwrap();
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "{1}\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{2}\n");
    }

    #[test]
    fn a_removed_file_loses_no_batch_that_comes_later() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit");
        let mut sink = FileSink::open(&path, Duration::ZERO).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut batch = Batch { number: 0, lines: b"{1}\n", done: 0 };
        assert!(matches!(sink.put(&mut batch), Err(Failure::Again(_))));
        sink.put(&mut batch).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{1}\n");
    }

    #[test]
    fn a_full_disk_is_reported_with_path_and_fix() {
        let mut sink = FileSink::open(Path::new("/dev/full"), Duration::ZERO).unwrap();
        let Err(Failure::Again(text)) = put(&mut sink, b"{}\n") else { panic!("it has room") };
        assert!(text.contains("/dev/full") && text.contains("free disk space"), "{text}");
    }
}
