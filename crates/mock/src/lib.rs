#![doc = include_str!("../README.md")]

mod a2a;
mod check;
mod clock;
mod counter;
mod counters;
mod dialect;
mod distribution;
mod duration;
mod endpoint;
mod error;
mod event_plan;
mod exchange;
mod fault;
mod hash;
mod log;
mod mcp;
mod mock;
mod model_output;
mod overrides;
mod prometheus;
mod recorded_answer;
#[cfg(test)]
mod reference_tests;
mod request;
mod responder;
mod response_body;
mod response_plan;
mod rng;
mod rpc;
mod rx_timestamp;
mod server;
mod service;
mod spec;
mod state;
mod stop;
mod stream_plan;
mod timed_io;
mod timed_plan;
mod timer;
mod token;
mod tool_loop;
mod websocket;
mod worker;

pub use a2a::{A2aSpec, AgentAnswer, AgentSpec};
pub use counters::Stats;
pub use dialect::Dialect;
pub use distribution::{Distribution, Quantity};
pub use duration::{HumanDuration, ParseDurationError};
pub use error::MockError;
pub use fault::{Fault, FaultShare, ParseFaultError};
pub use log::{
    ChunkRecord, LogRecord, RequestEnd, RpcOutcome, RpcRecord, ToolTurnRecord, WebSocketEvent,
    WebSocketRecord,
};
pub use mcp::{AnswerMode, McpSpec, ToolSpec};
pub use mock::Mock;
pub use spec::{DrawBy, FromRequest, LogTarget, MockConfig, ModelSpec, OutputLength, Slowdown};
pub use timed_plan::StreamEnd;
pub use tool_loop::{ToolArguments, ToolLoop};
