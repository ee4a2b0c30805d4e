//! A session with a tool server (MCP).

use std::sync::Arc;

use plimsoll_measure::{ErrorClass, Nanos, Outcome, Seed};
use plimsoll_protocol::rpc::mcp::{Ask, Call, List, Revision};
use plimsoll_protocol::rpc::{self, Request};
use serde_json::{Map, Value};

use super::{RpcEnd, Session, Texts};
use crate::mix::ScenarioMix;
use crate::spec::{ByteRange, McpMethod, McpSpec, McpStep};

/// The plan that the sessions of a scenario share.
#[derive(Debug)]
pub(crate) struct McpPlan {
    revision: Revision,
    path: Arc<str>,
    delete: bool,
    choice: ScenarioMix,
    steps: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    method: McpMethod,
    name: Arc<str>,
    arguments: Map<String, Value>,
    /// The arguments as text, if they are the same in every call.
    fixed: Option<String>,
    sized: Option<(String, ByteRange)>,
    progress: bool,
    cancel_after: Option<Nanos>,
}

impl McpPlan {
    /// Creates the plan of a validated spec.
    pub(crate) fn new(spec: &McpSpec) -> Self {
        Self {
            revision: spec.revision,
            path: spec.path.as_str().into(),
            delete: spec.delete,
            choice: ScenarioMix::new(spec.steps.iter().map(|step| step.weight)),
            steps: spec.steps.iter().map(Step::new).collect(),
        }
    }
}

impl Step {
    fn new(spec: &McpStep) -> Self {
        let sized = spec.argument_bytes.map(|bytes| (spec.argument.clone(), bytes));
        Self {
            method: spec.method,
            name: spec.name.as_deref().unwrap_or_default().into(),
            arguments: spec.arguments.clone(),
            fixed: sized.is_none().then(|| Value::Object(spec.arguments.clone()).to_string()),
            sized,
            progress: spec.progress,
            cancel_after: spec.cancel_after,
        }
    }

    /// The arguments of a call, as a JSON object.
    fn arguments(&self, seed: Seed, step: u16, texts: &dyn Texts) -> String {
        if let Some(fixed) = &self.fixed {
            return fixed.clone();
        }
        let mut arguments = self.arguments.clone();
        if let Some((name, ByteRange { min, max })) = &self.sized {
            let lengths = u64::from(max.saturating_sub(*min)) + 1;
            let drawn = seed.rng("argument bytes", step.into()).below(lengths);
            let bytes = min.saturating_add(u32::try_from(drawn).unwrap_or(0));
            arguments.insert(name.clone(), Value::String(texts.sized(bytes)));
        }
        Value::Object(arguments).to_string()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Initialize,
    Initialized,
    Step,
    /// Cancels a request.
    Cancel {
        request: u64,
    },
    /// Deletes the session; `early` means before its last step.
    End {
        early: bool,
    },
    Over,
}

/// The state of a session with a tool server.
#[derive(Debug)]
pub(crate) struct McpSession {
    plan: Arc<McpPlan>,
    seed: Seed,
    phase: Phase,
    /// The phase that the response requires.
    next: Option<Phase>,
    /// The current step, from 0, and its position in the plan.
    step: u16,
    chosen: usize,
    steps: u16,
    /// Id of the current message.
    id: u64,
    session: Option<Arc<str>>,
    version: Option<Arc<str>>,
    /// The cursor of the next page of each [`List`].
    cursors: [Option<String>; 4],
}

impl McpSession {
    pub(super) fn begin(plan: &Arc<McpPlan>, seed: Seed, steps: u16) -> Self {
        let has_sessions = plan.revision.has_sessions();
        let mut session = Self {
            plan: Arc::clone(plan),
            seed,
            phase: if has_sessions { Phase::Initialize } else { Phase::Step },
            next: None,
            step: 0,
            chosen: 0,
            steps,
            id: 1,
            session: None,
            version: None,
            cursors: Default::default(),
        };
        session.choose();
        session
    }

    fn choose(&mut self) {
        self.chosen = self.plan.choice.pick(|| self.seed.rng("step", self.step.into())).index();
    }

    fn current(&self) -> Option<&Step> {
        self.plan.steps.get(self.chosen).filter(|_| self.phase == Phase::Step)
    }

    fn ask(&self, step: &Step, texts: &dyn Texts) -> Ask {
        let name = Arc::clone(&step.name);
        match step.method {
            McpMethod::CallTool => {
                let arguments = step.arguments(self.seed, self.step, texts);
                Ask::Tool { name, arguments, progress: step.progress }
            }
            McpMethod::GetPrompt => {
                Ask::Prompt { name, arguments: step.arguments(self.seed, self.step, texts) }
            }
            McpMethod::ReadResource => Ask::Resource { uri: name },
            McpMethod::Ping => Ask::Ping,
            McpMethod::Discover => Ask::Discover,
            McpMethod::ListTools => self.list(List::Tools),
            McpMethod::ListResources => self.list(List::Resources),
            McpMethod::ListResourceTemplates => self.list(List::ResourceTemplates),
            McpMethod::ListPrompts => self.list(List::Prompts),
        }
    }

    fn list(&self, list: List) -> Ask {
        Ask::List { list, cursor: self.cursors[list as usize].clone() }
    }

    /// Whether a session continues after a failed step.
    fn goes_on_after(&mut self, end: &RpcEnd) -> bool {
        let has_sessions = self.plan.revision.has_sessions();
        match end.outcome {
            Outcome::Failed(ErrorClass::RpcError) => true,
            // A JSON-RPC error may have its own status. With sessions, 404 means that the session
            // is gone.
            Outcome::Rejected(status) if !has_sessions || status != 404 => {
                end.code.is_some() || self.end_early(end)
            }
            // Without sessions, closing the connection cancels the request.
            Outcome::Cancelled if !has_sessions => true,
            Outcome::Cancelled => {
                self.next = Some(Phase::Cancel { request: self.id });
                true
            }
            _ => self.end_early(end),
        }
    }

    /// Ends a session that cannot continue. Returns whether that needs a message: a server that
    /// lost the session or did not respond receives none.
    fn end_early(&mut self, end: &RpcEnd) -> bool {
        let tells = self.plan.delete && self.session.is_some() && !matches!(end.status, 0 | 404);
        self.next = tells.then_some(Phase::End { early: true });
        tells
    }
}

impl Session for McpSession {
    fn request(&self, texts: &dyn Texts) -> Option<Request> {
        let ask = match self.phase {
            Phase::Initialize => Ask::Initialize,
            Phase::Initialized => Ask::Initialized,
            Phase::Step => self.ask(self.current()?, texts),
            Phase::Cancel { request } => Ask::Cancelled { request },
            Phase::End { .. } => Ask::EndSession,
            Phase::Over => return None,
        };
        let call = Call {
            revision: self.plan.revision,
            version: self.version.clone(),
            session: self.session.clone(),
            ask,
        };
        Some(Request { path: Arc::clone(&self.plan.path), id: self.id, call: rpc::Call::Mcp(call) })
    }

    fn cancel_after(&self) -> Option<Nanos> {
        self.current()?.cancel_after
    }

    /// Records the outcome of the current message. A JSON-RPC error of a step does not end the
    /// session; any other failure does, and deletes the session if possible. A failed session stays
    /// ended, whatever the response to the deletion.
    fn note(&mut self, end: RpcEnd) -> bool {
        let completed = end.is_completed();
        match self.phase {
            Phase::Initialize if completed => {
                self.version = end.answer.version.map(Arc::from);
                self.session = end.session.map(Arc::from);
                true
            }
            Phase::Step => {
                if let Some(list) = self.current().and_then(|step| list_of(step.method)) {
                    self.cursors[list as usize] = end.answer.cursor.clone().filter(|_| completed);
                }
                completed || self.goes_on_after(&end)
            }
            Phase::Initialized | Phase::Cancel { .. } => completed || self.end_early(&end),
            Phase::End { early } => completed && !early,
            Phase::Initialize | Phase::Over => completed,
        }
    }

    fn advance(&mut self) {
        self.id += 1;
        if let Some(next) = self.next.take() {
            self.phase = next;
            return;
        }
        self.phase = match self.phase {
            Phase::Initialize => Phase::Initialized,
            Phase::Initialized => Phase::Step,
            Phase::Step | Phase::Cancel { .. } => {
                self.step += 1;
                if self.step < self.steps {
                    Phase::Step
                } else if self.plan.delete && self.session.is_some() {
                    Phase::End { early: false }
                } else {
                    Phase::Over
                }
            }
            Phase::End { .. } | Phase::Over => Phase::Over,
        };
        if self.phase == Phase::Step {
            self.choose();
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }

    fn is_thinking(&self) -> bool {
        matches!(self.phase, Phase::Step) && self.step > 0
    }
}

const fn list_of(method: McpMethod) -> Option<List> {
    match method {
        McpMethod::ListTools => Some(List::Tools),
        McpMethod::ListResources => Some(List::Resources),
        McpMethod::ListResourceTemplates => Some(List::ResourceTemplates),
        McpMethod::ListPrompts => Some(List::Prompts),
        _ => None,
    }
}
