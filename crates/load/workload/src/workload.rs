//! The content of a run: gives each conversation its scenario and its prompts.

use std::path::Path;
use std::sync::Arc;

use plimsoll_measure::{ConversationKey, IdSeed, ScenarioId, Seed, Stripe, TargetId};

use crate::conversation::Conversation;
use crate::error::{ScenarioFault, ScenarioProblem, WorkloadError};
use crate::id::run_marker;
use crate::mix::ScenarioMix;
use crate::prepared::PreparedWorkload;
use crate::prompt_builder::PromptBuilder;
use crate::scenario::Scenario;
use crate::spec::ScenarioSpec;
use crate::synthetic_text::all_words;
use crate::token_counter::TokenCounter;
use crate::trace::Trace;

/// The content of a run: a pure function of spec, seed, run id and conversation key. Cheap to clone
/// and share.
#[derive(Clone, Debug)]
pub struct Workload(Arc<PreparedWorkload>);

impl Workload {
    /// Checks the scenarios and prepares their prompts. Without a tokenizer file, every
    /// word counts as one token.
    ///
    /// `seed` decides the scenario and the text of every conversation; `ids` decides its id and the
    /// marker that keeps it out of caches, which must differ from run to run.
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
        })))
    }

    /// The same content for every target of a comparison: conversations of one block
    /// ([`ConversationKey::block`]) differ in nothing but their ids, which have equal lengths. With
    /// `canned`, the answers of the model do not become part of a chat, since those of two targets
    /// differ; texts of our own take their place.
    #[must_use]
    pub fn for_targets(mut self, targets: u16, canned: bool) -> Self {
        if let Some(prepared) = Arc::get_mut(&mut self.0) {
            prepared.run_markers = (0..targets.max(1))
                .map(|target| run_marker(prepared.ids, TargetId(target)))
                .collect();
            (prepared.targets, prepared.canned) = (targets.max(1), canned);
        }
        self
    }

    /// The conversation with this key, at its first turn. With `row` it is one turn with the
    /// lengths of that row of the trace (see [`Conversation`]), or has that prompt of those that
    /// are sent in order; a row that is in neither is ignored.
    ///
    /// The scenario is chosen by weight, from the key alone.
    pub fn conversation(&self, key: ConversationKey, row: Option<u64>) -> Conversation {
        let scenario = self.scenario(key);
        Conversation::new(Arc::clone(&self.0), scenario, key, row)
    }

    /// The number of sessions or prompts that are to be sent in order, each once; `None` if none
    /// are.
    pub fn ordered_prompts(&self) -> Option<u64> {
        self.0.ordered_count()
    }

    /// The requests of those in this part of a run.
    pub fn ordered_requests(&self, part: Stripe) -> Option<u64> {
        let step = usize::try_from(part.count()).unwrap_or(usize::MAX);
        let sessions = (part.index()..self.ordered_prompts()?).step_by(step);
        Some(sessions.map(|session| self.0.ordered_turns(session)).sum())
    }

    /// The requests of sessions of the trace; `None` where each has one, or none is played.
    pub fn trace_requests(&self, sessions: impl Iterator<Item = u64>) -> Option<u64> {
        let trace = self.0.trace.as_ref()?;
        let (mut count, mut requests) = (0, 0);
        for session in sessions.filter_map(|session| usize::try_from(session).ok()) {
            count += 1;
            requests += u64::from(trace.turns(session));
        }
        (requests > count).then_some(requests)
    }

    /// Whether requests are sent as they were recorded, each with a head of its own.
    pub fn plays_records(&self) -> bool {
        let files = self.0.scenarios.iter().filter_map(|scenario| scenario.recorded());
        self.0.trace.iter().chain(files.map(|(trace, _)| trace)).any(|trace| trace.has_texts())
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
