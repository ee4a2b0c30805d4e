//! Approvals: an action that waits until somebody decides about it.

use crate::RecordId;
use bytes::Bytes;
use std::time::Duration;

/// Limits of approvals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApprovalRules {
    /// Most approvals. When full, a new one replaces the one decided first; if all are pending, it
    /// is refused with [`RecordError::Full`].
    ///
    /// [`RecordError::Full`]: crate::RecordError::Full
    pub approvals: usize,
    /// Most bytes of an action and its details together.
    pub bytes: usize,
    /// How long a decided approval can be read.
    pub keep: Duration,
}

/// The state of an approval.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, strum::Display, strum::EnumString, strum::IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
pub enum ApprovalState {
    /// No decision yet.
    Pending,
    /// The action may be performed.
    Approved,
    /// The action must not be performed.
    Rejected,
    /// Its time is over, or a caller expired it.
    Expired,
}

/// A decision about an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The action may be performed.
    Approve,
    /// The action must not be performed.
    Reject,
    /// Expires the approval without a decision.
    Expire,
}

/// A new approval.
#[derive(Clone, Copy, Debug)]
pub struct NewApproval<'a> {
    /// Random, see [`RecordId`].
    pub id: RecordId,
    /// Its owner. Other owners cannot see or decide it.
    pub owner: &'a str,
    /// The action to approve.
    pub action: &'a str,
    /// Details of the action.
    pub details: &'a [u8],
    /// Its session.
    pub session: Option<RecordId>,
    /// How long it waits for a decision.
    pub ttl: Duration,
}

/// An approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// Its id.
    pub id: RecordId,
    /// The action to approve.
    pub action: Bytes,
    /// Details of the action.
    pub details: Bytes,
    /// Its session.
    pub session: Option<RecordId>,
    /// When it was requested, in milliseconds since 1970 UTC.
    pub created_at: u64,
    /// When it expires without a decision, in milliseconds since 1970 UTC.
    pub expires_at: u64,
    /// Its state. A pending approval expires at `expires_at`.
    pub state: ApprovalState,
    /// When it was decided, in milliseconds since 1970 UTC.
    pub decided_at: Option<u64>,
    /// The reason for the decision; may be empty.
    pub reason: Bytes,
}

/// The pending approvals of one owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PendingApprovals {
    /// The approvals that expire first, up to the requested number.
    pub approvals: Vec<Approval>,
    /// The number of all pending approvals.
    pub total: usize,
}

impl Verdict {
    /// The resulting state.
    pub const fn state(self) -> ApprovalState {
        match self {
            Self::Approve => ApprovalState::Approved,
            Self::Reject => ApprovalState::Rejected,
            Self::Expire => ApprovalState::Expired,
        }
    }
}
