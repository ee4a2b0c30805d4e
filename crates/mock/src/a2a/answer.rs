//! Sends the answer to a request at its due time, as JSON or as a stream, with the planned fault.

use hyper::Response;
use serde_json::Value;

use super::methods::{Content, Reply};
use super::shape::Shape;
use super::version::Version;
use crate::event_plan::{EventPlan, unstreamed};
use crate::fault::Fault;
use crate::log::{RpcOutcome, RpcRecord};
use crate::responder::{FullResponse, HALF, Responder};
use crate::response_body::{ResponseBody, ServiceResult};
use crate::rpc::{self, INTERNAL_ERROR, Refusal, RpcError, broken_off};
use crate::token;

/// A reply and its transport.
pub(super) struct Answer {
    pub(super) shape: Shape,
    pub(super) id: Value,
    pub(super) reply: Reply,
}

impl Answer {
    /// `agent` is the name of the answering agent.
    pub(super) async fn send(mut self, mut responder: Responder, agent: &str) -> ServiceResult {
        self.describe(&mut responder);
        let (id, version) = (self.id.clone(), self.shape.version);
        let replaced = responder.unless_replaced(self.reply.fault, |responder, status, problem| {
            let error = version.complete(RpcError::new(INTERNAL_ERROR, problem));
            responder.refuse(Refusal { status, id, error })
        });
        let mut responder = match replaced.await {
            Ok(responder) => responder,
            Err(replaced) => return replaced,
        };
        if matches!(self.reply.content, Content::Once(_))
            && self.reply.fault.take_if(|fault| fault.is_error()).is_some()
        {
            self.reply.content = Content::Once(Err(broken_off()));
        }
        let code = self.code();
        let outcome = self.reply.outcome();
        responder.exchange.rpc(|rpc| (rpc.outcome, rpc.code) = (outcome, code));
        match std::mem::replace(&mut self.reply.content, Content::Events(Vec::new())) {
            Content::Once(answer) => self.send_once(responder, answer, agent).await,
            Content::Events(events) => Ok(self.stream(responder, events)),
        }
    }

    fn code(&self) -> Option<i64> {
        match &self.reply.content {
            Content::Once(answer) => answer.as_ref().err().map(|error| error.code),
            Content::Events(_) => None,
        }
    }

    /// Records the plan before the answer is sent.
    fn describe(&self, responder: &mut Responder) {
        let streamed = matches!(self.reply.content, Content::Events(_));
        let pieces = u32::try_from(self.reply.pieces).unwrap_or(u32::MAX);
        responder.exchange.rpc(|rpc| {
            (rpc.streamed, rpc.progress) = (streamed, pieces);
            if let Some((task, state)) = &self.reply.task {
                rpc.session = Some((*task.context).to_owned());
                rpc.task = Some(token::text(task.id));
                // States have their 0.3 names in both versions, to make records comparable.
                rpc.state = Some(state.name(Version::V03));
            }
        });
    }

    fn bytes(&self, answer: Result<Value, RpcError>) -> Vec<u8> {
        match answer {
            Ok(result) => rpc::success(&self.id, result),
            Err(error) => rpc::failure(&self.id, &self.shape.version.complete(error)),
        }
    }

    async fn send_once(
        mut self,
        mut responder: Responder,
        answer: Result<Value, RpcError>,
        agent: &str,
    ) -> ServiceResult {
        let (pause, end) = unstreamed(self.reply.fault);
        let offset = self.reply.latency.saturating_add(pause);
        let mut stop = self.reply.stop.take();
        if responder.wait(offset, &mut stop).await {
            responder.exchange.rpc(RpcRecord::cancelled);
            let answer = Ok(self.canceled(&responder, agent));
            return Ok(responder.answer(200, self.bytes(answer)));
        }
        let body = self.bytes(answer);
        let full = FullResponse::json(self.reply.status, body);
        responder.send_after(full, offset, end, HALF).await
    }

    /// The task that was canceled while its client waited for it.
    fn canceled(&self, responder: &Responder, agent: &str) -> Value {
        let state = &responder.worker.state;
        let task = self.reply.task.as_ref().map(|(task, _)| task);
        let id = task.map(|task| token::text(task.id)).unwrap_or_default();
        let found = state.tasks.get(agent, &id);
        let value = found.map(|task| self.shape.task(&task, state.clock.now()));
        self.shape.named("task", value.unwrap_or_default())
    }

    fn stream(
        mut self,
        mut responder: Responder,
        events: Vec<(u64, Value)>,
    ) -> Response<ResponseBody> {
        let start = responder.exchange.complete_at;
        let mut events: Vec<(u64, Vec<u8>)> = events
            .into_iter()
            .map(|(due, result)| (due.saturating_sub(start), rpc::success(&self.id, result)))
            .collect();
        if let Some(at) = self.reply.fault.filter(|fault| fault.is_error()).map(Fault::at_token) {
            let place = (at as usize).min(events.len().saturating_sub(1));
            events.truncate(place + 1);
            if let Some((_, last)) = events.last_mut() {
                *last = self.bytes(Err(broken_off()));
            }
            responder.exchange.rpc(|rpc| {
                rpc.outcome = RpcOutcome::Error;
                rpc.code = Some(INTERNAL_ERROR);
            });
        }
        let events = events.into_iter().map(|(due, message)| (due, event(&message))).collect();
        let farewell = match &self.reply.task {
            Some((task, _)) => event(&rpc::success(&self.id, self.shape.canceled_event(task))),
            None => Vec::new(),
        };
        let plan = EventPlan::timed(events, self.reply.fault, self.reply.stop.take());
        responder.stream_events(plan.with_farewell(farewell))
    }
}

/// A message as a server-sent event. JSON contains no raw line breaks.
fn event(message: &[u8]) -> Vec<u8> {
    [b"data: ", message, b"\n\n"].concat()
}
