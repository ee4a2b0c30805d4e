//! Stands in for the Redis store in builds without the feature `redis`: it cannot be made, so none
//! of its methods is ever called.
#![expect(clippy::unused_async, reason = "the same signatures as the store in Redis")]

use crate::lru_cache::CacheCounters;
use crate::single_flight::SingleFlight;
use crate::{
    Approval, ApprovalRules, Budget, BudgetState, CacheCounts, CacheKey, CachedResponse, Charge,
    Decision, LimitKey, Moment, NewApproval, NewSession, PendingApprovals, RecordError, RecordId,
    RedisSettings, Session, SessionRules, StoreError, Verdict,
};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// A Redis store that this build does not have.
#[derive(Clone, Debug)]
pub enum RedisBackend {}

/// A connection that this build cannot make.
#[derive(Clone, Debug)]
pub enum RedisStore {}

/// Where a budget is counted.
pub(crate) type BudgetKeys = Vec<u8>;

impl RedisBackend {
    pub(crate) fn new(_: RedisSettings) -> Result<Self, StoreError> {
        Err(StoreError::NoRedis)
    }

    /// Operations that had no answer.
    pub fn errors(&self) -> u64 {
        match *self {}
    }

    /// Counts of the response cache.
    pub fn cache_counts(&self) -> CacheCounts {
        match *self {}
    }

    pub(crate) fn single_flight(&self) -> &Arc<SingleFlight> {
        match *self {}
    }

    pub(crate) fn counters(&self) -> &CacheCounters {
        match *self {}
    }
}

impl RedisStore {
    pub(crate) async fn connect(backend: Arc<RedisBackend>) -> Self {
        match *backend {}
    }

    pub(crate) fn backend(&self) -> &RedisBackend {
        match *self {}
    }

    pub(crate) async fn check(
        &self,
        _: Option<u64>,
        _: &[Charge<'_>],
    ) -> Result<Decision, StoreError> {
        match *self {}
    }

    pub(crate) fn budget_keys(&self, _: LimitKey<'_>, _: &Budget) -> BudgetKeys {
        match *self {}
    }

    pub(crate) async fn reserve(
        &self,
        _: &BudgetKeys,
        _: u64,
    ) -> Result<(Option<u64>, BudgetState), StoreError> {
        match *self {}
    }

    pub(crate) async fn settle(&self, _: &BudgetKeys, _: u64, _: u64, _: u64) {
        match *self {}
    }

    pub(crate) async fn budget(
        &self,
        _: LimitKey<'_>,
        _: &Budget,
    ) -> Result<BudgetState, StoreError> {
        match *self {}
    }

    pub(crate) async fn cached(&self, _: &CacheKey) -> Option<Arc<CachedResponse>> {
        match *self {}
    }

    pub(crate) async fn keep(&self, _: &CacheKey, _: &CachedResponse, _: Duration) {
        match *self {}
    }

    pub(crate) async fn value(&self, _: &CacheKey) -> Result<Option<Bytes>, StoreError> {
        match *self {}
    }

    pub(crate) async fn put_value(
        &self,
        _: &CacheKey,
        _: &Bytes,
        _: Duration,
    ) -> Result<(), StoreError> {
        match *self {}
    }

    pub(crate) async fn create_session(
        &self,
        _: Moment,
        _: &SessionRules,
        _: &NewSession<'_>,
    ) -> Result<Session, RecordError> {
        match *self {}
    }

    pub(crate) async fn session(&self, _: &str, _: RecordId) -> Result<Session, RecordError> {
        match *self {}
    }

    pub(crate) async fn count_call(
        &self,
        _: &SessionRules,
        _: &str,
        _: RecordId,
    ) -> Result<u32, RecordError> {
        match *self {}
    }

    pub(crate) async fn end_session(&self, _: &str, _: RecordId) -> Result<(), RecordError> {
        match *self {}
    }

    pub(crate) async fn create_approval(
        &self,
        _: Moment,
        _: &ApprovalRules,
        _: &NewApproval<'_>,
    ) -> Result<Approval, RecordError> {
        match *self {}
    }

    pub(crate) async fn approval(&self, _: &str, _: RecordId) -> Result<Approval, RecordError> {
        match *self {}
    }

    pub(crate) async fn pending_approvals(
        &self,
        _: &str,
        _: usize,
    ) -> Result<PendingApprovals, RecordError> {
        match *self {}
    }

    pub(crate) async fn decide(
        &self,
        _: &ApprovalRules,
        _: &str,
        _: RecordId,
        _: Verdict,
        _: &str,
    ) -> Result<Approval, RecordError> {
        match *self {}
    }
}
