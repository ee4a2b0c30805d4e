//! Stopping a run from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A handle with which another thread (a signal handler, say) ends a run early.
#[derive(Clone, Debug, Default)]
pub struct Control(Arc<AtomicBool>);

impl Control {
    /// A handle for a run that may go on.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the run: nothing new is started, and what is under way gets a short time to finish.
    pub fn interrupt(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Has the end been asked for?
    pub fn is_interrupted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
