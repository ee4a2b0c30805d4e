//! The closed model: users who start their next conversation when the last one is over.

use std::rc::Rc;

use plimsoll_measure::{ConversationKey, Moment, Nanos};
use plimsoll_profile::HttpVersion;
use plimsoll_schedule::ActiveWindow;

use crate::connections::ConnectionSet;
use crate::conversation::{ConversationStart, run_conversation};
use crate::request_timeout::LazyTimeout;
use crate::worker::Worker;

/// The time that a virtual user waits when a request could not even be sent (connection refused, no
/// port free). Without it, the users of a dead target would fail as fast as the processor lets
/// them.
const BACKOFF: Nanos = Nanos::from_millis(10);

/// Runs virtual user `number`: in each of its windows one conversation after another, in HTTP/1.1
/// over a connection of its own.
pub(crate) async fn run_virtual_user(worker: Rc<Worker>, number: u32, windows: Vec<ActiveWindow>) {
    let mut timeout = LazyTimeout::new(&worker.clock);
    let mut iteration = 0;
    for window in windows {
        let connections = connections(&worker);
        let (mut free, to) = (worker.origin + window.from, worker.origin + window.to);
        worker.timer.sleep_until(free).await;
        while free < worker.end_by(to) && worker.has_requests_left() {
            let key = ConversationKey::iteration(number, iteration);
            iteration = iteration.wrapping_add(1);
            let start = ConversationStart::closed(free, to);
            free = run_iteration(&worker, key, &connections, &mut timeout, start).await;
        }
    }
}

/// Runs one conversation. Gives the moment at which the user is free again.
async fn run_iteration(
    worker: &Rc<Worker>,
    key: ConversationKey,
    connections: &ConnectionSet,
    timeout: &mut LazyTimeout,
    start: ConversationStart,
) -> Moment {
    let mut conversation = worker.run.workload.conversation(key, None);
    let end = run_conversation(worker, &mut conversation, connections, timeout, start).await;
    if let Some(wait) = end.retry_after {
        let free = worker.end_by(end.at + wait);
        worker.stats().waited_as_asked(free.since(end.at));
        worker.timer.sleep_until(free).await;
        return free;
    }
    if end.sent {
        return end.at;
    }
    let free = end.at + BACKOFF;
    worker.timer.sleep_until(free).await;
    free
}

/// The connections of one user.
fn connections(worker: &Worker) -> Rc<ConnectionSet> {
    match worker.run.plan.http.version {
        HttpVersion::Http1 => Rc::new(worker.connections_of_user()),
        HttpVersion::Http2 => Rc::clone(&worker.connections),
    }
}

#[cfg(test)]
mod tests;
