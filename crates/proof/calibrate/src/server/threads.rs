//! Starts the named threads of the reference servers.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts a named thread.
pub(super) fn spawn_named<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.to_owned()).spawn(body)
}
