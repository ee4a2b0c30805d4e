//! State of a mock that all its threads share.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::a2a::{A2aSpec, Tasks};
use crate::clock::Clock;
use crate::counter::Counter;
use crate::counters::{Counters, Stats};
use crate::error::MockError;
use crate::log::Log;
use crate::mcp::{McpSpec, Sessions};
use crate::recorded_answer::{self, RecordedAnswer};
use crate::spec::{DrawBy, MockConfig, ModelSpec};

/// The resolved configuration, the counters and the log.
#[derive(Debug)]
pub(crate) struct MockState {
    pub(crate) seed: u64,
    pub(crate) draw: DrawBy,
    pub(crate) api_key: Option<String>,
    pub(crate) clock: Clock,
    pub(crate) counters: Counters,
    pub(crate) log: Log,
    pub(crate) mcp: McpSpec,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) a2a: A2aSpec,
    pub(crate) tasks: Arc<Tasks>,
    /// Indices in `models` by name.
    index_by_name: HashMap<String, usize>,
    /// The configured models in order, then the one for all other names: the same indices as in
    /// [`Counters::models`].
    models: Vec<Arc<ModelSpec>>,
    /// What models answer that play a recording, by their index.
    answers: HashMap<usize, Arc<RecordedAnswer>>,
    sequence: Counter,
    stopping: AtomicBool,
}

impl MockState {
    pub(crate) fn new(config: &MockConfig) -> Result<Self, MockError> {
        let clock = Clock::start();
        let recorded = recorded_answer::read_folder(config.answers.as_deref())?;
        let mut models = config.models.clone();
        for name in recorded.keys() {
            models.entry(name.clone()).or_insert_with(|| config.other_models.clone());
        }
        let index_by_name: HashMap<String, usize> = models.keys().cloned().zip(0..).collect();
        let answers = recorded.into_iter();
        let all = models.values().chain([&config.other_models]);
        Ok(Self {
            seed: config.seed,
            draw: config.draw,
            api_key: config.api_key.clone(),
            clock,
            counters: Counters::new(models.keys()),
            log: Log::open(config, clock)?,
            sessions: Arc::new(Sessions::new(
                clock,
                config.mcp.max_sessions as usize,
                config.mcp.session_timeout.as_nanos(),
            )),
            mcp: config.mcp.clone(),
            tasks: Arc::new(Tasks::new(clock, config.a2a.max_tasks as usize)),
            a2a: config.a2a.clone(),
            answers: answers.map(|(name, answer)| (index_by_name[&name], answer)).collect(),
            index_by_name,
            models: all.cloned().map(Arc::new).collect(),
            sequence: Counter::default(),
            stopping: AtomicBool::new(false),
        })
    }

    /// The number of the next request.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.sequence.increment()
    }

    /// A model's behaviour, and the index of its counters.
    pub(crate) fn model(&self, name: &str) -> (usize, &Arc<ModelSpec>) {
        let index = self.index_by_name.get(name).copied().unwrap_or(self.models.len() - 1);
        (index, &self.models[index])
    }

    /// What the model of this index answers, if it plays a recording.
    pub(crate) fn recorded_answer(&self, model: usize) -> Option<&Arc<RecordedAnswer>> {
        self.answers.get(&model)
    }

    /// The names of the configured models, in order.
    pub(crate) fn model_names(&self) -> impl Iterator<Item = &str> {
        let configured = self.models.len() - 1;
        self.counters.models[..configured].iter().map(|counters| counters.model.as_str())
    }

    pub(crate) fn stats(&self) -> Stats {
        self.counters.stats(self.log.lost())
    }

    /// Marks the mock as stopping: requests that end early from now on were not ended by their
    /// clients.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }
}
