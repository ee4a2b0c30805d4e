//! Sessions and approvals in Redis: one script per operation, so that check and write are atomic.

use super::RedisStore;
use crate::record::check_size;
use crate::session::millis;
use crate::{
    Approval, ApprovalRules, Moment, NewApproval, NewSession, PendingApprovals, RecordError,
    RecordId, Session, SessionRules, Verdict,
};
use ::redis::{Script, ScriptInvocation};
use bytes::Bytes;
use std::sync::LazyLock;

static SESSION: LazyLock<Script> =
    LazyLock::new(|| Script::new(concat!(include_str!("clock.lua"), include_str!("session.lua"))));
static APPROVAL: LazyLock<Script> =
    LazyLock::new(|| Script::new(concat!(include_str!("clock.lua"), include_str!("approval.lua"))));

/// The reply of the session script: its outcome and the number of calls.
type SessionReply = (u8, u32);

/// The fields of a session in Redis; all `None` if the session does not exist.
type SessionFields = (Option<String>, Option<u64>, Option<u64>, Option<u32>, Option<Bytes>);

/// The reply of the script of approvals: a word and a number, then approvals of nine fields.
type ApprovalReply = Vec<Vec<Bytes>>;

impl RedisStore {
    pub(crate) async fn create_session(
        &self,
        at: Moment,
        rules: &SessionRules,
        new: &NewSession<'_>,
    ) -> Result<Session, RecordError> {
        check_size(new.metadata.len(), rules.metadata_bytes)?;
        let ttl = millis(new.ttl).max(1);
        let expires_at = at.unix_ms.saturating_add(ttl);
        let mut script = self.session_script("create", new.owner, new.id);
        script.arg(rules.sessions).arg(ttl).arg(at.unix_ms).arg(expires_at).arg(new.metadata);
        script.arg(new.most);
        match self.run::<SessionReply>(script).await {
            None => Err(RecordError::Unavailable),
            Some((1, _)) => Ok(Session {
                created_at: at.unix_ms,
                expires_at,
                calls: 0,
                metadata: Bytes::copy_from_slice(new.metadata),
            }),
            Some(_) => Err(RecordError::Full),
        }
    }

    pub(crate) async fn session(&self, owner: &str, id: RecordId) -> Result<Session, RecordError> {
        let mut read = ::redis::cmd("HMGET");
        read.arg(self.record_key("session", id));
        read.arg(&["owner", "created_at", "expires_at", "calls", "metadata"]);
        let fields: Option<SessionFields> = self.command(read).await;
        let fields = fields.ok_or(RecordError::Unavailable)?;
        let (Some(found), Some(created_at), Some(expires_at), Some(calls), Some(metadata)) = fields
        else {
            return Err(RecordError::NotFound);
        };
        if found != owner {
            return Err(RecordError::NotFound);
        }
        Ok(Session { created_at, expires_at, calls, metadata })
    }

    pub(crate) async fn count_call(
        &self,
        rules: &SessionRules,
        owner: &str,
        id: RecordId,
    ) -> Result<u32, RecordError> {
        let mut script = self.session_script("count", owner, id);
        script.arg(rules.calls);
        match self.run::<SessionReply>(script).await {
            None => Err(RecordError::Unavailable),
            Some((1, calls)) => Ok(calls),
            Some((2, _)) => Err(RecordError::CallLimit),
            Some(_) => Err(RecordError::NotFound),
        }
    }

    pub(crate) async fn end_session(&self, owner: &str, id: RecordId) -> Result<(), RecordError> {
        match self.run::<SessionReply>(self.session_script("end", owner, id)).await {
            None => Err(RecordError::Unavailable),
            Some((1, _)) => Ok(()),
            Some(_) => Err(RecordError::NotFound),
        }
    }

    pub(crate) async fn create_approval(
        &self,
        at: Moment,
        rules: &ApprovalRules,
        new: &NewApproval<'_>,
    ) -> Result<Approval, RecordError> {
        check_size(new.action.len() + new.details.len(), rules.bytes)?;
        let ttl = millis(new.ttl).max(1);
        let session = new.session.map(|session| session.to_string()).unwrap_or_default();
        let mut script = self.approval_script("create", new.owner, Some(new.id));
        script.arg(rules.approvals).arg(ttl).arg(millis(rules.keep));
        script.arg(new.action).arg(new.details).arg(session);
        script.arg(at.unix_ms).arg(at.unix_ms.saturating_add(ttl));
        let reply = self.approvals(script).await?;
        if *reply.word == *b"full" {
            return Err(RecordError::Full);
        }
        reply.one()
    }

    pub(crate) async fn approval(
        &self,
        owner: &str,
        id: RecordId,
    ) -> Result<Approval, RecordError> {
        self.approvals(self.approval_script("get", owner, Some(id))).await?.one()
    }

    pub(crate) async fn pending_approvals(
        &self,
        owner: &str,
        most: usize,
    ) -> Result<PendingApprovals, RecordError> {
        let mut script = self.approval_script("list", owner, None);
        script.arg(most);
        let reply = self.approvals(script).await?;
        Ok(PendingApprovals { approvals: reply.approvals, total: reply.total })
    }

    pub(crate) async fn decide(
        &self,
        rules: &ApprovalRules,
        owner: &str,
        id: RecordId,
        verdict: Verdict,
        reason: &str,
    ) -> Result<Approval, RecordError> {
        let mut script = self.approval_script("decide", owner, Some(id));
        script.arg(millis(rules.keep).max(1)).arg(<&str>::from(verdict.state())).arg(reason);
        let reply = self.approvals(script).await?;
        let is_late = *reply.word == *b"decided";
        let approval = reply.one()?;
        if is_late { Err(RecordError::AlreadyDecided(approval.state)) } else { Ok(approval) }
    }

    fn record_key(&self, kind: &str, id: RecordId) -> String {
        format!("{}{kind}:{id}", self.backend.settings.prefix)
    }

    fn session_script(
        &self,
        operation: &str,
        owner: &str,
        id: RecordId,
    ) -> ScriptInvocation<'static> {
        let mut script = SESSION.prepare_invoke();
        script.key(self.record_key("session", id));
        let all = format!("{}sessions", self.backend.settings.prefix);
        let own = format!("{all}:{owner}");
        script.key(all).key(own);
        script.arg("").arg(operation).arg(id.to_string()).arg(owner);
        script
    }

    fn approval_script(
        &self,
        operation: &str,
        owner: &str,
        id: Option<RecordId>,
    ) -> ScriptInvocation<'static> {
        let prefix = &self.backend.settings.prefix;
        let mut script = APPROVAL.prepare_invoke();
        script.key(format!("{prefix}approvals")).key(format!("{prefix}pending:{owner}"));
        script.arg("").arg(operation).arg(format!("{prefix}approval:"));
        script.arg(id.map(|id| id.to_string()).unwrap_or_default()).arg(owner);
        script
    }

    async fn approvals(&self, script: ScriptInvocation<'_>) -> Result<Reply, RecordError> {
        let reply: Option<ApprovalReply> = self.run(script).await;
        reply.and_then(Reply::read).ok_or(RecordError::Unavailable)
    }
}

/// The reply of the script of approvals.
struct Reply {
    word: Bytes,
    total: usize,
    approvals: Vec<Approval>,
}

impl Reply {
    /// `None` if the reply is not from the script.
    fn read(reply: ApprovalReply) -> Option<Self> {
        let mut lines = reply.into_iter();
        let [word, total] = <[Bytes; 2]>::try_from(lines.next()?).ok()?;
        let total = usize::try_from(number(&total)?).ok()?;
        Some(Self { word, total, approvals: lines.map(approval).collect::<Option<_>>()? })
    }

    fn one(self) -> Result<Approval, RecordError> {
        self.approvals.into_iter().next().ok_or(RecordError::NotFound)
    }
}

fn approval(fields: Vec<Bytes>) -> Option<Approval> {
    let fields = <[Bytes; 9]>::try_from(fields).ok()?;
    let [id, state, action, details, session, created_at, expires_at, decided_at, reason] = fields;
    Some(Approval {
        id: record_id(&id)?,
        action,
        details,
        session: record_id(&session),
        created_at: number(&created_at)?,
        expires_at: number(&expires_at)?,
        state: str::from_utf8(&state).ok()?.parse().ok()?,
        decided_at: number(&decided_at),
        reason,
    })
}

fn number(text: &[u8]) -> Option<u64> {
    str::from_utf8(text).ok()?.parse().ok()
}

fn record_id(text: &[u8]) -> Option<RecordId> {
    RecordId::parse(str::from_utf8(text).ok()?)
}
