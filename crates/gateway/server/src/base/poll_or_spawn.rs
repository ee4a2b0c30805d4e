//! Work that is usually done at once, and otherwise in a task.

use std::pin::Pin;
use std::task::{Context, Waker};

use tokio::task::spawn_local;

/// Polls a future once; if it is not ready then, spawns a task that completes it.
pub(crate) fn poll_or_spawn(work: impl Future<Output = ()> + 'static) {
    let mut work: Pin<Box<dyn Future<Output = ()>>> = Box::pin(work);
    if work.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
        spawn_local(work);
    }
}
