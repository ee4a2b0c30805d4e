//! What each frame does (RFC 9113, section 6).

use super::{Core, Cut, Event};
use crate::http2::error::{Code, Violation};
use crate::http2::flow::{Overflow, Overrun};
use crate::http2::frame::{self, Head};
use crate::http2::peer::Change;
use crate::http2::streams::{Found, Key, Response};

const fn wrong_length() -> Violation {
    Violation::new(Code::FRAME_SIZE_ERROR, "a frame of a fixed length has another one")
}

const fn overrun(_: Overrun) -> Violation {
    Violation::new(Code::FLOW_CONTROL_ERROR, "it sent more than our window allows")
}

const fn overflow(_: Overflow) -> Violation {
    Violation::new(Code::FLOW_CONTROL_ERROR, "a window is made larger than it may be")
}

impl Core {
    pub(super) fn frame(
        &mut self,
        head: Head,
        payload: &[u8],
        on: &mut impl FnMut(Key, Event<'_>),
    ) -> Result<(), Violation> {
        self.is_in_order(head)?;
        match head.kind {
            frame::HEADERS => self.headers(head, payload, on),
            frame::CONTINUATION => self.continuation(head, payload, on),
            frame::RST_STREAM => self.rst_stream(head, payload, on),
            frame::SETTINGS => self.settings(head, payload, on),
            frame::PING => self.ping(head, payload),
            frame::GOAWAY => self.go_away(head, payload, on),
            frame::WINDOW_UPDATE => self.window_update(head, payload, on),
            frame::PUSH_PROMISE => Err(Violation::protocol("a push, which we do not allow")),
            frame::PRIORITY if head.stream == 0 => {
                Err(Violation::protocol("a priority of no stream"))
            }
            frame::PRIORITY if payload.len() != 5 => Err(wrong_length()),
            // Priorities are advice, and other kinds are extensions: both are ignored.
            _ => Ok(()),
        }
    }

    /// Settings come first, and nothing comes between the parts of a field section.
    fn is_in_order(&self, head: Head) -> Result<(), Violation> {
        let is_greeting = head.kind == frame::SETTINGS && !head.has(frame::ACK);
        if !self.greeted && !is_greeting {
            return Err(Violation::protocol("its first frame is not its settings"));
        }
        if self.section.is_some() != (head.kind == frame::CONTINUATION) {
            return Err(Violation::protocol("a field section is torn apart"));
        }
        Ok(())
    }

    /// The stream of a frame, which must have been opened by us (section 5.1.1).
    pub(super) fn find(&self, head: Head) -> Result<Found, Violation> {
        if head.stream.is_multiple_of(2) || head.stream >= self.next_id {
            return Err(Violation::protocol("a frame of a stream that was never opened"));
        }
        Ok(self.streams.find(head.stream))
    }

    pub(super) fn begin_data(
        &mut self,
        head: Head,
        padding: usize,
        on: &mut impl FnMut(Key, Event<'_>),
    ) -> Result<(), Violation> {
        self.is_in_order(head)?;
        let found = self.find(head)?;
        self.receive.receive(head.length).map_err(overrun)?;
        let told = self.receive.consume(padding);
        self.output.room(0, told);
        self.receiving = match found {
            Found::Open(key) => Some(key),
            Found::Reset => None,
            Found::Closed => return Err(closed()),
        };
        let Some(key) = self.receiving else { return Ok(()) };
        let Some(stream) = self.streams.get(key) else { return Ok(()) };
        match stream.response {
            Response::Body => {}
            Response::Over => return Err(closed()),
            Response::Awaited => {
                let cut = Cut::Malformed("data before a head");
                self.cut(key, Some(Code::PROTOCOL_ERROR), cut, on);
                return Ok(());
            }
        }
        stream.receive.receive(head.length).map_err(overrun)?;
        self.output.room(head.stream, stream.receive.consume(padding));
        Ok(())
    }

    pub(super) fn data(&mut self, bytes: &[u8], on: &mut impl FnMut(Key, Event<'_>)) {
        let key = self.receiving;
        let Some((key, stream)) = key.and_then(|key| Some((key, self.streams.get(key)?))) else {
            // Nobody will use it, so it is used up.
            let told = self.receive.consume(bytes.len());
            return self.output.room(0, told);
        };
        stream.unread += bytes.len();
        let missing = stream.missing.unwrap_or(u64::MAX);
        let wanted = usize::try_from(missing).unwrap_or(usize::MAX).min(bytes.len());
        stream.missing = stream.missing.map(|missing| missing - wanted as u64);
        let tight = stream.receive.is_tight() || self.receive.is_tight();
        if wanted > 0 {
            on(key, Event::Data { bytes: &bytes[..wanted], tight });
        }
        if wanted < bytes.len() {
            let cut = Cut::Malformed("the body is longer than announced");
            self.cut(key, Some(Code::PROTOCOL_ERROR), cut, on);
        }
    }

    fn rst_stream(
        &mut self,
        head: Head,
        payload: &[u8],
        on: &mut impl FnMut(Key, Event<'_>),
    ) -> Result<(), Violation> {
        if payload.len() != 4 {
            return Err(wrong_length());
        }
        if let Found::Open(key) = self.find(head)? {
            self.cut(key, None, Cut::Reset(Code(frame::number(payload))), on);
        }
        Ok(())
    }

    fn settings(
        &mut self,
        head: Head,
        payload: &[u8],
        on: &mut impl FnMut(Key, Event<'_>),
    ) -> Result<(), Violation> {
        if head.stream != 0 {
            return Err(Violation::protocol("settings of a stream"));
        }
        if head.has(frame::ACK) {
            return if payload.is_empty() { Ok(()) } else { Err(wrong_length()) };
        }
        if !payload.len().is_multiple_of(6) {
            return Err(wrong_length());
        }
        self.greeted = true;
        for setting in payload.chunks_exact(6) {
            let identifier = u16::from_be_bytes([setting[0], setting[1]]);
            match self.peer.set(identifier, frame::number(&setting[2..]))? {
                Some(Change::Table(size)) => self.encoder.limit(size),
                Some(Change::Windows(by)) => self.change_windows(by, on)?,
                None => {}
            }
        }
        self.output.answer(frame::settings_ack)
    }

    fn change_windows(
        &mut self,
        by: i64,
        on: &mut impl FnMut(Key, Event<'_>),
    ) -> Result<(), Violation> {
        for (key, stream) in self.streams.iter_mut().filter(|(_, stream)| !stream.sent) {
            stream.send.change(by).map_err(overflow)?;
            on(key, Event::Room);
        }
        Ok(())
    }

    fn ping(&mut self, head: Head, payload: &[u8]) -> Result<(), Violation> {
        if head.stream != 0 {
            return Err(Violation::protocol("a ping of a stream"));
        }
        if payload.len() != 8 {
            return Err(wrong_length());
        }
        if head.has(frame::ACK) {
            return Ok(());
        }
        self.output.answer(|out| frame::ping_ack(payload, out))
    }

    fn go_away(
        &mut self,
        head: Head,
        payload: &[u8],
        on: &mut impl FnMut(Key, Event<'_>),
    ) -> Result<(), Violation> {
        if head.stream != 0 {
            return Err(Violation::protocol("a farewell of a stream"));
        }
        let (Some(_), Some(code)) = (payload.get(..4), payload.get(4..8)) else {
            return Err(wrong_length());
        };
        let (last, code) = (frame::number(payload) & 0x7fff_ffff, Code(frame::number(code)));
        self.leaving = Some(code);
        let keys: Vec<_> = self.streams.iter_mut().map(|(key, stream)| (key, stream.id)).collect();
        for (key, _) in keys.into_iter().filter(|(_, id)| *id > last) {
            self.cut(key, None, Cut::GoAway(code), on);
        }
        Ok(())
    }

    fn window_update(
        &mut self,
        head: Head,
        payload: &[u8],
        on: &mut impl FnMut(Key, Event<'_>),
    ) -> Result<(), Violation> {
        if payload.len() != 4 {
            return Err(wrong_length());
        }
        let by = i64::from(frame::number(payload) & 0x7fff_ffff);
        if head.stream != 0 {
            return self.widen_stream(head, by, on);
        }
        if by == 0 {
            return Err(Violation::protocol("a window is widened by nothing"));
        }
        self.send.change(by).map_err(overflow)?;
        for (key, _) in self.streams.iter_mut().filter(|(_, stream)| !stream.sent) {
            on(key, Event::Room);
        }
        Ok(())
    }

    fn widen_stream(
        &mut self,
        head: Head,
        by: i64,
        on: &mut impl FnMut(Key, Event<'_>),
    ) -> Result<(), Violation> {
        let Found::Open(key) = self.find(head)? else { return Ok(()) };
        let Some(stream) = self.streams.get(key) else { return Ok(()) };
        if by == 0 {
            let cut = Cut::Malformed("a window is widened by nothing");
            self.cut(key, Some(Code::PROTOCOL_ERROR), cut, on);
        } else if stream.send.change(by).is_err() {
            let cut = Cut::Malformed("a window is made larger than it may be");
            self.cut(key, Some(Code::FLOW_CONTROL_ERROR), cut, on);
        } else if !stream.sent {
            on(key, Event::Room);
        }
        Ok(())
    }
}

/// A frame that may not come any more (section 5.1).
pub(super) const fn closed() -> Violation {
    Violation::new(Code::STREAM_CLOSED, "a frame of a stream that is over")
}
