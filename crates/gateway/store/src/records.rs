//! Sessions and approvals: one interface to both stores.

use crate::{
    Approval, ApprovalRules, Moment, NewApproval, NewSession, PendingApprovals, RecordError,
    RecordId, Session, SessionRules, Store, Verdict,
};

/// Defines operations by the function of a table in memory. Redis has one of the same name, without
/// the argument in brackets, because it has its own clock.
macro_rules! operations {
    ($(
        $(#[$doc:meta])*
        $name:ident[$($time:ident: $moment:ty)?]($($argument:ident: $type:ty),*) -> $result:ty
            = $table:ident.$operation:ident;
    )*) => {
        impl Store {
            $(
                $(#[$doc])*
                pub async fn $name(
                    &self,
                    $($time: $moment,)?
                    $($argument: $type),*
                ) -> Result<$result, RecordError> {
                    match self {
                        Self::Memory(store) => store.$table.$operation($($time,)? $($argument),*),
                        Self::Redis(store) => Box::pin(store.$name($($argument),*)).await,
                    }
                }
            )*
        }
    };
}

operations! {
    /// Makes a session.
    ///
    /// # Errors
    /// [`RecordError::TooLarge`], [`RecordError::Full`], [`RecordError::Unavailable`].
    create_session[](at: Moment, rules: &SessionRules, new: &NewSession<'_>) -> Session
        = sessions.create;

    /// A live session of this owner.
    ///
    /// # Errors
    /// [`RecordError::NotFound`], [`RecordError::Unavailable`].
    session[now: u64](owner: &str, id: RecordId) -> Session = sessions.get;

    /// Checks and counts a tool call of a session atomically; returns the new number of calls,
    /// which never exceeds the rules.
    ///
    /// # Errors
    /// [`RecordError::NotFound`], [`RecordError::CallLimit`], [`RecordError::Unavailable`].
    count_call[now: u64](rules: &SessionRules, owner: &str, id: RecordId) -> u32
        = sessions.count_call;

    /// Ends a live session of this owner. A second call fails.
    ///
    /// # Errors
    /// [`RecordError::NotFound`], [`RecordError::Unavailable`].
    end_session[now: u64](owner: &str, id: RecordId) -> () = sessions.end;

    /// Asks for an approval.
    ///
    /// # Errors
    /// [`RecordError::TooLarge`], [`RecordError::Full`], [`RecordError::Unavailable`].
    create_approval[](at: Moment, rules: &ApprovalRules, new: &NewApproval<'_>) -> Approval
        = approvals.create;

    /// An approval of this owner; decided ones until their retention ends.
    ///
    /// # Errors
    /// [`RecordError::NotFound`], [`RecordError::Unavailable`].
    approval[now: u64](owner: &str, id: RecordId) -> Approval = approvals.get;

    /// Decides about a pending approval. One of several concurrent decisions succeeds, and the
    /// others get its outcome.
    ///
    /// # Errors
    /// [`RecordError::NotFound`], [`RecordError::AlreadyDecided`], [`RecordError::Unavailable`].
    decide[at: Moment](
        rules: &ApprovalRules, owner: &str, id: RecordId, verdict: Verdict, reason: &str
    ) -> Approval = approvals.decide;
}

impl Store {
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
}
