//! Responses of tool servers and agents: one JSON document, or a stream of events, in which the
//! response follows notifications (MCP) or has several parts (A2A).

use plimsoll_measure::{ErrorClass, Operation, Outcome};

use super::content_encoding::ContentType;
use super::error_detail::{ErrorDetail, PlainReading};
use super::json_reader::from_str;
use super::response_state::{DecodeError, DecodeResult};
use super::rpc_message::{ErrorObject, Member, Members, Message, Update, non_empty};
use super::sent::{Delta, DeltaKind, OnDelta};
use super::{BodyKind, Decoder, plain_answer};
use crate::rpc::a2a::TaskState;
use crate::rpc::{self, mcp};

/// State of a response of a tool server or an agent.
#[derive(Debug, Default)]
pub(super) struct RpcState {
    expected: rpc::Expectation,
    content_type: Option<ContentType>,
    answer: rpc::Answer,
    /// The error in the response.
    error: Option<DecodeError>,
    /// Whether the response is complete.
    answered: bool,
    /// Whether the last event had content.
    pub(super) after_content: bool,
    /// The message with the result of a tool, if it is kept.
    result: Option<String>,
}

impl Decoder {
    /// Sets the expected response of a tool server or an agent, before its head. Other dialects
    /// expect the same response every time.
    pub fn expect(&mut self, expected: rpc::Expectation) {
        if let Some(rpc) = &mut self.rpc {
            rpc.expected = expected;
        }
    }

    /// The content of a tool server's or an agent's response; `None` in other dialects.
    pub fn rpc_answer(&self) -> Option<&rpc::Answer> {
        Some(&self.rpc.as_ref()?.answer)
    }

    /// Code of the JSON-RPC error in the response, whatever the HTTP status.
    pub fn rpc_code(&self) -> Option<i64> {
        let answer = self.rpc_answer()?;
        answer.code.or_else(|| self.error_detail()?.code.as_ref()?.parse().ok())
    }

    /// Begins a successful JSON-RPC response. The server chooses between a document and a stream;
    /// the response to a notification has no body, and therefore no type.
    pub(super) fn rpc_head(&mut self, content_type: Option<&[u8]>) {
        let Some(rpc) = &mut self.rpc else { return };
        let kind = content_type.map_or(ContentType::Json, ContentType::parse);
        rpc.content_type = Some(kind);
        let any_type = rpc.expected.is_silent();
        self.body = BodyKind::Rpc;
        if let Some(received) = content_type.filter(|_| kind == ContentType::Other && !any_type) {
            self.wrong_type = Some(String::from_utf8_lossy(received).into());
            self.body = BodyKind::WrongContentType;
        }
    }

    /// Decodes more of the body. The start of each text of a message or an artifact is a delta.
    pub(super) fn feed_rpc(&mut self, bytes: &[u8], on_delta: OnDelta<'_>) {
        let Self { rpc: Some(rpc), parser, buffered, state, .. } = self else { return };
        let mut error = None;
        if rpc.expected.is_silent() {
            error = rpc.refuse_body(bytes).err();
        } else if rpc.is_stream() {
            let fed = parser.feed(bytes, |event| {
                error = error.take().or_else(|| rpc.read_event(event.data, on_delta).err());
            });
            error = error.or_else(|| fed.err().map(DecodeError::from));
        } else {
            buffered.extend_from_slice(bytes);
        }
        if let Some(error) = error {
            state.fail(error);
        }
    }

    pub(super) fn finish_rpc(&mut self) -> Result<Outcome, DecodeError> {
        let Self { rpc: Some(rpc), parser, buffered, state, options, .. } = self else {
            return Ok(Outcome::Completed);
        };
        if rpc.expected.is_silent() {
            return Ok(Outcome::Completed);
        }
        let on_delta: OnDelta<'_> = &mut |_| {};
        if !rpc.is_stream() {
            let text = simdutf8::basic::from_utf8(buffered);
            rpc.read_message(text.map_err(|_| DecodeError::no_text(buffered))?, on_delta)?;
        } else if !rpc.answered && rpc.error.is_none() {
            // The last event counts even without the final blank line.
            let _ = parser.finish(|event| {
                let _ = rpc.read_event(event.data, on_delta);
            });
        }
        rpc.end()?;
        // Responses to the messages that open and end a session have no result to extract.
        let is_call = rpc.expected.operation == Operation::CallTool;
        let reading = if is_call { options.reading } else { PlainReading::Nothing };
        let result = rpc.result.as_deref().unwrap_or_default();
        state.set_plain_answer(plain_answer::read(reading, result.as_bytes())?);
        Ok(Outcome::Completed)
    }
}

impl RpcState {
    /// Creates a state that extracts this content.
    pub(super) fn new(reading: PlainReading) -> Self {
        let result = matches!(reading, PlainReading::ToolResult).then(String::new);
        Self { result, ..Self::default() }
    }

    /// Whether the response is a stream of events.
    pub(super) fn is_stream(&self) -> bool {
        self.content_type == Some(ContentType::Events)
    }

    /// Discards the response so far, and expects the same one again.
    pub(super) fn reset(&mut self) {
        let result = self.result.is_some().then(String::new);
        *self = Self { expected: self.expected, result, ..Self::default() };
    }

    /// Rejects a body of the response to a notification; the response to `DELETE` may have any
    /// body.
    fn refuse_body(&self, bytes: &[u8]) -> DecodeResult {
        let silent = self.expected.operation != Operation::EndSession;
        if silent && !bytes.trim_ascii().is_empty() {
            return Err(malformed("a notification was answered with a body"));
        }
        Ok(())
    }

    fn read_event(&mut self, data: &str, on_delta: OnDelta<'_>) -> DecodeResult {
        self.after_content = false;
        // Servers begin resumable streams with an event without data.
        if data.trim().is_empty() { Ok(()) } else { self.read_message(data, on_delta) }
    }

    fn read_message(&mut self, text: &str, on_delta: OnDelta<'_>) -> DecodeResult {
        let message: Option<Message<'_>> =
            from_str(text).map_err(|error| DecodeError::unreadable(error, text))?;
        let Some(message) = message else {
            let is_batch = text.trim_start().starts_with('[');
            return Err(malformed(if is_batch {
                "a batch of messages, which the protocol does not allow"
            } else {
                "a message is not an object"
            }));
        };
        if self.expected.operation == Operation::AgentCard {
            self.answered = message.name.is_some_and(|name| name.0.starts_with('"'));
            return if self.answered { Ok(()) } else { Err(malformed("the card has no name")) };
        }
        if &*message.jsonrpc != "2.0" {
            return Err(malformed("a message without `jsonrpc: \"2.0\"`"));
        }
        if !message.method.is_empty() {
            self.answer.notifications = self.answer.notifications.saturating_add(1);
            return Ok(());
        }
        self.check_id(&message)?;
        if self.answered && self.expected.operation != Operation::SendStreamingMessage {
            return Err(malformed("a second answer to the same request"));
        }
        match (message.error, message.result) {
            (Some(error), Member::Missing | Member::Other) => self.take_error(error),
            (None, Member::Object(result)) => self.take_result(*result, text, on_delta),
            (None, Member::Other) => Err(malformed("`result` is not an object")),
            (None, Member::Missing) => Err(malformed("an answer without `result` and `error`")),
            (Some(_), Member::Object(_)) => Err(malformed("an answer with `result` and `error`")),
        }
    }

    fn check_id(&self, message: &Message<'_>) -> DecodeResult {
        let wanted = self.expected.id;
        match message.id.0 {
            Some(id) if id.parse() == Ok(wanted) => Ok(()),
            // The server does not know the id of a request that it could not parse.
            Some("null") | None if message.error.is_some() => Ok(()),
            Some(id) => {
                Err(malformed(&format!("the answer has the id {id}, and the request had {wanted}")))
            }
            None => Err(malformed("an answer without `id`")),
        }
    }

    fn take_error(&mut self, error: Member<ErrorObject<'_>>) -> DecodeResult {
        let Member::Object(ErrorObject { code: Some(code), message }) = error else {
            return Err(malformed("an error without a whole number as `code`"));
        };
        let Ok(code) = code.0.parse::<i64>() else {
            return Err(malformed("an error without a whole number as `code`"));
        };
        let detail = ErrorDetail::message(&format!("{code}: {}", &*message));
        let detail = ErrorDetail { code: Some(code.to_string()), ..detail };
        self.error = Some(DecodeError { class: ErrorClass::RpcError, detail });
        (self.answer.code, self.answered) = (Some(code), true);
        Ok(())
    }

    fn take_result(
        &mut self,
        result: Members<'_>,
        text: &str,
        on_delta: OnDelta<'_>,
    ) -> DecodeResult {
        match self.expected.operation {
            Operation::SendMessage
            | Operation::SendStreamingMessage
            | Operation::GetTask
            | Operation::CancelTask => return self.take_update(result, on_delta),
            Operation::Initialize => {
                let version = non_empty(&result.protocol_version);
                if !version.as_deref().is_some_and(mcp::is_known) {
                    let named = version.as_deref().unwrap_or("none");
                    let problem = format!("the server chose the unknown version `{named}`");
                    return Err(malformed(&problem));
                }
                self.answer.version = version;
            }
            operation => {
                self.answer.cursor = non_empty(&result.next_cursor);
                let is_call = operation == Operation::CallTool;
                let is_error = result.is_error.is_some_and(|value| value.0 == "true");
                self.answer.tool_error = is_call && is_error;
                if let Some(kept) = self.result.as_mut().filter(|_| is_call) {
                    text.clone_into(kept);
                }
            }
        }
        self.answered = true;
        Ok(())
    }

    /// Records a task, a message, or an update of a task.
    fn take_update(&mut self, result: Members<'_>, on_delta: OnDelta<'_>) -> DecodeResult {
        let (update, members) = result.into_update();
        let state = members.state().map(TaskState::named);
        let operation = self.expected.operation;
        let sends = matches!(operation, Operation::SendMessage | Operation::SendStreamingMessage);
        // The task itself is the result of the other methods, and version 1.0 does not label it.
        if sends && update.is_none() {
            return Err(malformed("`result` is not a task, message or update"));
        }
        if !sends && state.is_none() {
            return Err(malformed("`result` is not a task"));
        }
        let is_stream = self.is_stream();
        let answer = &mut self.answer;
        answer.task = members.task().or_else(|| answer.task.take());
        answer.context = members.context().or_else(|| answer.context.take());
        answer.state = state.or(answer.state);
        answer.tool_error = sends && answer.state.is_some_and(TaskState::has_failed);
        if operation != Operation::SendStreamingMessage {
            self.answered = true;
            return Ok(());
        }
        if !is_stream {
            let message = "the answer is not an event stream";
            return Err(DecodeError::new(ErrorClass::ContentType, message));
        }
        if let Some(text) = members.text() {
            self.after_content = true;
            on_delta(Delta { kind: DeltaKind::Text, text });
        }
        let waits = answer.state.is_none_or(TaskState::is_going_on);
        if update == Some(Update::Message) || members.is_final() || !waits {
            self.answered = true;
        } else {
            answer.notifications = answer.notifications.saturating_add(1);
        }
        Ok(())
    }

    /// The JSON-RPC error in the response, or the missing part at the end of its body.
    fn end(&mut self) -> DecodeResult {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        match (self.answered, self.is_stream()) {
            (true, _) => Ok(()),
            (false, true) => Err(DecodeError::new(
                ErrorClass::StreamTruncated,
                "the stream ended before the answer",
            )),
            (false, false) => Err(malformed("the body is a notification instead of a response")),
        }
    }
}

fn malformed(problem: &str) -> DecodeError {
    DecodeError::new(ErrorClass::MalformedBody, problem)
}
