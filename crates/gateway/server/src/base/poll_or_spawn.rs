//! Work that usually completes at once, and otherwise continues in a task.

use std::pin::Pin;
use std::task::{Context, Waker};

use tokio::task::spawn_local;

/// Polls a future once; if it is still pending, spawns a task that completes it.
pub(crate) fn poll_or_spawn(work: impl Future<Output = ()> + 'static) {
    let mut work: Pin<Box<dyn Future<Output = ()>>> = Box::pin(work);
    if work.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
        spawn_local(work);
    }
}
