//! Errors in a request, found before it is sent.

use crate::Dialect;

/// A request that cannot be encoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// A parameter has the name of a member that the encoder sets. Remedy: remove it from the
    /// parameters, and use the field of the scenario (`stream`, `max_tokens`, `system`, ...) or
    /// target (`model`).
    #[error(
        "`{name}` cannot be a parameter of {}: it is set from the scenario or target; use their \
         own fields for it", dialect.name()
    )]
    ReservedParameter {
        /// Name of the parameter.
        name: String,
        /// The dialect that sets it.
        dialect: Dialect,
    },
    /// Parameters for plain HTTP. Remedy: write them into the request's body.
    #[error("plain HTTP takes no parameters: write them into the request's body")]
    ParametersOfHttp,
    /// Parameters for JSON-RPC. Remedy: write them into the arguments of a step.
    #[error(
        "tool servers and agents take no parameters: write them into the `arguments` of a step"
    )]
    ParametersOfRpc,
    /// The dialect cannot express the turn's content. Remedy: choose the protocol that fits the
    /// scenario's content.
    #[error(
        "{content} cannot be sent as {}: choose the protocol that fits the scenario's content",
        dialect.name()
    )]
    UnsupportedContent {
        /// The content of the turn.
        content: &'static str,
        /// The dialect.
        dialect: Dialect,
    },
}
