//! Messages, tasks and events as JSON, in both versions.

use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};

use super::task::Task;
use super::version::{State, Version};
use crate::clock::Clock;
use crate::event_plan::part;
use crate::rng::mixed;
use crate::token::{self, Token};

/// Formats one agent's answers in one version.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) version: Version,
    pub(super) clock: Clock,
}

/// The id of the only artifact of a task.
const ARTIFACT: &str = "result";

impl Shape {
    fn part(self, text: &str) -> Value {
        match self.version {
            Version::V03 => json!({"kind": "text", "text": text}),
            Version::V1 => json!({"text": text}),
        }
    }

    /// Adds the kind to a value, if the version requires it.
    fn of_kind(self, kind: &str, mut value: Value) -> Value {
        if self.version == Version::V03 {
            value["kind"] = Value::from(kind);
        }
        value
    }

    /// A message of the agent. `task` is its subject.
    pub(super) fn message(
        self,
        id: Token,
        context: &str,
        task: Option<Token>,
        text: &str,
    ) -> Value {
        let role = if self.version == Version::V03 { "agent" } else { "ROLE_AGENT" };
        let mut message = json!({
            "messageId": token::text(id), "contextId": context, "role": role,
            "parts": [self.part(text)],
        });
        if let Some(task) = task {
            message["taskId"] = Value::from(token::text(task));
        }
        self.of_kind("message", message)
    }

    /// A status, and the monotonic time at which it began.
    fn status(self, task: &Task, state: State, since: Option<u64>) -> Value {
        let mut status = json!({"state": state.name(self.version)});
        if let Some(since) = since {
            status["timestamp"] = Value::from(rfc3339(self.clock.unix(since)));
        }
        let text = match state {
            State::InputRequired => "Which one? The mock was asked to ask",
            State::Failed => "The mock was asked to let this task fail",
            _ => return status,
        };
        // One message per task and status.
        let low = u64::try_from(task.id & u128::from(u64::MAX)).unwrap_or(0);
        let id = token::make(mixed(low, state as u64), task.work.due);
        status["message"] = self.message(id, &task.context, Some(task.id), text);
        status
    }

    fn artifact(self, text: &str) -> Value {
        json!({"artifactId": ARTIFACT, "name": ARTIFACT, "parts": [self.part(text)]})
    }

    /// A task in a state, with its result if it is completed.
    fn task_in(self, task: &Task, state: State, since: u64) -> Value {
        let mut value = json!({
            "id": token::text(task.id), "contextId": *task.context,
            "status": self.status(task, state, Some(since)),
        });
        if state == State::Completed {
            value["artifacts"] = json!([self.artifact(&task.text())]);
        }
        self.of_kind("task", value)
    }

    /// A task in its state at a time.
    pub(super) fn task(self, task: &Task, now: u64) -> Value {
        let (state, since) = task.state(now);
        self.task_in(task, state, since)
    }

    /// Wraps a result that may be one of several kinds in its name.
    pub(super) fn named(self, name: &str, value: Value) -> Value {
        match self.version {
            Version::V03 => value,
            Version::V1 => json!({ name: value }),
        }
    }

    fn status_event(self, task: &Task, state: State, since: Option<u64>) -> Value {
        let mut event = json!({
            "taskId": token::text(task.id), "contextId": *task.context,
            "status": self.status(task, state, since),
        });
        if self.version == Version::V03 {
            event["final"] = Value::from(state.is_terminal() || state == State::InputRequired);
        }
        self.named("statusUpdate", self.of_kind("status-update", event))
    }

    fn piece_event(self, task: &Task, text: &str, number: u64, count: u64) -> Value {
        let event = json!({
            "taskId": token::text(task.id), "contextId": *task.context,
            "artifact": self.artifact(text), "append": number > 1, "lastChunk": number == count,
        });
        self.named("artifactUpdate", self.of_kind("artifact-update", event))
    }

    /// The last event of the stream of a canceled task.
    pub(super) fn canceled_event(self, task: &Task) -> Value {
        self.status_event(task, State::Canceled, None)
    }

    /// The events of a task up to the end of its work, with their times on the monotonic clock. The
    /// first is the task itself in its current state: `Submitted` for a new task, else `Working`.
    pub(super) fn events(self, task: &Task, begin: State) -> Vec<(u64, Value)> {
        let work = &task.work;
        let first = self.task_in(task, begin, work.started);
        let mut events = vec![(work.started, self.named("task", first))];
        if begin == State::Submitted {
            let working = self.status_event(task, State::Working, Some(work.started));
            events.push((work.started, working));
        }
        if work.end == State::Completed {
            events.extend(self.pieces(task));
        }
        events.push((work.due, self.status_event(task, work.end, Some(work.due))));
        events
    }

    fn pieces(self, task: &Task) -> Vec<(u64, Value)> {
        let (work, text) = (&task.work, task.text());
        let count = u64::from(work.pieces).min(text.len().max(1) as u64);
        (1..=count)
            .map(|number| {
                let due = part(work.due - work.started, number, count).saturating_add(work.started);
                let text = &text[place(&text, number - 1, count)..place(&text, number, count)];
                (due, self.piece_event(task, text, number, count))
            })
            .collect()
    }
}

/// The end of a piece of a text, on a character boundary.
fn place(text: &str, number: u64, count: u64) -> usize {
    let at = usize::try_from(part(text.len() as u64, number, count)).unwrap_or(0);
    text.floor_char_boundary(at)
}

/// A time in nanoseconds since 1970 UTC as RFC 3339 with milliseconds, such as
/// `2026-11-22T18:05:00.250Z`.
pub(crate) fn rfc3339(unix: u64) -> String {
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_nanos(unix)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        // From `date -u -d @SECONDS`.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00"),
            (951_782_399, "2000-02-28T23:59:59"),
            (951_782_400, "2000-02-29T00:00:00"),
            (951_868_800, "2000-03-01T00:00:00"),
            (1_735_689_599, "2024-12-31T23:59:59"),
            (1_795_370_700, "2026-11-22T18:05:00"),
            (4_107_542_400, "2100-03-01T00:00:00"),
        ] {
            assert_eq!(rfc3339(seconds * 1_000_000_000 + 7_999_999), format!("{text}.007Z"));
        }
    }
}
