//! A validated scenario.

use std::sync::Arc;

use plimsoll_measure::{Nanos, Rng, ScenarioId, Seed};
use plimsoll_protocol::Dialect;
use plimsoll_protocol::rpc::mcp::Revision;

use crate::agent::AgentRules;
use crate::error::{MAX_ARGUMENT_BYTES, MAX_TOKENS, ScenarioFault, ScenarioProblem};
use crate::http_request::HttpRequest;
use crate::id::ConversationId;
use crate::prompt_builder::{Preamble, PromptPart};
use crate::session::{A2aPlan, McpPlan, SessionPlan};
use crate::spec::{
    AgentRole, ByteRange, CacheMode, Content, DurationSpec, LengthSpec, McpMethod, McpSpec,
    McpStep, PrefixPool, PromptOrder, ScenarioSpec, SystemPrompt,
};
use crate::trace::Trace;

/// A scenario, checked and ready for conversations.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) kind: RequestKind,
    pub(crate) turns: u16,
    pub(crate) stream: bool,
    pub(crate) max_tokens: Option<u32>,
    output_tokens: Option<LengthSpec>,
    /// The result of every tool call.
    pub(crate) tool_result: Arc<str>,
    /// The rules of an agent, boxed to keep scenarios small.
    pub(crate) agent: Option<Box<AgentRules>>,
    /// The scenarios of recorded requests of other protocols.
    protocols: Vec<(Dialect, ScenarioId)>,
    content: TextSource,
    system: Option<TextSource>,
    cache_mode: CacheMode,
    /// Whether its texts come from a user's file.
    own_texts: bool,
    prefixes: Option<PrefixPool>,
    think: Option<DurationSpec>,
    /// Seed of the texts that all conversations of the scenario share.
    seed: Seed,
}

/// The kind of request that a turn sends.
#[derive(Debug)]
pub(crate) enum RequestKind {
    /// A dialogue: every response becomes part of the next request.
    Chat,
    /// Single messages: the target keeps the dialogue, so responses are dropped.
    Message,
    /// Embeddings of a text; turns are independent.
    Embed,
    /// Any HTTP request; turns are independent.
    Http(HttpRequest),
    /// Messages to a tool server or an agent.
    Rpc(SessionPlan),
}

/// The source of a text.
#[derive(Debug)]
enum TextSource {
    Fixed(Arc<str>),
    Pool(Arc<[Arc<str>]>),
    /// Recorded sessions; `ordered`: each once.
    Recorded {
        trace: Arc<Trace>,
        ordered: bool,
    },
    Script(Arc<[Arc<str>]>),
    Sized(LengthSpec),
}

impl Scenario {
    /// The scenario at `index`.
    ///
    /// # Errors
    /// All problems of the scenario.
    pub(crate) fn new(
        specs: &[ScenarioSpec],
        index: usize,
        seed: Seed,
        trace: Option<&Trace>,
    ) -> Result<Self, Vec<ScenarioProblem>> {
        let spec = &specs[index];
        let is_whole = |spec: &&ScenarioSpec| !spec.agent.as_ref().is_some_and(AgentRole::is_part);
        let alone = specs.iter().filter(is_whole).count() == 1;
        let mut check = ScenarioCheck { spec, alone, problems: Vec::new() };
        let agent = check.agent(AgentRules::new(specs, index));
        let kind = check.kind();
        let content = check.content(kind.as_ref());
        if let Some(trace) = trace {
            check.dialects(trace, "protocol");
        }
        let system = check.system();
        check.numbers();
        let (Some(kind), true) = (kind, check.problems.is_empty()) else {
            return Err(check.problems);
        };
        Ok(Self {
            kind,
            turns: spec.turns,
            stream: spec.stream,
            max_tokens: spec.max_tokens,
            output_tokens: spec.output_tokens.clone(),
            tool_result: spec.tool_result.as_str().into(),
            agent: agent.map(Box::new),
            protocols: protocols(specs, index),
            content,
            system,
            cache_mode: spec.cache_mode,
            own_texts: matches!(spec.content, Content::File { .. }),
            prefixes: spec.prefix_pool,
            think: spec.think_time,
            seed,
        })
    }

    /// The scenario that counts recorded requests of a protocol; `None` for its own protocol.
    pub(crate) fn scenario_for(&self, protocol: Dialect) -> Option<ScenarioId> {
        let mut others = self.protocols.iter();
        others.find(|(other, _)| *other == protocol).map(|(_, scenario)| *scenario)
    }

    /// The plan of its conversations with a tool server or an agent.
    pub(crate) const fn session(&self) -> Option<&SessionPlan> {
        match &self.kind {
            RequestKind::Rpc(plan) => Some(plan),
            RequestKind::Chat
            | RequestKind::Message
            | RequestKind::Embed
            | RequestKind::Http(_) => None,
        }
    }

    /// The text before the first prompt of the conversation with the seed `conversation`.
    pub(crate) fn preamble(
        &self,
        conversation: Seed,
        run_marker: ConversationId,
        marker: ConversationId,
        own_text: bool,
    ) -> Preamble {
        let bust = self.cache_mode.busts(own_text || self.own_texts);
        let prefix = self.prefix(conversation);
        let prefix = prefix.map(|(choice, tokens)| (self.seed.rng("prefix text", choice), tokens));
        Preamble { prefix, run_marker: bust.then_some(run_marker), marker: bust.then_some(marker) }
    }

    /// The shared prefix of a conversation: its number and its tokens.
    pub(crate) fn prefix(&self, conversation: Seed) -> Option<(u64, u32)> {
        let pool = self.prefixes?;
        let has_one = conversation.rng("prefix share", 0).uniform() < pool.share;
        let choice = conversation.rng("prefix", 0).below(u64::from(pool.count));
        has_one.then_some((choice, pool.approx_tokens))
    }

    /// The system prompt, the same in every conversation.
    pub(crate) fn system(&self) -> Option<PromptPart<'_>> {
        Some(self.system.as_ref()?.part(0, self.seed.rng("system", 0)))
    }

    /// The user's text in a turn.
    pub(crate) fn user_text(&self, conversation: Seed, turn: u16) -> PromptPart<'_> {
        self.content.part(turn, conversation.rng("line", u64::from(turn)))
    }

    /// The recorded sessions, and whether each is played once, in order.
    pub(crate) fn recorded(&self) -> Option<(&Arc<Trace>, bool)> {
        match &self.content {
            TextSource::Recorded { trace, ordered } => Some((trace, *ordered)),
            _ => None,
        }
    }

    /// The output token limit of a turn.
    pub(crate) fn output_limit(&self, conversation: Seed, turn: u16) -> Option<u32> {
        let drawn = self.output_tokens.as_ref();
        let drawn = drawn.map(|length| length.sample(&mut conversation.rng("output", turn.into())));
        drawn.or(self.max_tokens)
    }

    /// The pause before a turn.
    pub(crate) fn think_time(&self, conversation: Seed, turn: u16) -> Nanos {
        match (turn, self.think) {
            (0, _) | (_, None) => Nanos::ZERO,
            (turn, Some(think)) => think.sample(&mut conversation.rng("think", u64::from(turn))),
        }
    }
}

/// The scenarios of other protocols in the recorded traffic of the scenario at `index`.
fn protocols(specs: &[ScenarioSpec], index: usize) -> Vec<(Dialect, ScenarioId)> {
    let parts = (0..)
        .map(ScenarioId)
        .zip(specs)
        .filter(|(_, spec)| matches!(spec.agent, Some(AgentRole::Recorded { of }) if of == index));
    parts.map(|(scenario, spec)| (spec.protocol, scenario)).collect()
}

impl TextSource {
    fn part(&self, turn: u16, mut rng: Rng) -> PromptPart<'_> {
        match self {
            Self::Fixed(text) => PromptPart::Text(text),
            Self::Pool(texts) => {
                let choice = rng.below(texts.len() as u64);
                PromptPart::Text(&texts[usize::try_from(choice).unwrap_or_default()])
            }
            // Conversations replay a session instead.
            Self::Recorded { .. } => PromptPart::Words(rng, 1),
            // The check requires a text for every turn.
            Self::Script(texts) => PromptPart::Text(&texts[usize::from(turn)]),
            Self::Sized(length) => {
                let tokens = length.sample(&mut rng);
                PromptPart::Words(rng, tokens)
            }
        }
    }
}

pub(crate) struct ScenarioCheck<'a> {
    pub(crate) spec: &'a ScenarioSpec,
    /// Whether the plan has no other scenario.
    alone: bool,
    problems: Vec<ScenarioProblem>,
}

impl ScenarioCheck<'_> {
    pub(crate) fn report(&mut self, field: impl Into<String>, fault: ScenarioFault) {
        let (scenario, field) = (self.spec.name.clone(), field.into());
        self.problems.push(ScenarioProblem { scenario, field, fault });
    }

    fn agent(
        &mut self,
        found: Result<Option<AgentRules>, Vec<(&'static str, ScenarioFault)>>,
    ) -> Option<AgentRules> {
        found.unwrap_or_else(|faults| {
            for (field, fault) in faults {
                self.report(field, fault);
            }
            None
        })
    }

    fn kind(&mut self) -> Option<RequestKind> {
        match self.spec.protocol {
            Dialect::Http => self.request().map(RequestKind::Http),
            Dialect::Mcp => self.tool_server().map(RequestKind::Rpc),
            Dialect::A2a => self.a2a_session().map(RequestKind::Rpc),
            Dialect::OpenaiEmbeddings => Some(RequestKind::Embed),
            Dialect::Websocket => Some(RequestKind::Message),
            Dialect::OpenaiChat
            | Dialect::OpenaiCompletions
            | Dialect::OpenaiResponses
            | Dialect::AnthropicMessages => Some(RequestKind::Chat),
        }
    }

    fn request(&mut self) -> Option<HttpRequest> {
        let Some(http) = &self.spec.http else {
            self.report("http", ScenarioFault::NoRequest);
            return None;
        };
        HttpRequest::new(http)
            .map_err(|faults: Vec<(String, ScenarioFault)>| {
                for (field, fault) in faults {
                    self.report(field, fault);
                }
            })
            .ok()
    }

    fn content(&mut self, kind: Option<&RequestKind>) -> TextSource {
        // A request without `{{prompt}}` needs no content, and calls of tools have arguments.
        let needed = match kind {
            Some(RequestKind::Http(request)) => request.has_prompt(),
            Some(RequestKind::Rpc(SessionPlan::Mcp(_))) => false,
            _ => true,
        };
        match &self.spec.content {
            Content::Pool { prompts } => {
                if prompts.is_empty() && needed {
                    self.report("content.prompts", ScenarioFault::NoTexts);
                }
                TextSource::Pool(shared(prompts))
            }
            Content::File { .. } => self.file(),
            Content::Scripted { script } => {
                let (lines, turns) = (script.len(), self.spec.turns);
                if lines < usize::from(turns) && needed {
                    self.report("content.script", ScenarioFault::ShortScript { lines, turns });
                }
                TextSource::Script(shared(script))
            }
            Content::Sized { approx_input_tokens: LengthSpec::Fixed(0) }
                if matches!(self.spec.protocol, Dialect::Http | Dialect::Mcp) =>
            {
                TextSource::Fixed(Arc::default())
            }
            Content::Sized { approx_input_tokens } => {
                self.length("content.approx_input_tokens", approx_input_tokens);
                TextSource::Sized(approx_input_tokens.clone())
            }
        }
    }

    /// The content of a file. Bare prompts suit any protocol.
    fn file(&mut self) -> TextSource {
        let Content::File { file, order, strict, .. } = &self.spec.content else {
            return TextSource::Fixed(Arc::default());
        };
        let ordered = *order == PromptOrder::File;
        if ordered && (!self.alone || self.spec.turns != 1) {
            self.report("content.order", ScenarioFault::OrderedPrompts);
        }
        let trace = match self.spec.content.recording() {
            Some(Ok(trace)) => trace,
            unread => {
                let why = unread.and_then(Result::err).unwrap_or_default();
                self.report("content.file", ScenarioFault::Traffic(why));
                return TextSource::Fixed(Arc::default());
            }
        };
        let unused = trace.summary().unused_members();
        if *strict && !unused.is_empty() {
            let file = file.display();
            let why = format!(
                "{file} has members that are not sent: {unused}; remove them, or omit `strict: true` (--strict)"
            );
            self.report("content.file", ScenarioFault::Traffic(why));
        }
        self.dialects(&trace, "content.file");
        match trace.texts() {
            Some(texts) if !ordered => TextSource::Pool(texts),
            _ => TextSource::Recorded { trace, ordered },
        }
    }

    /// Reports recorded traffic without a request of the scenario's protocol.
    fn dialects(&mut self, trace: &Trace, field: &'static str) {
        let found = trace.dialects();
        let is_part = self.spec.agent.as_ref().is_some_and(AgentRole::is_part);
        if !found.is_empty() && !is_part && !found.contains(&self.spec.protocol) {
            let found: Vec<_> = found.iter().map(|dialect| dialect.name()).collect();
            let found = found.join(", ");
            let own = self.spec.protocol.name();
            self.report(field, ScenarioFault::Dialects(found, own));
        }
    }

    fn system(&mut self) -> Option<TextSource> {
        Some(match self.spec.system.as_ref()? {
            SystemPrompt::Text(text) => TextSource::Fixed(text.as_str().into()),
            SystemPrompt::Synthetic { approx_tokens: tokens } => {
                self.tokens("system.approx_tokens", *tokens);
                TextSource::Sized(LengthSpec::Fixed(*tokens))
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
        if !think_time.is_none_or(|think| think.is_valid()) {
            self.report("think_time", ScenarioFault::Duration);
        }
        if let Some(length) = &self.spec.output_tokens {
            self.length("output_tokens", length);
        }
        let Some(PrefixPool { share, count, approx_tokens }) = prefix_pool else { return };
        if !(0.0..=1.0).contains(&share) {
            self.report("prefix_pool.share", ScenarioFault::Share(share));
        }
        if count == 0 {
            self.report("prefix_pool.count", ScenarioFault::NoPrefixes);
        }
        self.tokens("prefix_pool.approx_tokens", approx_tokens);
    }

    fn length(&mut self, field: &str, length: &LengthSpec) {
        match length {
            LengthSpec::Fixed(tokens) => self.tokens(field, *tokens),
            drawn @ LengthSpec::Drawn(_) => {
                if let Some(fault) = drawn.fault() {
                    self.report(field, ScenarioFault::Length(fault));
                }
            }
        }
    }

    fn tokens(&mut self, field: &str, tokens: u32) {
        if tokens == 0 || tokens > MAX_TOKENS {
            self.report(field, ScenarioFault::Tokens(tokens));
        }
    }
}

fn shared(texts: &[String]) -> Arc<[Arc<str>]> {
    texts.iter().map(|text| Arc::from(text.as_str())).collect()
}

impl ScenarioCheck<'_> {
    fn tool_server(&mut self) -> Option<SessionPlan> {
        let spec: Option<&McpSpec> = self.spec.mcp.as_ref();
        let steps = spec.map_or(&[][..], |spec| &spec.steps);
        // The model chooses the calls of an agent's part. And a scenario without steps leaves them
        // to the server.
        let is_part = self.spec.agent.as_ref().is_some_and(AgentRole::is_part);
        if !is_part && (spec.is_none() || !steps.is_empty()) {
            self.weights("mcp", steps.iter().map(|step| step.weight));
        }
        let spec = spec?;
        for (index, step) in spec.steps.iter().enumerate() {
            self.tool_step(index, step, spec.revision);
        }
        Some(SessionPlan::Mcp(Arc::new(McpPlan::new(spec))))
    }

    fn a2a_session(&mut self) -> Option<SessionPlan> {
        let spec = self.spec.a2a.as_ref();
        let steps = spec.map_or(&[][..], |spec| &spec.steps);
        self.weights("a2a", steps.iter().map(|step| step.weight));
        spec.map(|spec| SessionPlan::A2a(Arc::new(A2aPlan::new(spec))))
    }

    fn weights(&mut self, protocol: &'static str, weights: impl Iterator<Item = f64>) {
        let mut any = false;
        for (index, weight) in weights.enumerate() {
            if !weight.is_finite() || weight < 0.0 {
                let field = format!("{protocol}.steps.{index}.weight");
                self.report(field, ScenarioFault::Weight(weight));
            }
            any |= weight > 0.0;
        }
        if !any {
            self.report(protocol, ScenarioFault::NoSteps(protocol));
        }
    }

    fn tool_step(&mut self, index: usize, step: &McpStep, revision: Revision) {
        let field = |key: &str| format!("mcp.steps.{index}.{key}");
        let name = step.name.as_deref().unwrap_or_default();
        if step.method.has_name() && name.is_empty() {
            self.report(field("name"), ScenarioFault::NoStepName);
        }
        let is_call = step.method == McpMethod::CallTool;
        let has_arguments = is_call || step.method == McpMethod::GetPrompt;
        for (key, is_wrong) in [
            ("name", step.name.is_some() && !step.method.has_name()),
            ("arguments", !step.arguments.is_empty() && !has_arguments),
            ("argument_bytes", step.argument_bytes.is_some() && !is_call),
            ("progress", step.progress && !is_call),
            ("cancel_after", step.cancel_after.is_some() && !is_call),
        ] {
            if is_wrong {
                self.report(field(key), ScenarioFault::StepKey(key));
            }
        }
        let other = match step.method {
            McpMethod::Ping => !revision.has_sessions(),
            McpMethod::Discover => revision.has_sessions(),
            _ => false,
        };
        if other {
            self.report(field("method"), ScenarioFault::StepOfOtherRevision(revision.name()));
        }
        if let Some(ByteRange { min, max }) = step.argument_bytes
            && (min > max || max > MAX_ARGUMENT_BYTES)
        {
            self.report(field("argument_bytes"), ScenarioFault::Bytes);
        }
    }
}
