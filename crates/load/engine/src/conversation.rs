//! One conversation: its turns in order, each fed by the answer to the one before.

use std::rc::Rc;

use plimsoll_measure::Moment;
use plimsoll_workload::Conversation;

use crate::turn::OpenTurn;
use crate::virtual_user::Connections;
use crate::watchdog::Watchdog;
use crate::worker::{Slot, Worker};

/// How a conversation begins and how long it may go on.
#[derive(Debug)]
pub(crate) struct Start {
    /// Intended start of the first turn.
    intended: Moment,
    /// No turn is started here or later.
    end: Moment,
    /// Open model: the place among those in flight.
    slot: Option<Slot>,
}

impl Start {
    /// A virtual user that became free at `intended`, and that is active until `end`.
    pub(crate) const fn closed(intended: Moment, end: Moment) -> Self {
        Self { intended, end, slot: None }
    }

    /// An arrival of the open model, with its place among those in flight.
    pub(crate) const fn open(intended: Moment, slot: Slot) -> Self {
        Self { intended, end: Moment::from_nanos(u64::MAX), slot: Some(slot) }
    }
}

/// A conversation that is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Over {
    /// When its last turn ended.
    pub(crate) at: Moment,
    /// Did its last request get as far as the kernel?
    pub(crate) sent: bool,
}

/// Carries a conversation out: until its last turn, the first one that does not complete, or its end.
pub(crate) async fn converse(
    worker: &Rc<Worker>,
    mut conversation: Conversation,
    connections: &Connections,
    watchdog: &mut Watchdog,
    start: Start,
) -> Over {
    let Start { mut intended, end, mut slot } = start;
    let open_model = slot.is_some();
    worker.conversation_started();
    loop {
        let mut turn = OpenTurn::schedule(worker, &conversation, intended);
        if open_model && slot.is_none() {
            slot = Slot::by_policy(worker).await;
            if slot.is_none() {
                return Over { at: intended, sent: false };
            }
        }
        let ended = turn.carry_out(&mut conversation, connections, watchdog).await;
        drop(turn);
        slot = None;
        let over = Over { at: ended.at, sent: ended.sent };
        if !ended.completed {
            return over;
        }
        conversation.advance(Some(&ended.reply));
        if conversation.is_over() {
            worker.conversation_finished();
            return over;
        }
        intended = ended.at + conversation.think_time();
        if intended >= worker.end_of(end) {
            return over;
        }
        worker.timer.sleep_until(intended).await;
        // The run may have been interrupted meanwhile.
        if intended >= worker.end_of(end) {
            return over;
        }
    }
}
