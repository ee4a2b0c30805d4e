//! State of one worker thread, shared by its tasks.

use std::rc::Rc;
use std::sync::Arc;

use crate::state::MockState;
use crate::timer::Timer;

/// A worker: the state of the mock and the thread's own timer.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) state: Arc<MockState>,
    pub(crate) timer: Rc<Timer>,
}

impl Worker {
    /// Waits until `at` on the monotonic clock.
    pub(crate) async fn wait_until(&self, at: u64) {
        if at > self.state.clock.now() {
            self.timer.sleep_until(at).await;
        }
    }
}
