//! What can be wrong with a request before it is sent.

use crate::Dialect;

/// The harness asked for something that cannot be said.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// A parameter names a member that the encoder sets. Remedy: leave it out of the parameters and
    /// use the field of the scenario (`stream`, `max_tokens`, `system`, ...) or target (`model`).
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
    /// Parameters were given for plain HTTP. Remedy: write them into the request's body.
    #[error("plain HTTP takes no parameters: write them into the request's body")]
    ParametersOfHttp,
    /// The turn asks for something that the dialect has no words for. Remedy: give the scenario
    /// the protocol of its content.
    #[error(
        "{ask} cannot be said in {}: choose the protocol that fits the scenario's content",
        dialect.name()
    )]
    WrongAsk {
        /// What was to be asked.
        ask: &'static str,
        /// In which dialect.
        dialect: Dialect,
    },
}
