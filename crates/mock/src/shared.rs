//! What all workers of a mock have in common.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::clock::Clock;
use crate::counters::{Count, Counters, Stats};
use crate::error::MockError;
use crate::log::Log;
use crate::spec::{MockConfig, ModelSpec};

/// The configuration, the counters and the log.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) seed: u64,
    pub(crate) api_key: Option<String>,
    pub(crate) clock: Clock,
    pub(crate) counters: Counters,
    pub(crate) log: Log,
    /// Places in `models` by name.
    places: HashMap<String, usize>,
    /// The configured models in order, then the one for all other names: as the series of the
    /// counters.
    models: Vec<Arc<ModelSpec>>,
    sequence: Count,
    stopping: AtomicBool,
}

impl Shared {
    pub(crate) fn new(config: &MockConfig) -> Result<Self, MockError> {
        let clock = Clock::start();
        let all = config.models.values().chain([&config.other_models]);
        Ok(Self {
            seed: config.seed,
            api_key: config.api_key.clone(),
            clock,
            counters: Counters::new(config.models.keys()),
            log: Log::open(config, clock)?,
            places: config.models.keys().cloned().zip(0..).collect(),
            models: all.cloned().map(Arc::new).collect(),
            sequence: Count::default(),
            stopping: AtomicBool::new(false),
        })
    }

    /// The number of the next request.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.sequence.up()
    }

    /// A model's behaviour, and the place of its counters.
    pub(crate) fn model(&self, name: &str) -> (usize, &Arc<ModelSpec>) {
        let place = self.places.get(name).copied().unwrap_or(self.models.len() - 1);
        (place, &self.models[place])
    }

    /// The names of the configured models, in order.
    pub(crate) fn model_names(&self) -> impl Iterator<Item = &str> {
        let named = self.models.len() - 1;
        self.counters.series[..named].iter().map(|series| series.model.as_str())
    }

    pub(crate) fn stats(&self) -> Stats {
        self.counters.stats(self.log.lost())
    }

    /// From now on what ends early is not the client's doing.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }
}
