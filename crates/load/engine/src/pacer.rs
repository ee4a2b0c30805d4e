//! The open model: arrivals start when the schedule says, whatever the target does.

use std::rc::Rc;

use plimsoll_measure::{Clock as _, ConversationKey, Moment};
use plimsoll_profile::Overflow;
use plimsoll_schedule::Arrival;

use crate::conversation::{Start, converse};
use crate::hands::Hands;
use crate::turn::OpenTurn;
use crate::worker::{Slot, Worker};

/// Arrivals dispatched before the worker looks at its sockets again, so that a burst of late arrivals does not
/// delay the reading of answers.
const BURST: u32 = 64;

/// Dispatches this worker's stripe of the arrivals, each at its time.
///
/// The schedule is never bent: an arrival that finds no free slot (`overflow: queue`) holds up the ones behind it,
/// and all of them are charged from their intended start. What is left when the run ends stays in
/// [`Worker::arrivals`], where [`account_for_rest`] finds it.
pub(crate) async fn pace(worker: Rc<Worker>) {
    let mut burst = 0;
    // Since when the pacer is free: waiting for a slot is the target's lateness, not the pacer's.
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
        if at >= worker.until.get() {
            return;
        }
        worker.count_released(at, worker.clock.now().since(at.max(free)));
        if dispatch(&worker, at).await == Held::Yes {
            free = worker.clock.now();
        }
    }
}

/// Did an arrival have to wait for a slot?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    No,
    Yes,
}

async fn dispatch(worker: &Rc<Worker>, at: Moment) -> Held {
    let mut held = Held::No;
    let mut slot = Slot::now(worker);
    if slot.is_none() && worker.run.plan.limits.overflow == Overflow::Queue {
        worker.held.set(true);
        slot = Slot::wait(worker).await;
        worker.held.set(false);
        held = Held::Yes;
    }
    // Only now: an arrival that is still waiting when the run ends belongs to the rest.
    let Some(arrival) = worker.take_arrival() else { return held };
    match slot {
        None => never_send(worker, &arrival, at),
        Some(slot) => {
            Hands::serve(worker, arrival, Start::open(at, slot));
        }
    }
    held
}

/// Carries an arrival out.
pub(crate) async fn serve(worker: &Rc<Worker>, arrival: Arrival, start: Start) {
    let conversation = worker
        .run
        .workload
        .conversation(ConversationKey::arrival(arrival.seq), row(worker, &arrival));
    let mut watchdog = worker.take_watchdog();
    let connections = Rc::clone(&worker.connections);
    converse(worker, conversation, &connections, &mut watchdog, start).await;
    worker.give_watchdog(watchdog);
}

/// Counts the arrivals whose time came before `end` but that were never dispatched.
pub(crate) fn account_for_rest(worker: &Rc<Worker>, end: Moment) {
    // What a full house held back is not the pacer's fault; what it did not get to is.
    let released = worker.held.get();
    while let Some(at) = worker.next_arrival().filter(|&at| at < end) {
        worker.count_left_over(released);
        if let Some(arrival) = worker.take_arrival() {
            never_send(worker, &arrival, at);
        }
    }
}

fn never_send(worker: &Rc<Worker>, arrival: &Arrival, at: Moment) {
    let key = ConversationKey::arrival(arrival.seq);
    let conversation = worker.run.workload.conversation(key, row(worker, arrival));
    drop(OpenTurn::schedule(worker, &conversation, at));
}

/// The row of the trace that an arrival plays.
fn row(worker: &Worker, arrival: &Arrival) -> Option<u64> {
    worker.plays_trace(arrival.stage).then_some(arrival.index)
}
