//! Sessions and approvals: one interface to both stores.

use crate::{
    Approval, ApprovalRules, Moment, NewApproval, NewSession, PendingApprovals, RecordError,
    RecordId, Session, SessionRules, Store, Verdict,
};

impl Store {
    /// Makes a session.
    ///
    /// # Errors
    /// [`RecordError::TooLarge`], [`RecordError::Full`], [`RecordError::Unavailable`].
    pub async fn create_session(
        &self,
        at: Moment,
        rules: &SessionRules,
        new: &NewSession<'_>,
    ) -> Result<Session, RecordError> {
        match self {
            Self::Memory(store) => store.sessions.create(at, rules, new),
            Self::Redis(store) => Box::pin(store.create_session(at, rules, new)).await,
        }
    }

    /// A live session of this owner.
    ///
    /// # Errors
    /// [`RecordError::NotFound`], [`RecordError::Unavailable`].
    pub async fn session(
        &self,
        now: u64,
        owner: &str,
        id: RecordId,
    ) -> Result<Session, RecordError> {
        match self {
            Self::Memory(store) => store.sessions.get(now, owner, id),
            Self::Redis(store) => Box::pin(store.session(owner, id)).await,
        }
    }

    /// Checks and counts a tool call of a session atomically; returns the new number of calls,
    /// which never exceeds the rules.
    ///
    /// # Errors
    /// [`RecordError::NotFound`], [`RecordError::CallLimit`], [`RecordError::Unavailable`].
    pub async fn count_call(
        &self,
        now: u64,
        rules: &SessionRules,
        owner: &str,
        id: RecordId,
    ) -> Result<u32, RecordError> {
        match self {
            Self::Memory(store) => store.sessions.count_call(now, rules, owner, id),
            Self::Redis(store) => Box::pin(store.count_call(rules, owner, id)).await,
        }
    }

    /// Ends a live session of this owner. A second call fails.
    ///
    /// # Errors
    /// [`RecordError::NotFound`], [`RecordError::Unavailable`].
    pub async fn end_session(
        &self,
        now: u64,
        owner: &str,
        id: RecordId,
    ) -> Result<(), RecordError> {
        match self {
            Self::Memory(store) => store.sessions.end(now, owner, id),
            Self::Redis(store) => Box::pin(store.end_session(owner, id)).await,
        }
    }

    /// Asks for an approval.
    ///
    /// # Errors
    /// [`RecordError::TooLarge`], [`RecordError::Full`], [`RecordError::Unavailable`].
    pub async fn create_approval(
        &self,
        at: Moment,
        rules: &ApprovalRules,
        new: &NewApproval<'_>,
    ) -> Result<Approval, RecordError> {
        match self {
            Self::Memory(store) => store.approvals.create(at, rules, new),
            Self::Redis(store) => Box::pin(store.create_approval(at, rules, new)).await,
        }
    }

    /// An approval of this owner; decided ones until their retention ends.
    ///
    /// # Errors
    /// [`RecordError::NotFound`], [`RecordError::Unavailable`].
    pub async fn approval(
        &self,
        now: u64,
        owner: &str,
        id: RecordId,
    ) -> Result<Approval, RecordError> {
        match self {
            Self::Memory(store) => store.approvals.get(now, owner, id),
            Self::Redis(store) => Box::pin(store.approval(owner, id)).await,
        }
    }

    /// The first pending approvals of an owner.
    ///
    /// # Errors
    /// [`RecordError::Unavailable`].
    pub async fn pending_approvals(
        &self,
        now: u64,
        owner: &str,
        most: usize,
    ) -> Result<PendingApprovals, RecordError> {
        match self {
            Self::Memory(store) => Ok(store.approvals.pending(now, owner, most)),
            Self::Redis(store) => Box::pin(store.pending_approvals(owner, most)).await,
        }
    }

    /// Decides about a pending approval. One of several concurrent decisions succeeds, and the
    /// others get its outcome.
    ///
    /// # Errors
    /// [`RecordError::NotFound`], [`RecordError::AlreadyDecided`], [`RecordError::Unavailable`].
    pub async fn decide(
        &self,
        at: Moment,
        rules: &ApprovalRules,
        owner: &str,
        id: RecordId,
        verdict: Verdict,
        reason: &str,
    ) -> Result<Approval, RecordError> {
        match self {
            Self::Memory(store) => store.approvals.decide(at, rules, owner, id, verdict, reason),
            Self::Redis(store) => Box::pin(store.decide(rules, owner, id, verdict, reason)).await,
        }
    }
}
