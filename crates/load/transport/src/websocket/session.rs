//! An open WebSocket without I/O: control frames to send, and its end.

use std::ops::ControlFlow;

use plimsoll_measure::{ErrorClass, Rng};

use super::frame_reader::{CloseFrame, FrameReader, Incoming, Message, Opcode, mask, push_header};
use crate::buffers::EncodedRequest;
use crate::failure::Failure;

/// Maximum size of queued answers to pings. Beyond this, pings are not answered, because only the
/// latest one must be (5.5.3).
const MAX_WAITING: usize = 4 * 1024;

/// The client's side of a connection after its handshake.
#[derive(Debug)]
pub struct Session {
    reader: FrameReader,
    /// Generator of the masks' keys.
    keys: Rng,
    /// Control frames, and the number of their bytes already sent.
    control: Vec<u8>,
    control_sent: usize,
    close_sent: bool,
    /// Whether bytes arrived since our last message.
    answered: bool,
    /// The reason why no further message can be exchanged.
    end: Option<Failure>,
}

impl Session {
    /// Creates a session that masks with keys from `keys` (5.3), and reads messages of up to
    /// `max_message` bytes.
    pub const fn new(keys: Rng, max_message: usize) -> Self {
        Self {
            reader: FrameReader::new(max_message),
            keys,
            control: Vec::new(),
            control_sent: 0,
            close_sent: false,
            answered: false,
            end: None,
        }
    }

    /// Turns a text, which is the body, into a frame: its header becomes the head, and the body is
    /// masked.
    pub fn frame(&mut self, text: &mut EncodedRequest) {
        self.answered = false;
        let key = key(&mut self.keys);
        text.head.clear();
        push_header(&mut text.head, Opcode::Text, true, text.body.len(), key);
        mask(key, &mut text.body);
    }

    /// The unsent control frames.
    pub fn control(&self) -> &[u8] {
        &self.control[self.control_sent..]
    }

    /// Whether all control frames have been sent.
    pub const fn is_flushed(&self) -> bool {
        self.control.is_empty()
    }

    /// Records sent bytes of control frames.
    pub fn control_sent(&mut self, bytes: usize) {
        self.control_sent += bytes;
        if self.control_sent >= self.control.len() {
            self.control.clear();
            self.control_sent = 0;
        }
    }

    /// Queues a close frame with this code, unless one was sent before.
    pub fn close(&mut self, code: u16) {
        if !std::mem::replace(&mut self.close_sent, true) {
            push_control(&mut self.control, &mut self.keys, Opcode::Close, &code.to_be_bytes());
        }
    }

    /// The reason why no further message can be exchanged, if there is one.
    pub const fn end(&self) -> Option<&Failure> {
        self.end.as_ref()
    }

    /// Ends the session. The first reason counts.
    pub fn fail(&mut self, failure: Failure) {
        self.end.get_or_insert(failure);
    }

    /// Whether the bytes so far end within a frame or a message.
    pub const fn is_within_message(&self) -> bool {
        self.reader.is_within_message()
    }

    /// Reads bytes of the target: passes its messages on, and answers pings and a close frame.
    pub fn received(&mut self, bytes: &[u8], on: &mut impl FnMut(Message<'_>)) {
        self.answered |= !bytes.is_empty();
        if self.end.is_some() {
            return;
        }
        let Self { reader, keys, control, .. } = self;
        let mut closed = None;
        let fed = reader.feed(bytes, &mut |incoming| match incoming {
            Incoming::Message(message) => on(message),
            Incoming::Ping(payload) if control.len() < MAX_WAITING => {
                push_control(control, keys, Opcode::Pong, payload);
            }
            Incoming::Ping(_) | Incoming::Pong(_) => {}
            Incoming::Close(frame) => closed = Some(describe(frame)),
        });
        if let Err(error) = fed {
            self.close(error.close_code());
            self.fail(error.into());
        }
        if let Some((code, detail)) = closed {
            self.close(code);
            self.fail(Failure::new(ErrorClass::WebsocketClosed, detail));
        }
    }

    /// Reads bytes that arrived while no response was expected. A message among them belongs to no
    /// exchange.
    pub fn received_between(&mut self, bytes: &[u8]) {
        let mut stray = false;
        self.received(bytes, &mut |_| stray = true);
        if stray {
            self.stray();
        }
    }

    /// Reads bytes of a response. Returns whether `on` has called a message its last one; a message
    /// after it belongs to no exchange.
    pub fn received_answer(
        &mut self,
        bytes: &[u8],
        on: &mut impl FnMut(Message<'_>) -> ControlFlow<()>,
    ) -> bool {
        let (mut answered, mut stray) = (false, false);
        self.received(bytes, &mut |message| {
            if answered {
                stray = true;
            } else {
                answered = on(message).is_break();
            }
        });
        if stray {
            self.stray();
        }
        answered
    }

    /// Reads bytes and discards their messages.
    pub fn discard(&mut self, bytes: &[u8]) {
        self.received(bytes, &mut |_| {});
    }

    /// Handles a message that belongs to no turn.
    fn stray(&mut self) {
        let detail = "a message arrived after the end of a response, or before any request";
        self.fail(Failure::new(ErrorClass::MalformedBody, detail));
    }

    /// Handles a disconnect without a close frame.
    pub fn disconnected(&mut self) {
        let (class, detail) = if self.answered {
            (ErrorClass::StreamTruncated, "the connection ended within the answer")
        } else {
            (ErrorClass::ClosedEarly, "the connection ended before the answer")
        };
        self.fail(Failure::new(class, format!("{detail}, without a close frame")));
    }
}

fn key(keys: &mut Rng) -> [u8; 4] {
    let [a, b, c, d, ..] = keys.next_u64().to_le_bytes();
    [a, b, c, d]
}

/// Appends a control frame.
fn push_control(out: &mut Vec<u8>, keys: &mut Rng, opcode: Opcode, payload: &[u8]) {
    let key = key(keys);
    push_header(out, opcode, true, payload.len(), key);
    let start = out.len();
    out.extend_from_slice(payload);
    mask(key, &mut out[start..]);
}

/// The code for answering a close frame, and a description of the frame without the target's
/// control characters.
fn describe(frame: Option<CloseFrame<'_>>) -> (u16, String) {
    let Some(CloseFrame { code, reason }) = frame else {
        return (super::NORMAL, "the target closed the connection without a code".to_owned());
    };
    let reason: String = reason.chars().filter(|c| !c.is_control()).collect();
    let separator = if reason.is_empty() { "" } else { ": " };
    (code, format!("the target closed the connection with the code {code}{separator}{reason}"))
}

#[cfg(test)]
mod tests {
    use plimsoll_measure::Seed;

    use super::*;

    fn session() -> Session {
        Session::new(Seed(1).rng("test", 0), 1_000)
    }

    /// The control frames, unmasked: opcode and payload.
    fn sent(session: &mut Session) -> Vec<(u8, Vec<u8>)> {
        let (mut frames, mut rest) = (Vec::new(), session.control().to_vec());
        session.control_sent(rest.len());
        while !rest.is_empty() {
            assert_eq!((rest[0] & 0xf0, rest[1] & 0x80), (0x80, 0x80), "final and masked");
            let (opcode, length) = (rest[0] & 0x0f, usize::from(rest[1] & 0x7f));
            let after = rest.split_off(6 + length);
            let payload = rest[6..].iter().zip(rest[2..6].iter().cycle());
            frames.push((opcode, payload.map(|(byte, key)| byte ^ key).collect()));
            rest = after;
        }
        frames
    }

    #[test]
    fn a_text_is_masked_with_a_key_of_its_own_that_the_seed_decides() {
        let text = || EncodedRequest { head: b"old".to_vec(), body: b"Hello".to_vec() };
        let (mut first, mut second, mut again) = (text(), text(), text());
        let mut one = session();
        one.frame(&mut first);
        one.frame(&mut second);
        session().frame(&mut again);
        assert_eq!(first.head[..2], [0x81, 0x85]);
        assert_eq!((&first.head, &first.body), (&again.head, &again.body));
        assert_ne!(first.head[2..], second.head[2..]);
        let plain: Vec<u8> =
            first.body.iter().zip(&first.head[2..]).map(|(byte, key)| byte ^ key).take(4).collect();
        assert_eq!(plain, b"Hell");
    }

    #[test]
    fn pings_are_answered_and_a_flood_of_them_takes_no_memory() {
        let mut session = session();
        session.received(b"\x89\x02hi\x8a\x00", &mut |_| panic!("no message"));
        assert_eq!(sent(&mut session), [(0xa, b"hi".to_vec())]);
        for _ in 0..10_000 {
            session.received(b"\x89\x02hi", &mut |_| panic!("no message"));
        }
        assert!(session.control().len() < MAX_WAITING + 10);
        assert!(session.end().is_none());
    }

    #[test]
    fn a_close_frame_is_returned_once_and_ends_the_session() {
        for (frame, code, words) in [
            (&b"\x88\x07\x03\xf3oh\x1bno"[..], [0x03, 0xf3], "the code 1011: ohno"),
            (b"\x88\x00", [0x03, 0xe8], "without a code"),
        ] {
            let mut session = session();
            session.received(frame, &mut |_| {});
            let end = session.end().cloned().unwrap();
            assert_eq!(end.class, ErrorClass::WebsocketClosed);
            assert!(end.detail.ends_with(words), "{}", end.detail);
            session.close(1000);
            assert_eq!(sent(&mut session), [(0x8, code.to_vec())]);
        }
    }

    #[test]
    fn a_violation_closes_with_its_code_and_earlier_messages_count() {
        let mut session = session();
        let mut messages = 0;
        session.received(b"\x81\x02ok\x83\x00", &mut |_| messages += 1);
        assert_eq!(messages, 1);
        assert_eq!(session.end().unwrap().class, ErrorClass::WebsocketProtocol);
        assert_eq!(sent(&mut session), [(0x8, vec![0x03, 0xea])]);
        session.received(b"\x81\x02ok", &mut |_| panic!("nothing is read after it"));
    }

    #[test]
    fn the_end_of_the_connection_counts_by_how_far_the_answer_came() {
        let ended = |bytes: &[u8]| {
            let mut session = session();
            session.received_between(b"\x8a\x00");
            session.frame(&mut EncodedRequest::default());
            session.received(bytes, &mut |_| {});
            session.disconnected();
            session.end().unwrap().class
        };
        assert_eq!(ended(b""), ErrorClass::ClosedEarly);
        assert_eq!(ended(b"\x81"), ErrorClass::StreamTruncated);
        assert_eq!(ended(b"\x81\x02ok"), ErrorClass::StreamTruncated);
        assert_eq!(ended(b"\x88\x00"), ErrorClass::WebsocketClosed);
    }

    #[test]
    fn a_message_that_nobody_asked_for_ends_the_session() {
        let mut session = session();
        session.received_between(b"\x81\x02ok");
        assert_eq!(session.end().unwrap().class, ErrorClass::MalformedBody);
    }
}
