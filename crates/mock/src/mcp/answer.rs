//! Sends the answer to a request at its due time, as JSON or as a stream, with the planned fault.

use serde_json::{Value, json};

use super::methods::Reply;
use super::{AnswerMode, Era, refuse};
use crate::event_plan::{EventPlan, unstreamed};
use crate::log::RpcOutcome;
use crate::responder::{FullResponse, HALF, Responder};
use crate::response_body::ServiceResult;
use crate::rpc::{self, INTERNAL_ERROR, Refusal, Request, RpcError, broken_off};
use crate::stop::Stop;

/// The client cancelled the request. The official Python server uses this code.
const REQUEST_CANCELLED: i64 = -32_800;

/// A reply and its transport.
pub(super) struct Answer {
    pub(super) era: Era,
    /// Whether the client accepts JSON, and streams.
    pub(super) streams: (bool, bool),
    pub(super) request: Request,
    pub(super) reply: Reply,
    pub(super) stop: Option<Stop>,
}

impl Answer {
    pub(super) async fn send(mut self, responder: Responder) -> ServiceResult {
        let id = self.request.id.clone();
        let replaced = responder.unless_replaced(self.reply.fault, |responder, status, problem| {
            let error = RpcError::new(INTERNAL_ERROR, problem);
            refuse(responder, Refusal { status, id, error })
        });
        let mut responder = match replaced.await {
            Ok(responder) => responder,
            Err(replaced) => return replaced,
        };
        if let Some(error) = self.reply.fault.take_if(|fault| fault.is_error()) {
            self.reply.answer = Err(broken_off());
            self.reply.outcome = RpcOutcome::Error;
            self.reply.progress = self.reply.progress.min(error.at_token());
        }
        let progress = self.progress();
        let (json, streams) = self.streams;
        let streamed = streams
            && match responder.worker.state.config.mcp.answers {
                AnswerMode::Json => !json,
                AnswerMode::Stream => true,
                AnswerMode::Auto => !json || !progress.is_empty(),
            };
        let code = self.reply.answer.as_ref().err().map(|error| error.code);
        let notified = if streamed { progress.len() } else { 0 };
        responder.exchange.rpc(|rpc| {
            (rpc.outcome, rpc.code, rpc.streamed) = (self.reply.outcome, code, streamed);
            rpc.progress = u32::try_from(notified).unwrap_or(u32::MAX);
        });
        let status = code.map_or(200, |code| self.era.status_of(code));
        let message = self.message();
        let Reply { latency, fault, .. } = self.reply;
        if streamed && status == 200 {
            let messages: Vec<Vec<u8>> = progress.into_iter().chain([message]).collect();
            let plan = EventPlan::evenly(&messages, latency, fault, self.stop);
            return Ok(responder.stream_events(plan));
        }
        let (pause, end) = unstreamed(fault);
        let offset = latency.saturating_add(pause);
        if responder.wait(offset, &mut self.stop).await {
            responder.exchange.rpc(|rpc| {
                (rpc.outcome, rpc.code) = (RpcOutcome::Cancelled, Some(REQUEST_CANCELLED));
            });
            let error = RpcError::new(REQUEST_CANCELLED, "Request cancelled");
            return Ok(responder.answer(200, rpc::failure(&self.request.id, &error)));
        }
        responder.send_after(FullResponse::json(status, message), offset, end, HALF).await
    }

    /// The progress messages before the answer, if the client requests them.
    fn progress(&self) -> Vec<Vec<u8>> {
        let token = self.request.params.get("_meta").and_then(|meta| meta.get("progressToken"));
        let Some(token) = token.filter(|token| token.is_string() || token.is_number()) else {
            return Vec::new();
        };
        let total = self.reply.progress;
        (1..=total)
            .map(|done| {
                rpc::bytes(&json!({
                    "jsonrpc": "2.0", "method": "notifications/progress",
                    "params": {"progressToken": token, "progress": done, "total": total},
                }))
            })
            .collect()
    }

    fn message(&mut self) -> Vec<u8> {
        let answer = std::mem::replace(&mut self.reply.answer, Ok(Value::Null));
        match answer {
            Ok(result) => rpc::success(&self.request.id, result),
            Err(error) => rpc::failure(&self.request.id, &error),
        }
    }
}
