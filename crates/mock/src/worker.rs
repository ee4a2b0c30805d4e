//! State of one worker thread, shared by its tasks.

use std::rc::Rc;
use std::sync::Arc;

use crate::state::MockState;
use crate::timer::Timer;

/// A worker: the state of the mock and the thread's own timer.
#[derive(Debug)]
pub(crate) struct Worker {
    state: Arc<MockState>,
    timer: Rc<Timer>,
}

impl Worker {
    pub(crate) const fn new(state: Arc<MockState>, timer: Rc<Timer>) -> Self {
        Self { state, timer }
    }

    pub(crate) fn state(&self) -> &MockState {
        &self.state
    }

    pub(crate) fn timer(&self) -> Rc<Timer> {
        Rc::clone(&self.timer)
    }

    /// Waits until `at` on the monotonic clock.
    pub(crate) async fn wait_until(&self, at: u64) {
        if at > self.state.clock.now() {
            self.timer.sleep_until(at).await;
        }
    }
}
