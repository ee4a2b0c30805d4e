//! A signal that ends an answer early.

use std::pin::Pin;
use std::task::{Context, Poll};

use derive_where::derive_where;
use tokio::sync::oneshot;

/// Waits for the signal, which any thread gives by dropping the sender.
#[derive_where(Debug)]
pub(crate) struct Stop {
    signal: oneshot::Receiver<()>,
    was_stopped: bool,
    /// Runs when the answer ends without the signal.
    #[derive_where(skip)]
    forget: Option<Box<dyn FnOnce()>>,
}

impl Stop {
    pub(crate) fn new(signal: oneshot::Receiver<()>, forget: impl FnOnce() + 'static) -> Self {
        Self { signal, was_stopped: false, forget: Some(Box::new(forget)) }
    }

    /// Whether the signal was given. If not, wakes the task later.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.was_stopped {
            // The sender sends no value; dropping it is the signal.
            self.was_stopped = matches!(Pin::new(&mut self.signal).poll(cx), Poll::Ready(_));
        }
        self.was_stopped
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        // After the signal the sender is gone, and another answer may use its place.
        if let Some(forget) = self.forget.take().filter(|_| !self.was_stopped) {
            forget();
        }
    }
}
