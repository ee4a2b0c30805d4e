//! Errors of the mock itself. Faults that it injects on purpose are not errors.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The mock could not be configured or started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MockError {
    /// The configuration is not valid YAML or JSON, or has an unknown key or a wrong type. The text
    /// names the place to fix.
    #[error("the mock's configuration cannot be read: {0}")]
    Syntax(String),
    /// Invalid values of the configuration, each with its path; all are reported at once.
    #[error("the mock's configuration is wrong:\n  {}", .0.join("\n  "))]
    Config(Vec<String>),
    /// The address cannot be listened on: choose a free port or an address of this host.
    #[error("cannot listen on {addr}: {source}; choose a free port and an address of this host")]
    Listen {
        /// The requested address.
        addr: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// The log file cannot be created: choose a folder that exists and is writable.
    #[error("cannot create the mock's log {}: {source}; choose a writable folder", path.display())]
    Log {
        /// The requested file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The recorded answers cannot be read: name a folder with files like `azure.sse`.
    #[error("cannot read the answers in {}: {source}", path.display())]
    Answers {
        /// The folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The system refused a thread, a timer or an event queue: raise the limit on processes or on
    /// open files.
    #[error("cannot start a worker of the mock: {0}; raise the limits on processes and open files")]
    Worker(#[source] io::Error),
}
