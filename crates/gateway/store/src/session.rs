//! Sessions: a caller's context with a life time and a count of tool calls.

use crate::RecordId;
use bytes::Bytes;
use std::time::Duration;

/// What bounds sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionRules {
    /// Most live sessions. A further one is refused with [`RecordError::Full`].
    ///
    /// [`RecordError::Full`]: crate::RecordError::Full
    pub sessions: usize,
    /// Most bytes of a session's metadata.
    pub metadata_bytes: usize,
    /// Most tool calls of a session.
    pub calls: u32,
}

/// A session to make.
#[derive(Clone, Copy, Debug)]
pub struct NewSession<'a> {
    /// Random, see [`RecordId`].
    pub id: RecordId,
    /// Whose it is. Nobody else can see it.
    pub owner: &'a str,
    /// Most live sessions of its owner. A further one is refused as if there were no room.
    pub most: usize,
    /// How long it lives from now on.
    pub ttl: Duration,
    /// What is kept with it.
    pub metadata: &'a [u8],
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// When it was made, in milliseconds since 1970 UTC.
    pub created_at: u64,
    /// When it ends, in milliseconds since 1970 UTC, as was said when it was made.
    pub expires_at: u64,
    /// Tool calls so far.
    pub calls: u32,
    /// What is kept with it.
    pub metadata: Bytes,
}

/// Milliseconds of a time to live, rounded up: nothing ends before its time.
pub(crate) fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// Nanoseconds of a time to live.
pub(crate) fn nanos(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_nanos()).unwrap_or(u64::MAX)
}
