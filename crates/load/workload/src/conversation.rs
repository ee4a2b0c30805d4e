//! One ordered instance of a scenario.

use std::sync::Arc;

use plimsoll_measure::{ConversationKey, Nanos, ScenarioId, Seed};
use plimsoll_protocol::{HttpContent, Message, RequestContent, Role, Text, Turn};

use crate::id::{ConversationId, RequestId, conversation_id, request_id, turn_id};
use crate::materials::{Opening, Speech};
use crate::request::{Request, Templates};
use crate::scenario::{Form, Scenario};
use crate::template::Filling;
use crate::trace::TraceRow;
use crate::workload::Parts;

/// One conversation: turns in order, each a request and its answer. A pure function of spec, seed and
/// key, but for the answers.
///
/// **What is said.** A chat grows turn by turn: what the user said before and the answers are part of
/// every later turn. Embeddings and plain HTTP requests stand alone, and have no system prompt.
///
/// **Before the first text** (the system prompt if there is one, else what the user says first; in
/// requests that stand alone, every text) comes the shared prefix, where there is a pool of them, and
/// then in `bust` mode the marker `[UUID]`, padded to 40 bytes. The tokens of the marker count as part
/// of a text of given size; in one that is shorter than the marker, the marker is shortened.
///
/// **A row of a trace** is one turn of the drawn scenario without its system prompt, prefix and
/// content: the row's input tokens (at least 1) are said, and the row's output tokens (at least 1, for
/// no provider accepts 0) are the limit of the answer. With cached blocks every 512 tokens of input are
/// the text of one block, the same wherever its id occurs, and there is no marker: the sharing is the
/// workload.
#[derive(Debug)]
pub struct Conversation {
    parts: Arc<Parts>,
    scenario: ScenarioId,
    key: ConversationKey,
    id: ConversationId,
    /// Of every draw that belongs to this conversation alone.
    own: Seed,
    /// The row of the trace, where the lengths come from one.
    row: Option<u64>,
    turn: u16,
    said: Said,
}

/// The current turn's request.
#[derive(Debug)]
enum Said {
    Chat {
        system: Option<Text>,
        messages: Vec<Message>,
    },
    Embed(Text),
    /// `None` for a request that is the scenario's own, always the same.
    Http(Option<HttpContent>),
    /// Nothing further.
    Over,
}

impl Conversation {
    pub(crate) fn new(
        parts: Arc<Parts>,
        scenario: ScenarioId,
        key: ConversationKey,
        row: Option<u64>,
    ) -> Self {
        let own = Seed(parts.seed.draw("conversation", key.0).bits());
        let id = conversation_id(parts.seed, key);
        let row = row.filter(|row| parts.row(Some(*row)).is_some());
        let said = Said::Chat { system: None, messages: Vec::new() };
        let mut conversation = Self { parts, scenario, key, id, own, row, turn: 0, said };
        conversation.said = conversation.begin();
        conversation
    }

    /// The scenario it is an instance of.
    pub const fn scenario(&self) -> ScenarioId {
        self.scenario
    }

    /// Which conversation of the run it is.
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

    /// Has the last turn been left behind?
    pub fn is_over(&self) -> bool {
        self.turn >= self.turns()
    }

    /// The pause before the current turn; none before the first.
    pub fn think_time(&self) -> Nanos {
        self.spec().think_time(self.own, self.turn)
    }

    /// Does a later turn need the text of the current turn's answer?
    pub fn wants_reply(&self) -> bool {
        matches!(self.said, Said::Chat { .. }) && self.turn + 1 < self.turns()
    }

    /// The current turn; `None` when the conversation is over, or was [let go](Self::let_go).
    pub fn turn(&self) -> Option<Turn<'_>> {
        if self.is_over() {
            return None;
        }
        let scenario = self.spec();
        let content = match (&self.said, &scenario.form) {
            (Said::Chat { system, messages }, _) => {
                RequestContent::Chat { system: system.as_ref(), messages }
            }
            (Said::Embed(input), _) => {
                RequestContent::Embed { inputs: std::slice::from_ref(input) }
            }
            (Said::Http(Some(content)), _)
            | (Said::Http(None), Form::Http(Request::Fixed(content))) => {
                RequestContent::Http(content)
            }
            (Said::Http(None) | Said::Over, _) => return None,
        };
        let limit = self.parts.row(self.row).map(|row| row.output_tokens.max(1));
        Some(Turn { content, stream: scenario.stream, max_tokens: limit.or(scenario.max_tokens) })
    }

    /// Lets go of what the last turn says, which nothing builds on: to be called when its request has been encoded, as it
    /// may have to wait long for its answer.
    pub fn let_go(&mut self) {
        if self.turn + 1 >= self.turns() {
            self.said = Said::Over;
        }
    }

    /// Moves on to the next turn. The reply becomes part of a chat; an empty one is left out, since no
    /// provider accepts it back.
    pub fn advance(&mut self, reply: Option<&str>) {
        if self.is_over() {
            return;
        }
        self.turn += 1;
        if self.is_over() {
            return;
        }
        if matches!(self.said, Said::Chat { .. }) {
            self.go_on(reply);
        } else {
            self.said = self.begin();
        }
    }

    fn go_on(&mut self, reply: Option<&str>) {
        let text = self.parts.materials.say(&Opening::default(), &self.line());
        let Said::Chat { messages, .. } = &mut self.said else { return };
        let reply = reply.filter(|reply| !reply.is_empty());
        messages.extend(reply.map(|reply| message(Role::Assistant, reply.into())));
        messages.push(message(Role::User, text));
    }

    fn spec(&self) -> &Scenario {
        &self.parts.scenarios[self.scenario.index()]
    }

    /// What the user says in the current turn.
    fn line(&self) -> Speech<'_> {
        match self.parts.row(self.row) {
            None => self.spec().line(self.own, self.turn),
            Some(row) => {
                let tokens = row.input_tokens.max(1);
                if row.hash_ids.is_empty() {
                    Speech::Words(self.own.draw("line", 0), tokens)
                } else {
                    Speech::Blocks(row.hash_ids, tokens)
                }
            }
        }
    }

    fn opening(&self, id: ConversationId) -> Opening {
        let opening = self.spec().opening(self.own, id);
        if self.row.is_some() { Opening { prefix: None, ..opening } } else { opening }
    }

    /// The request of a turn that does not build on those before it.
    fn begin(&self) -> Said {
        match &self.spec().form {
            Form::Chat => self.begin_chat(),
            Form::Embed => Said::Embed(self.standing_alone()),
            Form::Http(Request::Fixed(_)) => Said::Http(None),
            Form::Http(Request::Filled(templates)) => Said::Http(Some(self.fill(templates))),
        }
    }

    fn begin_chat(&self) -> Said {
        let materials = &self.parts.materials;
        let opening = self.opening(self.id);
        let system = self.spec().system().filter(|_| self.row.is_none());
        let (system, text) = match system {
            Some(system) => {
                let text = materials.say(&Opening::default(), &self.line());
                (Some(materials.say(&opening, &system)), text)
            }
            None => (None, materials.say(&opening, &self.line())),
        };
        Said::Chat { system, messages: vec![message(Role::User, text)] }
    }

    fn standing_alone(&self) -> Text {
        self.parts.materials.say(&self.opening(self.turn_id()), &self.line())
    }

    fn fill(&self, templates: &Templates) -> HttpContent {
        let said = templates.has_prompt().then(|| self.standing_alone().to_string());
        templates.fill(Filling {
            uuid: self.turn_id().as_str(),
            seq: self.key.0,
            turn: self.turn,
            draw: self.own.draw("template", u64::from(self.turn)),
            prompt: &said.unwrap_or_default(),
        })
    }

    /// The conversation's id in the first turn, another one in each later turn.
    fn turn_id(&self) -> ConversationId {
        turn_id(self.id, self.own, self.turn)
    }
}

impl Parts {
    fn row(&self, row: Option<u64>) -> Option<TraceRow<'_>> {
        self.trace.as_ref()?.row(row?)
    }
}

fn message(role: Role, text: Text) -> Message {
    Message { role, text }
}
