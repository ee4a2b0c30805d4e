//! A conversation: an ordered instance of a scenario.

use std::sync::Arc;

use plimsoll_measure::{ConversationKey, Nanos, ScenarioId, Seed};
use plimsoll_protocol::{HttpContent, Message, RequestContent, Role, Text, Turn};

use crate::http_request::{HttpRequest, HttpTemplates};
use crate::id::{ConversationId, RequestId, conversation_id, request_id, turn_id};
use crate::prepared::PreparedWorkload;
use crate::prompt_builder::{Preamble, PromptPart};
use crate::scenario::{RequestKind, Scenario};
use crate::template::PlaceholderValues;

/// A conversation: turns in order, each a request and its answer. A pure function of spec, seed,
/// run id, key and the answers. The run id decides only its ids and markers.
///
/// **Content.** A chat grows turn by turn: every request repeats the earlier prompts and answers.
/// Embeddings and plain HTTP requests are independent, and have no system prompt.
///
/// **Before the first text** comes the shared prefix, if there is a pool of them, and then in
/// `bust` mode the marker `[UUID]`, padded to 40 bytes. The first text is the system prompt if
/// there is one, else the first prompt; in independent requests, every prompt is a first text. The
/// tokens of the marker count as part of a text of given size; a text shorter than the marker gets
/// a shorter one. In `bust` mode a shared prefix begins with a marker of its own, which is the same
/// in the whole run: what an earlier run left in a cache does not help this one.
///
/// **A row of a trace** is one turn of the chosen scenario, without its system prompt, prefix and
/// content. The prompt has the row's input tokens (at least 1). The row's output tokens (at least
/// 1, since no provider accepts 0) limit the answer. With cached blocks, every 512 tokens of the
/// prompt are the text of one block, the same wherever its id occurs. In `bust` mode such a prompt
/// begins with the marker of the run instead of its own, which would prevent the sharing that the
/// trace recorded.
#[derive(Debug)]
pub struct Conversation {
    workload: Arc<PreparedWorkload>,
    scenario: ScenarioId,
    key: ConversationKey,
    id: ConversationId,
    /// Seed of all random choices of this conversation.
    seed: Seed,
    /// The row of the trace that gives the lengths, if any.
    row: Option<u64>,
    turn: u16,
    request: CurrentRequest,
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
        let seed = Seed(workload.seed.rng("conversation", key.0).next_u64());
        let id = conversation_id(workload.ids, key);
        let row = row.filter(|row| workload.row(Some(*row)).is_some());
        let request = CurrentRequest::Released;
        let mut conversation = Self { workload, scenario, key, id, seed, row, turn: 0, request };
        conversation.request = conversation.independent_request();
        conversation
    }

    /// The scenario it is an instance of.
    pub const fn scenario(&self) -> ScenarioId {
        self.scenario
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

    /// Number of turns.
    pub fn turns(&self) -> u16 {
        if self.row.is_some() { 1 } else { self.spec().turns }
    }

    /// Whether all turns are done.
    pub fn is_over(&self) -> bool {
        self.turn >= self.turns()
    }

    /// The pause before the current turn; none before the first.
    pub fn think_time(&self) -> Nanos {
        self.spec().think_time(self.seed, self.turn)
    }

    /// The current turn; `None` if the conversation is over or its text was
    /// [released](Self::release_text).
    pub fn turn(&self) -> Option<Turn<'_>> {
        if self.is_over() {
            return None;
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
            (CurrentRequest::Http(None) | CurrentRequest::Released, _) => return None,
        };
        let limit = self.workload.row(self.row).map(|row| row.output_tokens.max(1));
        Some(Turn { content, stream: scenario.stream, max_tokens: limit.or(scenario.max_tokens) })
    }

    /// Frees the text of the last turn, which no later turn repeats. To be called when its request
    /// has been encoded: the wait for the response may be long.
    pub fn release_text(&mut self) {
        if self.turn + 1 >= self.turns() {
            self.request = CurrentRequest::Released;
        }
    }

    /// Moves on to the next turn. The model's answer becomes part of a chat; an empty one is left
    /// out, since no provider accepts it in a request.
    pub fn advance(&mut self, answer: Option<&str>) {
        if self.is_over() {
            return;
        }
        self.turn += 1;
        if self.is_over() {
            return;
        }
        if matches!(self.request, CurrentRequest::Chat { .. }) {
            self.continue_chat(answer);
        } else {
            self.request = self.independent_request();
        }
    }

    fn continue_chat(&mut self, answer: Option<&str>) {
        let text = self.workload.prompts.build(&Preamble::default(), &self.user_text());
        let CurrentRequest::Chat { messages, .. } = &mut self.request else { return };
        let answer = answer.filter(|answer| !answer.is_empty());
        messages.extend(answer.map(|answer| message(Role::Assistant, answer.into())));
        messages.push(message(Role::User, text));
    }

    fn spec(&self) -> &Scenario {
        &self.workload.scenarios[self.scenario.index()]
    }

    /// The user's text in the current turn.
    fn user_text(&self) -> PromptPart<'_> {
        match self.workload.row(self.row) {
            None => self.spec().user_text(self.seed, self.turn),
            Some(row) => {
                let tokens = row.input_tokens.max(1);
                if row.hash_ids.is_empty() {
                    PromptPart::Words(self.seed.rng("line", 0), tokens)
                } else {
                    PromptPart::Blocks(row.hash_ids, tokens)
                }
            }
        }
    }

    fn preamble(&self, id: ConversationId) -> Preamble {
        let preamble = self.spec().preamble(self.seed, self.workload.run_marker, id);
        if self.row.is_some() { Preamble { prefix: None, ..preamble } } else { preamble }
    }

    /// The request of a turn that does not repeat earlier turns.
    fn independent_request(&self) -> CurrentRequest {
        match &self.spec().kind {
            RequestKind::Chat => self.first_chat_request(),
            RequestKind::Embed => CurrentRequest::Embed(self.independent_text()),
            RequestKind::Http(HttpRequest::Fixed(_)) => CurrentRequest::Http(None),
            RequestKind::Http(HttpRequest::Filled(templates)) => {
                CurrentRequest::Http(Some(self.fill(templates)))
            }
        }
    }

    fn first_chat_request(&self) -> CurrentRequest {
        let prompts = &self.workload.prompts;
        let preamble = self.preamble(self.id);
        let system = self.spec().system().filter(|_| self.row.is_none());
        let (system, text) = match system {
            Some(system) => {
                let text = prompts.build(&Preamble::default(), &self.user_text());
                (Some(prompts.build(&preamble, &system)), text)
            }
            None => (None, prompts.build(&preamble, &self.user_text())),
        };
        CurrentRequest::Chat { system, messages: vec![message(Role::User, text)] }
    }

    fn independent_text(&self) -> Text {
        self.workload.prompts.build(&self.preamble(self.turn_id()), &self.user_text())
    }

    fn fill(&self, templates: &HttpTemplates) -> HttpContent {
        let prompt = templates.has_prompt().then(|| self.independent_text().to_string());
        templates.fill(PlaceholderValues {
            uuid: self.turn_id().as_str(),
            seq: self.key.0,
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

fn message(role: Role, text: Text) -> Message {
    Message { role, text }
}
