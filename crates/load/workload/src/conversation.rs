//! A conversation: an ordered instance of a scenario.

mod played;

use std::sync::{Arc, PoisonError};

use plimsoll_measure::{
    ConversationKey, Moment, Nanos, ScenarioId, Seed, TargetId, TaskCounts, TaskEnd, TaskPart,
};
use plimsoll_protocol::{
    HttpContent, Kept, Message, PlainAnswer, RecordedRequest, RequestContent, Role, Text, ToolCall,
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

/// A conversation: turns in order, each a request and its response. It depends only on spec, seed,
/// run id, key and the responses. The run id determines only ids and markers.
///
/// **Content.** A chat grows turn by turn: every request repeats the earlier prompts and responses.
/// Over a WebSocket, a turn sends only its prompt, without a system prompt, because the target
/// keeps the dialogue. Embeddings and plain HTTP requests are independent, without a system prompt.
///
/// **Tool calls** stay in the dialogue. The next prompt answers each call with the scenario's
/// result, because providers reject a call without a result.
///
/// **An agent's responses decide** how its conversation continues. It has one prompt; its turns are
/// requests to the model, calls of tools and approvals. See [`AgentSpec`](crate::AgentSpec).
///
/// **The first text** begins with the shared prefix, if any, and in `bust` mode with the marker:
/// five words that encode the first 40 bits of the id, and `---`. The first text is the system
/// prompt or else the first prompt; in independent requests, every prompt is a first text. Tokens
/// of the marker count towards the size of the text, and a text shorter than the marker gets a
/// shorter one. In `bust` mode a shared prefix begins with its own marker, the same in the whole
/// run, so that entries of an earlier run in a cache are useless.
///
/// **With a tool server or an agent**, the turns are messages of the protocol: handshake, steps and
/// deletion of the session. Later requests contain the session, cursor or task of a response; see
/// [`Conversation::note_answer`].
///
/// **A recorded session** sends each turn after the turns that it waits for have ended and the
/// recorded wait is over. A recorded body is sent unchanged, with the target's replies or the
/// recorded ones. A request of lengths alone is a turn of the scenario without its system prompt,
/// prefix and content: the prompt has the recorded input tokens, and the output tokens limit the
/// response (both at least 1, because providers reject 0). Equal ids of cached blocks produce equal
/// text. In `bust` mode such a prompt begins with the marker of the run, because its own marker
/// would prevent the recorded sharing.
///
/// **In a comparison**, the conversations of a block, one on each target, have the same content.
/// Only their ids and markers differ. See [`crate::Workload::for_targets`].
#[derive(Debug)]
pub struct Conversation {
    workload: Arc<PreparedWorkload>,
    scenario: ScenarioId,
    key: ConversationKey,
    id: ConversationId,
    /// Seed of all random choices of this conversation.
    seed: Seed,
    target: TargetId,
    /// The recorded session, if it replays one.
    played: Option<Played>,
    turn: u16,
    /// With a tool server or an agent.
    session: Option<Box<dyn Session>>,
    /// The current request. For an agent it is the dialogue, even during tool calls.
    request: CurrentRequest,
    /// The task of an agent, boxed to keep other conversations small.
    task: Option<Box<Task>>,
    /// Further parts of the last response.
    kept: Option<Arc<Kept>>,
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
    /// Released to save memory.
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
        let (turn, request) = (0, CurrentRequest::Released);
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
            played,
            turn,
            session,
            request,
            task,
            kept: None,
        };
        conversation.request = conversation.independent_request();
        conversation
    }

    /// The scenario of the conversation.
    pub const fn scenario(&self) -> ScenarioId {
        self.scenario
    }

    /// The scenario that counts the current turn: its own, an agent's part, or the one of another
    /// recorded protocol.
    #[inline]
    pub fn scenario_of_turn(&self) -> ScenarioId {
        match &self.task {
            None => self.recorded_scenario().unwrap_or(self.scenario),
            Some(task) => self.scenario_of(task.part()),
        }
    }

    fn recorded_scenario(&self) -> Option<ScenarioId> {
        self.spec().scenario_for(self.record()?.body.as_ref()?.dialect()?)
    }

    fn scenario_of(&self, part: TaskPart) -> ScenarioId {
        self.spec().agent.as_ref().map_or(self.scenario, |rules| rules.scenario_of(part))
    }

    /// The purpose of an agent's current turn; `None` for any other conversation.
    pub fn task_part(&self) -> Option<TaskPart> {
        self.task.as_ref().map(|task| task.part())
    }

    /// The counts of an agent's task so far; zero for any other conversation.
    pub fn task_counts(&self) -> TaskCounts {
        self.task.as_ref().map_or_else(TaskCounts::default, |task| task.counts())
    }

    /// How the responses ended an agent's task; `None` before the end, and for any other
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

    /// Position of the current turn, from 0, counted across all branches of a recorded session.
    pub fn index(&self) -> u16 {
        let played = self.played.as_ref().and_then(|played| played.position(self.turn));
        played.unwrap_or(self.turn)
    }

    /// Splits off the branches of a recorded session that are played at the same time as this one.
    pub fn split_branches(&mut self) -> Vec<Self> {
        let others: Vec<_> = self.played.iter_mut().flat_map(Played::take_others).collect();
        let others = others.into_iter().map(|played| Self {
            workload: Arc::clone(&self.workload),
            played: Some(played),
            session: None,
            request: CurrentRequest::Released,
            task: None,
            kept: None,
            ..*self
        });
        others.collect()
    }

    /// Whether it is a branch other than the first.
    pub fn is_branch(&self) -> bool {
        self.played.as_ref().is_some_and(|played| !played.is_first())
    }

    /// Whether all branches of a recorded session have ended well; `true` for others.
    pub fn is_whole(&self) -> bool {
        self.played.as_ref().is_none_or(Played::is_whole)
    }

    /// Ends a branch of a recorded session. Turns that wait for its remaining turns are not sent.
    pub fn end_branch(&mut self) {
        if let Some(played) = &mut self.played {
            played.end_rest();
        }
    }

    /// The turns of a branch of a recorded session; 0 for any other conversation.
    pub fn recorded_turns(&self) -> u16 {
        self.played.as_ref().map_or(0, Played::turns)
    }

    /// Number of turns; `None` if the responses decide it.
    pub fn turns(&self) -> Option<u16> {
        self.task.is_none().then(|| self.planned_turns())
    }

    /// Number of turns, unless the responses decide it.
    fn planned_turns(&self) -> u16 {
        self.played.as_ref().map_or_else(|| self.spec().turns, Played::turns)
    }

    /// Whether the current turn ends the session after the end of the task, of which it is not a
    /// part.
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

    /// The user's think time before the next conversation.
    pub fn think_time_after(&self) -> Nanos {
        self.spec().think_time(self.seed, u16::MAX)
    }

    /// The think time before the current turn; zero before the first.
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

    /// Counts the current request as sent. Call it before [`Self::release_text`]. If an earlier
    /// request of this process sent the same shared prefix to the same target, returns the bytes of
    /// the prefix and of the whole text.
    pub fn note_sent(&self) -> Option<[u32; 2]> {
        let whole = match &self.request {
            CurrentRequest::Chat { system, messages } => {
                let texts = system.iter().chain(messages.iter().map(|message| &message.text));
                texts.map(Text::len).sum()
            }
            CurrentRequest::Embed(text) => text.len(),
            _ => 0,
        };
        let is_chat = self.task_part().is_none_or(|part| part == TaskPart::Chat);
        // A message over a WebSocket has no earlier text.
        let has_prefix = self.turn == 0 || !matches!(self.spec().kind, RequestKind::Message);
        let has_prefix = has_prefix && is_chat && whole > 0 && !self.is_recorded();
        let (number, tokens) = self.spec().prefix(self.seed).filter(|_| has_prefix)?;
        let (key, sent) = ((self.scenario, self.target, number), &self.workload.sent_prefixes);
        let is_known = sent.read().unwrap_or_else(PoisonError::into_inner).contains(&key);
        let is_new = !is_known && sent.write().unwrap_or_else(PoisonError::into_inner).insert(key);
        let bytes = [tokens as usize * WORD_BYTES, whole];
        let [part, whole] = bytes.map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX));
        (!is_new).then_some([part.min(whole), whole])
    }

    /// Frees the text of the last turn, if it can be restored. Call it after encoding the request,
    /// because the response may take long. An agent never knows its last turn.
    pub fn release_text(&mut self) {
        let made_of_answers = matches!(self.request, CurrentRequest::Chat { .. }) && self.turn > 0;
        let is_rpc = matches!(self.request, CurrentRequest::Rpc(_));
        let is_last = self.turns().is_some_and(|turns| self.turn + 1 >= turns);
        if is_rpc || (is_last && !made_of_answers) {
            self.request = CurrentRequest::Released;
        }
    }

    /// Restores a [released](Self::release_text) text, to encode the same request again.
    pub fn restore_text(&mut self) {
        if matches!(self.request, CurrentRequest::Released) && !self.is_over() {
            self.request = self.independent_request();
        }
    }

    /// Moves on to the next turn. The model's response becomes part of a chat, unless it is empty,
    /// because providers reject empty messages.
    pub fn advance(&mut self, answer: Option<&str>) {
        self.advance_with(answer.unwrap_or_default(), Vec::new());
    }

    /// The same for a response with tool calls.
    pub fn advance_with(&mut self, answer: &str, tool_calls: Vec<ToolCall>) {
        let kept = self.kept.take().filter(|_| !answer.is_empty() || !tool_calls.is_empty());
        self.advance_to(answer, tool_calls);
        if let (Some(kept), CurrentRequest::Chat { messages, .. }) = (kept, &mut self.request)
            && let Some(reply) = messages.iter_mut().rfind(|one| one.role == Role::Assistant)
        {
            reply.kept = Some(kept);
        }
    }

    /// Keeps the further parts of a response for the next request. Call it before the conversation
    /// moves on.
    pub fn keep(&mut self, kept: Option<&Kept>) {
        let is_chat = !self.workload.canned;
        self.kept = kept.filter(|_| is_chat).cloned().map(Arc::new);
    }

    fn advance_to(&mut self, answer: &str, tool_calls: Vec<ToolCall>) {
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
            // Restored when it is due, because other branches may reply until then.
            self.request = CurrentRequest::Released;
        } else if matches!(self.request, CurrentRequest::Chat { .. }) {
            self.continue_chat(answer, tool_calls);
        } else {
            self.request = self.independent_request();
        }
    }

    /// Moves an agent on after a request to a tool or for an approval. An unexpected response fails
    /// the task. Any other conversation stays unchanged.
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

    /// A canned response in place of the model's response to the turn before.
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

    /// Whether the current turn has recorded content other than a bare prompt.
    fn is_recorded(&self) -> bool {
        self.record().is_some_and(|record| !matches!(record.body, Some(Body::Text(_))))
    }

    /// Whether the recorded request asks for a stream; `None` if it does not specify it.
    pub fn streams(&self) -> Option<bool> {
        match &self.record()?.body {
            Some(Body::Request { request, .. }) => request.streams(),
            _ => None,
        }
    }

    /// Records the end of the current turn of a recorded session, before the conversation moves on.
    pub fn note_end(&mut self, at: Moment, answer: &str, tool_calls: &[ToolCall]) {
        if let Some(played) = &mut self.played {
            let said = !answer.is_empty() || !tool_calls.is_empty();
            let tool_calls = tool_calls.to_vec();
            let kept = self.kept.take();
            let reply =
                Message { tool_calls, kept, ..Message::new(Role::Assistant, answer.into()) };
            played.end_turn(at, Some(reply).filter(|_| said));
        }
    }

    /// Waits for the turns that must end before the current turn. The conversation began at
    /// `began`, and its last turn ended at `ended`. Returns the due time, or `None` if the turn is
    /// never sent.
    pub async fn due(&mut self, began: Moment, ended: Moment) -> Option<Moment> {
        let Some(played) = &self.played else { return Some(ended + self.think_time()) };
        let due = played.due(self.index(), began).await?;
        self.restore_text();
        Some(due)
    }

    /// The user's text in the current turn.
    fn user_text(&self) -> PromptPart<'_> {
        let Some((played, record)) = self.played.as_ref().zip(self.record()) else {
            return self.spec().user_text(self.seed, self.turn);
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
        if self.is_recorded() { Preamble { prefix: None, ..preamble } } else { preamble }
    }

    /// The recorded request of the current turn, unless the record has only a text or lengths.
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
        const STARTS: [&str; 2] = ["\"content\":\"", "\"text\":\""];
        let Some(json) = first.recorded.as_deref() else { return };
        let ends = STARTS.iter().filter_map(|start| Some(json.find(start)? + start.len()));
        if let Some((before, text)) = ends.min().map(|at| json.split_at(at)) {
            let preamble = Preamble { marker: Some(marker), ..Preamble::default() };
            let marker = self.workload.prompts.build(&preamble, &PromptPart::Text(&"".into()));
            let marker = Value::from(marker.to_string()).to_string();
            first.recorded = Some(format!("{before}{}{text}", marker.trim_matches('"')).into());
        }
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
        let system = self.spec().system().filter(|_| !self.is_recorded() && !is_message);
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

    /// The conversation's id in the first turn, and a different id in each later turn.
    fn turn_id(&self) -> ConversationId {
        turn_id(self.workload.ids, self.key, self.turn)
    }
}

impl Conversation {
    /// The response that the current message to a tool server or an agent expects; `None` for other
    /// turns and if the message was [released](Self::release_text).
    pub fn expectation(&self) -> Option<rpc::Expectation> {
        let message = match (&self.request, &self.task) {
            (CurrentRequest::Rpc(message), _) => &**message,
            (_, Some(task)) => task.request()?.message()?,
            (_, None) => return None,
        };
        Some(message.expectation())
    }

    /// The time after which the scenario cancels the current turn.
    pub fn cancel_after(&self) -> Option<Nanos> {
        self.session.as_ref()?.cancel_after()
    }

    /// Records the outcome of the current message to a tool server or an agent. Returns whether the
    /// conversation continues: a JSON-RPC error does not end a session, and a session that cannot
    /// continue is still deleted, then ends early. An agent's task continues after a success. Call
    /// it before [`Conversation::advance_with`].
    pub fn note_answer(&mut self, end: RpcEnd) -> bool {
        if let Some(session) = &mut self.session {
            return session.note(end);
        }
        let Some(task) = &mut self.task else { return end.is_completed() };
        task.note(&end);
        end.is_completed() || task.is_closing()
    }

    /// The think time before the current turn with a tool server or an agent.
    fn has_pause(&self) -> bool {
        self.session.as_ref().is_none_or(|session| session.is_thinking())
    }

    /// Moves a conversation with a tool server or an agent on; `false` for any other one.
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
        // With a tokenizer, words may be shorter than estimated.
        text.extend(std::iter::repeat_n(' ', bytes - text.len()));
        text
    }

    fn message_id(&self) -> String {
        self.turn_id().to_string()
    }
}
