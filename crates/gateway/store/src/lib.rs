//! What gateways share and remember: rate limits, budgets, cached answers, in memory or in Redis.
//!
//! - The algorithms are pure, with time as an argument: [`Meter`] and its four kinds, [`BudgetCounter`].
//! - [`MemoryStore`] keeps them in tables with a lock per part, bounded, shared by all workers of a process.
//! - [`RedisStore`] keeps the same counts in Redis, one atomic script per operation.
//! - [`Store`] is either. A process makes one [`Backend`], every worker attaches to it.
//!
//! The rule for several limits at once: either all are charged or none is, and requests that are refused
//! are charged nowhere.

mod answer;
mod budget;
mod cache;
mod embedded;
mod error;
mod flight;
mod ledger;
mod limit;
mod limiter;
mod meter;
mod redis;
mod reservation;
mod shelf;
mod store;
mod subject;
mod table;

pub use answer::{Answer, CacheKey};
pub use budget::{Budget, BudgetCounter, BudgetState};
pub use cache::{Follow, Followed, Lead, Lookup};
pub use embedded::{MemoryStore, Sizes};
pub use error::StoreError;
pub use limit::{Algorithm, Charge, Decision, Limit, MAX_CHARGES};
pub use limiter::Limiter;
pub use meter::{Bucket, Fixed, Log, Meter, Sliding};
pub use redis::{FailureMode, RedisBackend, RedisSettings, RedisStore};
pub use reservation::{Grant, Reservation};
pub use shelf::CacheCounts;
pub use store::{Backend, Store};
pub use subject::LimitKey;
