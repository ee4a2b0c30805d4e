//! The closed model: users who start their next conversation when the last one is over.

use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;

use plimsoll_measure::{ConversationKey, Moment, Nanos};
use plimsoll_plan::HttpVersion;
use plimsoll_schedule::{ActiveWindow, TargetWindow};
use tokio::task::spawn_local;

use crate::connections::ConnectionSet;
use crate::conversation::{ConversationStart, run_session};
use crate::request_timeout::LazyTimeout;
use crate::worker::{NextPrompt, Worker};

/// The time that a virtual user waits when a request could not even be sent (connection refused, no
/// port free). Without it, the users of a dead target would fail as fast as the processor lets
/// them.
const BACKOFF: Nanos = Nanos::from_millis(10);

/// Runs virtual user `number`: in each of its windows one conversation after another, in HTTP/1.1
/// over a connection of its own.
// No `async fn`: its future would hold the arguments twice.
pub(crate) fn run_virtual_user(
    worker: Rc<Worker>,
    number: u32,
    windows: Vec<ActiveWindow>,
) -> impl Future<Output = ()> {
    let (mut timeout, mut iteration) = (LazyTimeout::new(&worker.clock), 0);
    async move {
        if worker.run.pairs.is_some() {
            return compare(&worker, number, &windows);
        }
        for window in windows {
            let connections = connections(&worker);
            let (mut free, to) = (worker.origin + window.from, worker.origin + window.to);
            worker.timer.sleep_until(free).await;
            while free < worker.end_by(to) && worker.has_requests_left() {
                let key = ConversationKey::iteration(number, iteration);
                iteration = iteration.wrapping_add(1);
                free = run_iteration(&worker, key, &connections, &mut timeout, free, to).await;
            }
        }
    }
}

/// The conversations that a user has with all targets of a comparison: in every round of windows
/// each target gets the same ones, as many of them as it has time for.
#[derive(Debug, Default)]
struct SharedConversations {
    round: Cell<Option<u32>>,
    /// The number of the round's first one.
    first: Cell<u32>,
    /// The most that a target has had in it.
    most: Cell<u32>,
}

impl SharedConversations {
    /// The number of conversation `count` of a target in a round; `None` if another target has
    /// begun a later one.
    fn number(&self, round: u32, count: u32) -> Option<u32> {
        if self.round.get() > Some(round) {
            return None;
        }
        if self.round.replace(Some(round)) != Some(round) {
            self.first.set(self.first.get().wrapping_add(self.most.replace(0)));
        }
        self.most.set(self.most.get().max(count + 1));
        Some(self.first.get().wrapping_add(count))
    }
}

/// The same in a comparison: each target has a user of its own, in the windows of the target.
fn compare(worker: &Rc<Worker>, number: u32, active: &[ActiveWindow]) {
    let shared = Rc::new(SharedConversations::default());
    for windows in &worker.run.user_windows {
        let parts = windows
            .iter()
            .flat_map(|window| active.iter().filter_map(|active| overlap(active, window)));
        let parts = parts.collect();
        spawn_local(run_on_target(Rc::clone(worker), number, Rc::clone(&shared), parts));
    }
}

/// Runs the user that one target has, in its parts of windows.
async fn run_on_target(
    worker: Rc<Worker>,
    number: u32,
    shared: Rc<SharedConversations>,
    parts: Vec<TargetWindow>,
) {
    let mut timeout = LazyTimeout::new(&worker.clock);
    for of_round in parts.chunk_by(|one, next| one.round == next.round) {
        run_round(&worker, number, &shared, of_round, &mut timeout).await;
    }
}

/// The same in the parts of one round, over new connections.
async fn run_round(
    worker: &Rc<Worker>,
    number: u32,
    shared: &SharedConversations,
    parts: &[TargetWindow],
    timeout: &mut LazyTimeout,
) {
    let (connections, mut count) = (connections(worker), 0);
    for part in parts {
        let (mut free, to) = (worker.origin + part.from, worker.origin + part.to);
        worker.timer.sleep_until(free).await;
        let out = &worker.source_of(part.target).end;
        while free < worker.end_by(to).min(out.get()) && worker.has_requests_left() {
            let Some(block) = shared.number(part.round, count) else { return };
            count += 1;
            let block = ConversationKey::iteration(number, block);
            let key = worker.conversation_on(block, part.target);
            free = run_iteration(worker, key, &connections, timeout, free, to).await;
        }
    }
}

/// The part of a target's window in which a user is active.
fn overlap(active: &ActiveWindow, window: &TargetWindow) -> Option<TargetWindow> {
    let (from, to) = (active.from.max(window.from), active.to.min(window.to));
    (from < to).then_some(TargetWindow { from, to, ..*window })
}

/// Runs one conversation, within these times. Gives the moment at which the user is free again.
async fn run_iteration(
    worker: &Rc<Worker>,
    key: ConversationKey,
    connections: &Rc<ConnectionSet>,
    timeout: &mut LazyTimeout,
    from: Moment,
    to: Moment,
) -> Moment {
    let mut start = ConversationStart::closed(from, to);
    let row = match worker.next_prompt(from) {
        NextPrompt::Any => None,
        NextPrompt::Listed(row) => Some(row),
        // Others send the last ones: nothing is left for this user.
        NextPrompt::None => return to,
    };
    let mut conversation = worker.run.workload.conversation(key, row);
    // Pinned where it is made: awaited as it is, its kilobytes would be moved first.
    let end = pin!(run_session(worker, &mut conversation, connections, timeout, &mut start)).await;
    let wait = match end.retry_after {
        Some(asked) => {
            let wait = worker.end_by(end.at + asked).since(end.at);
            worker.stats().waited_as_asked(wait);
            wait
        }
        None if end.sent => Nanos::ZERO,
        None => BACKOFF,
    };
    let free = end.at + wait.max(end.think_time);
    if free > end.at {
        worker.timer.sleep_until(free.min(to)).await;
    }
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
