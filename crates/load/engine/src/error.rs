//! Errors of the generator itself. A failure of the target is data, and never an error here.

use std::io;

use plimsoll_protocol::ProtocolError;
use plimsoll_schedule::ScheduleError;
use plimsoll_transport::{InvalidHost, RequestHeadError, TlsError};
use plimsoll_workload::WorkloadError;

/// A run could not be prepared or carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The stages or the trace do not make a schedule.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The scenarios do not make a workload.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A scenario cannot be expressed in its dialect.
    #[error("scenario `{scenario}`: {cause}")]
    Protocol {
        /// The scenario.
        scenario: String,
        /// The cause.
        cause: ProtocolError,
    },
    /// A request head cannot be rendered.
    #[error("scenario `{scenario}`: {cause}")]
    Head {
        /// The scenario.
        scenario: String,
        /// The cause.
        cause: RequestHeadError,
    },
    /// A tool server cannot be reached, or does not answer as MCP has it.
    #[error(
        "scenario `{scenario}`: {target} cannot be asked for its tools: {cause}; look whether it runs and check the path and `mcp.revision`, or write `mcp.steps`"
    )]
    Unasked {
        /// The scenario.
        scenario: String,
        /// The target.
        target: String,
        /// The cause, in words.
        cause: String,
    },
    /// A tool server lacks the tools that the plan asks for.
    #[error(
        "scenario `{scenario}`: {target} has not the tools of the profile: {cause}; check `mcp.tools`, or write `mcp.steps`"
    )]
    Tools {
        /// The scenario.
        scenario: String,
        /// The target.
        target: String,
        /// The cause, in words.
        cause: String,
    },
    /// A shard of the run would have arrivals and no slot to send them.
    #[error(
        "shard {shard} would have none of the {max_in_flight} requests in flight: \
         raise `max_in_flight` to {shards} or more, or use fewer shards"
    )]
    NoSlot {
        /// The shard, like `3/4`.
        shard: String,
        /// Shards of the run.
        shards: u64,
        /// The limit.
        max_in_flight: u64,
    },
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The target's name cannot be verified.
    #[error(transparent)]
    Host(#[from] InvalidHost),
    /// `max_connections` leaves a shard without any.
    #[error(
        "`max_connections` is {connections}, for {shards} shards; raise it, or use fewer shards"
    )]
    TooFewConnections {
        /// All connections.
        connections: u64,
        /// All shards.
        shards: u64,
    },
    /// A thread could not be started; lower `workers` or raise the process limit.
    #[error("cannot start a thread: {0}; lower `workers` or raise the limit on processes")]
    Thread(io::Error),
    /// The kernel refuses a worker its event loop or timer; raise the descriptor limit.
    #[error("cannot set up a worker: {0}; raise the limit on open files (`ulimit -n`)")]
    Worker(io::Error),
    /// The start gate did not let the run begin.
    #[error("the run was not begun")]
    NotBegun,
    /// A worker panicked. This is a bug; the numbers of the run cannot be used.
    #[error("a worker panicked: this is a bug in plimsoll, and the run cannot be used")]
    WorkerPanicked,
}
