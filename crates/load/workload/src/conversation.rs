//! A conversation: an ordered instance of a scenario.

mod played;

use std::sync::Arc;

use plimsoll_measure::{
    ConversationKey, Moment, Nanos, ScenarioId, Seed, TargetId, TaskCounts, TaskEnd, TaskPart,
};
use plimsoll_protocol::{
    HttpContent, Message, PlainAnswer, RecordedRequest, RequestContent, Role, Text, ToolCall,
    ToolResult, Turn, rpc, rpc as protocol,
};
use serde_json::Value;

use crate::agent::{Answer, Task, name_calls};
use crate::http_request::{HttpRequest, HttpTemplates};
use crate::id::{ConversationId, RequestId, conversation_id, request_id, turn_id};
use crate::prepared::PreparedWorkload;
use crate::prompt_builder::{BlockSizes, Preamble, PromptPart};
use crate::scenario::{RequestKind, Scenario};
use crate::session::{RpcEnd, Session, Texts};
use crate::synthetic_text::WORD_BYTES;
use crate::template::PlaceholderValues;
use crate::trace::{Body, Record};
use played::Played;

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
/// **A recorded session** is played turn by turn, each when what it waited for has ended and the
/// recorded wait is over. A recorded body is sent as it was; the replies that it repeats are the
/// target's or the recorded ones. A request of lengths alone is a turn of the chosen scenario,
/// without its system prompt, prefix and content. The prompt has the recorded input tokens (at
/// least 1). The output tokens (at least 1, since no provider accepts 0) limit the answer. With
/// cached blocks, every 512 tokens of the prompt are the text of one block, the same wherever its
/// id occurs. In `bust` mode such a prompt begins with the marker of the run instead of its own,
/// which would prevent the sharing that the trace recorded.
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
    /// Its place in a list of prompts that are sent in order.
    row: Option<u64>,
    /// The recorded session that it plays.
    played: Option<Played>,
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
        let played = workload.session(&workload.scenarios[scenario.index()], row, seed);
        let played = played.map(|(trace, session)| Played::new(trace, session));
        let request = CurrentRequest::Released;
        let turn = 0;
        let own = &workload.scenarios[scenario.index()];
        let session = own.session().map(|plan| plan.begin(seed, own.turns));
        let task = own.agent.is_some().then(|| Box::new(Task::new()));
        let mut conversation = Self {
            workload,
            scenario,
            key,
            id,
            seed,
            target,
            row,
            played,
            turn,
            session,
            request,
            task,
        };
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
        request_id(self.id, self.index())
    }

    /// Position of the current turn, from 0; in all branches of a recorded session.
    pub fn index(&self) -> u16 {
        let played = self.played.as_ref().and_then(|played| played.position(self.turn));
        played.unwrap_or(self.turn)
    }

    /// The branches of a recorded session beside this one, which are played at the same time.
    pub fn branches(&self) -> Vec<Self> {
        let others = self.played.iter().flat_map(Played::others);
        let others = others.map(|played| Self {
            workload: Arc::clone(&self.workload),
            played: Some(played),
            session: None,
            request: CurrentRequest::Released,
            task: None,
            ..*self
        });
        others.collect()
    }

    /// Whether it is one of the branches beside the first.
    pub fn is_branch(&self) -> bool {
        self.played.as_ref().is_some_and(|played| !played.is_first())
    }

    /// Whether all branches of a recorded session have ended well; `true` for others.
    pub fn is_whole(&self) -> bool {
        self.played.as_ref().is_none_or(Played::is_whole)
    }

    /// Ends a branch of a recorded session: what waits for its other turns is not sent.
    pub fn end_branch(&mut self) {
        if let Some(played) = &mut self.played {
            played.end_rest();
        }
    }

    /// The turns of a branch of a recorded session; 0 for any other conversation.
    pub fn recorded_turns(&self) -> u16 {
        self.played.as_ref().map_or(0, Played::turns)
    }

    /// Number of turns; `None` where the answers decide it.
    pub fn turns(&self) -> Option<u16> {
        self.task.is_none().then(|| self.planned_turns())
    }

    /// The number of turns, unless the answers decide it.
    fn planned_turns(&self) -> u16 {
        self.played.as_ref().map_or_else(|| self.spec().turns, Played::turns)
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
        let body = self.record().and_then(|record| record.body.as_ref());
        let recorded = match body {
            Some(Body::Request { request, .. }) => Some(&**request),
            _ => None,
        };
        let content = match (&self.request, &scenario.kind) {
            (CurrentRequest::Chat { messages, .. }, _) if let Some(request) = recorded => {
                RequestContent::Recorded { request, messages }
            }
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
        let limit = match (recorded, self.record()) {
            (Some(request), _) => request.limit().and_then(|limit| u32::try_from(limit).ok()),
            (None, record) => {
                record.and_then(|record| record.output_tokens).map(|most| most.max(1))
            }
        };
        let stream = match &self.request {
            CurrentRequest::Rpc(request) => request.streams(),
            _ => recorded.and_then(RecordedRequest::streams).unwrap_or(scenario.stream),
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
        if self.played.is_some() {
            // Made when it is due: until then other branches may reply.
            self.request = CurrentRequest::Released;
        } else if matches!(self.request, CurrentRequest::Chat { .. }) {
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

    /// The recorded request of the current turn.
    fn record(&self) -> Option<&Record> {
        self.played.as_ref()?.record(self.index())
    }

    /// Whether the current turn asks for a stream, where its record says so.
    pub fn streams(&self) -> Option<bool> {
        match &self.record()?.body {
            Some(Body::Request { request, .. }) => request.streams(),
            _ => None,
        }
    }

    /// Notes the end of the current turn of a recorded session, before the conversation moves on.
    pub fn note_end(&mut self, at: Moment, answer: &str, tool_calls: &[ToolCall]) {
        if let Some(played) = &mut self.played {
            let said = !answer.is_empty() || !tool_calls.is_empty();
            let tool_calls = tool_calls.to_vec();
            let reply = Message { tool_calls, ..Message::new(Role::Assistant, answer.into()) };
            played.end_turn(at, Some(reply).filter(|_| said));
        }
    }

    /// Waits until all has ended that the current turn waits for, in a conversation that began at
    /// `began` and whose last turn ended at `ended`. Gives the time at which it is due, or `None`
    /// if it never is.
    pub async fn due(&mut self, began: Moment, ended: Moment) -> Option<Moment> {
        let Some(played) = &self.played else { return Some(ended + self.think_time()) };
        let due = played.due(self.index(), began).await?;
        self.restore_text();
        Some(due)
    }

    /// The user's text in the current turn.
    fn user_text(&self) -> PromptPart<'_> {
        let Some((played, record)) = self.played.as_ref().zip(self.record()) else {
            let listed = self.row.and_then(|row| self.workload.ordered_prompt(row));
            return listed
                .map_or_else(|| self.spec().user_text(self.seed, self.turn), PromptPart::Text);
        };
        let row = played.trace().row_of(record);
        let tokens = row.input_tokens.max(1);
        match (&record.body, row.hash_ids) {
            (Some(Body::Text(text)), _) => PromptPart::Text(text),
            (_, []) => PromptPart::Words(self.seed.rng("line", self.index().into()), tokens),
            (_, ids) => PromptPart::Blocks(ids, BlockSizes { tokens, block: row.block_tokens }),
        }
    }

    fn preamble(&self, turn: u16) -> Preamble {
        let workload = &*self.workload;
        let marker = match (turn, workload.targets) {
            (0, 1) => self.id,
            _ => turn_id(workload.ids, self.key, turn),
        };
        let own = self.record().is_some_and(|record| record.body.is_some());
        let run_marker = workload.run_marker(self.target);
        let preamble = self.spec().preamble(self.seed, run_marker, marker, own);
        if self.played.is_some() { Preamble { prefix: None, ..preamble } } else { preamble }
    }

    /// The request of the current turn as it was recorded, unless only a text or lengths are known.
    fn recorded_request(&self) -> Option<CurrentRequest> {
        match self.record()?.body.as_ref()? {
            Body::Text(_) => None,
            Body::Http(content) => Some(CurrentRequest::Http(Some(HttpContent::clone(content)))),
            Body::Request { .. } => {
                Some(CurrentRequest::Chat { system: None, messages: self.recorded_messages() })
            }
        }
    }

    fn recorded_messages(&self) -> Vec<Message> {
        let played = self.played.as_ref();
        let mut all = played.map_or_else(Vec::new, |played| played.messages(self.index()));
        if let Some((first, marker)) = all.first_mut().zip(self.preamble(0).marker) {
            self.mark(first, marker);
        }
        all
    }

    /// Puts the marker in front of the first text of recorded messages.
    fn mark(&self, first: &mut Message, marker: ConversationId) {
        let json = first.recorded.as_deref().map(|messages| format!("[{messages}]"));
        let json = json.and_then(|json| serde_json::from_str::<Value>(&json).ok());
        let Some(mut messages) = json else { return };
        let content = &mut messages[0]["content"];
        let text = match content {
            Value::Array(parts) => parts.iter_mut().find_map(|part| part.get_mut("text")),
            content => Some(content),
        };
        let Some(Value::String(text)) = text else { return };
        let own = Arc::from(text.as_str());
        let preamble = Preamble { marker: Some(marker), ..Preamble::default() };
        *text = self.workload.prompts.build(&preamble, &PromptPart::Text(&own)).to_string();
        let messages = messages.to_string();
        first.recorded = Some(messages[1..messages.len() - 1].into());
    }

    /// The request of a turn that does not repeat earlier turns.
    fn independent_request(&self) -> CurrentRequest {
        if let Some(request) = self.recorded_request() {
            return request;
        }
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
        let system = self.spec().system().filter(|_| self.played.is_none() && !is_message);
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
