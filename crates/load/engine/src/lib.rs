//! Carries out a run: workers, virtual users, open and closed models, instrument health, sample
//! sink.
//!
//! ```text
//! Run::prepare(plan) --probe--> Run::start --> one thread per worker --> RunResult
//!
//! worker = tokio current-thread runtime
//!   ├─ pacer          one task: dispatches this worker's part of the open arrivals;
//!   │                 in a comparison one task for each target
//!   ├─ virtual users  one task each: the closed model
//!   │    └─ conversation ── turn ── Connection::exchange
//!   ├─ timer          one timerfd for every sleeper
//!   └─ ticker         sends snapshots and samples away, checks for an interrupt
//! ```
//!
//! Workers share nothing while they run (law 4). A scheduled turn exists as a `turn::OpenTurn`
//! until it is recorded; whatever ends its task, dropping it records it. This accounts for every
//! planned request (law 8) on every code path.
//!
//! Unit tests run the same tasks in virtual time against a scripted target, see `simulation_tests`.

mod aftermath;
mod arrival_source;
mod clock;
mod connections;
mod control;
mod conversation;
mod discover;
mod error;
mod health;
mod in_flight_limit;
mod loop_watch;
mod metadata;
mod monitor;
mod once;
mod pacer;
mod pairs;
mod policy_decision;
mod prepared;
mod probe;
mod progress;
mod redirect;
mod request_timeout;
mod response_headers;
mod result;
mod route;
mod run;
#[cfg(test)]
mod shards_tests;
#[cfg(test)]
mod simulation_tests;
mod sink;
mod timer;
mod turn;
mod virtual_user;
mod websocket_channel;
mod worker;
mod worker_share;
mod worker_stats;
mod worker_thread;

pub use control::Control;
pub use discover::discover;
pub use error::EngineError;
pub use health::cgroup::cpu_quota;
pub use health::kernel::CpuTicks;
pub use health::listener::{ListenerError, listener, ports_of};
pub use health::metrics_page::{MetricsPage, MetricsPageError};
pub use health::page_watch::WatchedPage;
pub use health::process::WatchedProcess;
pub use health::process_tree::{ProcessStat, process_family};
pub use health::substrate::substrate;
pub use once::{ExchangedOnce, exchange_once};
pub use pairs::{BlockReport, BlockSink};
pub use probe::{ProbeAnswer, ProbeFinding, ProbeReport};
pub use progress::{ProcessNow, Progress};
pub use response_headers::{NamedPart, RecordedHeader};
pub use result::{Cause, RunResult};
pub use run::{Run, StartGate};
pub use sink::{RowExtras, SampleBatch, SampleSink, SamplingRate, SinkReport};
pub use worker_stats::FOLLOWED_REDIRECTS;
