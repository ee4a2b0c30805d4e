//! One task of an agent: from its first request to its record.

use std::rc::Rc;

use plimsoll_measure::{Moment, Nanos, Sample, TaskCounts, TaskEnd, TaskPart, TaskSample};
use plimsoll_workload::Conversation;

use crate::turn::TurnEnd;
use crate::worker::Worker;

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
