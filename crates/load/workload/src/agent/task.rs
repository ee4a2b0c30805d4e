//! The loop of one conversation. Each response decides the next request.

use std::mem;
use std::sync::Arc;

use plimsoll_measure::{Nanos, Seed, TaskCounts, TaskEnd, TaskPart};
use plimsoll_protocol::rpc::mcp::{Ask, Call};
use plimsoll_protocol::rpc::{self, Request};
use plimsoll_protocol::{
    HttpContent, MAX_TOOL_CALLS, Message, PlainAnswer, RequestContent, Role, Text, ToolCall,
    ToolResult,
};
use serde_json::Value;

use super::rules::{AgentRules, ApprovalRules};
use crate::session::RpcEnd;
use crate::spec::ToolProtocol;
use crate::template::percent_encoded;

/// Maximum dialogue of a task, in bytes of responses, arguments and results. A longer dialogue ends
/// the task.
const MAX_DIALOGUE: usize = 16 << 20;

/// The result that the model receives for a rejected call.
const REFUSAL: &str = "The user rejected this tool call.";

/// The content of a response.
#[derive(Debug)]
pub(crate) enum Answer<'a> {
    /// The model's text and tool calls.
    Model(&'a str, Vec<ToolCall>),
    /// The result of a tool, or an approval.
    Plain(PlainAnswer),
}

/// The state of a task.
#[derive(Debug)]
pub(crate) struct Task {
    phase: Phase,
    /// The current request, unless it is one to the model.
    request: Option<PartRequest>,
    /// The wait before the current request.
    pause: Nanos,
    /// Results of the last response's calls, in the order of the calls.
    results: Vec<ToolResult>,
    counts: TaskCounts,
    /// Bytes of the dialogue so far.
    dialogue: usize,
    session: ToolSession,
}

/// The purpose of the current request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Ask the model.
    Chat,
    /// Ask for the approval of a call.
    Ask,
    /// Approve or reject the call.
    Decide { approves: bool },
    /// Open a session with the tool server.
    Open,
    /// Confirm the session.
    Opened,
    /// Call a tool.
    Call,
    /// End the session, after the task has ended.
    Close(TaskEnd),
    /// The task needs no more requests.
    Over(TaskEnd),
}

impl Task {
    /// Creates a task before its first request to the model.
    pub(crate) fn new() -> Self {
        Self {
            phase: Phase::Chat,
            request: None,
            pause: Nanos::ZERO,
            results: Vec::new(),
            counts: TaskCounts::default(),
            dialogue: 0,
            session: ToolSession::default(),
        }
    }

    /// How the responses ended the task, if they did.
    pub(crate) const fn end(&self) -> Option<TaskEnd> {
        match self.phase {
            Phase::Over(end) | Phase::Close(end) => Some(end),
            _ => None,
        }
    }

    /// Whether the task needs no more requests.
    pub(crate) const fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over(_))
    }

    /// Whether the current request ends the session of a task that has ended.
    pub(crate) const fn is_closing(&self) -> bool {
        matches!(self.phase, Phase::Close(_))
    }

    /// Records the outcome of a message to the tool server.
    pub(crate) fn note(&mut self, end: &RpcEnd) {
        if self.phase == Phase::Open && end.is_completed() {
            self.session.id = end.session.as_deref().map(Arc::from);
            self.session.version = end.answer.version.as_deref().map(Arc::from);
        }
    }

    /// The part of the current request, or of the last one after the end.
    pub(crate) const fn part(&self) -> TaskPart {
        match self.phase {
            Phase::Chat | Phase::Over(_) => TaskPart::Chat,
            Phase::Ask | Phase::Decide { .. } => TaskPart::Approvals,
            Phase::Open | Phase::Opened | Phase::Call | Phase::Close(_) => TaskPart::Tools,
        }
    }

    pub(crate) const fn counts(&self) -> TaskCounts {
        self.counts
    }

    /// The current request, unless it is one to the model.
    pub(crate) const fn request(&self) -> Option<&PartRequest> {
        self.request.as_ref()
    }

    /// The pause before the current request.
    pub(crate) const fn pause(&self) -> Nanos {
        self.pause
    }

    /// Chooses the next request from the response to the current one. `messages` is the dialogue,
    /// `turn` the number of the next request.
    pub(crate) fn advance(
        &mut self,
        answer: Answer<'_>,
        messages: &mut Vec<Message>,
        rules: &AgentRules,
        seed: Seed,
        turn: u16,
    ) {
        self.pause = Nanos::ZERO;
        self.request = None;
        match (self.phase, answer) {
            (Phase::Open, _) => {
                let request = message(rules, &self.session, Ask::Initialized, turn);
                (self.request, self.phase) = (Some(request), Phase::Opened);
            }
            (Phase::Opened, _) => {
                self.session.is_open = true;
                self.call(messages, rules, turn);
            }
            (Phase::Close(end), _) => self.phase = Phase::Over(end),
            (Phase::Chat, Answer::Model(text, calls)) => {
                self.answered(text, calls, messages, rules, turn);
            }
            (Phase::Ask, Answer::Plain(PlainAnswer::Approval { id, .. })) if !id.is_empty() => {
                self.think(&id, rules, seed, turn);
            }
            (Phase::Decide { approves }, Answer::Plain(PlainAnswer::Approval { state, .. })) => {
                self.decided(approves, &state, messages, rules, turn);
            }
            (Phase::Call, Answer::Plain(PlainAnswer::Tool { text, is_error })) => {
                self.counts.tool_calls += 1;
                self.counts.tool_errors += u16::from(is_error);
                self.result(&text, messages);
                self.next_call(messages, rules, turn);
            }
            // The request completed, but its response is unusable.
            _ => self.phase = Phase::Over(TaskEnd::Failed),
        }
    }

    /// Handles a response of the model.
    fn answered(
        &mut self,
        text: &str,
        mut calls: Vec<ToolCall>,
        messages: &mut Vec<Message>,
        rules: &AgentRules,
        turn: u16,
    ) {
        self.counts.steps += 1;
        if calls.is_empty() {
            return self.finish(TaskEnd::Done, rules, turn);
        }
        self.dialogue += text.len()
            + calls
                .iter()
                .map(|call: &ToolCall| call.name.len() + call.arguments.len())
                .sum::<usize>();
        // The decoder keeps a maximum number of calls, so the response may contain more.
        let is_bound = self.counts.steps >= rules.max_steps || calls.len() >= MAX_TOOL_CALLS;
        if is_bound || self.is_too_long() {
            return self.finish(TaskEnd::Bound, rules, turn);
        }
        name_calls(&mut calls, turn);
        let tool_calls = calls;
        messages.push(Message { tool_calls, ..Message::new(Role::Assistant, text.into()) });
        self.next_call(messages, rules, turn);
    }

    /// Handles the response to a request for approval. The human thinks, then decides.
    fn think(&mut self, id: &str, rules: &AgentRules, seed: Seed, turn: u16) {
        let Some(approvals) = &rules.approvals else { return };
        self.counts.approvals += 1;
        let (approves, pause) = approvals.decide(seed, turn);
        self.pause = pause;
        self.request = Some(decide(approvals, id, approves));
        self.phase = Phase::Decide { approves };
    }

    /// Handles the response to the decision, which states the new state of the approval.
    fn decided(
        &mut self,
        approves: bool,
        state: &str,
        messages: &mut Vec<Message>,
        rules: &AgentRules,
        turn: u16,
    ) {
        let expected = if approves { "approved" } else { "rejected" };
        if !state.is_empty() && state != expected {
            self.phase = Phase::Over(TaskEnd::Failed);
        } else if approves {
            self.counts.approved += 1;
            self.call(messages, rules, turn);
        } else {
            self.counts.rejected += 1;
            self.result(REFUSAL, messages);
            self.next_call(messages, rules, turn);
        }
    }

    /// Keeps the result of the current call.
    fn result(&mut self, text: &str, messages: &[Message]) {
        if let Some(call) = current_call(messages, self.results.len()) {
            self.dialogue += text.len();
            self.results.push(ToolResult { call_id: call.id.clone(), text: text.into() });
        }
    }

    /// Continues with the next call of the last response, or sends all results to the model.
    fn next_call(&mut self, messages: &mut Vec<Message>, rules: &AgentRules, turn: u16) {
        if self.is_too_long() {
            return self.finish(TaskEnd::Bound, rules, turn);
        }
        let Some(call) = current_call(messages, self.results.len()) else {
            let tool_results = mem::take(&mut self.results);
            messages.push(Message { tool_results, ..Message::new(Role::User, Text::new()) });
            self.phase = Phase::Chat;
            return;
        };
        let approvals = rules.approvals.as_ref();
        if let Some(approvals) = approvals.filter(|approvals| approvals.concerns(&call.name)) {
            self.request = Some(ask(approvals, call));
            self.phase = Phase::Ask;
        } else {
            self.call(messages, rules, turn);
        }
    }

    /// Calls the current tool.
    fn call(&mut self, messages: &[Message], rules: &AgentRules, turn: u16) {
        let needs_session = rules.tools == ToolProtocol::Mcp && rules.revision.has_sessions();
        if needs_session && !self.session.is_open {
            let request = message(rules, &self.session, Ask::Initialize, turn);
            (self.request, self.phase) = (Some(request), Phase::Open);
            return;
        }
        let Some(call) = current_call(messages, self.results.len()) else { return };
        self.request = Some(self::call(rules, &self.session, call, turn));
        self.phase = Phase::Call;
    }

    /// Ends the task, and its session if the agent ends sessions.
    fn finish(&mut self, end: TaskEnd, rules: &AgentRules, turn: u16) {
        self.phase = Phase::Over(end);
        if rules.deletes && self.session.id.is_some() {
            let request = message(rules, &self.session, Ask::EndSession, turn);
            (self.request, self.phase) = (Some(request), Phase::Close(end));
        }
    }

    const fn is_too_long(&self) -> bool {
        self.dialogue > MAX_DIALOGUE
    }
}

/// The call at `index` in the last response.
fn current_call(messages: &[Message], index: usize) -> Option<&ToolCall> {
    messages.last()?.tool_calls.get(index)
}

/// Adds missing ids to calls, because a result must name its call. `turn` numbers the request with
/// the results.
pub(crate) fn name_calls(calls: &mut [ToolCall], turn: u16) {
    for (index, call) in calls.iter_mut().enumerate().filter(|(_, call)| call.id.is_empty()) {
        call.id = format!("call_{turn}_{index}");
    }
}

// The requests of an agent besides those to the model.

/// A request of an agent to a tool or for an approval.
#[derive(Debug)]
pub(crate) enum PartRequest {
    /// To a REST interface.
    Http(HttpContent),
    /// To a tool server.
    Rpc(Box<Request>),
}

impl PartRequest {
    /// The content of the request.
    pub(crate) const fn content(&self) -> RequestContent<'_> {
        match self {
            Self::Http(request) => RequestContent::Http(request),
            Self::Rpc(request) => RequestContent::Rpc(request),
        }
    }

    /// The message, if the request is for a tool server.
    pub(crate) const fn message(&self) -> Option<&Request> {
        match self {
            Self::Http(_) => None,
            Self::Rpc(request) => Some(request),
        }
    }
}

/// The session of a task with a tool server.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolSession {
    /// Whether the session accepts tool calls.
    pub(super) is_open: bool,
    /// The id from the server, if any.
    pub(super) id: Option<Arc<str>>,
    /// The version that the server chose.
    pub(super) version: Option<Arc<str>>,
}

/// A message to the tool server, with `id` as its number.
pub(super) fn message(rules: &AgentRules, session: &ToolSession, ask: Ask, id: u16) -> PartRequest {
    let ToolSession { id: session, version, .. } = session.clone();
    let call = rpc::Call::Mcp(Call { revision: rules.revision, version, session, ask });
    let path = Arc::clone(&rules.tool_path);
    PartRequest::Rpc(Box::new(Request { path, id: id.into(), call }))
}

/// A tool call. `id` numbers the request.
pub(super) fn call(
    rules: &AgentRules,
    session: &ToolSession,
    call: &ToolCall,
    id: u16,
) -> PartRequest {
    match rules.tools {
        ToolProtocol::Rest => {
            let (name, arguments) = (quoted(&call.name), call.arguments_object());
            let body = format!(r#"{{"name":{name},"arguments":{arguments}}}"#);
            post(rules.tool_path.to_string(), body)
        }
        ToolProtocol::Mcp => {
            let ask = Ask::Tool {
                name: call.name.as_str().into(),
                arguments: call.arguments_object().to_owned(),
                progress: false,
            };
            message(rules, session, ask, id)
        }
    }
}

/// Asks for the approval of a call.
pub(super) fn ask(rules: &ApprovalRules, call: &ToolCall) -> PartRequest {
    let (name, arguments) = (quoted(&call.name), call.arguments_object());
    let body =
        format!(r#"{{"action":"tool_call","details":{{"name":{name},"arguments":{arguments}}}}}"#);
    post(rules.path.clone(), body)
}

/// Approves or rejects a call.
pub(super) fn decide(rules: &ApprovalRules, id: &str, approves: bool) -> PartRequest {
    let word = if approves { "approve" } else { "reject" };
    post(format!("{}/{}/{word}", rules.path, percent_encoded(id)), "{}".to_owned())
}

fn post(path: String, body: String) -> PartRequest {
    let headers = ["content-type", "accept"]
        .map(|name: &str| (name.to_owned(), "application/json".to_owned()))
        .to_vec();
    let method = "POST".to_owned();
    PartRequest::Http(HttpContent { method, path, headers, body: body.into_bytes() })
}

/// A text as JSON.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
