//! The limit on open files: every connection takes one.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// FdLimit that a run needs besides its connections.
const OTHERS: u64 = 64;

/// The limit on open files, after it was raised as far as the system lets us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FdLimit {
    /// What the process was started with.
    pub(crate) before: u64,
    /// What holds now.
    pub(crate) now: u64,
}

impl FdLimit {
    /// Raises the soft limit to the hard one. `None` where the system does not tell its limits.
    pub(crate) fn raise() -> Option<Self> {
        let (before, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
        if before < hard {
            // A refusal leaves the limit as it was, which is then what is reported.
            let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
        }
        let (now, _) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
        Some(Self { before, now })
    }

    /// What to tell the user, if anything.
    pub(crate) fn told(self) -> Option<String> {
        let Self { before, now } = self;
        (now > before).then(|| format!("limit on open files raised from {before} to {now}"))
    }

    /// What to tell the user where a load may need more than there are.
    pub(crate) fn warning(self, connections: u64) -> Option<String> {
        let now = self.now;
        (connections + OTHERS > now).then(|| {
            format!(
                "the load may need {connections} connections, and only {now} files may be open; raise the hard limit (`ulimit -Hn`), or divide the load with --shard"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_change_or_a_lack_is_told() {
        let raised = FdLimit { before: 1_024, now: 4_096 };
        assert_eq!(raised.told().as_deref(), Some("limit on open files raised from 1024 to 4096"));
        assert_eq!(FdLimit { before: 4_096, now: 4_096 }.told(), None);
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
