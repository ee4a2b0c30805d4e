//! A handle that ends a run from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Why a run is to end before its stages do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The user wants it.
    Interrupted,
    /// Too many requests got no good answer.
    TooManyErrors,
    /// The comparison is decided.
    Decided,
}

const GOES_ON: u8 = 0;
const INTERRUPTED: u8 = 1;
const TOO_MANY_ERRORS: u8 = 2;
const DECIDED: u8 = 3;

/// A handle with which another thread, such as a signal handler, ends a run early.
#[derive(Clone, Debug, Default)]
pub struct Control(Arc<AtomicU8>);

impl Control {
    /// A handle for a run that may go on.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the run: nothing new is started, and requests in flight get a short time to finish.
    pub fn interrupt(&self) {
        self.0.store(INTERRUPTED, Ordering::Relaxed);
    }

    /// Whether the user requested the end.
    pub fn is_interrupted(&self) -> bool {
        self.stop() == Some(Stop::Interrupted)
    }

    /// Ends a comparison that is decided, unless it ends already.
    pub fn decide(&self) {
        self.end(DECIDED);
    }

    /// Ends the run, unless it ends already.
    pub(crate) fn give_up(&self) {
        self.end(TOO_MANY_ERRORS);
    }

    fn end(&self, why: u8) {
        let ordering = Ordering::Relaxed;
        // It ends in either case.
        let _ = self.0.compare_exchange(GOES_ON, why, ordering, ordering);
    }

    /// Goes on after a run that was given up or decided; an interrupt stays.
    pub(crate) fn recover(&self) {
        let ordering = Ordering::Relaxed;
        for why in [TOO_MANY_ERRORS, DECIDED] {
            let _ = self.0.compare_exchange(why, GOES_ON, ordering, ordering);
        }
    }

    /// Why the run is to end; `None` while it goes on.
    pub(crate) fn stop(&self) -> Option<Stop> {
        match self.0.load(Ordering::Relaxed) {
            GOES_ON => None,
            INTERRUPTED => Some(Stop::Interrupted),
            DECIDED => Some(Stop::Decided),
            _ => Some(Stop::TooManyErrors),
        }
    }
}
