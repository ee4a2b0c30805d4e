//! What a run says.

use std::path::Path;
use std::sync::Arc;

use plimsoll_measure::{ConversationKey, ScenarioId, Seed};

use crate::conversation::Conversation;
use crate::error::{ScenarioFault, ScenarioProblem, WorkloadError};
use crate::gauge::Gauge;
use crate::lexicon;
use crate::materials::Materials;
use crate::mix::Mix;
use crate::scenario::Scenario;
use crate::spec::ScenarioSpec;
use crate::trace::Trace;

/// What a run says: a pure function of spec, seed and conversation key. Cheap to clone and to share.
#[derive(Clone, Debug)]
pub struct Workload(Arc<Parts>);

#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) scenarios: Vec<Scenario>,
    pub(crate) trace: Option<Trace>,
    pub(crate) materials: Materials,
    pub(crate) seed: Seed,
    mix: Mix,
}

impl Workload {
    /// Checks the scenarios and prepares what their prompts are made of. Without a tokenizer file,
    /// tokens are estimated at four bytes each.
    ///
    /// # Errors
    /// Everything that is wrong with the scenarios, or what is wrong with the tokenizer.
    pub fn new(
        scenarios: &[ScenarioSpec],
        trace: Option<Trace>,
        tokenizer: Option<&Path>,
        seed: Seed,
    ) -> Result<Self, WorkloadError> {
        let checked = checked(scenarios, seed).map_err(WorkloadError::Scenarios)?;
        let (gauge, words) = match tokenizer {
            Some(file) => Gauge::load(file)?,
            None => (Gauge::default(), lexicon::all().collect()),
        };
        Ok(Self(Arc::new(Parts {
            scenarios: checked,
            trace,
            materials: Materials::new(&words, gauge, seed.derive("materials")),
            mix: Mix::new(scenarios.iter().map(|scenario| scenario.weight)),
            seed,
        })))
    }

    /// The conversation that has this key, from its beginning. With `trace_row` it is one turn with
    /// that row's lengths (see [`Conversation`]); a row that the trace does not have is no row.
    ///
    /// The scenario is drawn by weight, keyed by the conversation alone.
    pub fn conversation(&self, key: ConversationKey, trace_row: Option<u64>) -> Conversation {
        let scenario = self.scenario(key);
        Conversation::new(Arc::clone(&self.0), scenario, key, trace_row)
    }

    /// The scenario of a conversation, without the conversation itself.
    pub fn scenario(&self, key: ConversationKey) -> ScenarioId {
        self.0.mix.pick(self.0.seed.rng("mix", key.0))
    }
}

fn checked(specs: &[ScenarioSpec], seed: Seed) -> Result<Vec<Scenario>, Vec<ScenarioProblem>> {
    let mut scenarios = Vec::new();
    let mut problems = whole(specs);
    for (index, spec) in (0..).zip(specs) {
        let own = Seed(seed.rng("scenario", index).next_u64());
        match Scenario::new(spec, own) {
            Ok(scenario) => scenarios.push(scenario),
            Err(found) => problems.extend(found),
        }
    }
    if problems.is_empty() { Ok(scenarios) } else { Err(problems) }
}

/// What is wrong with the scenarios together.
fn whole(specs: &[ScenarioSpec]) -> Vec<ScenarioProblem> {
    let all = |field: &str, fault| {
        let (scenario, field) = ("*".to_owned(), field.to_owned());
        vec![ScenarioProblem { scenario, field, fault }]
    };
    if specs.is_empty() || specs.len() > usize::from(u16::MAX) {
        all("scenarios", ScenarioFault::Number(specs.len()))
    } else if specs.iter().all(|spec| spec.weight == 0.0) {
        all("weight", ScenarioFault::NoWeight)
    } else {
        Vec::new()
    }
}
