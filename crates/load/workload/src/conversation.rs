//! A conversation: an ordered instance of a scenario.

use std::sync::Arc;

use plimsoll_measure::{
    ConversationKey, Nanos, ScenarioId, Seed, TargetId, TaskCounts, TaskEnd, TaskPart,
};
use plimsoll_protocol::{
    HttpContent, Message, PlainAnswer, RequestContent, Role, Text, ToolCall, ToolResult, Turn, rpc,
    rpc as protocol,
};

use crate::agent::{Answer, Task, name_calls};
use crate::http_request::{HttpRequest, HttpTemplates};
use crate::id::{ConversationId, RequestId, conversation_id, request_id, turn_id};
use crate::prepared::PreparedWorkload;
use crate::prompt_builder::{BlockSizes, Preamble, PromptPart};
use crate::scenario::{RequestKind, Scenario};
use crate::session::{RpcEnd, Session, Texts};
use crate::synthetic_text::WORD_BYTES;
use crate::template::PlaceholderValues;

/// Tokens of a canned answer, unless the scenario asks for fewer.
const CANNED_TOKENS: u32 = 64;

/// A conversation: turns in order, each a request and its answer. A pure function of spec, seed,
/// run id, key and the answers. The run id decides only its ids and markers.
///
/// **Content.** A chat grows turn by turn: every request repeats the earlier prompts and answers.
/// Over a WebSocket a turn is its prompt alone, without a system prompt: the target keeps the rest.
/// Embeddings and plain HTTP requests are independent, and have no system prompt.
///
/// **Tool calls** of an answer are kept with it. Every call gets the scenario's result, and the
/// next prompt follows at once: a provider refuses a call without a result.
///
/// **An agent's answers decide** how its conversation goes on: it has one prompt, and its turns are
/// the requests to the model, to the tools that the model calls, and for approvals. See
/// [`AgentSpec`](crate::AgentSpec).
///
/// **Before the first text** comes the shared prefix, if there is a pool of them, and then in
/// `bust` mode the marker: five words that stand for the first 40 bits of the id, and `---`. The
/// first text is the system prompt if there is one, else the first prompt; in independent requests,
/// every prompt is a first text. The tokens of the marker count as part of a text of given size; a
/// text shorter than the marker gets a shorter one. In `bust` mode a shared prefix begins with a
/// marker of its own, which is the same in the whole run: what an earlier run left in a cache does
/// not help this one.
///
/// **With a tool server or an agent** the turns are messages of the protocol: the handshake, the
/// scenario's steps, the deletion of the session. What an answer gives (session, cursor, task) is
/// part of later requests; see [`Conversation::note_answer`].
///
/// **A row of a trace** is one turn of the chosen scenario, without its system prompt, prefix and
/// content. The prompt has the row's input tokens (at least 1). The row's output tokens (at least
/// 1, since no provider accepts 0) limit the answer. With cached blocks, every 512 tokens of the
/// prompt are the text of one block, the same wherever its id occurs. In `bust` mode such a prompt
/// begins with the marker of the run instead of its own, which would prevent the sharing that the
/// trace recorded.
///
/// **In a comparison** the conversations of a block, one on each target, have the same content.
/// Only their ids differ, and the markers made of them. See [`crate::Workload::for_targets`].
#[derive(Debug)]
pub struct Conversation {
    workload: Arc<PreparedWorkload>,
    scenario: ScenarioId,
    key: ConversationKey,
    id: ConversationId,
    /// Seed of all random choices of this conversation.
    seed: Seed,
    target: TargetId,
    /// The row of the trace that gives the lengths, if any.
    row: Option<u64>,
    turn: u16,
    /// With a tool server or an agent.
    session: Option<Box<dyn Session>>,
    /// Of an agent loop: the dialogue, also while it calls tools.
    request: CurrentRequest,
    /// Only of an agent; boxed, so that all others stay small.
    task: Option<Box<Task>>,
}

/// The request of the current turn.
#[derive(Debug)]
enum CurrentRequest {
    Chat {
        system: Option<Text>,
        messages: Vec<Message>,
    },
    Embed(Text),
    /// `None` for the scenario's fixed request.
    Http(Option<HttpContent>),
    Rpc(Box<protocol::Request>),
    /// Released: there is no further request.
    Released,
}

impl Conversation {
    pub(crate) fn new(
        workload: Arc<PreparedWorkload>,
        scenario: ScenarioId,
        key: ConversationKey,
        row: Option<u64>,
    ) -> Self {
        let (content, target) = workload.content_of(key);
        let seed = Seed(workload.seed.rng("conversation", content.0).next_u64());
        let id = conversation_id(workload.ids, key);
        let row = row.filter(|row| workload.row(Some(*row)).is_some() || workload.is_ordered());
        let request = CurrentRequest::Released;
        let turn = 0;
        let own = &workload.scenarios[scenario.index()];
        let session = own.session().map(|plan| plan.begin(seed, own.turns));
        let task = own.agent.is_some().then(|| Box::new(Task::new()));
        let mut conversation =
            Self { workload, scenario, key, id, seed, target, row, turn, session, request, task };
        conversation.request = conversation.independent_request();
        conversation
    }

    /// The scenario it is an instance of.
    pub const fn scenario(&self) -> ScenarioId {
        self.scenario
    }

    /// The scenario to which its current turn is counted: its own, or that of an agent's part.
    #[inline]
    pub fn scenario_of_turn(&self) -> ScenarioId {
        match &self.task {
            None => self.scenario,
            Some(task) => self.scenario_of(task.part()),
        }
    }

    fn scenario_of(&self, part: TaskPart) -> ScenarioId {
        self.spec().agent.as_ref().map_or(self.scenario, |rules| rules.scenario_of(part))
    }

    /// What the current turn of an agent is for; `None` for any other conversation.
    pub fn task_part(&self) -> Option<TaskPart> {
        self.task.as_ref().map(|task| task.part())
    }

    /// What was counted so far in the task of an agent; nothing for any other conversation.
    pub fn task_counts(&self) -> TaskCounts {
        self.task.as_ref().map_or_else(TaskCounts::default, |task| task.counts())
    }

    /// How the answers ended the task of an agent; `None` before that, and for any other
    /// conversation.
    pub fn task_end(&self) -> Option<TaskEnd> {
        self.task.as_ref()?.end()
    }

    /// Its key in the run.
    pub const fn key(&self) -> ConversationKey {
        self.key
    }

    /// Its id, see [`conversation_id`].
    pub fn id(&self) -> &str {
        self.id.as_str()
    }

    /// The id of the current turn's request, see [`request_id`].
    pub fn request_id(&self) -> RequestId {
        request_id(self.id, self.turn)
    }

    /// Position of the current turn, from 0.
    pub const fn index(&self) -> u16 {
        self.turn
    }

    /// Number of turns; `None` where the answers decide it.
    pub fn turns(&self) -> Option<u16> {
        self.task.is_none().then(|| self.planned_turns())
    }

    /// The number of turns, unless the answers decide it.
    fn planned_turns(&self) -> u16 {
        if self.workload.row(self.row).is_some() { 1 } else { self.spec().turns }
    }

    /// Whether the current turn ends the session of a task that has ended: it is no part of it.
    pub fn task_is_closing(&self) -> bool {
        self.task.as_ref().is_some_and(|task| task.is_closing())
    }

    /// Whether all turns are done.
    pub fn is_over(&self) -> bool {
        match (&self.session, &self.task) {
            (Some(session), _) => session.is_over(),
            (None, Some(task)) => task.is_over(),
            (None, None) => self.turn >= self.planned_turns(),
        }
    }

    /// How long its user thinks after it, before another conversation.
    pub fn think_time_after(&self) -> Nanos {
        self.spec().think_time(self.seed, u16::MAX)
    }

    /// The pause before the current turn; none before the first.
    pub fn think_time(&self) -> Nanos {
        match &self.task {
            None if !self.has_pause() => Nanos::ZERO,
            None => self.spec().think_time(self.seed, self.turn),
            Some(task) => task.pause(),
        }
    }

    /// The current turn; `None` if the conversation is over or its text was
    /// [released](Self::release_text).
    pub fn turn(&self) -> Option<Turn<'_>> {
        if self.is_over() {
            return None;
        }
        if let Some(request) = self.task.as_ref().and_then(|task| task.request()) {
            return Some(Turn { content: request.content(), stream: false, max_tokens: None });
        }
        let scenario = self.spec();
        let content = match (&self.request, &scenario.kind) {
            (CurrentRequest::Chat { system, messages }, _) => {
                RequestContent::Chat { system: system.as_ref(), messages }
            }
            (CurrentRequest::Embed(input), _) => {
                RequestContent::Embed { inputs: std::slice::from_ref(input) }
            }
            (CurrentRequest::Http(Some(ask)), _)
            | (CurrentRequest::Http(None), RequestKind::Http(HttpRequest::Fixed(ask))) => {
                RequestContent::Http(ask)
            }
            (CurrentRequest::Rpc(request), _) => RequestContent::Rpc(request),
            (CurrentRequest::Http(None) | CurrentRequest::Released, _) => return None,
        };
        let limit = self.workload.row(self.row).map(|row| row.output_tokens.max(1));
        let stream = match &self.request {
            CurrentRequest::Rpc(request) => request.streams(),
            _ => scenario.stream,
        };
        Some(Turn {
            content,
            stream,
            max_tokens: limit.or_else(|| scenario.output_limit(self.seed, self.turn)),
        })
    }

    /// Frees the text of the last turn, where it can be made again. To be called when its request
    /// has been encoded: the wait for the response may be long. No turn of an agent is known to be
    /// the last one.
    pub fn release_text(&mut self) {
        let made_of_answers = matches!(self.request, CurrentRequest::Chat { .. }) && self.turn > 0;
        let is_rpc = matches!(self.request, CurrentRequest::Rpc(_));
        let is_last = self.turns().is_some_and(|turns| self.turn + 1 >= turns);
        if is_rpc || (is_last && !made_of_answers) {
            self.request = CurrentRequest::Released;
        }
    }

    /// Makes a [released](Self::release_text) text again, to encode the same request once more.
    pub fn restore_text(&mut self) {
        if matches!(self.request, CurrentRequest::Released) && !self.is_over() {
            self.request = self.independent_request();
        }
    }

    /// Moves on to the next turn. The model's answer becomes part of a chat; an empty one is left
    /// out, since no provider accepts it in a request.
    pub fn advance(&mut self, answer: Option<&str>) {
        self.advance_with(answer.unwrap_or_default(), Vec::new());
    }

    /// The same with the tools that the answer calls.
    pub fn advance_with(&mut self, answer: &str, tool_calls: Vec<ToolCall>) {
        if self.is_over() || self.advance_session() {
            return;
        }
        self.turn += 1;
        if self.task.is_some() {
            return self.continue_task(Answer::Model(answer, tool_calls));
        }
        if self.is_over() {
            return;
        }
        if matches!(self.request, CurrentRequest::Chat { .. }) {
            self.continue_chat(answer, tool_calls);
        } else {
            self.request = self.independent_request();
        }
    }

    /// Moves an agent on from a request that was not one to the model. An answer that its current
    /// request cannot have ends the task as failed. Does nothing in any other conversation.
    pub fn advance_by(&mut self, answer: PlainAnswer) {
        if self.is_over() || self.task.is_none() {
            return;
        }
        self.turn += 1;
        self.continue_task(Answer::Plain(answer));
    }

    fn continue_task(&mut self, answer: Answer<'_>) {
        let rules = self.workload.scenarios[self.scenario.index()].agent.as_deref();
        let (Some(rules), Some(task)) = (rules, &mut self.task) else { return };
        if let CurrentRequest::Chat { messages, .. } = &mut self.request {
            task.advance(answer, messages, rules, self.seed, self.turn);
        }
    }

    fn continue_chat(&mut self, answer: &str, mut tool_calls: Vec<ToolCall>) {
        let text = self.workload.prompts.build(&Preamble::default(), &self.user_text());
        let keeps_dialogue = !matches!(self.spec().kind, RequestKind::Message);
        let result = Arc::clone(&self.spec().tool_result);
        let canned = self.workload.canned.then(|| self.canned_answer());
        let CurrentRequest::Chat { messages, .. } = &mut self.request else { return };
        if !keeps_dialogue {
            *messages = vec![Message::new(Role::User, text)];
            return;
        }
        if let Some(canned) = canned {
            messages.push(Message::new(Role::Assistant, canned));
            messages.push(Message::new(Role::User, text));
            return;
        }
        name_calls(&mut tool_calls, self.turn);
        let tool_results = tool_calls
            .iter()
            .map(|call| ToolResult { call_id: call.id.clone(), text: Arc::clone(&result) })
            .collect();
        if !answer.is_empty() || !tool_calls.is_empty() {
            messages.push(Message { tool_calls, ..Message::new(Role::Assistant, answer.into()) });
        }
        messages.push(Message { tool_results, ..Message::new(Role::User, text) });
    }

    /// What stands in for the model's answer to the turn before.
    fn canned_answer(&self) -> Text {
        let limit = self.spec().max_tokens.unwrap_or(CANNED_TOKENS).clamp(1, CANNED_TOKENS);
        let words = PromptPart::Words(self.seed.rng("canned answer", self.turn.into()), limit);
        self.workload.prompts.build(&Preamble::default(), &words)
    }

    fn spec(&self) -> &Scenario {
        &self.workload.scenarios[self.scenario.index()]
    }

    /// The user's text in the current turn.
    fn user_text(&self) -> PromptPart<'_> {
        match self.workload.row(self.row) {
            None => {
                let listed = self.row.and_then(|row| self.workload.ordered_prompt(row));
                listed.map_or_else(|| self.spec().user_text(self.seed, self.turn), PromptPart::Text)
            }
            Some(row) => {
                let tokens = row.input_tokens.max(1);
                match (row.text, row.hash_ids) {
                    (Some(text), _) => PromptPart::Text(text),
                    (None, []) => PromptPart::Words(self.seed.rng("line", 0), tokens),
                    (None, ids) => {
                        PromptPart::Blocks(ids, BlockSizes { tokens, block: row.block_tokens })
                    }
                }
            }
        }
    }

    fn preamble(&self, turn: u16) -> Preamble {
        let workload = &*self.workload;
        let marker = match (turn, workload.targets) {
            (0, 1) => self.id,
            _ => turn_id(workload.ids, self.key, turn),
        };
        let preamble = self.spec().preamble(self.seed, workload.run_marker(self.target), marker);
        let plays_trace = self.workload.row(self.row).is_some();
        if plays_trace { Preamble { prefix: None, ..preamble } } else { preamble }
    }

    /// The request of a turn that does not repeat earlier turns.
    fn independent_request(&self) -> CurrentRequest {
        match &self.spec().kind {
            RequestKind::Chat | RequestKind::Message => self.first_chat_request(),
            RequestKind::Embed => CurrentRequest::Embed(self.independent_text()),
            RequestKind::Http(HttpRequest::Fixed(_)) => CurrentRequest::Http(None),
            RequestKind::Http(HttpRequest::Filled(templates)) => {
                CurrentRequest::Http(Some(self.fill(templates)))
            }
            RequestKind::Rpc(_) => self.rpc_request(),
        }
    }

    fn first_chat_request(&self) -> CurrentRequest {
        let prompts = &self.workload.prompts;
        let preamble = self.preamble(0);
        let is_message = matches!(self.spec().kind, RequestKind::Message);
        let system =
            self.spec().system().filter(|_| self.workload.row(self.row).is_none() && !is_message);
        let (system, text) = match system {
            Some(system) => {
                let text = prompts.build(&Preamble::default(), &self.user_text());
                (Some(prompts.build(&preamble, &system)), text)
            }
            None => (None, prompts.build(&preamble, &self.user_text())),
        };
        CurrentRequest::Chat { system, messages: vec![Message::new(Role::User, text)] }
    }

    fn independent_text(&self) -> Text {
        self.workload.prompts.build(&self.preamble(self.turn), &self.user_text())
    }

    fn fill(&self, templates: &HttpTemplates) -> HttpContent {
        let prompt = templates.has_prompt().then(|| self.independent_text().to_string());
        templates.fill(PlaceholderValues {
            uuid: self.turn_id().as_str(),
            seq: self.workload.content_of(self.key).0.0,
            turn: self.turn,
            rng: self.seed.rng("template", u64::from(self.turn)),
            prompt: &prompt.unwrap_or_default(),
        })
    }

    /// The conversation's id in the first turn, a different one in each later turn.
    fn turn_id(&self) -> ConversationId {
        turn_id(self.workload.ids, self.key, self.turn)
    }
}

impl Conversation {
    /// The answer that the current turn's message to a tool server or an agent expects; `None` for
    /// other turns, and when the message was [released](Self::release_text).
    pub fn expectation(&self) -> Option<rpc::Expectation> {
        let message = match (&self.request, &self.task) {
            (CurrentRequest::Rpc(message), _) => &**message,
            (_, Some(task)) => task.request()?.message()?,
            (_, None) => return None,
        };
        Some(message.expectation())
    }

    /// After what time the scenario gives up the current turn.
    pub fn cancel_after(&self) -> Option<Nanos> {
        self.session.as_ref()?.cancel_after()
    }

    /// Takes note of how the current turn's message to a tool server or an agent ended. Whether the
    /// conversation goes on: an error of JSON-RPC does not end a session, and one that cannot go on
    /// has its deletion left; after that it has ended early. The task of an agent goes on after a
    /// success. To be called before [`Conversation::advance_with`].
    pub fn note_answer(&mut self, end: RpcEnd) -> bool {
        if let Some(session) = &mut self.session {
            return session.note(end);
        }
        let Some(task) = &mut self.task else { return end.is_completed() };
        task.note(&end);
        end.is_completed() || task.is_closing()
    }

    /// The pause before the current turn of a conversation with a tool server or an agent.
    fn has_pause(&self) -> bool {
        self.session.as_ref().is_none_or(|session| session.is_thinking())
    }

    /// Moves such a conversation on; `false` if it is another one.
    fn advance_session(&mut self) -> bool {
        let Some(session) = &mut self.session else { return false };
        session.advance();
        self.turn = self.turn.saturating_add(1);
        self.request = self.rpc_request();
        true
    }

    /// The request of the current turn.
    fn rpc_request(&self) -> CurrentRequest {
        let request = self.session.as_ref().and_then(|session| session.request(self));
        request.map_or(CurrentRequest::Released, |request| CurrentRequest::Rpc(Box::new(request)))
    }
}

impl Texts for Conversation {
    fn message(&self, step: u16) -> Text {
        let text = self.spec().user_text(self.seed, step);
        self.workload.prompts.build(&self.preamble(self.turn), &text)
    }

    fn sized(&self, bytes: u32) -> String {
        let bytes = bytes as usize;
        let tokens = u32::try_from(bytes.div_ceil(WORD_BYTES)).unwrap_or(u32::MAX);
        let preamble = Preamble { prefix: None, ..self.preamble(self.turn) };
        let words = PromptPart::Words(self.seed.rng("argument", self.turn.into()), tokens);
        let mut text = match bytes {
            0 => String::new(),
            _ => self.workload.prompts.build(&preamble, &words).to_string(),
        };
        text.truncate(text.floor_char_boundary(bytes));
        // With a tokenizer, words may have fewer bytes than by the estimate.
        text.extend(std::iter::repeat_n(' ', bytes - text.len()));
        text
    }

    fn message_id(&self) -> String {
        self.turn_id().to_string()
    }
}
