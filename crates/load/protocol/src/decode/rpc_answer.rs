//! Answers of tool servers and agents, read by [`rpc::Reader`].

use plimsoll_measure::{Operation, Outcome};

use super::content_type::ContentType;
use super::delta::{Delta, DeltaKind, OnDelta};
use super::plain::PlainReading;
use super::response_state::DecodeError;
use super::{BodyKind, Decoder, plain_answer};
use crate::rpc;

/// Most bytes that are looked at of a response which is no answer of JSON-RPC.
pub(super) const RPC_ERROR_BODY: usize = 64 * 1024;

/// The answer of a tool server or an agent.
#[derive(Debug, Default)]
pub(super) struct RpcState {
    expected: rpc::Expectation,
    reader: rpc::Reader,
    pub(super) is_stream: bool,
}

impl RpcState {
    /// For answers from which this is read.
    pub(super) fn new(reading: PlainReading) -> Self {
        let keeps_results = matches!(reading, PlainReading::ToolResult);
        let reader =
            if keeps_results { rpc::Reader::keeping_results() } else { rpc::Reader::default() };
        Self { reader, ..Self::default() }
    }

    pub(super) const fn ends_with_content(&self) -> bool {
        self.reader.ends_with_content() && !self.reader.is_within_event()
    }

    pub(super) const fn is_within_event(&self) -> bool {
        self.reader.is_within_event()
    }
}

impl Decoder {
    /// Says what was asked of a tool server or an agent, before the head of its answer. Other
    /// dialects expect the same answer every time.
    pub fn expect(&mut self, expected: rpc::Expectation) {
        if let Some(rpc) = &mut self.rpc {
            rpc.expected = expected;
        }
    }

    /// What a tool server or an agent answers; `None` in other dialects.
    pub fn rpc_answer(&self) -> Option<&rpc::Answer> {
        Some(self.rpc.as_ref()?.reader.answer())
    }

    /// The code of the JSON-RPC error in the answer, whatever its status.
    pub fn rpc_code(&self) -> Option<i64> {
        let answer = self.rpc_answer()?;
        answer.code.or_else(|| self.error_detail()?.code.as_ref()?.parse().ok())
    }

    /// Forgets the answer so far.
    pub(super) fn reset_rpc(&mut self) {
        if let Some(rpc) = &mut self.rpc {
            rpc.is_stream = false;
            rpc.reader.begin(rpc.expected, false);
        }
    }

    /// Begins a success of JSON-RPC. The server decides whether it is one document or a stream; a
    /// notification is answered without a body, and so without a type.
    pub(super) fn rpc_head(&mut self, content_type: Option<&[u8]>) {
        let Some(rpc) = &mut self.rpc else { return };
        let kind = content_type.map_or(ContentType::Json, ContentType::parse);
        rpc.is_stream = kind == ContentType::Events;
        rpc.reader.begin(rpc.expected, rpc.is_stream);
        let any_type = rpc.expected.is_silent();
        self.body = BodyKind::Rpc;
        if let Some(received) = content_type.filter(|_| kind == ContentType::Other && !any_type) {
            self.wrong_type = Some(String::from_utf8_lossy(received).into());
            self.body = BodyKind::WrongContentType;
        }
    }

    pub(super) fn feed_rpc(&mut self, bytes: &[u8], on_delta: OnDelta<'_>) {
        let Some(rpc) = &mut self.rpc else { return };
        if let Err(fault) = rpc
            .reader
            .feed(bytes, &mut |text: &str| on_delta(Delta { kind: DeltaKind::Text, text }))
        {
            self.state.fail(fault.into());
        }
    }

    pub(super) fn finish_rpc(&mut self) -> Result<Outcome, DecodeError> {
        let Some(rpc) = &mut self.rpc else { return Ok(Outcome::Completed) };
        rpc.reader.finish()?;
        // What opens and ends a session has no result that anybody reads.
        let is_call = rpc.expected.operation == Operation::CallTool;
        let reading = if is_call { self.options.reading } else { PlainReading::Nothing };
        let answer = plain_answer::read(reading, &rpc.reader.take_result_message())?;
        self.state.set_plain_answer(answer);
        Ok(Outcome::Completed)
    }
}

impl From<rpc::Fault> for DecodeError {
    fn from(fault: rpc::Fault) -> Self {
        let rpc::Fault { class, code, message } = fault;
        let mut error = Self::new(class, &message);
        error.detail.code = code.map(|code| code.to_string());
        error
    }
}
