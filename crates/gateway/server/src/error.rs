//! What keeps a gateway from running.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// What keeps a gateway from running.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// The configuration is no YAML, or has a key or value that is not known; the message names line and
    /// column.
    #[error("the configuration cannot be read: {0}")]
    Syntax(String),
    /// Values that make no sense, all of them.
    #[error("the configuration makes no sense:\n{}", .0.join("\n"))]
    Config(Vec<String>),
    /// A file cannot be read: check its path and permissions.
    #[error("cannot read {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The address cannot be had: it is taken, not this machine's, or needs more rights.
    #[error("cannot listen on {addr}: {source}; choose a free port, or 0 for any")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// The system gave no thread or event loop: check its limits.
    #[error("the gateway's workers did not start: {0}")]
    Worker(#[source] io::Error),
    /// A file or server that rows go to cannot be had.
    #[error("the audit cannot be written: {0}")]
    Audit(String),
    /// The store cannot be had.
    #[error("the store cannot be used: {0}")]
    Store(String),
}
