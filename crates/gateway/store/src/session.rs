//! Sessions: a caller's context with a life time and a count of tool calls.

use crate::RecordId;
use bytes::Bytes;
use std::time::Duration;

/// Limits of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionRules {
    /// Most live sessions. More are refused with [`RecordError::Full`].
    ///
    /// [`RecordError::Full`]: crate::RecordError::Full
    pub sessions: usize,
    /// Most bytes of a session's metadata.
    pub metadata_bytes: usize,
    /// Most tool calls of a session.
    pub calls: u32,
}

/// A new session.
#[derive(Clone, Copy, Debug)]
pub struct NewSession<'a> {
    /// Random, see [`RecordId`].
    pub id: RecordId,
    /// Its owner. Other owners cannot see it.
    pub owner: &'a str,
    /// Most live sessions of its owner. More are refused as if the store were full.
    pub most: usize,
    /// Its time to live.
    pub ttl: Duration,
    /// The caller's metadata.
    pub metadata: &'a [u8],
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// When it was created, in milliseconds since 1970 UTC.
    pub created_at: u64,
    /// When it expires, in milliseconds since 1970 UTC.
    pub expires_at: u64,
    /// Tool calls so far.
    pub calls: u32,
    /// The caller's metadata.
    pub metadata: Bytes,
}

/// Milliseconds of a time to live, rounded up, so that no session ends early.
pub(crate) fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// Nanoseconds of a time to live.
pub(crate) fn nanos(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_nanos()).unwrap_or(u64::MAX)
}
