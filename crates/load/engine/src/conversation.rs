//! One conversation: its turns in order, each built on the response to the one before. The answers
//! to an agent decide how many there are.

use std::pin::pin;
use std::rc::Rc;

use plimsoll_measure::{Moment, Nanos, Sample, TaskCounts, TaskEnd, TaskPart, TaskSample};
use plimsoll_workload::Conversation;
use tokio::task::spawn_local;

use crate::connections::ConnectionSet;
use crate::in_flight_limit::InFlightPermit;
use crate::request_timeout::LazyTimeout;
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
    /// Whether every turn needs a permit.
    is_open: bool,
    /// Open model: the permit of the first turn.
    permit: Option<InFlightPermit>,
}

impl ConversationStart {
    /// For a virtual user that became free at `intended`, and that is active until `end`.
    pub(crate) const fn closed(intended: Moment, end: Moment) -> Self {
        Self { intended, end, is_open: false, permit: None }
    }

    /// For an arrival of the open model, with the permit of its first turn.
    pub(crate) const fn open(intended: Moment, end: Moment, permit: InFlightPermit) -> Self {
        Self { intended, end, is_open: true, permit: Some(permit) }
    }
}

/// The end of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConversationEnd {
    /// The end of its last turn. If the load ended first: the planned time of its next turn, so
    /// that its user does not begin another conversation.
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
    let ConversationStart { intended: began, end, is_open, .. } = *start;
    let mut channel = WebSocketChannel::default();
    let mut due = first_turn(worker, conversation, &mut channel, start).await;
    let mut task = due.ok().and_then(|at| OpenTask::begin(worker, conversation, at));
    let mut taken = 0;
    let conversation_end = loop {
        let intended = match due {
            Ok(at) => at,
            Err(at) => break ConversationEnd::before_turn(at),
        };
        let mut turn = OpenTurn::new(worker, intended);
        turn.schedule(conversation);
        taken += 1;
        if is_open && start.permit.is_none() {
            let source = worker.source_of(worker.target_of(conversation.key()));
            start.permit = source.limit.acquire_by_policy(intended).await;
            if start.permit.is_none() {
                break ConversationEnd::before_turn(intended);
            }
        }
        // The block drops its locals, which would otherwise occupy memory while the next turn
        // waits.
        let ended = {
            let mut turn_end = if turn.is_over_websocket() {
                turn.converse(conversation, &mut channel, timeout, start.permit.as_ref()).await
            } else {
                // Pinned where it is made: awaited as it is, it would be moved first.
                pin!(turn.execute(conversation, connections, timeout, start.permit.as_ref())).await
            };
            add_to(task.as_deref_mut(), conversation, &mut turn, &turn_end);
            drop(turn);
            if let Some(permit) = start.permit.take() {
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
            advance(worker, conversation, task.as_deref_mut(), turn_end);
            if conversation.is_over() {
                break conversation_end;
            }
            at
        };
        due = next_turn(worker, conversation, &mut channel, began, ended, end).await;
    };
    give_up(worker, conversation, taken, conversation_end.at);
    channel.close(worker);
    conversation_end
}

/// Takes the requests that a recorded session does not send, because a load of whole sessions ends
/// when all requests are taken.
fn give_up(worker: &Worker, conversation: &mut Conversation, taken: u16, at: Moment) {
    conversation.end_branch();
    let turns = if worker.run.whole_sessions { conversation.recorded_turns() } else { 0 };
    for _ in taken..turns {
        worker.take_request(at);
    }
}

/// Waits until the first turn of a branch is due, or takes the first turn of a conversation. If the
/// turn is not sent, `Err` contains its due time.
async fn first_turn(
    worker: &Rc<Worker>,
    conversation: &mut Conversation,
    channel: &mut WebSocketChannel,
    start: &ConversationStart,
) -> Result<Moment, Moment> {
    let ConversationStart { intended, end, is_open, .. } = *start;
    if conversation.is_branch() {
        return next_turn(worker, conversation, channel, intended, intended, end).await;
    }
    // The pacer has taken the first request of an arrival.
    if !is_open && !worker.take_request(intended) {
        return Err(intended);
    }
    worker.stats().conversation_started();
    Ok(intended)
}

/// Waits until the next turn is due. If the turn is not sent, `Err` contains its due time.
async fn next_turn(
    worker: &Rc<Worker>,
    conversation: &mut Conversation,
    channel: &mut WebSocketChannel,
    began: Moment,
    ended: Moment,
    end: Moment,
) -> Result<Moment, Moment> {
    let is_task = conversation.task_part().is_some();
    let intended = conversation.due(began, ended).await.ok_or(ended)?;
    if intended < worker.last_start(end, is_task) {
        channel.sleep_until(worker, intended).await;
    }
    // The run may have been interrupted meanwhile.
    let is_late = intended >= worker.last_start(end, is_task);
    if is_late || !worker.take_request(intended) { Err(intended) } else { Ok(intended) }
}

/// Runs a conversation together with the other branches of a recorded session.
pub(crate) async fn run_session(
    worker: &Rc<Worker>,
    conversation: &mut Conversation,
    connections: &Rc<ConnectionSet>,
    timeout: &mut LazyTimeout,
    start: &mut ConversationStart,
) -> ConversationEnd {
    let ConversationStart { intended, end, is_open, .. } = *start;
    let branches = conversation.split_branches().into_iter().map(|mut branch| {
        let (worker, connections) = (Rc::clone(worker), Rc::clone(connections));
        spawn_local(async move {
            let mut timeout = LazyTimeout::new(&worker.clock);
            let mut start = ConversationStart { intended, end, is_open, permit: None };
            run_conversation(&worker, &mut branch, &connections, &mut timeout, &mut start).await
        })
    });
    let branches: Vec<_> = branches.collect();
    let mut last = pin!(run_conversation(worker, conversation, connections, timeout, start)).await;
    for branch in branches {
        last = branch.await.ok().filter(|other| other.at > last.at).unwrap_or(last);
    }
    last
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
fn advance(
    worker: &Worker,
    conversation: &mut Conversation,
    task: Option<&mut OpenTask>,
    turn: TurnEnd,
) {
    let part = conversation.task_part();
    conversation.keep(turn.kept.as_ref());
    conversation.note_end(turn.at, &turn.reply, &turn.tool_calls);
    match turn.answer {
        None => conversation.advance_with(&turn.reply, turn.tool_calls),
        Some(answer) => conversation.advance_by(*answer),
    }
    if let Some(task) = task {
        task.advanced(conversation, part);
    }
    if conversation.is_over() && conversation.is_whole() {
        worker.stats().conversation_finished();
    }
}

// One task of an agent: from its first request to its record.

/// A task that has begun and is not yet recorded.
///
/// Dropping it records it: as unfinished, unless it has ended otherwise. A task is therefore never
/// lost, whatever ends its conversation.
#[derive(Debug)]
pub(crate) struct OpenTask {
    worker: Rc<Worker>,
    sample: TaskSample,
    /// Whether the first answer of the model has come.
    is_answered: bool,
}

impl OpenTask {
    /// Begins the task of a conversation, if an agent has it. Boxed: all other conversations have
    /// none.
    pub(crate) fn begin(
        worker: &Rc<Worker>,
        conversation: &Conversation,
        intended: Moment,
    ) -> Option<Box<Self>> {
        conversation.task_part()?;
        let stage = worker.stage_at(intended);
        let sample = TaskSample {
            stage,
            scenario: conversation.scenario(),
            target: worker.target_of(conversation.key()),
            conversation: conversation.key(),
            warmup: worker.is_warmup(stage),
            intended,
            finished: intended,
            first_token: None,
            times: [Nanos::ZERO; TaskPart::COUNT],
            generator: [Nanos::ZERO; TaskPart::COUNT],
            first_token_generator: Nanos::ZERO,
            counts: TaskCounts::default(),
            end: TaskEnd::Unfinished,
            failed_in: None,
        };
        worker.open_tasks.set(worker.open_tasks.get() + 1);
        Some(Box::new(Self { worker: Rc::clone(worker), sample, is_answered: false }))
    }

    /// Adds a turn that has ended, before the conversation moves on.
    pub(crate) fn add(&mut self, conversation: &Conversation, turn: &Sample, end: &TurnEnd) {
        let part = conversation.task_part().unwrap_or(TaskPart::Chat);
        let Self { sample, is_answered, .. } = self;
        sample.times[part as usize] += end.at.since(sample.finished);
        sample.generator[part as usize] += end.at.since(end.without_generator);
        sample.finished = end.at.max(sample.finished);
        if part == TaskPart::Chat && !*is_answered {
            *is_answered = true;
            let own = turn.generator;
            sample.first_token = turn.timeline.first_token.map(|at| at.since(sample.intended));
            sample.first_token_generator = own.dispatch + own.send + own.first_token;
        }
        if !end.completed {
            (sample.end, sample.failed_in) = (TaskEnd::Failed, Some(part));
        }
    }

    /// Notes how the conversation has moved on from a turn of `part`.
    pub(crate) fn advanced(&mut self, conversation: &Conversation, part: Option<TaskPart>) {
        self.sample.counts = conversation.task_counts();
        if let Some(end) = conversation.task_end() {
            self.sample.end = end;
            self.sample.failed_in = part.filter(|_| end == TaskEnd::Failed);
        }
    }
}

impl Drop for OpenTask {
    fn drop(&mut self) {
        let open = &self.worker.open_tasks;
        open.set(open.get().saturating_sub(1));
        self.worker.record_task(&self.sample);
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod task_tests;
