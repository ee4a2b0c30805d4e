//! The content of a run: the scenario and the prompts of each conversation.

use std::path::Path;
use std::sync::{Arc, RwLock};

use plimsoll_measure::{ConversationKey, IdSeed, ScenarioId, Seed, Stripe, TargetId};

use crate::conversation::Conversation;
use crate::error::{ScenarioFault, ScenarioProblem, WorkloadError};
use crate::id::run_marker;
use crate::mix::ScenarioMix;
use crate::prepared::PreparedWorkload;
use crate::prompt_builder::{PromptBuilder, TokenCounter};
use crate::scenario::Scenario;
use crate::spec::ScenarioSpec;
use crate::synthetic_text::all_words;
use crate::trace::Trace;

/// The content of a run. It depends only on spec, seed, run id and conversation key, and is cheap
/// to clone.
#[derive(Clone, Debug)]
pub struct Workload(Arc<PreparedWorkload>);

impl Workload {
    /// Checks the scenarios and prepares their prompts. Without a tokenizer file, every
    /// word counts as one token.
    ///
    /// `seed` determines the scenario and the text of every conversation; `ids` determines its id
    /// and the marker against caches, and must differ between runs.
    ///
    /// # Errors
    /// All problems of the scenarios, or the problem of the tokenizer.
    pub fn new(
        scenarios: &[ScenarioSpec],
        trace: Option<Arc<Trace>>,
        tokenizer: Option<&Path>,
        seed: Seed,
        ids: IdSeed,
    ) -> Result<Self, WorkloadError> {
        let checked = check(scenarios, seed, trace.as_deref()).map_err(WorkloadError::Scenarios)?;
        let (counter, words) = match tokenizer {
            Some(file) => TokenCounter::load(file)?,
            None => (TokenCounter::default(), all_words().collect()),
        };
        Ok(Self(Arc::new(PreparedWorkload {
            scenarios: checked,
            trace,
            prompts: PromptBuilder::new(&words, counter, seed.derive("materials")),
            mix: ScenarioMix::new(scenarios.iter().map(|scenario| scenario.weight)),
            seed,
            ids,
            run_markers: vec![run_marker(ids, TargetId(0))],
            targets: 1,
            canned: false,
            sent_prefixes: RwLock::default(),
        })))
    }

    /// The same content for every target of a comparison: conversations of one block
    /// ([`ConversationKey::block`]) differ only in their ids, which have equal lengths. With
    /// `canned`, canned texts replace the model's responses in a chat, because the responses of two
    /// targets differ.
    pub fn for_targets(mut self, targets: u16, canned: bool) -> Self {
        if let Some(prepared) = Arc::get_mut(&mut self.0) {
            prepared.run_markers = (0..targets.max(1))
                .map(|target| run_marker(prepared.ids, TargetId(target)))
                .collect();
            (prepared.targets, prepared.canned) = (targets.max(1), canned);
        }
        self
    }

    /// Starts the conversation with this key. It replays session `row` of the trace or of the file
    /// that is sent in order; other rows are ignored.
    ///
    /// The key alone determines the scenario, by weight.
    pub fn conversation(&self, key: ConversationKey, row: Option<u64>) -> Conversation {
        let scenario = self.scenario(key);
        Conversation::new(Arc::clone(&self.0), scenario, key, row)
    }

    /// The number of sessions to send once each, in order; `None` without such a file.
    pub fn ordered_prompts(&self) -> Option<u64> {
        self.0.ordered_sessions().map(|trace| trace.len() as u64)
    }

    /// The number of their requests in this part of a run.
    pub fn ordered_requests(&self, part: Stripe) -> Option<u64> {
        let step = usize::try_from(part.count()).unwrap_or(usize::MAX);
        let sessions = (part.index()..self.ordered_prompts()?).step_by(step);
        self.0.ordered_sessions().map(|trace| trace.requests(sessions))
    }

    /// The number of requests in these sessions of the trace; `None` if each has one, or without a
    /// trace.
    pub fn trace_requests(&self, sessions: Vec<u64>) -> Option<u64> {
        let (trace, count) = (self.0.trace.as_ref()?, sessions.len() as u64);
        Some(trace.requests(sessions)).filter(|requests| *requests > count)
    }

    /// Whether the run replays recorded requests, each with its own head.
    pub fn plays_records(&self) -> bool {
        let files = self.0.scenarios.iter().filter_map(|scenario| scenario.recorded());
        let mut traces = self.0.trace.iter().chain(files.map(|(trace, _)| trace));
        traces.any(|trace| !trace.dialects().is_empty())
    }

    /// The scenario of a conversation, computed without the conversation.
    pub fn scenario(&self, key: ConversationKey) -> ScenarioId {
        let (content, _) = self.0.content_of(key);
        self.0.mix.pick(|| self.0.seed.rng("mix", content.0))
    }
}

fn check(
    specs: &[ScenarioSpec],
    seed: Seed,
    trace: Option<&Trace>,
) -> Result<Vec<Scenario>, Vec<ScenarioProblem>> {
    let mut scenarios = Vec::new();
    let mut problems = check_mix(specs);
    for index in 0..specs.len() {
        let scenario_seed = Seed(seed.rng("scenario", index as u64).next_u64());
        match Scenario::new(specs, index, scenario_seed, trace) {
            Ok(scenario) => scenarios.push(scenario),
            Err(found) => problems.extend(found),
        }
    }
    if problems.is_empty() { Ok(scenarios) } else { Err(problems) }
}

/// Problems of the scenarios as a whole.
fn check_mix(specs: &[ScenarioSpec]) -> Vec<ScenarioProblem> {
    let (field, fault) = if specs.is_empty() || specs.len() > usize::from(u16::MAX) {
        ("scenarios", ScenarioFault::Number(specs.len()))
    } else if specs.iter().all(|spec| spec.weight == 0.0) {
        ("weight", ScenarioFault::NoWeight)
    } else {
        return Vec::new();
    };
    vec![ScenarioProblem { scenario: "*".to_owned(), field: field.to_owned(), fault }]
}
