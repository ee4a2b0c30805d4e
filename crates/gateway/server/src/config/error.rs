//! Errors that prevent a gateway from starting or reloading.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::config::place::with_lines;

/// Why a gateway cannot start or reload.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// The configuration is not YAML, or has an unknown key or a value of the wrong type.
    #[error("the configuration cannot be read: {message}")]
    Syntax {
        /// The problem. It repeats no value of the configuration.
        message: String,
        /// Line and column, where known.
        place: Option<(u64, u64)>,
    },
    /// The configuration is empty, or has no route although the one in force has some.
    #[error("the configuration is empty or has no routes")]
    Empty,
    /// No file to reload: the gateway was started from a value, or with overrides.
    #[error("this gateway was not started from a file: there is nothing to read again")]
    NoFile,
    /// The new configuration changes settings that only a restart applies.
    #[error("only a restart applies new values of: {}", .0.join(", "))]
    Restart(Vec<&'static str>),
    /// Invalid values, all of them.
    #[error("the configuration is invalid:\n{}", .0.join("\n"))]
    Config(Vec<String>),
    /// A file cannot be read: check its path and permissions.
    #[error("cannot read {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The gateway cannot listen on the address: it is in use, not an address of this machine, or
    /// needs more rights.
    #[error("cannot listen on {addr}: {source}; choose a free port, or 0 for any")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// A thread or its event loop could not be created: check the system's limits.
    #[error("the gateway's workers did not start: {0}")]
    Worker(#[source] io::Error),
    /// The file or server for audit rows cannot be used.
    #[error("the audit cannot be written: {0}")]
    Audit(String),
    /// The store cannot be used.
    #[error("the store cannot be used: {0}")]
    Store(String),
}

impl GatewayError {
    /// Adds the lines of this text, from which the configuration was read, to the problems.
    pub fn located(self, text: &str) -> Self {
        match self {
            Self::Config(problems) => Self::Config(with_lines(problems, text)),
            other => other,
        }
    }

    /// The error for clients over the network: it repeats no value, name or path of the
    /// configuration.
    pub(crate) fn summary(&self) -> String {
        match self {
            Self::Syntax { place: Some((line, column)), .. } => {
                format!("the file cannot be read at line {line}, column {column}")
            }
            Self::Syntax { place: None, .. } | Self::File { .. } => {
                "the file cannot be read".to_owned()
            }
            Self::Empty => "the file has no routes".to_owned(),
            Self::Config(problems) => format!("{} values of the file are invalid", problems.len()),
            Self::Restart(_) => self.to_string(),
            Self::NoFile => "this gateway was started with flags that override its file".to_owned(),
            _ => "the gateway cannot reload".to_owned(),
        }
    }
}
