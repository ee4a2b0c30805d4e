//! The calls of MCP clients that can be cancelled, shared by all workers, because a cancellation
//! may reach another worker than its call.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// A session, and the id of a request in it.
type Key = (String, String);

/// The calls that can be cancelled.
#[derive(Debug, Default)]
pub(crate) struct RunningCalls(Mutex<HashMap<Key, Arc<Notify>>>);

/// A call that can be cancelled until this is dropped.
#[derive(Debug)]
pub(crate) struct RunningCall<'a> {
    all: &'a RunningCalls,
    key: Key,
    stop: Arc<Notify>,
}

impl RunningCalls {
    /// Registers a call. Of two concurrent calls with the same id, which the protocol forbids, only
    /// the later one can be cancelled.
    pub(crate) fn begin(&self, session: &str, id: String) -> RunningCall<'_> {
        let (key, stop) = ((session.to_owned(), id), Arc::<Notify>::default());
        self.0.lock().insert(key.clone(), Arc::clone(&stop));
        RunningCall { all: self, key, stop }
    }

    /// Cancels a call in progress.
    pub(crate) fn cancel(&self, session: &str, id: String) {
        if let Some(stop) = self.0.lock().remove(&(session.to_owned(), id)) {
            // `notify_one` also wakes a call that waits later.
            stop.notify_one();
        }
    }
}

impl RunningCall<'_> {
    /// Waits until the call is cancelled.
    pub(crate) async fn cancelled(&self) {
        self.stop.notified().await;
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        let mut all = self.all.0.lock();
        if all.get(&self.key).is_some_and(|stop| Arc::ptr_eq(stop, &self.stop)) {
            all.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn is_cancelled(call: &RunningCall<'_>) -> bool {
        pin!(call.cancelled()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn a_call_is_cancelled_by_its_session_and_id_while_it_runs() {
        let calls = RunningCalls::default();
        let begin = |session: &str, id: &str| calls.begin(session, id.to_owned());
        let (first, second, other) = (begin("s", "1"), begin("s", "2"), begin("t", "1"));
        calls.cancel("s", "1".to_owned());
        calls.cancel("s", "\"2\"".to_owned());
        let found = [&first, &second, &other].map(is_cancelled);
        assert_eq!(found, [true, false, false]);
        // The id is free again, and the end of the first call does not touch the second.
        let again = begin("s", "1");
        drop(first);
        calls.cancel("s", "1".to_owned());
        assert!(is_cancelled(&again));
        drop((again, second, other));
        assert!(calls.0.lock().is_empty());
    }
}
