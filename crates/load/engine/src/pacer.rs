//! The open model: arrivals start when the schedule says, whatever the target does.

use std::rc::Rc;

use plimsoll_measure::{Clock as _, ConversationKey, Moment};
use plimsoll_profile::Overflow;
use plimsoll_schedule::Arrival;

use crate::conversation::{ConversationStart, run_conversation};
use crate::in_flight_limit::InFlightPermit;
use crate::request_timeout::LazyTimeout;
use crate::task_pool::TaskPool;
use crate::turn::OpenTurn;
use crate::worker::Worker;

/// Arrivals that are dispatched before the worker looks at its sockets again, so that a burst of
/// late arrivals does not delay the reading of responses.
const BURST: u32 = 64;

/// Dispatches this worker's part of the arrivals, each at its time.
///
/// The schedule is never bent: an arrival that finds no free permit (`overflow: queue`) holds up
/// the ones behind it, and all of them are charged from their intended start. What is left when the
/// run ends stays in the schedule, where [`account_for_rest`] finds it.
pub(crate) async fn run_pacer(worker: Rc<Worker>) {
    let of_tasks = Rc::clone(&worker);
    let tasks =
        TaskPool::new(move |(arrival, start)| run_arrival(Rc::clone(&of_tasks), arrival, start));
    let mut burst = 0;
    // Since when the pacer is free: waiting for a permit is the target's lateness, not the pacer's.
    let mut free = worker.origin;
    while let Some(at) = worker.next_arrival() {
        if worker.is_past(at) {
            burst += 1;
            if burst >= BURST {
                burst = 0;
                tokio::task::yield_now().await;
            }
        } else {
            burst = 0;
            worker.timer.sleep_until(at).await;
        }
        if at >= worker.end.get() {
            return;
        }
        worker.count_released(at, worker.clock.now().since(at.max(free)));
        let (permit, waited) = acquire_permit(&worker).await;
        if permit.is_some() && !worker.take_request(at) {
            return;
        }
        // Only now: an arrival that is still waiting when the run ends belongs to the rest.
        if let Some(arrival) = worker.take_arrival() {
            match permit {
                Some(permit) => tasks.spawn((arrival, ConversationStart::open(at, permit))),
                None => never_send(&worker, &arrival, at),
            }
        }
        if waited == Waited::Yes {
            free = worker.clock.now();
        }
    }
}

/// Whether an arrival had to wait for a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    No,
    Yes,
}

/// A permit for the next arrival; none where arrivals beyond the limit are dropped.
async fn acquire_permit(worker: &Worker) -> (Option<InFlightPermit>, Waited) {
    let limit = &worker.in_flight_limit;
    let permit = limit.try_acquire();
    if permit.is_some() || limit.overflow() == Overflow::Drop {
        return (permit, Waited::No);
    }
    worker.pacer_waits.set(true);
    let permit = limit.acquire().await;
    worker.pacer_waits.set(false);
    (permit, Waited::Yes)
}

/// Runs the conversation of an arrival.
async fn run_arrival(worker: Rc<Worker>, arrival: Arrival, start: ConversationStart) {
    let conversation = worker
        .run
        .workload
        .conversation(ConversationKey::arrival(arrival.seq), trace_row(&worker, &arrival));
    let timeouts = &worker.buffers.timeouts;
    let mut timeout = timeouts.acquire_or(|| LazyTimeout::new(&worker.clock));
    let connections = Rc::clone(&worker.connections);
    run_conversation(&worker, conversation, &connections, &mut timeout, start).await;
    timeouts.release(timeout);
}

/// Counts the arrivals that were due before `end` and were never dispatched.
pub(crate) fn account_for_rest(worker: &Rc<Worker>, end: Moment) {
    // Arrivals behind one that waits for a permit are not the pacer's fault; others are.
    let in_time = worker.pacer_waits.get();
    // The one that waits was counted when it was released.
    let mut is_counted = worker.pacer_waits.get();
    while let Some(at) = worker.next_arrival().filter(|&at| at < end) {
        if !std::mem::take(&mut is_counted) {
            worker.stats().count_arrival(in_time);
        }
        if let Some(arrival) = worker.take_arrival() {
            never_send(worker, &arrival, at);
        }
    }
}

fn never_send(worker: &Rc<Worker>, arrival: &Arrival, at: Moment) {
    let key = ConversationKey::arrival(arrival.seq);
    let conversation = worker.run.workload.conversation(key, trace_row(worker, arrival));
    drop(OpenTurn::schedule(worker, &conversation, at));
}

/// The row of the trace that an arrival plays.
fn trace_row(worker: &Worker, arrival: &Arrival) -> Option<u64> {
    worker.plays_trace(arrival.stage).then_some(arrival.index)
}

#[cfg(test)]
mod tests;
