//! Approvals: an action that waits until somebody decides about it.

use crate::RecordId;
use bytes::Bytes;
use std::time::Duration;

/// What bounds approvals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApprovalRules {
    /// Most approvals. When all room is taken, the one that was decided first gives way to a new
    /// one; where all are pending, the new one is refused with [`RecordError::Full`].
    ///
    /// [`RecordError::Full`]: crate::RecordError::Full
    pub approvals: usize,
    /// Most bytes of an action and its details together.
    pub bytes: usize,
    /// How long a decided one can still be read.
    pub keep: Duration,
}

/// The state of an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ApprovalState {
    /// Nobody has decided.
    Pending,
    /// It may be done.
    Approved,
    /// It must not be done.
    Rejected,
    /// Its time is over, or somebody said that nobody will decide.
    Expired,
}

/// A decision about an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may be done.
    Approve,
    /// It must not be done.
    Reject,
    /// Nobody will decide.
    Expire,
}

/// An approval to ask for.
#[derive(Clone, Copy, Debug)]
pub struct NewApproval<'a> {
    /// Random, see [`RecordId`].
    pub id: RecordId,
    /// Whose it is. Nobody else can see it or decide about it.
    pub owner: &'a str,
    /// What shall be done.
    pub action: &'a str,
    /// More about it.
    pub details: &'a [u8],
    /// The session that it belongs to.
    pub session: Option<RecordId>,
    /// How long it waits for a decision.
    pub ttl: Duration,
}

/// An approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// Its id.
    pub id: RecordId,
    /// What shall be done.
    pub action: Bytes,
    /// More about it.
    pub details: Bytes,
    /// The session that it belongs to.
    pub session: Option<RecordId>,
    /// When it was asked for, in milliseconds since 1970 UTC.
    pub created_at: u64,
    /// When it expires without a decision, in milliseconds since 1970 UTC.
    pub expires_at: u64,
    /// Its state. Time is an outcome, too: after `expires_at` a pending one is expired.
    pub state: ApprovalState,
    /// When it was decided, in milliseconds since 1970 UTC.
    pub decided_at: Option<u64>,
    /// Why, as the one who decided said; may be empty.
    pub reason: Bytes,
}

/// The pending approvals of one owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PendingApprovals {
    /// Those that expire first, as many as were asked for.
    pub approvals: Vec<Approval>,
    /// The number of all.
    pub total: usize,
}

impl ApprovalState {
    /// All states.
    const ALL: [Self; 4] = [Self::Pending, Self::Approved, Self::Rejected, Self::Expired];

    /// Its word: `pending`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
        }
    }

    pub(crate) fn named(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name().as_bytes() == name)
    }
}

impl Verdict {
    /// The state that it leads to.
    pub const fn state(self) -> ApprovalState {
        match self {
            Self::Approve => ApprovalState::Approved,
            Self::Reject => ApprovalState::Rejected,
            Self::Expire => ApprovalState::Expired,
        }
    }
}
