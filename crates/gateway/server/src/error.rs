//! Errors that prevent a gateway from starting or reloading.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a gateway cannot start or reload.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// The configuration is not YAML, or has an unknown key or a value of the wrong type; the
    /// message names line and column.
    #[error("the configuration cannot be read: {0}")]
    Syntax(String),
    /// Invalid values, all of them.
    #[error("the configuration is invalid:\n{}", .0.join("\n"))]
    Config(Vec<String>),
    /// A file cannot be read: check its path and permissions.
    #[error("cannot read {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The gateway cannot listen on the address: it is in use, not an address of this machine, or
    /// needs more rights.
    #[error("cannot listen on {addr}: {source}; choose a free port, or 0 for any")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// A thread or its event loop could not be created: check the system's limits.
    #[error("the gateway's workers did not start: {0}")]
    Worker(#[source] io::Error),
    /// The file or server that audit rows go to cannot be used.
    #[error("the audit cannot be written: {0}")]
    Audit(String),
    /// The store cannot be used.
    #[error("the store cannot be used: {0}")]
    Store(String),
}
