//! The A2A methods: their answers and times.

use std::sync::Arc;

use serde_json::Value;

use super::incoming::{Incoming, required_text};
use super::shape::Shape;
use super::spec::{AgentAnswer, AgentSpec};
use super::task::{Task, Tasks, Unusable, Work};
use super::version::{
    Method, State, TASK_NOT_CANCELABLE, TASK_NOT_FOUND, UNSUPPORTED_OPERATION, Version,
};
use crate::duration::HumanDuration;
use crate::fault::Fault;
use crate::hash::fnv1a;
use crate::log::RpcOutcome;
use crate::model_output::{result_bytes, word_text};
use crate::overrides::RequestOverrides;
use crate::request::behind_marker;
use crate::responder::Responder;
use crate::response_plan::sample_fault;
use crate::rng::{Purpose, RequestRng};
use crate::rpc::{INTERNAL_ERROR, Object, RpcError};
use crate::stop::Stop;
use crate::token;
use crate::worker::Worker;

/// A request with a known method.
pub(super) struct A2aRequest<'a> {
    pub(super) worker: &'a Worker,
    pub(super) name: &'a str,
    pub(super) agent: &'a AgentSpec,
    pub(super) shape: Shape,
    pub(super) params: &'a Object,
    pub(super) overrides: &'a RequestOverrides,
}

/// The content of a reply.
#[derive(Debug)]
pub(super) enum Content {
    /// One answer.
    Once(Result<Value, RpcError>),
    /// A stream of results, with their times on the monotonic clock.
    Events(Vec<(u64, Value)>),
}

/// The reply of a method.
#[derive(Debug)]
pub(super) struct Reply {
    /// 200, unless the task store is full.
    pub(super) status: u16,
    pub(super) content: Content,
    /// Nanoseconds from the complete request to an unstreamed answer.
    pub(super) latency: u64,
    pub(super) fault: Option<Fault>,
    /// The task of the answer, and its final state.
    pub(super) task: Option<(Task, State)>,
    /// Signals that the task is canceled before the answer is due.
    pub(super) stop: Option<Stop>,
    /// Pieces of a result.
    pub(super) pieces: usize,
}

impl Reply {
    fn new(content: Content) -> Self {
        Self { status: 200, content, latency: 0, fault: None, task: None, stop: None, pieces: 0 }
    }

    pub(super) fn error(error: RpcError) -> Self {
        Self::new(Content::Once(Err(error)))
    }

    pub(super) const fn outcome(&self) -> RpcOutcome {
        match self.content {
            Content::Once(Err(_)) => RpcOutcome::Error,
            Content::Once(Ok(_)) | Content::Events(_) => RpcOutcome::Result,
        }
    }
}

/// The reply to a request.
pub(super) fn reply(asked: &A2aRequest<'_>, method: Method, responder: &mut Responder) -> Reply {
    let replied = match method {
        Method::Send | Method::Stream => asked.send(method == Method::Stream, responder),
        Method::Get => asked.get(responder),
        Method::Cancel => asked.cancel(responder),
    };
    let mut reply = replied.unwrap_or_else(Reply::error);
    if !matches!(method, Method::Send | Method::Stream) {
        reply.latency = asked.overrides.ttft.unwrap_or_default().as_nanos();
    }
    reply
}

/// The values drawn for a message.
struct Plan {
    rng: RequestRng,
    /// The start and the end of the work.
    started: u64,
    latency: u64,
    fault: Option<Fault>,
}

impl A2aRequest<'_> {
    fn tasks(&self) -> &Arc<Tasks> {
        &self.worker.state.tasks
    }

    fn now(&self) -> u64 {
        self.shape.clock.now()
    }

    /// The task named by the parameters.
    fn named_task(&self, responder: &mut Responder) -> Result<Task, RpcError> {
        let id = required_text(self.params, "id")?;
        responder.exchange.rpc(|rpc| rpc.task = Some(id.to_owned()));
        self.tasks().get(self.name, id).ok_or_else(|| self.unusable(Unusable::Unknown))
    }

    /// The error for a task that does not accept a message.
    fn unusable(&self, problem: Unusable) -> RpcError {
        match problem {
            Unusable::Unknown => RpcError::new(TASK_NOT_FOUND, "Task not found"),
            Unusable::OtherContext => RpcError::invalid_params("The task has another `contextId`"),
            Unusable::Is(state) => {
                let state = state.name(self.shape.version);
                RpcError::new(UNSUPPORTED_OPERATION, format!("The task's state is {state}"))
            }
            Unusable::NoRoom => RpcError::new(INTERNAL_ERROR, "The tasks hold too much text"),
        }
    }

    /// An immediate answer with the state of a task.
    fn show(&self, task: Task) -> Reply {
        let now = self.now();
        let content = Content::Once(Ok(self.shape.task(&task, now)));
        let state = task.state(now).0;
        Reply { task: Some((task, state)), ..Reply::new(content) }
    }

    fn get(&self, responder: &mut Responder) -> Result<Reply, RpcError> {
        Ok(self.show(self.named_task(responder)?))
    }

    fn cancel(&self, responder: &mut Responder) -> Result<Reply, RpcError> {
        let task = self.named_task(responder)?;
        match self.tasks().cancel(self.name, &token::text(task.id)) {
            Ok(task) => Ok(self.show(task)),
            Err(Unusable::Is(_)) => {
                Err(RpcError::new(TASK_NOT_CANCELABLE, "Task cannot be canceled"))
            }
            Err(problem) => Err(self.unusable(problem)),
        }
    }

    /// A stream up to the end of a task's work.
    fn stream(&self, task: Task, begin: State) -> Reply {
        let events = self.shape.events(&task, begin);
        let pieces = events.iter().filter(|(_, event)| is_piece(self.shape.version, event)).count();
        let stop = Some(self.tasks().watch(task.id));
        // A task that requests input waits for the next message, which has its own stream.
        let end = task.work.end;
        Reply { task: Some((task, end)), stop, pieces, ..Reply::new(Content::Events(events)) }
    }

    fn send(&self, streams: bool, responder: &mut Responder) -> Result<Reply, RpcError> {
        let incoming = Incoming::read(self.shape.version, self.params)?;
        responder.exchange.rpc(|rpc| {
            (rpc.task, rpc.session) = (incoming.task.clone(), incoming.context.clone());
        });
        let known = match &incoming.task {
            None => None,
            Some(id) => {
                let context = incoming.context.as_deref();
                let found = self.tasks().check_open(self.name, id, context);
                Some(found.map_err(|problem| self.unusable(problem))?)
            }
        };
        let plan = self.plan(&incoming, responder);
        let drawn = plan.rng.fork(Purpose::Outcome).uniform();
        let (latency, fault) = (plan.latency, plan.fault);
        if drawn < self.agent.rpc_error_share {
            let problem = "The mock was asked to answer with this error";
            let error = RpcError::new(self.agent.rpc_error_code.into(), problem);
            return Ok(Reply { latency, fault, ..Reply::error(error) });
        }
        let context = incoming.context.clone().unwrap_or_else(|| token::text(self.tasks().token()));
        let reply = match self.agent.answer {
            AgentAnswer::Message => {
                let reply = self.message(&incoming, &context, &plan, streams);
                responder.exchange.rpc(|rpc| rpc.session = Some(context));
                Reply { latency, ..reply }
            }
            AgentAnswer::Task => {
                let begin = if known.is_none() { State::Submitted } else { State::Working };
                let fails = drawn < self.agent.rpc_error_share + self.agent.failed_share;
                let asks =
                    plan.rng.fork(Purpose::Input).uniform() < self.agent.input_required_share;
                let end = match known {
                    None if asks => State::InputRequired,
                    _ if fails => State::Failed,
                    _ => State::Completed,
                };
                let work = self.work(&incoming, &plan, end);
                match self.begin(known.as_ref(), &context, work)? {
                    Some(task) if streams => self.stream(task, begin),
                    Some(task) => self.once(task, incoming.waits, latency),
                    None => return Ok(too_many()),
                }
            }
        };
        Ok(Reply { fault, ..reply })
    }

    /// Draws the agent's plan.
    fn plan(&self, incoming: &Incoming, responder: &mut Responder) -> Plan {
        responder.exchange.draw_by(|| fnv1a(behind_marker(&incoming.text).as_bytes()));
        let (started, rng) = (responder.exchange.complete_at, responder.exchange.rng);
        let exact = self.overrides.ttft.map(HumanDuration::as_nanos);
        let latency = exact.unwrap_or_else(|| self.agent.latency.draw(rng, Purpose::Ttft));
        Plan { rng, started, latency, fault: sample_fault(&self.agent.faults, rng) }
    }

    /// The agent's answer as a message.
    fn message(&self, incoming: &Incoming, context: &str, plan: &Plan, streams: bool) -> Reply {
        let text = if self.agent.echo {
            incoming.text.clone()
        } else {
            word_text(plan.rng, result_bytes(&self.agent.result_bytes, plan.rng))
        };
        let message = self.shape.message(self.tasks().token(), context, None, &text);
        let message = self.shape.named("message", message);
        let due = plan.started.saturating_add(plan.latency);
        Reply::new(if streams {
            Content::Events(vec![(due, message)])
        } else {
            Content::Once(Ok(message))
        })
    }

    fn work(&self, incoming: &Incoming, plan: &Plan, end: State) -> Work {
        Work {
            echo: self.agent.echo.then(|| incoming.text.as_str().into()),
            words: plan.rng,
            bytes: result_bytes(&self.agent.result_bytes, plan.rng),
            pieces: self.agent.pieces,
            started: plan.started,
            due: plan.started.saturating_add(plan.latency),
            end,
        }
    }

    /// Opens a task, or resumes a known one; `None` if there are too many.
    fn begin(
        &self,
        known: Option<&Task>,
        context: &str,
        work: Work,
    ) -> Result<Option<Task>, RpcError> {
        let Some(known) = known else { return Ok(self.tasks().open(self.name, context, work)) };
        let resumed = self.tasks().resume(self.name, &token::text(known.id), work);
        resumed.map(Some).map_err(|problem| self.unusable(problem))
    }

    /// The task at the end of its work, or at its start if the client does not wait.
    fn once(&self, task: Task, waits: bool, due: u64) -> Reply {
        let (at, latency) = if waits { (task.work.due, due) } else { (task.work.started, 0) };
        let content = Content::Once(Ok(self.shape.named("task", self.shape.task(&task, at))));
        let stop = waits.then(|| self.tasks().watch(task.id));
        let state = task.state(at).0;
        Reply { latency, task: Some((task, state)), stop, ..Reply::new(content) }
    }
}

fn too_many() -> Reply {
    let error = RpcError::new(INTERNAL_ERROR, "Too many tasks that work");
    Reply { status: 503, ..Reply::error(error) }
}

fn is_piece(version: Version, event: &Value) -> bool {
    match version {
        Version::V03 => event["kind"] == "artifact-update",
        Version::V1 => event.get("artifactUpdate").is_some(),
    }
}
