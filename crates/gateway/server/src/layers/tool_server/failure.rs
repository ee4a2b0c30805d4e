//! Failures of calls to tool servers.

use plimsoll_gateway_mcp::rpc::RpcError;

use crate::http::error_response::ErrorResponse;
use crate::http::request_body::no_memory;

/// Why a tool server gave no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It exceeded the time limit.
    TimedOut,
    /// The memory budget is exhausted.
    NoMemory,
    /// It answered with an error.
    Rpc(RpcError),
    /// Any other failure, as the rest of a sentence after the server's name.
    Other(String),
}

impl Failure {
    pub(crate) fn unreachable() -> Self {
        Self::Other("it cannot be reached".to_owned())
    }

    pub(crate) fn broken() -> Self {
        Self::Other("it broke off".to_owned())
    }

    /// The failure, as the rest of a sentence after the server's name.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::TimedOut => "it did not answer in time".to_owned(),
            Self::NoMemory => "the gateway holds too many messages now".to_owned(),
            Self::Rpc(error) => format!("it answered {error}"),
            Self::Other(reason) => reason.clone(),
        }
    }

    /// The error for a client.
    pub(crate) fn to_response(&self, server: &str) -> ErrorResponse {
        let message = format!("tool server `{server}`: {}", self.reason());
        match self {
            Self::TimedOut => ErrorResponse::upstream_timeout(message),
            Self::NoMemory => no_memory(),
            Self::Rpc(_) | Self::Other(_) => ErrorResponse::bad_gateway(message),
        }
    }
}

/// The problem with an answer.
impl From<&str> for Failure {
    fn from(problem: &str) -> Self {
        Self::Other(problem.to_owned())
    }
}
