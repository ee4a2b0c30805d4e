//! Conversations with tool servers and agents. The steps and the responses decide the next message.

mod discovery;
mod mcp;

use std::fmt::Debug;
use std::sync::Arc;

pub use discovery::{DiscoveryAnswer, ToolDiscovery, offered_to_model};
pub(crate) use mcp::McpPlan;
use mcp::McpSession;
use plimsoll_measure::{ErrorClass, Nanos, Outcome, Seed};
use plimsoll_protocol::rpc::a2a::{Ask, Call, Message, TaskState, Version};
use plimsoll_protocol::rpc::{self, Request};

use crate::mix::ScenarioMix;
use crate::spec::{A2aAction, A2aSpec};

/// The outcome of a message to a tool server or an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcEnd {
    /// The outcome.
    pub outcome: Outcome,
    /// HTTP status; 0 for no response.
    pub status: u16,
    /// The session in the head of the response.
    pub session: Option<String>,
    /// The code of a JSON-RPC error, whatever the status.
    pub code: Option<i64>,
    /// The content of the response.
    pub answer: rpc::Answer,
}

impl RpcEnd {
    /// Whether the response is a success.
    pub(crate) fn is_completed(&self) -> bool {
        self.outcome == Outcome::Completed
    }
}

/// The plan that the conversations of a scenario share.
#[derive(Debug)]
pub(crate) enum SessionPlan {
    /// With a tool server.
    Mcp(Arc<McpPlan>),
    /// With an agent.
    A2a(Arc<A2aPlan>),
}

/// Sources of the texts in messages.
pub(crate) trait Texts {
    /// The user's text in a step.
    fn message(&self, step: u16) -> plimsoll_protocol::Text;
    /// A synthetic text of this size in bytes.
    fn sized(&self, bytes: u32) -> String;
    /// A unique id.
    fn message_id(&self) -> String;
}

/// The state of a conversation with a tool server or an agent.
pub(crate) trait Session: Debug + Send {
    /// The current message; `None` after the last one.
    fn request(&self, texts: &dyn Texts) -> Option<Request>;

    /// The time after which the current message is cancelled.
    fn cancel_after(&self) -> Option<Nanos> {
        None
    }

    /// Records the outcome of the current message. Returns whether the conversation continues.
    fn note(&mut self, end: RpcEnd) -> bool;

    /// Moves on to the next message.
    fn advance(&mut self);

    /// Whether the last message has been sent.
    fn is_over(&self) -> bool;

    /// Whether the user thinks before the current message. The user thinks before every step except
    /// the first, but not before further messages of a step or of the protocol.
    fn is_thinking(&self) -> bool;
}

impl SessionPlan {
    /// Starts a conversation with this number of steps.
    pub(crate) fn begin(&self, seed: Seed, steps: u16) -> Box<dyn Session> {
        match self {
            Self::Mcp(plan) => Box::new(McpSession::begin(plan, seed, steps)),
            Self::A2a(plan) => Box::new(A2aSession::begin(plan, seed, steps)),
        }
    }
}

// A conversation with an agent.

/// The plan that the conversations of a scenario share.
#[derive(Debug)]
pub(crate) struct A2aPlan {
    version: Version,
    path: Arc<str>,
    card_path: Arc<str>,
    choice: ScenarioMix,
    actions: Vec<A2aAction>,
}

impl A2aPlan {
    /// Creates the plan of a validated spec.
    pub(crate) fn new(spec: &A2aSpec) -> Self {
        Self {
            version: spec.version,
            path: spec.path.as_str().into(),
            card_path: spec.card_path.as_str().into(),
            choice: ScenarioMix::new(spec.steps.iter().map(|step| step.weight)),
            actions: spec.steps.iter().map(|step| step.action).collect(),
        }
    }
}

/// The action on the task of a message that a step had to send first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Follow {
    Get,
    Cancel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The step's own message, or the message that must precede it.
    Step,
    Follow(Follow),
    Over,
}

/// The state of a conversation with an agent.
#[derive(Debug)]
pub(crate) struct A2aSession {
    plan: Arc<A2aPlan>,
    seed: Seed,
    phase: Phase,
    /// The current step, from 0, and its action.
    step: u16,
    action: A2aAction,
    steps: u16,
    /// The message after the message of the current step.
    follow: Option<Follow>,
    /// Id of the current message.
    id: u64,
    /// The last task.
    task: Option<String>,
    /// Whether the task waits for a message.
    asks: bool,
    context: Option<String>,
}

impl A2aSession {
    fn begin(plan: &Arc<A2aPlan>, seed: Seed, steps: u16) -> Self {
        let mut session = Self {
            plan: Arc::clone(plan),
            seed,
            phase: Phase::Step,
            step: 0,
            action: A2aAction::Send,
            steps,
            follow: None,
            id: 1,
            task: None,
            asks: false,
            context: None,
        };
        session.choose();
        session
    }

    fn choose(&mut self) {
        let chosen = self.plan.choice.pick(|| self.seed.rng("step", self.step.into())).index();
        self.action = self.plan.actions.get(chosen).copied().unwrap_or(A2aAction::Send);
        self.follow = match self.action {
            A2aAction::Get if self.task.is_none() => Some(Follow::Get),
            A2aAction::Cancel => {
                (self.task, self.asks) = (None, false);
                Some(Follow::Cancel)
            }
            _ => None,
        };
    }
}

impl Session for A2aSession {
    fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }

    fn is_thinking(&self) -> bool {
        matches!(self.phase, Phase::Step) && self.step > 0
    }

    fn request(&self, texts: &dyn Texts) -> Option<Request> {
        let task = self.task.clone().unwrap_or_default();
        let ask = match (self.phase, self.action) {
            (Phase::Over, _) => return None,
            (Phase::Follow(Follow::Get), _) => Ask::Get { task },
            (Phase::Follow(Follow::Cancel), _) => Ask::Cancel { task },
            (Phase::Step, A2aAction::Card) => Ask::Card,
            (Phase::Step, A2aAction::Get) if self.follow.is_none() => Ask::Get { task },
            (Phase::Step, action) => Ask::Send {
                message: Message {
                    id: texts.message_id(),
                    text: texts.message(self.step),
                    context: self.context.clone(),
                    task: self.task.clone().filter(|_| self.asks),
                },
                stream: action == A2aAction::Stream,
                wait: action == A2aAction::Send,
            },
        };
        let path = if matches!(ask, Ask::Card) { &self.plan.card_path } else { &self.plan.path };
        let call = Call { version: self.plan.version, ask };
        Some(Request { path: Arc::clone(path), id: self.id, call: rpc::Call::A2a(call) })
    }

    /// Records the outcome of the current message. The conversation continues after a JSON-RPC
    /// error.
    fn note(&mut self, end: RpcEnd) -> bool {
        if !end.is_completed() {
            self.follow = None;
            return end.outcome == Outcome::Failed(ErrorClass::RpcError);
        }
        let rpc::Answer { task, context, state, .. } = end.answer;
        if task.is_some() {
            self.task = task;
            self.asks = state == Some(TaskState::InputRequired);
        }
        if context.is_some() {
            self.context = context;
        }
        true
    }

    fn advance(&mut self) {
        self.id += 1;
        let follow = self.follow.take().filter(|_| self.task.is_some());
        if let Some(follow) = follow {
            self.phase = Phase::Follow(follow);
            return;
        }
        self.step += 1;
        self.phase = if self.step < self.steps { Phase::Step } else { Phase::Over };
        if self.phase == Phase::Step {
            self.choose();
        }
    }
}
