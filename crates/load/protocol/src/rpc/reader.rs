//! Reads the answer to one request as it arrives.

use std::mem;

use plimsoll_measure::{ErrorClass, Operation};

use super::a2a::TaskState;
use super::event_data::{EventData, Piece};
use super::message::{Id, Message, Node, Root, Update};
use super::scan::{ScanError, Scanner};
use super::{Answer, Expectation, mcp};

/// Why an answer has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The class.
    pub class: ErrorClass,
    /// The code of a JSON-RPC error.
    pub code: Option<i64>,
    /// What is wrong, or the message of the error.
    pub message: String,
}

impl Fault {
    fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self { class, code: None, message: message.into() }
    }

    fn malformed(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::MalformedBody, message)
    }
}

/// Reads answers, one after another: one JSON document, or a stream of events with the answer
/// behind notifications (MCP) or in several parts (A2A).
///
/// Any split of the bytes gives the same answer. Memory does not depend on their number: of texts
/// that are needed 4 KiB are kept, of all others nothing. A reader that
/// [keeps results](Reader::keeping_results) also holds the message that it reads.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Reader {
    expected: Expectation,
    /// Whether the body is a stream of events.
    is_stream: bool,
    events: EventData,
    scanner: Scanner<Node>,
    message: Message,
    answer: Answer,
    /// The error of the answer.
    error: Option<Fault>,
    /// Whether the answer has come to its end.
    answered: bool,
    /// Whether the last event had content.
    after_content: bool,
    keeps_results: bool,
    /// The message that is read, if results are kept.
    held: Vec<u8>,
    /// The message with the result of a tool, if it is kept.
    result: Vec<u8>,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            expected: Expectation::default(),
            is_stream: false,
            events: EventData::default(),
            scanner: Scanner::new(Node::Root),
            message: Message::default(),
            answer: Answer::default(),
            error: None,
            answered: false,
            after_content: false,
            keeps_results: false,
            held: Vec::new(),
            result: Vec::new(),
        }
    }
}

impl Reader {
    /// A reader that keeps the results of tools, of whatever size.
    pub fn keeping_results() -> Self {
        Self { keeps_results: true, ..Self::default() }
    }

    /// Begins the answer to a request; `is_stream` says whether it comes as a stream of events.
    pub fn begin(&mut self, expected: Expectation, is_stream: bool) {
        (self.expected, self.is_stream) = (expected, is_stream);
        self.events = EventData::default();
        self.scanner.reset();
        self.message = Message::default();
        self.answer = Answer::default();
        (self.error, self.answered, self.after_content) = (None, false, false);
        (self.held, self.result) = (Vec::new(), Vec::new());
    }

    /// Reads more bytes. `on_text` gets the start of each text of a message or an artifact.
    ///
    /// # Errors
    /// The body breaks the protocol; the rest of it means nothing.
    pub fn feed(&mut self, bytes: &[u8], on_text: &mut dyn FnMut(&str)) -> Result<(), Fault> {
        if self.expected.is_silent() {
            return self.refuse_body(bytes);
        }
        if !self.is_stream {
            return self.feed_document(bytes);
        }
        let mut events = self.events;
        let fed = events.feed(bytes, |piece| match piece {
            Piece::Data(data) => {
                self.after_content = false;
                self.feed_document(data)
            }
            Piece::End => self.end_of_event(on_text),
        });
        self.events = events;
        fed
    }

    /// Ends the answer: the whole body has been fed.
    ///
    /// # Errors
    /// The JSON-RPC error that the target answers, or what is wrong with the answer.
    pub fn finish(&mut self) -> Result<(), Fault> {
        if self.expected.is_silent() {
            return Ok(());
        }
        if !self.is_stream {
            if !self.scanner.has_begun() {
                return Err(Fault::malformed("the body is empty"));
            }
            self.end_document()?;
            self.take_message(&mut |_| {})?;
        }
        if self.is_within_event() && !self.answered && self.error.is_none() {
            // The last event counts even if the blank line behind it is missing.
            let _ = self.feed(b"\n\n", &mut |_| {});
        }
        if let Some(error) = self.error.clone() {
            return Err(error);
        }
        if !self.answered {
            let message = if self.is_stream {
                "the stream ended before the answer"
            } else {
                "the body is a notification, and no answer"
            };
            let class = if self.is_stream {
                ErrorClass::StreamTruncated
            } else {
                ErrorClass::MalformedBody
            };
            return Err(Fault::new(class, message));
        }
        Ok(())
    }

    /// What the answer says, as far as it has been read.
    pub const fn answer(&self) -> &Answer {
        &self.answer
    }

    /// Takes the whole message with the result of a tool, which is JSON; empty unless results are
    /// kept, and the answer is one.
    pub fn take_result_message(&mut self) -> Vec<u8> {
        mem::take(&mut self.result)
    }

    /// Whether the bytes so far end with a whole event that has content.
    pub const fn ends_with_content(&self) -> bool {
        self.after_content
    }

    /// Whether the bytes so far end within an event.
    pub const fn is_within_event(&self) -> bool {
        self.is_stream && self.events.is_within_event()
    }

    /// What the answer to a notification must not have; that to `DELETE` may have anything.
    fn refuse_body(&self, bytes: &[u8]) -> Result<(), Fault> {
        let silent = self.expected.operation != Operation::EndSession;
        if silent && !bytes.trim_ascii().is_empty() {
            return Err(Fault::malformed("a notification was answered with a body"));
        }
        Ok(())
    }

    fn feed_document(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        if self.keeps_results {
            self.held.extend_from_slice(bytes);
        }
        self.scanner.feed(bytes, &mut self.message).map_err(no_json)
    }

    fn end_document(&mut self) -> Result<(), Fault> {
        self.scanner.finish(&mut self.message).map_err(no_json)
    }

    fn end_of_event(&mut self, on_text: &mut dyn FnMut(&str)) -> Result<(), Fault> {
        // Servers begin streams that can be resumed with an event without data.
        if self.scanner.has_begun() {
            self.end_document()?;
            self.take_message(on_text)?;
        }
        self.scanner.reset();
        self.message = Message::default();
        self.held.clear();
        Ok(())
    }

    /// Takes a message that has been read as a whole.
    fn take_message(&mut self, on_text: &mut dyn FnMut(&str)) -> Result<(), Fault> {
        match self.message.root {
            Root::Object => {}
            Root::Batch => {
                return Err(Fault::malformed("a batch of messages, which the protocol has not"));
            }
            Root::Nothing | Root::Other => return Err(Fault::malformed("a message is no object")),
        }
        if self.expected.operation == Operation::AgentCard {
            self.answered = self.message.card_name.is_some();
            return if self.answered {
                Ok(())
            } else {
                Err(Fault::malformed("the card has no name"))
            };
        }
        if self.message.is_version_2 != Some(true) {
            return Err(Fault::malformed("a message without `jsonrpc: \"2.0\"`"));
        }
        if self.message.method.is_some() {
            self.answer.notifications = self.answer.notifications.saturating_add(1);
            return Ok(());
        }
        self.take_response(on_text)
    }

    fn take_response(&mut self, on_text: &mut dyn FnMut(&str)) -> Result<(), Fault> {
        let wanted = self.expected.id;
        match &self.message.id {
            Some(Id::Number(id)) if *id == wanted => {}
            // Of a request that the server could not read it does not know the id.
            Some(Id::Null) | None if self.message.error.is_some() => {}
            Some(Id::Number(id)) => return Err(wrong_id(&id.to_string(), wanted)),
            Some(Id::Other(id)) => return Err(wrong_id(id, wanted)),
            Some(Id::Null) => return Err(wrong_id("null", wanted)),
            None => return Err(Fault::malformed("an answer without `id`")),
        }
        if self.answered && self.expected.operation != Operation::SendStreamingMessage {
            return Err(Fault::malformed("a second answer to the same request"));
        }
        match (&self.message.error, self.message.result) {
            (Some(error), None | Some(false)) => {
                let Some(code) = error.code else {
                    return Err(Fault::malformed("an error without a whole number as `code`"));
                };
                let (class, message) = (ErrorClass::RpcError, format!("{code}: {}", error.message));
                self.answer.code = Some(code);
                self.error = Some(Fault { class, code: Some(code), message });
                self.answered = true;
                Ok(())
            }
            (None, Some(true)) => self.take_result(on_text),
            (None, Some(false)) => Err(Fault::malformed("`result` is no object")),
            (None, None) => Err(Fault::malformed("an answer without `result` and `error`")),
            (Some(_), Some(true)) => Err(Fault::malformed("an answer with `result` and `error`")),
        }
    }

    fn take_result(&mut self, on_text: &mut dyn FnMut(&str)) -> Result<(), Fault> {
        match self.expected.operation {
            Operation::SendMessage
            | Operation::SendStreamingMessage
            | Operation::GetTask
            | Operation::CancelTask => self.take_update(on_text),
            Operation::Initialize => {
                self.answered = true;
                let version = self.message.mcp_version.take();
                let known = version.as_deref().is_some_and(mcp::is_known);
                if !known {
                    let named = version.as_deref().unwrap_or("none");
                    let problem = format!("the server chose version `{named}`, which is not known");
                    return Err(Fault::malformed(problem));
                }
                self.answer.version = version;
                Ok(())
            }
            operation => {
                self.answered = true;
                self.answer.tool_error =
                    operation == Operation::CallTool && self.message.tool_error;
                self.answer.cursor = self.message.cursor.take();
                if operation == Operation::CallTool {
                    self.result = mem::take(&mut self.held);
                }
                Ok(())
            }
        }
    }

    /// Takes a task, a message, or an update of a task.
    fn take_update(&mut self, on_text: &mut dyn FnMut(&str)) -> Result<(), Fault> {
        let Message { update, task, context, state, is_final, text, .. } = &mut self.message;
        let operation = self.expected.operation;
        let sends = matches!(operation, Operation::SendMessage | Operation::SendStreamingMessage);
        // The task itself is the result of the other methods, and in 1.0 does not say its kind.
        if sends && *update == Update::Unknown {
            return Err(Fault::malformed("`result` is no task, message or update"));
        }
        if !sends && state.is_none() {
            return Err(Fault::malformed("`result` is no task"));
        }
        let answer = &mut self.answer;
        answer.task = task.take().or_else(|| answer.task.take());
        answer.context = context.take().or_else(|| answer.context.take());
        answer.state = state.or(answer.state);
        answer.tool_error = sends && answer.state.is_some_and(TaskState::has_failed);
        if operation != Operation::SendStreamingMessage {
            self.answered = true;
            return Ok(());
        }
        if !self.is_stream {
            return Err(Fault::new(ErrorClass::ContentType, "the answer is not an event stream"));
        }
        self.after_content = !text.is_empty();
        if self.after_content {
            on_text(text);
        }
        let waits = answer.state.is_none_or(TaskState::is_going_on);
        if *update == Update::Message || *is_final || !waits {
            self.answered = true;
        } else {
            answer.notifications = answer.notifications.saturating_add(1);
        }
        Ok(())
    }
}

fn wrong_id(found: &str, wanted: u64) -> Fault {
    Fault::malformed(format!("the answer has the id {found}, and the request had {wanted}"))
}

fn no_json(error: ScanError) -> Fault {
    let ScanError { expected, at } = error;
    Fault::malformed(format!("no JSON: expected {expected} at byte {at}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a reader keeps of a body.
    fn kept(reader: &Reader) -> usize {
        let texts = [&reader.message.task, &reader.message.cursor, &reader.message.method];
        let texts: usize = texts.into_iter().flatten().map(String::len).sum();
        reader.scanner.kept() + texts + reader.message.text.len()
    }

    #[test]
    fn of_a_giant_result_nothing_is_kept() {
        let expected = Expectation { operation: Operation::CallTool, id: 7 };
        let keeps_little = |reader: &mut Reader, text: &str| {
            assert_eq!(reader.feed(text.as_bytes(), &mut |_| {}), Ok(()));
            assert!(kept(reader) <= 64 * 1024, "{}", kept(reader));
        };
        for (is_stream, start, end) in [(false, "", ""), (true, "data: ", "\n\n")] {
            let mut reader = Reader::default();
            reader.begin(expected, is_stream);
            let mut feed = |text: &str| keeps_little(&mut reader, text);
            feed(start);
            feed(r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":""#);
            let piece = "z\\u00e9".repeat(8_192);
            (0..20).for_each(|_| feed(&piece));
            // A text that is asked for, and names that are as long.
            feed(r#""}],"nextCursor":""#);
            (0..5).for_each(|_| feed(&piece));
            feed(r#"","x"#);
            (0..5).for_each(|_| feed(&piece));
            feed(r#"":1}}"#);
            feed(end);
            assert_eq!(reader.finish(), Ok(()));
            assert_eq!(reader.answer().cursor, None, "it is too long to be sent back");
        }
    }

    #[test]
    fn a_result_is_kept_where_that_is_asked_for_and_nothing_else_is() {
        let expected = Expectation { operation: Operation::CallTool, id: 7 };
        let result = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text"}]}}"#;
        let error = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no"}}"#;
        let note = r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#;
        let stream = format!("data: {note}\n\ndata: {result}\n\ndata: {note}\n\n");
        let mut keeps = Reader::keeping_results();
        let mut read = |body: &str, is_stream| {
            keeps.begin(expected, is_stream);
            let fed = body.bytes().try_for_each(|byte| keeps.feed(&[byte], &mut |_: &str| {}));
            assert_eq!(fed, Ok(()));
            let _ = keeps.finish();
            String::from_utf8(keeps.take_result_message()).unwrap()
        };
        assert_eq!(read(result, false), result);
        assert_eq!(read(&stream, true), result);
        assert_eq!(read(error, false), "");
        let mut reader = Reader::default();
        reader.begin(expected, false);
        assert_eq!(reader.feed(result.as_bytes(), &mut |_| {}), Ok(()));
        assert_eq!((reader.finish(), reader.take_result_message()), (Ok(()), Vec::new()));
    }
}
