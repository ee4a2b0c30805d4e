//! Failures of calls to tool servers.

use plimsoll_gateway_mcp::ListError;
use plimsoll_gateway_mcp::client::Fault;
use plimsoll_gateway_mcp::rpc::RpcError;

use crate::http::error_response::ErrorResponse;
use crate::http::request_body::no_memory;

/// Why a tool server gave no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// No connection could be opened.
    Unreachable,
    /// The connection broke.
    Broken,
    /// It exceeded the time limit.
    TimedOut,
    /// The memory budget is exhausted.
    NoMemory,
    /// Its answer was invalid.
    Fault(Fault),
    /// It answered only this status.
    Status(u16),
    /// It answered with an error.
    Rpc(RpcError),
    /// The handshake failed.
    Handshake(String),
    /// Its list of tools cannot be used.
    List(ListError),
    /// The result of a call is invalid.
    Result(&'static str),
}

impl Failure {
    /// The failure, as the rest of a sentence after the server's name.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Unreachable => "it cannot be reached".to_owned(),
            Self::Broken => "it broke off".to_owned(),
            Self::TimedOut => "it did not answer in time".to_owned(),
            Self::NoMemory => "the gateway holds too many messages now".to_owned(),
            Self::Fault(fault) => fault.to_string(),
            Self::Status(status) => format!("it answered status {status}"),
            Self::Rpc(error) => format!("it answered {error}"),
            Self::Handshake(reason) => reason.clone(),
            Self::List(error) => error.to_string(),
            Self::Result(problem) => (*problem).to_owned(),
        }
    }

    /// The error for a client.
    pub(crate) fn to_response(&self, server: &str) -> ErrorResponse {
        let message = format!("tool server `{server}`: {}", self.reason());
        match self {
            Self::TimedOut => ErrorResponse::upstream_timeout(message),
            Self::NoMemory => no_memory(),
            _ => ErrorResponse::bad_gateway(message),
        }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}
