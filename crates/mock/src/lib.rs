#![doc = include_str!("../README.md")]

mod answer;
mod ask;
mod clock;
mod counters;
mod dialect;
mod draw;
mod error;
mod exchange;
mod fault;
mod hash;
mod law;
mod log;
mod mock;
mod note;
mod overrides;
mod plan;
mod prometheus;
mod reply;
mod responder;
mod script;
mod service;
mod shared;
mod span;
mod spec;
mod tap;
mod timer;
mod worker;

pub use counters::Stats;
pub use dialect::Dialect;
pub use error::MockError;
pub use fault::{Fault, ParseFaultError};
pub use law::{Distribution, Quantity};
pub use log::{ChunkRecord, End, LogRecord};
pub use mock::Mock;
pub use span::{HumanDuration, ParseDurationError};
pub use spec::{FaultShare, FromRequest, LogTarget, MockConfig, ModelSpec, Output, Slowdown};
