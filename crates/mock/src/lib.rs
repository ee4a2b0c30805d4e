#![doc = include_str!("../README.md")]

mod clock;
mod counter;
mod counters;
mod dialect;
mod distribution;
mod duration;
mod endpoint;
mod error;
mod exchange;
mod fault;
mod hash;
mod log;
mod mock;
mod model_output;
mod overrides;
mod prometheus;
#[cfg(test)]
mod reference;
mod request;
mod responder;
mod response_body;
mod response_plan;
mod rng;
mod rx_timestamp;
mod server;
mod service;
mod spec;
mod state;
mod stream_plan;
mod timed_io;
mod timer;
mod worker;

pub use counters::Stats;
pub use dialect::Dialect;
pub use distribution::{Distribution, Quantity};
pub use duration::{HumanDuration, ParseDurationError};
pub use error::MockError;
pub use fault::{Fault, ParseFaultError};
pub use log::{ChunkRecord, LogRecord, RequestEnd};
pub use mock::Mock;
pub use spec::{
    DrawBy, FaultShare, FromRequest, LogTarget, MockConfig, ModelSpec, OutputLength, Slowdown,
};
