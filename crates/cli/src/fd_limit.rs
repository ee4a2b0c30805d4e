//! The limit on open files. Every connection takes one descriptor.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Descriptors that a run needs besides its connections.
const RESERVED: u64 = 64;

/// The limit on open files, raised as far as the system allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FdLimit {
    /// The limit when the process started.
    pub(crate) before: u64,
    /// The limit now.
    pub(crate) now: u64,
}

impl FdLimit {
    /// Raises the soft limit to the hard one. `None` where the system does not report its limits.
    pub(crate) fn raise() -> Option<Self> {
        let (before, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
        if before < hard {
            // If the system refuses, the old limit holds and is reported.
            let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
        }
        let (now, _) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
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

    #[test]
    fn raising_twice_changes_nothing_more() {
        let first = FdLimit::raise().unwrap();
        let second = FdLimit::raise().unwrap();
        assert_eq!(second, FdLimit { before: first.now, now: first.now });
    }
}
