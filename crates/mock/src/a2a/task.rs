//! The tasks of the agents: bounded in number and in bytes.
//!
//! A task runs no code. Its state is computed from the time: it works until it is due, and then has
//! its planned end.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::version::State;
use crate::clock::Clock;
use crate::counter::Counter;
use crate::model_output::word_text;
use crate::rng::RequestRng;
use crate::stop::Stop;
use crate::token::{self, Token};

/// The most bytes of texts for echoes.
const MAX_TEXTS: usize = 64 * 1024 * 1024;

/// A full store examines this many of its oldest tasks for an idle one.
const LOOKS: usize = 64;

/// The work of a task for one message of the client.
#[derive(Clone, Debug)]
pub(super) struct Work {
    /// The text of an echo.
    pub(super) echo: Option<Arc<str>>,
    /// The random words of other results, and their length in bytes.
    pub(super) words: RequestRng,
    pub(super) bytes: usize,
    /// Pieces of the result in a stream.
    pub(super) pieces: u32,
    /// Start and end on the monotonic clock.
    pub(super) started: u64,
    pub(super) due: u64,
    /// Its end: requests input, completed or failed.
    pub(super) end: State,
}

/// A snapshot of a task.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) id: Token,
    pub(super) context: Arc<str>,
    agent: Arc<str>,
    pub(super) work: Work,
    canceled: Option<u64>,
}

impl Task {
    /// Its state, and the time at which it began.
    pub(super) const fn state(&self, now: u64) -> (State, u64) {
        match self.canceled {
            Some(at) => (State::Canceled, at),
            None if now < self.work.due => (State::Working, self.work.started),
            None => (self.work.end, self.work.due),
        }
    }

    /// The result.
    pub(super) fn text(&self) -> String {
        let work = &self.work;
        work.echo.as_ref().map_or_else(|| word_text(work.words, work.bytes), ToString::to_string)
    }

    fn text_bytes(&self) -> usize {
        self.work.echo.as_ref().map_or(0, |text| text.len())
    }
}

/// Why a task cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// The agent has no such task, or no longer.
    Unknown,
    /// It belongs to another context.
    OtherContext,
    /// Its state does not allow it.
    Is(State),
    /// The texts of all tasks use too much memory.
    NoRoom,
}

/// All tasks.
#[derive(Debug)]
pub(crate) struct Tasks {
    clock: Clock,
    secret: u64,
    limit: usize,
    /// Number of generated tokens.
    made: Counter,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    text_bytes: usize,
    by_id: HashMap<Token, Entry>,
    /// All ids, the oldest first.
    order: VecDeque<Token>,
}

#[derive(Debug)]
struct Entry {
    task: Task,
    /// The answers to end if the task is canceled.
    waiting: Vec<(u64, oneshot::Sender<()>)>,
}

impl Inner {
    /// Removes old tasks until `bytes` more fit; returns whether they do.
    fn make_room(&mut self, tasks: &Tasks, bytes: usize) -> bool {
        let now = tasks.clock.now();
        for _ in 0..LOOKS {
            if self.has_room(tasks, bytes) {
                break;
            }
            let Some(id) = self.order.pop_front() else { break };
            let oldest = self.by_id.get(&id).map(|entry| &entry.task);
            if oldest.is_some_and(|task| task.state(now).0 == State::Working) {
                self.order.push_back(id);
            } else if let Some(entry) = self.by_id.remove(&id) {
                self.text_bytes -= entry.task.text_bytes();
            }
        }
        self.has_room(tasks, bytes)
    }

    fn entry(&mut self, agent: &str, id: &str) -> Option<&mut Entry> {
        let entry = token::read(id).and_then(|id| self.by_id.get_mut(&id));
        entry.filter(|entry| *entry.task.agent == *agent)
    }

    fn has_room(&self, tasks: &Tasks, bytes: usize) -> bool {
        self.by_id.len() < tasks.limit && self.text_bytes + bytes <= MAX_TEXTS
    }
}

impl Tasks {
    pub(crate) fn new(clock: Clock, limit: usize) -> Self {
        let secret = clock.unix(clock.now()) ^ 1;
        Self { clock, secret, limit, made: Counter::default(), inner: Mutex::default() }
    }

    /// A new token for a task, a context or a message.
    pub(super) fn token(&self) -> Token {
        token::make(self.secret, self.made.increment())
    }

    /// Opens a task; `None` if too many are working.
    pub(super) fn open(&self, agent: &str, context: &str, work: Work) -> Option<Task> {
        let mut inner = self.inner.lock();
        let bytes = work.echo.as_ref().map_or(0, |text| text.len());
        if !inner.make_room(self, bytes) {
            return None;
        }
        let id = self.token();
        let (agent, context) = (agent.into(), context.into());
        let task = Task { id, context, agent, work, canceled: None };
        inner.text_bytes += bytes;
        inner.order.push_back(id);
        inner.by_id.insert(id, Entry { task: task.clone(), waiting: Vec::new() });
        Some(task)
    }

    /// A task of an agent.
    pub(super) fn get(&self, agent: &str, id: &str) -> Option<Task> {
        self.inner.lock().entry(agent, id).map(|entry| entry.task.clone())
    }

    /// Checks that a task accepts a message, because it requested input.
    pub(super) fn check_open(
        &self,
        agent: &str,
        id: &str,
        context: Option<&str>,
    ) -> Result<Task, Unusable> {
        let task = self.get(agent, id).ok_or(Unusable::Unknown)?;
        if context.is_some_and(|context| *task.context != *context) {
            return Err(Unusable::OtherContext);
        }
        match task.state(self.clock.now()).0 {
            State::InputRequired => Ok(task),
            state => Err(Unusable::Is(state)),
        }
    }

    /// Resumes a task that requested input.
    pub(super) fn resume(&self, agent: &str, id: &str, work: Work) -> Result<Task, Unusable> {
        let now = self.clock.now();
        let mut inner = self.inner.lock();
        let more = work.echo.as_ref().map_or(0, |text| text.len());
        let used = inner.text_bytes;
        let entry = inner.entry(agent, id).ok_or(Unusable::Unknown)?;
        // If two messages arrive at once, the second finds a working task.
        match entry.task.state(now).0 {
            State::InputRequired => {}
            state => return Err(Unusable::Is(state)),
        }
        let used = used - entry.task.text_bytes() + more;
        if used > MAX_TEXTS {
            return Err(Unusable::NoRoom);
        }
        entry.task.work = work;
        let task = entry.task.clone();
        inner.text_bytes = used;
        Ok(task)
    }

    /// Cancels a task and ends the answers that wait for it.
    pub(super) fn cancel(&self, agent: &str, id: &str) -> Result<Task, Unusable> {
        let now = self.clock.now();
        let mut inner = self.inner.lock();
        let entry = inner.entry(agent, id).ok_or(Unusable::Unknown)?;
        let (state, _) = entry.task.state(now);
        if state.is_terminal() {
            return Err(Unusable::Is(state));
        }
        entry.task.canceled = Some(now);
        entry.waiting = Vec::new();
        Ok(entry.task.clone())
    }

    /// A signal for the cancellation of a task; already set if the task is canceled or was removed.
    pub(super) fn watch(self: &Arc<Self>, id: Token) -> Stop {
        let (sender, signal) = oneshot::channel();
        let mut inner = self.inner.lock();
        let number = self.made.increment();
        if let Some(entry) = inner.by_id.get_mut(&id).filter(|e| e.task.canceled.is_none()) {
            entry.waiting.push((number, sender));
        }
        let tasks = Arc::clone(self);
        Stop::new(signal, move || {
            if let Some(entry) = tasks.inner.lock().by_id.get_mut(&id) {
                entry.waiting.retain(|(known, _)| *known != number);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Waker};

    const HOUR: u64 = 3_600_000_000_000;

    fn tasks(limit: usize) -> Arc<Tasks> {
        Arc::new(Tasks::new(Clock::start(), limit))
    }

    /// Work that is due `late` nanoseconds from now.
    fn work(tasks: &Tasks, late: u64, end: State) -> Work {
        let started = tasks.clock.now();
        let words = RequestRng::new(1, None, 0);
        let due = started.saturating_add(late);
        Work { echo: None, words, bytes: 10, pieces: 1, started, due, end }
    }

    fn open(tasks: &Tasks, late: u64, end: State) -> Option<Task> {
        tasks.open("a", "c", work(tasks, late, end))
    }

    fn state(tasks: &Tasks, task: &Task) -> Option<State> {
        let found = tasks.get("a", &token::text(task.id))?;
        Some(found.state(tasks.clock.now()).0)
    }

    fn is_stopped(stop: &mut Stop) -> bool {
        stop.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn the_state_follows_from_the_time_and_from_cancellation() {
        let tasks = tasks(10);
        let long = open(&tasks, HOUR, State::Completed).unwrap();
        let done = open(&tasks, 0, State::Failed).unwrap();
        assert_eq!(state(&tasks, &long), Some(State::Working));
        assert_eq!(state(&tasks, &done), Some(State::Failed));
        let id = token::text(long.id);
        assert_eq!(tasks.get("another agent", &id).map(|task| task.id), None);
        let mut waiting = tasks.watch(long.id);
        assert!(!is_stopped(&mut waiting));
        assert!(tasks.cancel("a", &id).is_ok());
        assert!(is_stopped(&mut waiting) && is_stopped(&mut waiting));
        assert!(is_stopped(&mut tasks.watch(long.id)), "canceled before");
        assert_eq!(tasks.cancel("a", &id).unwrap_err(), Unusable::Is(State::Canceled));
        let failed = tasks.cancel("a", &token::text(done.id)).unwrap_err();
        assert_eq!(failed, Unusable::Is(State::Failed));
        assert_eq!(tasks.cancel("a", "none").unwrap_err(), Unusable::Unknown);
    }

    #[test]
    fn only_a_task_that_asks_for_input_takes_a_message_and_only_one() {
        let tasks = tasks(10);
        let asks = open(&tasks, 0, State::InputRequired).unwrap();
        let id = token::text(asks.id);
        assert!(tasks.check_open("a", &id, Some("c")).is_ok());
        assert_eq!(tasks.check_open("a", &id, Some("d")).unwrap_err(), Unusable::OtherContext);
        let again = || tasks.resume("a", &id, work(&tasks, HOUR, State::Completed));
        assert!(again().is_ok());
        assert_eq!(again().unwrap_err(), Unusable::Is(State::Working));
        assert_eq!(tasks.check_open("a", &id, None).unwrap_err(), Unusable::Is(State::Working));
    }

    #[test]
    fn a_full_store_forgets_the_oldest_that_does_not_work_and_else_refuses() {
        let tasks = tasks(3);
        let working = open(&tasks, HOUR, State::Completed).unwrap();
        let first = open(&tasks, 0, State::Completed).unwrap();
        let second = open(&tasks, 0, State::Completed).unwrap();
        let third = open(&tasks, HOUR, State::Completed).unwrap();
        assert_eq!(state(&tasks, &first), None);
        assert!([&working, &second, &third].iter().all(|task| state(&tasks, task).is_some()));
        assert!(open(&tasks, HOUR, State::Completed).is_some());
        assert!(open(&tasks, HOUR, State::Completed).is_none(), "all three work");
        let inner = tasks.inner.lock();
        assert_eq!((inner.by_id.len(), inner.order.len()), (3, 3));
    }

    #[test]
    fn texts_are_bounded() {
        let tasks = tasks(1_000);
        let text: Arc<str> = "x".repeat(MAX_TEXTS / 4).into();
        let echo = |late| {
            let work = work(&tasks, late, State::Completed);
            tasks.open("a", "c", Work { echo: Some(Arc::clone(&text)), ..work })
        };
        let first = echo(0).unwrap();
        (0..4).for_each(|_| assert!(echo(HOUR).is_some()));
        assert_eq!(state(&tasks, &first), None);
        assert!(echo(HOUR).is_none());
        assert_eq!(tasks.inner.lock().text_bytes, MAX_TEXTS);
    }
}
