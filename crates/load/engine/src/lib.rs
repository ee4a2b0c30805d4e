//! Run: workers, virtual users, open and closed models, instrument health, sample sink.
//!
//! ```text
//! Run::prepare(plan) --probe--> Run::start --> one thread per worker --> RunResult
//!
//! worker = tokio current-thread runtime
//!   ├─ pacer          one task: dispatches this worker's stripe of the open arrivals
//!   ├─ virtual users  one task each: the closed model
//!   │    └─ converse ── take_turn ── Connection::exchange
//!   ├─ timer          one timerfd for every sleeper
//!   └─ ticker         sends snapshots and samples away, looks whether the run shall end
//! ```
//!
//! Workers share nothing while they run (law 4). A turn that is scheduled exists as a `turn::OpenTurn` until it is
//! recorded; whatever ends its task, dropping it records it. That is how every planned request is accounted for
//! (law 8), without any code path that has to remember it.

mod clock;
mod control;
mod conversation;
mod error;
mod facts;
mod hands;
mod health;
mod pacer;
mod pin;
mod policy_decision;
mod prepare;
mod presence;
mod probe;
mod progress;
mod result;
mod run;
mod sink;
mod ticker;
mod timer;
mod turn;
mod virtual_user;
mod watchdog;
mod work;
mod worker;

pub use control::Control;
pub use error::EngineError;
pub use health::process::{ProcessReading, Watched};
pub use probe::{ProbeFinding, ProbeReport};
pub use progress::Progress;
pub use result::{Cause, RunResult};
pub use run::Run;
pub use sink::{SampleBatch, SampleSink, Share, SinkReport};
