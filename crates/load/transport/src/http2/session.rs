//! The client side of one connection, without I/O: bytes in, events and bytes out.

use self::header_frames::PartialBlock;
use super::frame_reader::{FramePart, FrameReader};
use super::hpack::Decoder;
use super::stream_table::{ResponsePhase, Stream, StreamKey, StreamTable};
use super::{
    CONNECTION_WINDOW, ConnectionError, DecodedHead, ErrorCode, HeaderBlockEncoder, INITIAL_WINDOW,
    MAX_WINDOW, ReceiveWindow, STREAM_WINDOW, SendWindow, StreamError, WriteBuffer, frame,
};
use crate::message::RequestHead;

mod frame_handlers;
mod header_frames;

/// The bytes that a client sends first (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The announced limit of response heads: 64 KiB of text in up to 100 fields.
const MAX_HEADER_LIST: u32 = 64 * 1024 + 100 * 32;
/// The last possible stream id.
const LAST_STREAM: u32 = (1 << 31) - 1;

/// An event on a stream.
#[derive(Debug)]
pub enum Event<'a> {
    /// The final head of the response. It can be swapped for another one, whose buffers are then
    /// reused.
    Head(&'a mut DecodedHead),
    /// Bytes of the body.
    Data {
        /// The bytes.
        bytes: &'a [u8],
        /// Whether our window is so small that the target may be waiting.
        window_low: bool,
    },
    /// The response is complete.
    End,
    /// The stream ended before the response was complete.
    Error(StreamError),
    /// More of the request's body can be sent.
    WindowOpen,
}

/// A request for a new stream.
#[derive(Clone, Copy, Debug)]
pub struct NewRequest<'a> {
    /// The head shared with other requests of its kind.
    pub head: &'a RequestHead,
    /// Its `x-request-id`.
    pub id: Option<&'a [u8]>,
    /// Length of its body. Without a body the request ends with its head.
    pub body_len: usize,
}

/// One connection.
#[derive(Debug)]
pub struct Session {
    reader: FrameReader,
    state: SessionState,
}

/// The state of a connection without its reader, so that it can process the reader's frames.
#[derive(Debug)]
struct SessionState {
    streams: StreamTable,
    encoder: HeaderBlockEncoder,
    decoder: Decoder,
    head: DecodedHead,
    partial_block: Option<PartialBlock>,
    /// The bytes of the partial header block.
    block: Vec<u8>,
    peer: PeerSettings,
    send: SendWindow,
    receive: ReceiveWindow,
    next_id: u32,
    /// Whether the target has sent its settings.
    settings_received: bool,
    /// Code of the target's `GOAWAY`.
    goaway: Option<ErrorCode>,
    /// The stream of the current `DATA` frame, unless it was reset.
    receiving: Option<StreamKey>,
    output: WriteBuffer,
}

impl Default for Session {
    fn default() -> Self {
        Self::new()
    }
}

impl Session {
    /// Creates a connection. Its first output is the client preface.
    pub fn new() -> Self {
        let mut output = WriteBuffer::default();
        output.bytes.extend_from_slice(PREFACE);
        let settings = [
            (ENABLE_PUSH, 0),
            (INITIAL_WINDOW_SIZE, STREAM_WINDOW),
            (MAX_HEADER_LIST_SIZE, MAX_HEADER_LIST),
        ];
        frame::settings(&settings, &mut output.bytes);
        let initial = u32::try_from(INITIAL_WINDOW).unwrap_or(0);
        frame::window_update(0, CONNECTION_WINDOW - initial, &mut output.bytes);
        Self { reader: FrameReader::new(), state: SessionState::new(output) }
    }

    /// Processes bytes from the target and reports their events.
    ///
    /// # Errors
    /// The rule that the target violated. The output then ends with a `GOAWAY`, and the connection
    /// must be closed.
    pub fn feed(
        &mut self,
        mut bytes: &[u8],
        on_event: &mut impl FnMut(StreamKey, Event<'_>),
    ) -> Result<(), ConnectionError> {
        let Self { reader, state } = self;
        loop {
            let processed = match reader.next(&mut bytes) {
                Ok(None) => return Ok(()),
                Ok(Some(part)) => state.process(part, on_event),
                Err(error) => Err(error),
            };
            if let Err(error) = processed {
                state.queue_goaway(error.code);
                return Err(error);
            }
        }
    }

    /// Opens a stream and queues the head of its request. `None` while the target allows no further
    /// stream.
    pub fn open(&mut self, request: NewRequest<'_>) -> Option<StreamKey> {
        if !self.can_open() {
            return None;
        }
        let state = &mut self.state;
        let id = state.next_id;
        state.next_id += 2;
        let out = &mut state.output.bytes;
        let start = out.len();
        out.extend_from_slice(&[0; frame::HEADER_LEN]);
        let NewRequest { head, id: request_id, body_len } = request;
        let ends = body_len == 0;
        let content_length = head.content_length(body_len);
        state.encoder.encode(head, request_id, content_length, out);
        frame::finish_headers(id, ends, start, state.peer.max_frame, out);
        Some(state.streams.insert(Stream {
            id,
            send: SendWindow::new(state.peer.initial_window),
            receive: ReceiveWindow::new(STREAM_WINDOW),
            sent: ends,
            response: ResponsePhase::AwaitingHead,
            body_bytes_left: None,
            unread: 0,
            is_head_request: head.is_head(),
        }))
    }

    /// Whether a stream can be opened now.
    pub fn can_open(&self) -> bool {
        self.accepts_streams() && self.state.streams.open_count() < self.state.peer.max_streams
    }

    /// The number of streams that the target allows at once; `None` before its first settings.
    pub(super) fn stream_limit(&self) -> Option<u32> {
        let limit = u32::try_from(self.state.peer.max_streams).unwrap_or(u32::MAX);
        self.state.settings_received.then_some(limit)
    }

    /// Whether the target accepts further streams, now or later.
    pub const fn accepts_streams(&self) -> bool {
        self.state.goaway.is_none() && self.state.next_id <= LAST_STREAM
    }

    /// Code of the target's `GOAWAY` once no stream is open.
    pub fn closed_by_target(&self) -> Option<ErrorCode> {
        self.state.goaway.filter(|_| self.state.streams.open_count() == 0)
    }

    /// Queues as much of a request's body as the windows allow, and ends the request with its last
    /// byte. Returns the number of queued bytes.
    pub fn send_body(&mut self, key: StreamKey, body: &[u8]) -> usize {
        self.state.send_data(key, body)
    }

    /// Whether the rest of a request will not be sent.
    pub fn is_request_over(&mut self, key: StreamKey) -> bool {
        self.state.streams.get(key).is_none_or(|stream| stream.sent)
    }

    /// Records that bytes of a body were consumed: the target can send as many more.
    pub fn consume(&mut self, key: StreamKey, bytes: usize) {
        self.state.consume(key, bytes);
    }

    /// Releases a stream. If it is not complete, it is reset.
    pub fn close(&mut self, key: StreamKey) {
        self.state.close(key);
    }

    /// Bytes to be written.
    pub fn output(&self) -> &[u8] {
        self.state.output.pending()
    }

    /// Records written bytes.
    pub fn wrote(&mut self, bytes: usize) {
        self.state.output.wrote(bytes);
    }

    /// All bytes queued since the connection's start.
    pub(super) const fn bytes_queued(&self) -> u64 {
        self.state.output.total_queued()
    }

    /// All bytes written since the connection's start.
    pub(super) const fn bytes_written(&self) -> u64 {
        self.state.output.total_written()
    }

    /// Queues a `GOAWAY` before the connection is abandoned.
    pub fn go_away(&mut self) {
        self.state.queue_goaway(ErrorCode::NO_ERROR);
    }
}

impl SessionState {
    fn new(output: WriteBuffer) -> Self {
        Self {
            streams: StreamTable::default(),
            encoder: HeaderBlockEncoder::default(),
            decoder: Decoder::default(),
            head: DecodedHead::default(),
            partial_block: None,
            block: Vec::new(),
            peer: PeerSettings::default(),
            send: SendWindow::new(INITIAL_WINDOW),
            receive: ReceiveWindow::new(CONNECTION_WINDOW),
            next_id: 1,
            settings_received: false,
            goaway: None,
            receiving: None,
            output,
        }
    }

    fn queue_goaway(&mut self, code: ErrorCode) {
        frame::go_away(code, &mut self.output.bytes);
    }

    fn process(
        &mut self,
        part: FramePart<'_>,
        on_event: &mut impl FnMut(StreamKey, Event<'_>),
    ) -> Result<(), ConnectionError> {
        match part {
            FramePart::Frame(head, payload) => self.frame(head, payload, on_event),
            FramePart::DataStart(head, padding) => self.begin_data(head, padding, on_event),
            FramePart::Data(bytes) => {
                self.data(bytes, on_event);
                Ok(())
            }
            FramePart::DataEnd(head) => {
                if let Some(key) = self.receiving.take()
                    && head.has(frame::END_STREAM)
                {
                    self.end_response(key, on_event);
                }
                Ok(())
            }
        }
    }

    fn send_data(&mut self, key: StreamKey, body: &[u8]) -> usize {
        let Some(stream) = self.streams.get(key).filter(|stream| !stream.sent) else { return 0 };
        let mut rest = body;
        while !rest.is_empty() {
            let available =
                stream.send.available().min(self.send.available()).min(self.peer.max_frame);
            let (part, left) = rest.split_at(available.min(rest.len()));
            if part.is_empty() {
                return body.len() - rest.len();
            }
            rest = left;
            let flags = if rest.is_empty() { frame::END_STREAM } else { 0 };
            let out = &mut self.output.bytes;
            let (kind, length) = (frame::DATA, part.len());
            frame::FrameHeader { length, kind, flags, stream: stream.id }.write(out);
            out.extend_from_slice(part);
            stream.send.sent(length);
            self.send.sent(length);
        }
        stream.sent = true;
        if stream.response == ResponsePhase::Done {
            let id = stream.id;
            self.streams.close(id, false);
        }
        body.len()
    }

    fn consume(&mut self, key: StreamKey, bytes: usize) {
        let update = self.receive.consume(bytes);
        self.output.window_update(0, update);
        let Some(stream) = self.streams.get(key) else { return };
        stream.unread -= bytes.min(stream.unread);
        // After the end of the response, the stream's window no longer matters.
        if stream.response != ResponsePhase::Done {
            self.output.window_update(stream.id, stream.receive.consume(bytes));
        }
    }

    fn close(&mut self, key: StreamKey) {
        let Some(stream) = self.streams.remove(key) else { return };
        if self.receiving == Some(key) {
            self.receiving = None;
        }
        let update = self.receive.consume(stream.unread);
        self.output.window_update(0, update);
        let finished = stream.sent && stream.response == ResponsePhase::Done;
        if !finished {
            self.output.reset(stream.id, ErrorCode::CANCEL);
        }
        self.streams.close(stream.id, !finished);
    }

    /// Ends a stream early. `code` is sent to the target, unless the target ended the stream.
    fn fail_stream(
        &mut self,
        key: StreamKey,
        code: Option<ErrorCode>,
        error: StreamError,
        on_event: &mut impl FnMut(StreamKey, Event<'_>),
    ) {
        let Some(stream) = self.streams.get(key) else { return };
        let (id, over) = (stream.id, stream.response == ResponsePhase::Done);
        (stream.response, stream.sent) = (ResponsePhase::Done, true);
        self.streams.close(id, code.is_some());
        if self.receiving == Some(key) {
            self.receiving = None;
        }
        if let Some(code) = code {
            self.output.reset(id, code);
        }
        if !over {
            on_event(key, Event::Error(error));
        }
    }

    fn end_response(&mut self, key: StreamKey, on_event: &mut impl FnMut(StreamKey, Event<'_>)) {
        let Some(stream) = self.streams.get(key) else { return };
        if let Some(missing) = stream.body_bytes_left.filter(|missing| *missing > 0) {
            return self.fail_stream(
                key,
                Some(ErrorCode::PROTOCOL_ERROR),
                StreamError::BodyTruncated(missing),
                on_event,
            );
        }
        stream.response = ResponsePhase::Done;
        let (id, sent) = (stream.id, stream.sent);
        if sent {
            self.streams.close(id, false);
        }
        on_event(key, Event::End);
    }
}

// The target's settings (RFC 9113, section 6.5.2).

pub(super) const HEADER_TABLE_SIZE: u16 = 0x1;
pub(super) const ENABLE_PUSH: u16 = 0x2;
pub(super) const MAX_CONCURRENT_STREAMS: u16 = 0x3;
pub(super) const INITIAL_WINDOW_SIZE: u16 = 0x4;
pub(super) const MAX_FRAME_SIZE: u16 = 0x5;
pub(super) const MAX_HEADER_LIST_SIZE: u16 = 0x6;

/// Streams opened before the target has announced its limit: the minimum that the standard
/// recommends (section 6.5.2).
const DEFAULT_MAX_STREAMS: usize = 100;

/// Limits for frames that we send.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerSettings {
    pub(super) initial_window: i64,
    pub(super) max_frame: usize,
    pub(super) max_streams: usize,
}

/// An immediate effect of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SettingChange {
    /// The windows of all streams change by this amount.
    StreamWindows(i64),
    /// The maximum size of the encoder's table.
    MaxTableSize(usize),
}

impl Default for PeerSettings {
    fn default() -> Self {
        Self { initial_window: INITIAL_WINDOW, max_frame: 16_384, max_streams: DEFAULT_MAX_STREAMS }
    }
}

impl PeerSettings {
    /// Applies one setting.
    pub(super) fn apply(
        &mut self,
        identifier: u16,
        value: u32,
    ) -> Result<Option<SettingChange>, ConnectionError> {
        let size = usize::try_from(value).unwrap_or(usize::MAX);
        match identifier {
            HEADER_TABLE_SIZE => return Ok(Some(SettingChange::MaxTableSize(size))),
            ENABLE_PUSH if value != 0 => {
                return Err(ConnectionError::protocol("a server must not allow pushes"));
            }
            MAX_CONCURRENT_STREAMS => self.max_streams = size,
            INITIAL_WINDOW_SIZE => {
                let window = i64::from(value);
                if window > MAX_WINDOW {
                    let detail = "the initial window is too large";
                    return Err(ConnectionError::new(ErrorCode::FLOW_CONTROL_ERROR, detail));
                }
                let before = std::mem::replace(&mut self.initial_window, window);
                return Ok(Some(SettingChange::StreamWindows(window - before)));
            }
            MAX_FRAME_SIZE if !(16_384..=16_777_215).contains(&value) => {
                return Err(ConnectionError::protocol("the frame size is out of bounds"));
            }
            MAX_FRAME_SIZE => self.max_frame = size,
            _ => {}
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod settings_tests {
    use super::*;

    #[test]
    fn settings_are_applied_and_checked() {
        let mut peer = PeerSettings::default();
        assert_eq!(
            peer.apply(INITIAL_WINDOW_SIZE, 35),
            Ok(Some(SettingChange::StreamWindows(-65_500)))
        );
        assert_eq!(peer.apply(HEADER_TABLE_SIZE, 0), Ok(Some(SettingChange::MaxTableSize(0))));
        assert_eq!((peer.apply(MAX_CONCURRENT_STREAMS, 0), peer.max_streams), (Ok(None), 0));
        assert_eq!(
            (peer.apply(MAX_FRAME_SIZE, 16_777_215), peer.max_frame),
            (Ok(None), 16_777_215)
        );
        assert_eq!((peer.apply(ENABLE_PUSH, 0), peer.apply(0x99, 7)), (Ok(None), Ok(None)));
        for (identifier, value, code) in [
            (ENABLE_PUSH, 1, ErrorCode::PROTOCOL_ERROR),
            (INITIAL_WINDOW_SIZE, 1 << 31, ErrorCode::FLOW_CONTROL_ERROR),
            (MAX_FRAME_SIZE, 16_383, ErrorCode::PROTOCOL_ERROR),
            (MAX_FRAME_SIZE, 1 << 24, ErrorCode::PROTOCOL_ERROR),
        ] {
            let found = peer.apply(identifier, value).map_err(|error| error.code);
            assert_eq!(found, Err(code), "{identifier}");
        }
    }
}
