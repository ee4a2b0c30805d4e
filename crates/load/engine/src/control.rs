//! A handle that ends a run from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A handle with which another thread, such as a signal handler, ends a run early.
#[derive(Clone, Debug, Default)]
pub struct Control(Arc<AtomicBool>);

impl Control {
    /// A handle for a run that may go on.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the run: nothing new is started, and requests in flight get a short time to finish.
    pub fn interrupt(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the end was requested.
    pub fn is_interrupted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
