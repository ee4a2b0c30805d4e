//! Disk space reserved for the results of a run in progress.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::posix_fallocate;

use super::file;

/// The space, in a file that is locked as long as the run lasts.
#[derive(Debug)]
pub(super) struct Reservation {
    path: PathBuf,
    locked: File,
}

impl Reservation {
    /// Reserves space in the folder of a run.
    pub(super) fn create(run: &Path, bytes: u64) -> io::Result<Self> {
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
    pub(super) fn release(&self) {
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
