//! One conversation: its turns in order, each built on the response to the one before. The answers
//! to an agent decide how many there are.

use std::pin::pin;
use std::rc::Rc;

use plimsoll_measure::{Moment, Nanos};
use plimsoll_workload::Conversation;

use crate::connections::ConnectionSet;
use crate::in_flight_limit::InFlightPermit;
use crate::request_timeout::LazyTimeout;
use crate::task::OpenTask;
use crate::turn::{OpenTurn, TurnEnd};
use crate::websocket_channel::WebSocketChannel;
use crate::worker::Worker;

/// When a conversation begins and how long it may go on.
#[derive(Debug)]
pub(crate) struct ConversationStart {
    /// Intended start of the first turn.
    intended: Moment,
    /// No turn is started here or later.
    end: Moment,
    /// Open model: the permit of the first turn.
    permit: Option<InFlightPermit>,
}

impl ConversationStart {
    /// For a virtual user that became free at `intended`, and that is active until `end`.
    pub(crate) const fn closed(intended: Moment, end: Moment) -> Self {
        Self { intended, end, permit: None }
    }

    /// For an arrival of the open model, with the permit of its first turn.
    pub(crate) const fn open(intended: Moment, end: Moment, permit: InFlightPermit) -> Self {
        Self { intended, end, permit: Some(permit) }
    }
}

/// The end of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConversationEnd {
    /// When its last turn ended; if the end of the load cut it, when its next turn was intended, so
    /// that its user starts nothing else instead.
    pub(crate) at: Moment,
    /// How long its user thinks before the next conversation.
    pub(crate) think_time: Nanos,
    /// Whether its last request got as far as the kernel.
    pub(crate) sent: bool,
    /// How long the target asks to wait before the next request.
    pub(crate) retry_after: Option<Nanos>,
}

impl ConversationEnd {
    /// Before a turn that is intended at `at`.
    const fn before_turn(at: Moment) -> Self {
        Self { at, think_time: Nanos::ZERO, sent: true, retry_after: None }
    }
}

/// Runs a conversation until its last turn, the first turn that does not complete, or the end of
/// the time it has. A WebSocket lives as long as its conversation.
pub(crate) async fn run_conversation(
    worker: &Rc<Worker>,
    conversation: &mut Conversation,
    connections: &ConnectionSet,
    timeout: &mut LazyTimeout,
    start: &mut ConversationStart,
) -> ConversationEnd {
    let ConversationStart { mut intended, end, ref mut permit } = *start;
    let open_model = permit.is_some();
    // The pacer has taken the first request of an arrival.
    if !open_model && !worker.take_request(intended) {
        return ConversationEnd::before_turn(intended);
    }
    worker.stats().conversation_started();
    let mut channel = WebSocketChannel::default();
    let mut task = OpenTask::begin(worker, conversation, intended);
    let conversation_end = loop {
        let mut turn = OpenTurn::new(worker, intended);
        turn.schedule(conversation);
        if open_model && permit.is_none() {
            let source = worker.source_of(worker.target_of(conversation.key()));
            *permit = source.limit.acquire_by_policy(intended).await;
            if permit.is_none() {
                break ConversationEnd::before_turn(intended);
            }
        }
        // The block drops its locals, which would otherwise occupy memory while the next turn
        // waits.
        intended = {
            let mut turn_end = if turn.is_over_websocket() {
                turn.converse(conversation, &mut channel, timeout, permit.as_ref()).await
            } else {
                // Pinned where it is made: awaited as it is, it would be moved first.
                pin!(turn.execute(conversation, connections, timeout, permit.as_ref())).await
            };
            add_to(task.as_deref_mut(), conversation, &mut turn, &turn_end);
            drop(turn);
            if let Some(permit) = permit.take() {
                permit.release(turn_end.without_generator);
            }
            let TurnEnd { at, sent, retry_after, .. } = turn_end;
            let think_time = conversation.think_time_after();
            let conversation_end = ConversationEnd { at, think_time, sent, retry_after };
            let goes_on = match turn_end.rpc.take() {
                Some(end) => conversation.note_answer(*end),
                None => turn_end.completed,
            };
            if !goes_on {
                break conversation_end;
            }
            advance(conversation, task.as_deref_mut(), turn_end);
            if conversation.is_over() {
                worker.stats().conversation_finished();
                break conversation_end;
            }
            at + conversation.think_time()
        };
        if intended < worker.last_start(end, task.is_some()) {
            channel.sleep_until(worker, intended).await;
        }
        // The run may have been interrupted meanwhile.
        if intended >= worker.last_start(end, task.is_some()) || !worker.take_request(intended) {
            break ConversationEnd::before_turn(intended);
        }
    };
    channel.close(worker);
    conversation_end
}

/// Adds a turn to the task that it is part of, if any.
fn add_to(
    task: Option<&mut OpenTask>,
    conversation: &Conversation,
    turn: &mut OpenTurn,
    end: &TurnEnd,
) {
    if let Some(task) = task.filter(|_| !conversation.task_is_closing()) {
        turn.note_tool_error(end.answer.as_deref());
        task.add(conversation, turn.sample(), end);
    }
}

/// Moves on from a turn that completed; its answer may be that of a tool or an approval.
fn advance(conversation: &mut Conversation, task: Option<&mut OpenTask>, turn: TurnEnd) {
    let part = conversation.task_part();
    match turn.answer {
        None => conversation.advance_with(&turn.reply, turn.tool_calls),
        Some(answer) => conversation.advance_by(*answer),
    }
    if let Some(task) = task {
        task.advanced(conversation, part);
    }
}

#[cfg(test)]
mod tests;
