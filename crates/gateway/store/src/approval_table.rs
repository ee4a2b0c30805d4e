//! Approvals in memory.

use crate::record::check_size;
use crate::session::{millis, nanos};
use crate::{Approval, ApprovalRules, ApprovalState, Moment, NewApproval, PendingApprovals};
use crate::{RecordError, RecordId, Verdict};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};

/// All approvals of a process, shared by its workers behind one lock, so that a decision is atomic.
#[derive(Debug, Default)]
pub(crate) struct ApprovalTable(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    by_id: HashMap<RecordId, Entry>,
    /// By the time of the outcome; a pending approval counts with its expiry.
    by_outcome: BTreeSet<(u64, RecordId)>,
}

#[derive(Debug)]
struct Entry {
    owner: Box<str>,
    approval: Approval,
    /// Monotonic nanoseconds of the expiry without a decision.
    expires: u64,
    /// Monotonic nanoseconds from which it has an outcome.
    outcome_from: u64,
    /// Monotonic nanoseconds until which the outcome is kept.
    gone_from: u64,
}

impl ApprovalTable {
    pub(crate) fn create(
        &self,
        at: Moment,
        rules: &ApprovalRules,
        new: &NewApproval<'_>,
    ) -> Result<Approval, RecordError> {
        check_size(new.action.len() + new.details.len(), rules.bytes)?;
        let approval = Approval {
            id: new.id,
            action: Bytes::copy_from_slice(new.action.as_bytes()),
            details: Bytes::copy_from_slice(new.details),
            session: new.session,
            created_at: at.unix_ms,
            expires_at: at.unix_ms.saturating_add(millis(new.ttl)),
            state: ApprovalState::Pending,
            decided_at: None,
            reason: Bytes::new(),
        };
        let mut table = self.0.lock();
        table.make_room(at.now, rules)?;
        let expires = at.now.saturating_add(nanos(new.ttl));
        table.insert(new.owner, approval.clone(), expires, nanos(rules.keep));
        Ok(approval)
    }

    pub(crate) fn get(&self, now: u64, owner: &str, id: RecordId) -> Result<Approval, RecordError> {
        let table = self.0.lock();
        let entry = table.by_id.get(&id).filter(|entry| entry.is_there(now, owner));
        entry.map(|entry| entry.at(now)).ok_or(RecordError::NotFound)
    }

    pub(crate) fn pending(&self, now: u64, owner: &str, most: usize) -> PendingApprovals {
        let table = self.0.lock();
        // Approvals without an outcome, by expiry.
        let open = table.by_outcome.range((now.saturating_add(1), RecordId(0))..);
        let open = open.filter_map(|(_, id)| table.by_id.get(id));
        let mut pending = PendingApprovals::default();
        for Entry { approval, .. } in open.filter(|entry| entry.is_pending_of(owner)) {
            pending.total += 1;
            if pending.approvals.len() < most {
                pending.approvals.push(approval.clone());
            }
        }
        pending
    }

    pub(crate) fn decide(
        &self,
        at: Moment,
        rules: &ApprovalRules,
        owner: &str,
        id: RecordId,
        verdict: Verdict,
        reason: &str,
    ) -> Result<Approval, RecordError> {
        let mut table = self.0.lock();
        let table = &mut *table;
        let entry = table.by_id.get_mut(&id).filter(|entry| entry.is_there(at.now, owner));
        let entry = entry.ok_or(RecordError::NotFound)?;
        let state = entry.at(at.now).state;
        if state != ApprovalState::Pending {
            return Err(RecordError::AlreadyDecided(state));
        }
        entry.approval.state = verdict.state();
        entry.approval.decided_at = Some(at.unix_ms);
        entry.approval.reason = Bytes::copy_from_slice(reason.as_bytes());
        table.by_outcome.remove(&(entry.outcome_from, id));
        entry.outcome_from = at.now;
        entry.gone_from = at.now.saturating_add(nanos(rules.keep));
        table.by_outcome.insert((at.now, id));
        Ok(entry.approval.clone())
    }
}

impl Table {
    /// Makes room for one approval: removes outcomes that were kept long enough, then the oldest
    /// outcome.
    fn make_room(&mut self, now: u64, rules: &ApprovalRules) -> Result<(), RecordError> {
        let keep = nanos(rules.keep);
        while let Some(&(outcome_from, id)) = self.by_outcome.first()
            && outcome_from.saturating_add(keep) <= now
        {
            self.remove(id);
        }
        while self.by_id.len() >= rules.approvals {
            match self.by_outcome.first() {
                Some(&(outcome_from, id)) if outcome_from <= now => self.remove(id),
                _ => return Err(RecordError::Full),
            }
        }
        Ok(())
    }

    fn insert(&mut self, owner: &str, approval: Approval, expires: u64, keep: u64) {
        let id = approval.id;
        self.remove(id);
        let owner = Box::from(owner);
        self.by_outcome.insert((expires, id));
        let gone_from = expires.saturating_add(keep);
        self.by_id.insert(id, Entry { owner, approval, expires, outcome_from: expires, gone_from });
    }

    fn remove(&mut self, id: RecordId) {
        let Some(entry) = self.by_id.remove(&id) else { return };
        self.by_outcome.remove(&(entry.outcome_from, id));
    }
}

impl Entry {
    /// Whether this owner has the approval. Once its outcome is no longer kept, it counts as
    /// removed, even if it still occupies a slot.
    fn is_there(&self, now: u64, owner: &str) -> bool {
        *self.owner == *owner && now < self.gone_from
    }

    /// Whether it waits for a decision and belongs to this owner.
    fn is_pending_of(&self, owner: &str) -> bool {
        *self.owner == *owner && self.approval.state == ApprovalState::Pending
    }

    /// The state of the approval at this time, including expiry.
    fn at(&self, now: u64) -> Approval {
        let mut approval = self.approval.clone();
        if approval.state == ApprovalState::Pending && self.expires <= now {
            approval.state = ApprovalState::Expired;
            approval.decided_at = Some(approval.expires_at);
        }
        approval
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn an_outcome_can_be_read_up_to_the_end_of_its_time_and_not_longer() {
        const SECOND: u64 = 1_000_000_000;
        let (table, owner) = (ApprovalTable::default(), "acme");
        let seconds = Duration::from_secs;
        let rules = ApprovalRules { approvals: 10, bytes: 64, keep: seconds(5) };
        let at = |second: u64| Moment { now: second * SECOND, unix_ms: second * 1_000 };
        let ask = |id, ttl| {
            let (action, details) = ("pay", b"".as_slice());
            let new = NewApproval { id, owner, action, details, session: None, ttl };
            table.create(at(0), &rules, &new).unwrap();
        };
        let state = |now, id| table.get(now, owner, id).map(|approval| approval.state);
        let (decided, expired) = (RecordId(1), RecordId(2));
        ask(decided, seconds(100));
        ask(expired, seconds(10));
        // The rules that are in force at the decision say how long it is kept.
        let longer = ApprovalRules { keep: seconds(7), ..rules };
        table.decide(at(1), &longer, owner, decided, Verdict::Reject, "").unwrap();
        assert_eq!(state(8 * SECOND - 1, decided), Ok(ApprovalState::Rejected));
        assert_eq!(state(8 * SECOND, decided), Err(RecordError::NotFound));
        assert_eq!(state(10 * SECOND - 1, expired), Ok(ApprovalState::Pending));
        assert_eq!(state(15 * SECOND - 1, expired), Ok(ApprovalState::Expired));
        assert_eq!(state(15 * SECOND, expired), Err(RecordError::NotFound));
    }
}
