//! State of a mock that all its threads share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::a2a::Tasks;
use crate::clock::Clock;
use crate::counter::Counter;
use crate::counters::{Counters, Stats};
use crate::error::MockError;
use crate::log::Log;
use crate::mcp::Sessions;
use crate::recorded_answer::{self, RecordedAnswer};
use crate::spec::{MockConfig, ModelSpec};

/// A model, and its recorded answer, if it has one.
type Model = (Arc<ModelSpec>, Option<Arc<RecordedAnswer>>);

/// The configuration, the counters and the log.
#[derive(Debug)]
pub(crate) struct MockState {
    pub(crate) config: MockConfig,
    pub(crate) clock: Clock,
    pub(crate) counters: Counters,
    pub(crate) log: Log,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) tasks: Arc<Tasks>,
    models: BTreeMap<String, Model>,
    other_models: Model,
    sequence: Counter,
    stopping: AtomicBool,
}

impl MockState {
    pub(crate) fn new(config: &MockConfig) -> Result<Self, MockError> {
        let clock = Clock::start();
        let recorded = recorded_answer::read_folder(config.answers.as_deref())?;
        let configured = config.models.iter();
        let mut models: BTreeMap<String, Model> = configured
            .map(|(name, model)| (name.clone(), (Arc::new(model.clone()), None)))
            .collect();
        let other_models = (Arc::new(config.other_models.clone()), None);
        for (name, answer) in recorded {
            models.entry(name).or_insert_with(|| other_models.clone()).1 = Some(answer);
        }
        Ok(Self {
            config: config.clone(),
            clock,
            counters: Counters::new(),
            log: Log::open(config, clock)?,
            sessions: Arc::new(Sessions::new(
                clock,
                config.mcp.max_sessions as usize,
                config.mcp.session_timeout.as_nanos(),
            )),
            tasks: Arc::new(Tasks::new(clock, config.a2a.max_tasks as usize)),
            models,
            other_models,
            sequence: Counter::default(),
            stopping: AtomicBool::new(false),
        })
    }

    /// The number of the next request.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.sequence.increment()
    }

    /// A model of this name.
    pub(crate) fn model(&self, name: &str) -> &Model {
        self.models.get(name).unwrap_or(&self.other_models)
    }

    /// The names of the configured models, in order.
    pub(crate) fn model_names(&self) -> impl Iterator<Item = &str> {
        self.models.keys().map(String::as_str)
    }

    pub(crate) fn stats(&self) -> Stats {
        self.counters.stats(self.log.lost())
    }

    /// Marks the mock as stopping: later early ends are not counted as ended by clients.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }
}
