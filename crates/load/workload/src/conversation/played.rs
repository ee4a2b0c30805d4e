//! The replay of a recorded session. Its branches share the ends and replies of turns.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};

use plimsoll_measure::{Moment, Nanos};
use plimsoll_protocol::Message;

use crate::trace::{Body, Record, Trace};

/// A branch of a session. Dropping it ends its remaining turns, because others may wait for them.
#[derive(Debug)]
pub(super) struct Played {
    session: Rc<PlayedSession>,
    /// The positions of its turns in the session.
    turns: Vec<u16>,
    /// The turns of the other branches, until these are started.
    others: Vec<Vec<u16>>,
    /// The number of ended turns.
    done: u16,
}

#[derive(Debug)]
struct PlayedSession {
    trace: Arc<Trace>,
    session: usize,
    /// By turn of the session.
    turns: RefCell<Vec<PlayedTurn>>,
    waiting: RefCell<Vec<Waker>>,
}

#[derive(Clone, Debug, Default)]
struct PlayedTurn {
    end: TurnEnd,
    reply: Option<Message>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TurnEnd {
    #[default]
    Open,
    At(Moment),
    /// The turn failed, or is never sent.
    Never,
}

impl Played {
    pub(super) fn new(trace: Arc<Trace>, session: usize) -> Self {
        let ended = vec![PlayedTurn::default(); usize::from(trace.turns(session))];
        let mut branches = trace.branches(session).into_iter();
        let (turns, others) = (branches.next().unwrap_or_default(), branches.collect());
        let (ended, waiting) = (RefCell::new(ended), RefCell::default());
        let session = Rc::new(PlayedSession { trace, session, turns: ended, waiting });
        Self { session, turns, others, done: 0 }
    }

    /// Splits off the other branches.
    pub(super) fn take_others(&mut self) -> impl Iterator<Item = Self> {
        let session = Rc::clone(&self.session);
        std::mem::take(&mut self.others).into_iter().map(move |turns| {
            let session = Rc::clone(&session);
            Self { session, turns, others: Vec::new(), done: 0 }
        })
    }

    pub(super) fn is_first(&self) -> bool {
        self.position(0) == Some(0)
    }

    pub(super) fn trace(&self) -> &Trace {
        &self.session.trace
    }

    /// The number of turns of the branch.
    pub(super) fn turns(&self) -> u16 {
        u16::try_from(self.turns.len()).unwrap_or(u16::MAX)
    }

    /// The position of a turn of the branch in the session.
    pub(super) fn position(&self, turn: u16) -> Option<u16> {
        self.turns.get(usize::from(turn)).copied()
    }

    /// A turn of the session.
    pub(super) fn record(&self, position: u16) -> Option<&Record> {
        self.trace().record(self.session.session, position)
    }

    /// Ends the current turn of the branch.
    pub(super) fn end_turn(&mut self, at: Moment, reply: Option<Message>) {
        self.end_as(TurnEnd::At(at), reply);
    }

    fn end_as(&mut self, end: TurnEnd, reply: Option<Message>) {
        if let Some(position) = self.position(self.done) {
            self.session.turns.borrow_mut()[usize::from(position)] = PlayedTurn { end, reply };
            self.session.waiting.take().into_iter().for_each(Waker::wake);
        }
        self.done += 1;
    }

    /// Ends the remaining turns of the branch.
    pub(super) fn end_rest(&mut self) {
        for _ in self.done..self.turns() {
            self.end_as(TurnEnd::Never, None);
        }
    }

    /// Whether every turn of the session has succeeded.
    pub(super) fn is_whole(&self) -> bool {
        self.session.turns.borrow().iter().all(|turn| matches!(turn.end, TurnEnd::At(_)))
    }

    /// Waits for the turns before a turn, in a session that began at `began`. Returns the due time,
    /// or `None` if the turn is never sent.
    pub(super) async fn due(&self, position: u16, began: Moment) -> Option<Moment> {
        poll_fn(|context| {
            self.due_now(position, began).map_or_else(
                |Waits| {
                    self.session.waiting.borrow_mut().push(context.waker().clone());
                    Poll::Pending
                },
                Poll::Ready,
            )
        })
        .await
    }

    fn due_now(&self, position: u16, began: Moment) -> Result<Option<Moment>, Waits> {
        let Some(link) = self.record(position).and_then(|record| record.link.as_deref()) else {
            return Ok(Some(began));
        };
        let turns = self.session.turns.borrow();
        let mut due = began + self.trace().scaled(link.at.unwrap_or(Nanos::ZERO));
        let ends = link.after.iter().map(|(turn, wait)| (turns[usize::from(*turn)].end, *wait));
        if ends.clone().any(|(end, _)| end == TurnEnd::Never) {
            return Ok(None);
        }
        for (end, wait) in ends {
            let TurnEnd::At(at) = end else { return Err(Waits) };
            due = due.max(at + self.trace().scaled(wait));
        }
        Ok(Some(due))
    }

    /// The messages of a turn: all earlier messages and replies that it continues, then its own.
    pub(super) fn messages(&self, position: u16) -> Vec<Message> {
        let (mut all, mut next) = (Vec::new(), Some(position));
        let turns = self.session.turns.borrow();
        while let Some((turn, record)) = next.and_then(|turn| Some((turn, self.record(turn)?))) {
            next = record.link.as_ref().and_then(|link| link.continues);
            let Some(Body::Request { messages, reply, calls_tools, .. }) = &record.body else {
                break;
            };
            let mut replies =
                [turns[usize::from(turn)].reply.clone(), reply.clone().map(Message::recorded)];
            if *calls_tools || self.trace().uses_recorded_replies() {
                replies.reverse();
            }
            all.extend(replies.into_iter().flatten().next().filter(|_| turn != position));
            if !messages.is_empty() {
                all.push(Message::recorded(Arc::clone(messages)));
            }
        }
        all.reverse();
        all
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        self.end_rest();
    }
}

/// A turn before this one has not ended.
struct Waits;
