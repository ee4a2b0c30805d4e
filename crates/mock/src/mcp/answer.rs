//! Sends the answer to a request: when it is due, as JSON or as a stream, with the planned fault.

use serde_json::{Value, json};

use super::era::Era;
use super::methods::Reply;
use super::{AnswerMode, refuse};
use crate::endpoint::JSON;
use crate::event_plan::{EventPlan, unstreamed};
use crate::fault::Fault;
use crate::log::RpcOutcome;
use crate::responder::{FullResponse, Responder};
use crate::response_body::ServiceResult;
use crate::rpc::{self, INTERNAL_ERROR, Request, RpcError};
use crate::stop::Stop;
use crate::timed_plan::StreamEnd;

/// The client cancelled the request. The code is that of the official Python server.
const REQUEST_CANCELLED: i64 = -32_800;

/// A reply and how it is sent.
pub(super) struct Answer {
    pub(super) era: Era,
    /// Whether the client accepts JSON, and streams.
    pub(super) streams: (bool, bool),
    pub(super) request: Request,
    pub(super) reply: Reply,
    pub(super) stop: Option<Stop>,
}

impl Answer {
    pub(super) async fn send(mut self, mut responder: Responder) -> ServiceResult {
        if let Some(fault) = self.reply.fault {
            responder.exchange.fault_planned(fault);
        }
        match self.reply.fault {
            Some(Fault::Status { code, retry_after }) => {
                responder.ask_to_wait(retry_after);
                let problem = "The mock was asked to answer with this status";
                let error = RpcError::new(INTERNAL_ERROR, problem);
                return Ok(refuse(responder, (code, self.request.id, error)));
            }
            Some(Fault::Hang) => return responder.hang().await,
            Some(Fault::Reset { at: None }) => return responder.reset(),
            Some(Fault::Error { at }) => {
                let problem = "The mock broke off this answer on purpose";
                self.reply.answer = Err(RpcError::new(INTERNAL_ERROR, problem));
                self.reply.outcome = RpcOutcome::Error;
                self.reply.progress = self.reply.progress.min(at);
            }
            _ => {}
        }
        self.send_planned(responder).await
    }

    async fn send_planned(mut self, mut responder: Responder) -> ServiceResult {
        let progress = self.progress();
        let (json, streams) = self.streams;
        let streamed = streams
            && match responder.worker.state().mcp.answers {
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
        if end == StreamEnd::Complete {
            return Ok(responder.answer_due(status, message, offset));
        }
        let full = FullResponse { content_type: JSON, body: message, tokens: 0 };
        responder.send_after(full, offset, end, 0.5).await
    }

    /// The messages before the answer, if the client asks for them.
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
