//! The gateway's state: rate limits, budgets, cached responses, sessions and approvals, in memory
//! or in Redis.
//!
//! - The algorithms are pure, with time as an argument: [`RateCounter`] and its two kinds,
//!   [`BudgetCounter`].
//! - [`MemoryStore`] keeps them in bounded tables, shared by all workers of a process.
//! - [`RedisStore`] keeps the same counts in Redis, one atomic script per operation.
//! - [`Store`] is either. A process makes one [`Backend`], every worker attaches to it.
//! - Sessions and approvals require the store: without it they fail, and new ones never evict live
//!   ones.
//!
//! Several limits are charged together or not at all; refused requests are not charged.

mod approval;
mod approval_table;
mod bounded_map;
mod budget;
mod budget_table;
mod cache;
mod cached_response;
mod error;
mod limit;
mod limit_key;
mod limiter;
mod lru_cache;
mod memory;
mod rate_counter;
mod record;
mod record_id;
mod records;
mod redis;
mod redis_settings;
mod reservation;
mod session;
mod session_table;
mod single_flight;
mod store;

pub use approval::{
    Approval, ApprovalRules, ApprovalState, NewApproval, PendingApprovals, Verdict,
};
pub use budget::{Budget, BudgetCounter, BudgetState};
pub use cache::{Follow, Followed, Lead, Lookup};
pub use cached_response::{CacheKey, CachedResponse};
pub use error::StoreError;
pub use limit::{Algorithm, Charge, Decision, Limit, MAX_CHARGES};
pub use limit_key::LimitKey;
pub use limiter::Limiter;
pub use lru_cache::CacheCounts;
pub use memory::{MemoryStore, Sizes};
pub use rate_counter::{RateCounter, SlidingWindow, TokenBucket};
pub use record::RecordError;
pub use record_id::{Moment, RecordId};
pub use redis::{RedisBackend, RedisStore};
pub use redis_settings::{FailureMode, RedisSettings};
pub use reservation::{Grant, Reservation};
pub use session::{NewSession, Session, SessionRules};
pub use store::{Backend, Store};
