//! The client's side of one connection, without I/O: bytes in, events and bytes out.

use std::sync::Arc;

use super::error::{Code, Violation};
use super::fields::{FieldEncoder, Fields, Own};
use super::flow::{INITIAL_WINDOW, ReceiveWindow, SendWindow};
use super::frame;
use super::head::Head;
use super::hpack::Decoder;
use super::output::Output;
use super::peer::{self, Peer};
use super::reader::{Piece, Reader};
use super::streams::{Key, Response, Stream, Streams};
use super::{CONNECTION_WINDOW, STREAM_WINDOW};

mod frames;
mod headers;

use self::headers::Section;

/// What clients begin with (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// What we say about the heads that we read: 64 KiB of text in up to 100 fields.
const HEADER_LIST: u32 = 64 * 1024 + 100 * 32;
/// The last stream that there can be.
const LAST_STREAM: u32 = (1 << 31) - 1;

/// What happens on a stream.
#[derive(Debug)]
pub enum Event<'a> {
    /// The final head of the response, which may be swapped for another one, whose buffers are then used.
    Head(&'a mut Head),
    /// Bytes of the body.
    Data {
        /// The bytes.
        bytes: &'a [u8],
        /// Is so much unread that the target may be waiting for us?
        tight: bool,
    },
    /// The response is complete.
    End,
    /// There is no more to come, and the response is not complete.
    Cut(Cut),
    /// More of the request's body may be sent.
    Room,
}

/// A request to be.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// What it shares with others of its kind.
    pub fields: &'a Arc<Fields>,
    /// What is its own.
    pub own: Own<'a>,
    /// Is it a `HEAD`, whose response has no body?
    pub to_head: bool,
    /// Does it end with its head, as it has no body?
    pub ends: bool,
}

/// Why a stream ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The target reset it.
    Reset(Code),
    /// The target said that it will not process it.
    GoAway(Code),
    /// The response is not HTTP.
    Malformed(&'static str),
    /// The head is larger than the limit.
    HeadTooLarge,
    /// The body is shorter than announced.
    Short(u64),
}

/// One connection.
#[derive(Debug)]
pub struct Session {
    reader: Reader,
    core: Core,
}

/// All of a connection but its reader, whose frames it works on.
#[derive(Debug)]
struct Core {
    streams: Streams,
    encoder: FieldEncoder,
    decoder: Decoder,
    head: Head,
    section: Option<Section>,
    /// The field section that is being continued.
    block: Vec<u8>,
    peer: Peer,
    send: SendWindow,
    receive: ReceiveWindow,
    next_id: u32,
    /// Has the target sent its settings?
    greeted: bool,
    /// The target closes the connection, for this reason.
    leaving: Option<Code>,
    /// The stream of the data that is being received, unless nobody wants it.
    receiving: Option<Key>,
    output: Output,
}

impl Default for Session {
    fn default() -> Self {
        Self::new()
    }
}

impl Session {
    /// A connection of which nothing is written yet: our preface is its first output.
    pub fn new() -> Self {
        let mut output = Output::default();
        output.bytes.extend_from_slice(PREFACE);
        let settings = [
            (peer::ENABLE_PUSH, 0),
            (peer::INITIAL_WINDOW_SIZE, STREAM_WINDOW),
            (peer::MAX_HEADER_LIST_SIZE, HEADER_LIST),
        ];
        frame::settings(&settings, &mut output.bytes);
        let initial = u32::try_from(INITIAL_WINDOW).unwrap_or(0);
        frame::window_update(0, CONNECTION_WINDOW - initial, &mut output.bytes);
        Self { reader: Reader::new(), core: Core::new(output) }
    }

    /// Takes bytes over that came from the target, and tells what they mean.
    ///
    /// # Errors
    /// The rule that the target broke. The output then ends with a `GOAWAY`, and the connection is to be closed.
    pub fn feed(
        &mut self,
        mut bytes: &[u8],
        on: &mut impl FnMut(Key, Event<'_>),
    ) -> Result<(), Violation> {
        let Self { reader, core } = self;
        loop {
            let taken = match reader.next(&mut bytes) {
                Ok(None) => return Ok(()),
                Ok(Some(piece)) => core.take(piece, on),
                Err(violation) => Err(violation),
            };
            if let Err(violation) = taken {
                core.say_goodbye(violation.code);
                return Err(violation);
            }
        }
    }

    /// Opens a stream and queues the head of its request. `None` while the target allows no further stream.
    pub fn open(&mut self, ask: Ask<'_>) -> Option<Key> {
        if !self.has_place() {
            return None;
        }
        let core = &mut self.core;
        let id = core.next_id;
        core.next_id += 2;
        let out = &mut core.output.bytes;
        let start = out.len();
        out.extend_from_slice(&[0; frame::HEAD]);
        core.encoder.encode(ask.fields, ask.own, out);
        frame::close_headers(id, ask.ends, (start, core.peer.max_frame), out);
        Some(core.streams.insert(Stream {
            id,
            send: SendWindow::new(core.peer.initial_window),
            receive: ReceiveWindow::new(STREAM_WINDOW),
            sent: ask.ends,
            response: Response::Awaited,
            missing: None,
            unread: 0,
            to_head: ask.to_head,
        }))
    }

    /// May a stream be opened now?
    pub fn has_place(&self) -> bool {
        self.accepts_more() && self.core.streams.open() < self.core.peer.max_streams
    }

    /// Will the target accept further streams, now or later?
    pub const fn accepts_more(&self) -> bool {
        self.core.leaving.is_none() && self.core.next_id <= LAST_STREAM
    }

    /// Has the target asked us to leave, with no stream left to wait for?
    pub fn is_over(&self) -> Option<Code> {
        self.core.leaving.filter(|_| self.core.streams.open() == 0)
    }

    /// Queues as much of a request's body as the windows have room for, and ends the request with the last of it;
    /// returns how much that was.
    pub fn send(&mut self, key: Key, body: &[u8]) -> usize {
        self.core.send_data(key, body)
    }

    /// Will nothing more of a request be sent?
    pub fn is_sent(&mut self, key: Key) -> bool {
        self.core.streams.get(key).is_none_or(|stream| stream.sent)
    }

    /// So many bytes of a body were used: the target may send as many more.
    pub fn consume(&mut self, key: Key, bytes: usize) {
        self.core.consume(key, bytes);
    }

    /// Gives a stream back. Where it is not over the target is told that nobody waits for it any more.
    pub fn close(&mut self, key: Key) {
        self.core.close(key);
    }

    /// What is to be written.
    pub fn output(&self) -> &[u8] {
        self.core.output.pending()
    }

    /// So much of it was.
    pub fn wrote(&mut self, bytes: usize) {
        self.core.output.wrote(bytes);
    }

    /// How many bytes were queued and how many of them written, from the connection's start.
    pub(super) const fn progress(&self) -> (u64, u64) {
        (self.core.output.end(), self.core.output.start())
    }

    /// Queues our farewell: nobody needs the connection any more.
    pub fn leave(&mut self) {
        self.core.say_goodbye(Code::NO_ERROR);
    }
}

impl Core {
    fn new(output: Output) -> Self {
        Self {
            streams: Streams::default(),
            encoder: FieldEncoder::default(),
            decoder: Decoder::default(),
            head: Head::default(),
            section: None,
            block: Vec::new(),
            peer: Peer::default(),
            send: SendWindow::new(INITIAL_WINDOW),
            receive: ReceiveWindow::new(CONNECTION_WINDOW),
            next_id: 1,
            greeted: false,
            leaving: None,
            receiving: None,
            output,
        }
    }

    fn say_goodbye(&mut self, code: Code) {
        frame::go_away(code, &mut self.output.bytes);
    }

    fn take(
        &mut self,
        piece: Piece<'_>,
        on: &mut impl FnMut(Key, Event<'_>),
    ) -> Result<(), Violation> {
        match piece {
            Piece::Frame(head, payload) => self.frame(head, payload, on),
            Piece::DataBegins(head, padding) => self.begin_data(head, padding, on),
            Piece::Data(bytes) => {
                self.data(bytes, on);
                Ok(())
            }
            Piece::DataEnds(head) => {
                if let Some(key) = self.receiving.take()
                    && head.has(frame::END_STREAM)
                {
                    self.end_response(key, on);
                }
                Ok(())
            }
        }
    }

    fn send_data(&mut self, key: Key, body: &[u8]) -> usize {
        let Some(stream) = self.streams.get(key).filter(|stream| !stream.sent) else { return 0 };
        let mut rest = body;
        while !rest.is_empty() {
            let room = stream.send.room().min(self.send.room()).min(self.peer.max_frame);
            let (part, left) = rest.split_at(room.min(rest.len()));
            if part.is_empty() {
                return body.len() - rest.len();
            }
            rest = left;
            let flags = if rest.is_empty() { frame::END_STREAM } else { 0 };
            let out = &mut self.output.bytes;
            let (kind, length) = (frame::DATA, part.len());
            frame::Head { length, kind, flags, stream: stream.id }.write(out);
            out.extend_from_slice(part);
            stream.send.take(length);
            self.send.take(length);
        }
        stream.sent = true;
        if stream.response == Response::Over {
            let id = stream.id;
            self.streams.close(id, false);
        }
        body.len()
    }

    fn consume(&mut self, key: Key, bytes: usize) {
        let told = self.receive.consume(bytes);
        self.output.room(0, told);
        let Some(stream) = self.streams.get(key) else { return };
        stream.unread -= bytes.min(stream.unread);
        // Of a response that is over there is nothing to make room for.
        if stream.response != Response::Over {
            self.output.room(stream.id, stream.receive.consume(bytes));
        }
    }

    fn close(&mut self, key: Key) {
        let Some(stream) = self.streams.remove(key) else { return };
        if self.receiving == Some(key) {
            self.receiving = None;
        }
        let told = self.receive.consume(stream.unread);
        self.output.room(0, told);
        let finished = stream.sent && stream.response == Response::Over;
        if !finished {
            self.output.reset(stream.id, Code::CANCEL);
        }
        self.streams.close(stream.id, !finished);
    }

    /// A stream ends before its time; the target is told a code where it does not know it.
    fn cut(&mut self, key: Key, code: Option<Code>, cut: Cut, on: &mut impl FnMut(Key, Event<'_>)) {
        let Some(stream) = self.streams.get(key) else { return };
        let (id, over) = (stream.id, stream.response == Response::Over);
        (stream.response, stream.sent) = (Response::Over, true);
        self.streams.close(id, code.is_some());
        if self.receiving == Some(key) {
            self.receiving = None;
        }
        if let Some(code) = code {
            self.output.reset(id, code);
        }
        if !over {
            on(key, Event::Cut(cut));
        }
    }

    fn end_response(&mut self, key: Key, on: &mut impl FnMut(Key, Event<'_>)) {
        let Some(stream) = self.streams.get(key) else { return };
        if let Some(missing) = stream.missing.filter(|missing| *missing > 0) {
            return self.cut(key, Some(Code::PROTOCOL_ERROR), Cut::Short(missing), on);
        }
        stream.response = Response::Over;
        let (id, sent) = (stream.id, stream.sent);
        if sent {
            self.streams.close(id, false);
        }
        on(key, Event::End);
    }
}

#[cfg(test)]
mod tests;
