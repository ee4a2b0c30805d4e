//! A scenario, checked and ready to speak.

use std::sync::Arc;

use plimsoll_measure::{Nanos, Rng, Seed};
use plimsoll_protocol::Dialect;

use crate::error::{MAX_TOKENS, ScenarioFault, ScenarioProblem};
use crate::id::ConversationId;
use crate::materials::{Opening, Speech};
use crate::request::Request;
use crate::spec::{CacheMode, Content, DurationSpec, PrefixPool, ScenarioSpec, SystemPrompt};

/// A scenario, checked and ready to speak.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) form: Form,
    pub(crate) turns: u16,
    pub(crate) stream: bool,
    pub(crate) max_tokens: Option<u32>,
    content: Line,
    system: Option<Line>,
    bust: bool,
    prefixes: Option<PrefixPool>,
    think: Option<DurationSpec>,
    /// Of what all conversations of the scenario have in common.
    seed: Seed,
}

/// What a turn asks for.
#[derive(Debug)]
pub(crate) enum Form {
    /// A dialogue, which every answer feeds.
    Chat,
    /// Vectors of a text, each turn for itself.
    Embed,
    /// Any HTTP request, each turn for itself.
    Http(Request),
}

/// Where a text comes from.
#[derive(Debug)]
enum Line {
    Fixed(Arc<str>),
    Pool(Vec<Arc<str>>),
    Script(Vec<Arc<str>>),
    Sized(u32),
}

impl Scenario {
    /// # Errors
    /// Everything that is wrong with the scenario.
    pub(crate) fn new(spec: &ScenarioSpec, seed: Seed) -> Result<Self, Vec<ScenarioProblem>> {
        let mut check = Check { spec, problems: Vec::new() };
        let form = check.form();
        let content = check.content(form.as_ref());
        let system = check.system();
        check.numbers();
        let (Some(form), true) = (form, check.problems.is_empty()) else {
            return Err(check.problems);
        };
        Ok(Self {
            form,
            turns: spec.turns,
            stream: spec.stream,
            max_tokens: spec.max_tokens,
            content,
            system,
            bust: spec.cache_mode == CacheMode::Bust,
            prefixes: spec.prefix_pool,
            think: spec.think_time,
            seed,
        })
    }

    /// What stands before the first text of the conversation that has the seed `own`.
    pub(crate) fn opening(&self, own: Seed, id: ConversationId) -> Opening {
        let prefix = self.prefixes.map(|pool| {
            let choice = own.rng("prefix", 0).below(u64::from(pool.count));
            (self.seed.rng("prefix text", choice), pool.approx_tokens)
        });
        Opening { prefix, marker: self.bust.then_some(id) }
    }

    /// The system prompt, the same in every conversation.
    pub(crate) fn system(&self) -> Option<Speech<'_>> {
        Some(self.system.as_ref()?.speech(0, self.seed.rng("system", 0)))
    }

    /// What the user says in a turn.
    pub(crate) fn line(&self, own: Seed, turn: u16) -> Speech<'_> {
        self.content.speech(turn, own.rng("line", u64::from(turn)))
    }

    /// The pause before a turn.
    pub(crate) fn think_time(&self, own: Seed, turn: u16) -> Nanos {
        match (turn, self.think) {
            (0, _) | (_, None) => Nanos::ZERO,
            (turn, Some(think)) => think.draw(&mut own.rng("think", u64::from(turn))),
        }
    }
}

impl Line {
    fn speech(&self, turn: u16, mut draw: Rng) -> Speech<'_> {
        match self {
            Self::Fixed(text) => Speech::Text(text),
            Self::Pool(texts) => {
                let choice = draw.below(texts.len() as u64);
                Speech::Text(&texts[usize::try_from(choice).unwrap_or_default()])
            }
            // As long as the conversation, which was checked.
            Self::Script(texts) => Speech::Text(&texts[usize::from(turn)]),
            Self::Sized(tokens) => Speech::Words(draw, *tokens),
        }
    }
}

struct Check<'a> {
    spec: &'a ScenarioSpec,
    problems: Vec<ScenarioProblem>,
}

impl Check<'_> {
    fn report(&mut self, field: impl Into<String>, fault: ScenarioFault) {
        let (scenario, field) = (self.spec.name.clone(), field.into());
        self.problems.push(ScenarioProblem { scenario, field, fault });
    }

    fn form(&mut self) -> Option<Form> {
        match self.spec.protocol {
            Dialect::Http => self.request().map(Form::Http),
            Dialect::OpenaiEmbeddings => Some(Form::Embed),
            Dialect::OpenaiChat | Dialect::OpenaiResponses | Dialect::AnthropicMessages => {
                Some(Form::Chat)
            }
        }
    }

    fn request(&mut self) -> Option<Request> {
        let Some(http) = &self.spec.http else {
            self.report("http", ScenarioFault::NoRequest);
            return None;
        };
        let faults = |faults: Vec<(String, ScenarioFault)>| {
            for (field, fault) in faults {
                self.report(field, fault);
            }
        };
        Request::new(http).map_err(faults).ok()
    }

    fn content(&mut self, form: Option<&Form>) -> Line {
        // A request without a prompt needs no content.
        let needed = !matches!(form, Some(Form::Http(request)) if !request.has_prompt());
        match &self.spec.content {
            Content::Pool { prompts } => {
                if prompts.is_empty() && needed {
                    self.report("content.prompts", ScenarioFault::NoTexts);
                }
                Line::Pool(shared(prompts))
            }
            Content::Scripted { script } => {
                let (lines, turns) = (script.len(), self.spec.turns);
                if lines < usize::from(turns) && needed {
                    self.report("content.script", ScenarioFault::ShortScript { lines, turns });
                }
                Line::Script(shared(script))
            }
            Content::Sized { approx_input_tokens: 0 } if self.spec.protocol == Dialect::Http => {
                Line::Fixed(Arc::default())
            }
            Content::Sized { approx_input_tokens } => {
                self.tokens("content.approx_input_tokens", *approx_input_tokens);
                Line::Sized(*approx_input_tokens)
            }
        }
    }

    fn system(&mut self) -> Option<Line> {
        Some(match self.spec.system.as_ref()? {
            SystemPrompt::Text(text) => Line::Fixed(text.as_str().into()),
            SystemPrompt::ApproxTokens(tokens) => {
                self.tokens("system.approx_tokens", *tokens);
                Line::Sized(*tokens)
            }
        })
    }

    fn numbers(&mut self) {
        let ScenarioSpec { weight, turns, think_time, prefix_pool, .. } = *self.spec;
        if !weight.is_finite() || weight < 0.0 {
            self.report("weight", ScenarioFault::Weight(weight));
        }
        if turns == 0 {
            self.report("turns", ScenarioFault::NoTurns);
        }
        if !think_time.is_none_or(|think| think.is_sound()) {
            self.report("think_time", ScenarioFault::Duration);
        }
        let Some(PrefixPool { count, approx_tokens }) = prefix_pool else { return };
        if count == 0 {
            self.report("prefix_pool.count", ScenarioFault::NoPrefixes);
        }
        self.tokens("prefix_pool.approx_tokens", approx_tokens);
    }

    fn tokens(&mut self, field: &str, tokens: u32) {
        if tokens == 0 || tokens > MAX_TOKENS {
            self.report(field, ScenarioFault::Tokens(tokens));
        }
    }
}

fn shared(texts: &[String]) -> Vec<Arc<str>> {
    texts.iter().map(|text| Arc::from(text.as_str())).collect()
}
