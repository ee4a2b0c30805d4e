//! The limit on open files, and the kernel's table of them. Every connection takes one descriptor.

use std::fs::File;

use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Descriptors that a run needs besides its connections.
const RESERVED: u64 = 64;

/// Descriptors that the kernel's table has room for from the start: 8 bytes each.
const TABLE: u64 = 65_536;

/// The limit on open files, raised as far as the system allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FdLimit {
    /// The limit when the process started.
    pub(crate) before: u64,
    /// The limit now.
    pub(crate) now: u64,
}

impl FdLimit {
    /// Raises the soft limit to the hard one, and has the table of open files made once and for
    /// all. Call it before the process has threads. `None` where the system does not report its
    /// limits.
    pub(crate) fn raise() -> Option<Self> {
        let (before, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
        if before < hard {
            // If the system refuses, the old limit holds and is reported.
            let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
        }
        let (now, _) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
        reserve_table(now.min(TABLE));
        Some(Self { before, now })
    }

    /// The message for the user, if the limit was raised.
    pub(crate) fn raised_message(self) -> Option<String> {
        let Self { before, now } = self;
        (now > before).then(|| format!("limit on open files raised from {before} to {now}"))
    }

    /// The warning for the user, if a load may need more descriptors than the limit.
    pub(crate) fn warning(self, connections: u64) -> Option<String> {
        let now = self.now;
        (connections + RESERVED > now).then(|| {
            format!(
                "the load may need {connections} connections, but only {now} files may be open; raise the hard limit (`ulimit -Hn`), or divide the load with --shard"
            )
        })
    }
}

/// Has the kernel make the table of open files large enough for so many.
///
/// The table grows when descriptor 256, 512, 1024 and so on is opened. In a process with threads
/// the kernel then waits until no CPU can still read the old one (`expand_fdtable` calls
/// `synchronize_rcu`), some 10 to 20 ms in which the thread that opens a connection is blocked. The
/// table never shrinks, so opening and closing one descriptor is enough.
fn reserve_table(files: u64) {
    let highest = i32::try_from(files).unwrap_or(i32::MAX) - 1;
    // Without it a load is held up for moments, and says so: not worth an error.
    if let Ok(any) = File::open("/dev/null")
        && let Ok(taken) = fcntl(&any, FcntlArg::F_DUPFD_CLOEXEC(highest))
    {
        let _ = nix::unistd::close(taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_raised_or_a_low_limit_gives_a_message() {
        let raised = FdLimit { before: 1_024, now: 4_096 };
        assert_eq!(
            raised.raised_message().as_deref(),
            Some("limit on open files raised from 1024 to 4096")
        );
        assert_eq!(FdLimit { before: 4_096, now: 4_096 }.raised_message(), None);
        assert_eq!(raised.warning(4_032), None);
        assert!(raised.warning(4_033).is_some());
    }

    /// The kernel tells the size of the table.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_table_has_room_for_all_connections_before_the_first() {
        let limit = FdLimit::raise().unwrap().now;
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let size = status.lines().find_map(|line| line.strip_prefix("FDSize:")).unwrap();
        assert!(size.trim().parse::<u64>().unwrap() >= limit.min(TABLE), "{size}");
    }

    #[test]
    fn raising_twice_changes_nothing_more() {
        let first = FdLimit::raise().unwrap();
        let second = FdLimit::raise().unwrap();
        assert_eq!(second, FdLimit { before: first.now, now: first.now });
    }
}
