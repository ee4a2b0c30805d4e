//! One conversation: its turns in order, each built on the response to the one before.

use std::rc::Rc;

use plimsoll_measure::{Moment, Nanos};
use plimsoll_workload::Conversation;

use crate::connections::ConnectionSet;
use crate::in_flight_limit::InFlightPermit;
use crate::request_timeout::LazyTimeout;
use crate::turn::{OpenTurn, TurnEnd};
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
    /// When its last turn ended.
    pub(crate) at: Moment,
    /// Whether its last request got as far as the kernel.
    pub(crate) sent: bool,
    /// How long the target asks to wait before the next request.
    pub(crate) retry_after: Option<Nanos>,
}

/// Runs a conversation until its last turn, the first turn that does not complete, or the end of
/// the time it has.
pub(crate) async fn run_conversation(
    worker: &Rc<Worker>,
    conversation: &mut Conversation,
    connections: &ConnectionSet,
    timeout: &mut LazyTimeout,
    start: ConversationStart,
) -> ConversationEnd {
    let ConversationStart { mut intended, end, mut permit } = start;
    let open_model = permit.is_some();
    // The pacer has taken the first request of an arrival.
    if !open_model && !worker.take_request(intended) {
        return ConversationEnd { at: intended, sent: true, retry_after: None };
    }
    worker.stats().conversation_started();
    loop {
        let mut turn = OpenTurn::schedule(worker, conversation, intended);
        if open_model && permit.is_none() {
            let source = worker.source_of(worker.target_of(conversation.key()));
            permit = source.limit.acquire_by_policy(intended).await;
            if permit.is_none() {
                return ConversationEnd { at: intended, sent: false, retry_after: None };
            }
        }
        let slot = permit.as_ref();
        let turn_end = turn.execute(conversation, connections, timeout, slot).await;
        drop(turn);
        if let Some(permit) = permit.take() {
            permit.release(turn_end.without_generator);
        }
        let TurnEnd { at, sent, retry_after, .. } = turn_end;
        let conversation_end = ConversationEnd { at, sent, retry_after };
        if !turn_end.completed {
            return conversation_end;
        }
        conversation.advance_with(&turn_end.reply, turn_end.tool_calls);
        if conversation.is_over() {
            worker.stats().conversation_finished();
            return conversation_end;
        }
        intended = turn_end.at + conversation.think_time();
        if intended >= worker.end_by(end) {
            return conversation_end;
        }
        worker.timer.sleep_until(intended).await;
        // The run may have been interrupted meanwhile.
        if intended >= worker.end_by(end) || !worker.take_request(intended) {
            return conversation_end;
        }
    }
}

#[cfg(test)]
mod tests;
