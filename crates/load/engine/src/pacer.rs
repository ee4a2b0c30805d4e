//! The open model: arrivals start when the schedule says, whatever the target does.

use std::rc::Rc;

use plimsoll_measure::{ConversationKey, Moment, Nanos};
use plimsoll_plan::Overflow;
use plimsoll_schedule::Arrival;
use plimsoll_transport::BEAT;

use crate::arrival_source::ArrivalSource;
use crate::conversation::{ConversationStart, run_session};
use crate::in_flight_limit::InFlightPermit;
use crate::request_timeout::LazyTimeout;
use crate::task_pool::TaskPool;
use crate::turn::OpenTurn;
use crate::worker::{NextPrompt, Worker};

/// Arrivals that are dispatched before the worker looks at its sockets again, so that a burst of
/// late arrivals does not delay the reading of responses.
const BURST: u32 = 64;

/// Dispatches this worker's part of the arrivals, of one source, each at its time.
///
/// The schedule is never bent: an arrival that finds no free permit (`overflow: queue`) holds up
/// the ones behind it, and all of them are charged from their intended start. The arrivals left
/// when the run ends stay in the schedule, where [`account_for_rest`] finds it.
pub(crate) async fn run_pacer(worker: Rc<Worker>, source: usize) {
    let source = &worker.sources[source];
    let of_tasks = Rc::clone(&worker);
    let tasks =
        TaskPool::new(move |(arrival, start)| run_arrival(Rc::clone(&of_tasks), arrival, start));
    let mut burst = 0;
    while let Some(at) = worker.next_arrival(source) {
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
        if at >= worker.end.get().min(source.end.get()) {
            return;
        }
        let permit = acquire_permit(source, at).await;
        if permit.is_some() && !worker.take_request(at) {
            return;
        }
        // Only now: an arrival that is still waiting when the run ends belongs to the rest.
        if let Some(arrival) = source.take() {
            match permit {
                Some(permit) => {
                    let end = worker.conversation_end(ConversationKey::arrival(arrival.seq), at);
                    tasks.spawn((arrival, ConversationStart::open(at, end, permit)));
                }
                None => never_send(&worker, &arrival, at, dropped_by_us(&worker, at)),
            }
        }
    }
}

/// A permit for the next arrival, which is due at `at`; none where arrivals beyond the limit are
/// dropped.
async fn acquire_permit(source: &ArrivalSource, at: Moment) -> Option<InFlightPermit> {
    let limit = &source.limit;
    let permit = limit.try_acquire(at);
    if permit.is_some() || limit.overflow() == Overflow::Drop {
        return permit;
    }
    source.waits.set(true);
    let permit = limit.acquire(at).await;
    source.waits.set(false);
    permit
}

/// How late an arrival was dropped, if the generator may have caused the lack of a slot by
/// releasing several arrivals at once after a pause.
fn dropped_by_us(worker: &Worker, at: Moment) -> Nanos {
    let late = worker.clock.latest().since(at);
    if late > BEAT { late } else { Nanos::ZERO }
}

/// Runs the conversation of an arrival.
async fn run_arrival(worker: Rc<Worker>, arrival: Arrival, mut start: ConversationStart) {
    let mut conversation = worker
        .run
        .workload
        .conversation(ConversationKey::arrival(arrival.seq), row(&worker, &arrival));
    let timeouts = &worker.buffers.timeouts;
    let mut timeout = timeouts.acquire_or(|| LazyTimeout::new(&worker.clock));
    let connections = Rc::clone(&worker.connections);
    run_session(&worker, &mut conversation, &connections, &mut timeout, &mut start).await;
    timeouts.release(timeout);
}

/// Accounts for the arrivals that were due before `end` and were never dispatched. Where they wait
/// for a slot, a generator that is never late would have sent only some of them.
pub(crate) fn account_for_rest(worker: &Rc<Worker>, end: Moment) {
    for source in &worker.sources {
        let (end, mut rest) = (end.min(source.end.get()), 0);
        while let Some(at) = worker.next_arrival(source).filter(|&at| at < end) {
            let Some(arrival) = source.take() else { break };
            let owed =
                !source.waits.get() || rest < source.limit.owed(worker.stage_end(arrival.stage));
            rest += 1;
            let late = if owed { end.since(at) } else { Nanos::ZERO };
            never_send(worker, &arrival, at, late);
        }
    }
}

/// Accounts for an arrival that is not sent; `late` by the generator's fault, or zero.
fn never_send(worker: &Rc<Worker>, arrival: &Arrival, at: Moment, late: Nanos) {
    let key = ConversationKey::arrival(arrival.seq);
    let conversation = worker.run.workload.conversation(key, trace_row(worker, arrival));
    let mut turn = OpenTurn::new(worker, at);
    turn.schedule(&conversation);
    turn.never_send(late);
}

/// The row of the trace that an arrival plays, or the prompt of a list that it sends.
fn row(worker: &Worker, arrival: &Arrival) -> Option<u64> {
    match worker.next_prompt(worker.origin + arrival.at) {
        NextPrompt::Listed(row) => Some(row),
        // For a list, the request budget admits at most one arrival per prompt.
        NextPrompt::Any | NextPrompt::None => trace_row(worker, arrival),
    }
}

/// The row of the trace that an arrival plays.
fn trace_row(worker: &Worker, arrival: &Arrival) -> Option<u64> {
    worker.plays_trace(arrival.stage).then_some(arrival.index)
}

#[cfg(test)]
mod tests;
