//! Handling of each frame (RFC 9113, section 6).

use super::{Event, SessionState};
use crate::http2::frame::{self, FrameHeader};
use crate::http2::session::SettingChange;
use crate::http2::stream_table::{Lookup, ResponsePhase, StreamKey};
use crate::http2::{ConnectionError, ErrorCode, Overflow, Overrun, StreamError};

const fn wrong_length() -> ConnectionError {
    ConnectionError::new(ErrorCode::FRAME_SIZE_ERROR, "a frame has the wrong length for its kind")
}

const fn overrun(_: Overrun) -> ConnectionError {
    ConnectionError::new(ErrorCode::FLOW_CONTROL_ERROR, "it sent more than our window allows")
}

const fn overflow(_: Overflow) -> ConnectionError {
    ConnectionError::new(ErrorCode::FLOW_CONTROL_ERROR, "a window becomes larger than allowed")
}

impl SessionState {
    /// Handles a frame other than `DATA`.
    pub(super) fn frame(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        on_event: &mut impl FnMut(StreamKey, Event<'_>),
    ) -> Result<(), ConnectionError> {
        self.check_order(header)?;
        match header.kind {
            frame::HEADERS => self.headers(header, payload, on_event),
            frame::CONTINUATION => self.continuation(header, payload, on_event),
            frame::RST_STREAM => self.rst_stream(header, payload, on_event),
            frame::SETTINGS => self.settings(header, payload, on_event),
            frame::PING => self.ping(header, payload),
            frame::GOAWAY => self.go_away(header, payload, on_event),
            frame::WINDOW_UPDATE => self.window_update(header, payload, on_event),
            frame::PUSH_PROMISE => Err(ConnectionError::protocol("a push, which we do not allow")),
            frame::PRIORITY if header.stream == 0 => {
                Err(ConnectionError::protocol("PRIORITY without a stream"))
            }
            frame::PRIORITY if payload.len() != 5 => Err(wrong_length()),
            // Priorities are advisory and other kinds are extensions. Both are ignored.
            _ => Ok(()),
        }
    }

    /// Settings must come first, and no other frame may come between the parts of a header block.
    fn check_order(&self, header: FrameHeader) -> Result<(), ConnectionError> {
        let is_settings = header.kind == frame::SETTINGS && !header.has(frame::ACK);
        if !self.settings_received && !is_settings {
            return Err(ConnectionError::protocol("its first frame is not SETTINGS"));
        }
        if self.partial_block.is_some() != (header.kind == frame::CONTINUATION) {
            return Err(ConnectionError::protocol("another frame interrupts a header block"));
        }
        Ok(())
    }

    /// Looks up the stream of a frame. We must have opened it (section 5.1.1).
    pub(super) fn find(&self, header: FrameHeader) -> Result<Lookup, ConnectionError> {
        if header.stream.is_multiple_of(2) || header.stream >= self.next_id {
            return Err(ConnectionError::protocol("a frame of a stream that was never opened"));
        }
        Ok(self.streams.find(header.stream))
    }

    /// Handles the start of a `DATA` frame.
    pub(super) fn begin_data(
        &mut self,
        header: FrameHeader,
        padding: usize,
        on_event: &mut impl FnMut(StreamKey, Event<'_>),
    ) -> Result<(), ConnectionError> {
        self.check_order(header)?;
        let lookup = self.find(header)?;
        self.receive.receive(header.length).map_err(overrun)?;
        let update = self.receive.consume(padding);
        self.output.window_update(0, update);
        self.receiving = match lookup {
            Lookup::Open(key) => Some(key),
            Lookup::Reset => None,
            Lookup::Closed => return Err(stream_closed()),
        };
        let Some(key) = self.receiving else { return Ok(()) };
        let Some(stream) = self.streams.get(key) else { return Ok(()) };
        match stream.response {
            ResponsePhase::Body => {}
            ResponsePhase::Done => return Err(stream_closed()),
            ResponsePhase::AwaitingHead => {
                let error = StreamError::Malformed("data before a head");
                self.fail_stream(key, Some(ErrorCode::PROTOCOL_ERROR), error, on_event);
                return Ok(());
            }
        }
        stream.receive.receive(header.length).map_err(overrun)?;
        self.output.window_update(header.stream, stream.receive.consume(padding));
        Ok(())
    }

    /// Handles bytes of a `DATA` frame.
    pub(super) fn data(&mut self, bytes: &[u8], on_event: &mut impl FnMut(StreamKey, Event<'_>)) {
        let key = self.receiving;
        let Some((key, stream)) = key.and_then(|key| Some((key, self.streams.get(key)?))) else {
            // No exchange reads it, so it counts as consumed.
            let update = self.receive.consume(bytes.len());
            return self.output.window_update(0, update);
        };
        stream.unread += bytes.len();
        let missing = stream.body_bytes_left.unwrap_or(u64::MAX);
        let wanted = usize::try_from(missing).unwrap_or(usize::MAX).min(bytes.len());
        stream.body_bytes_left = stream.body_bytes_left.map(|missing| missing - wanted as u64);
        let window_low = stream.receive.is_low() || self.receive.is_low();
        if wanted > 0 {
            on_event(key, Event::Data { bytes: &bytes[..wanted], window_low });
        }
        if wanted < bytes.len() {
            let error = StreamError::Malformed("the body is longer than announced");
            self.fail_stream(key, Some(ErrorCode::PROTOCOL_ERROR), error, on_event);
        }
    }

    fn rst_stream(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        on_event: &mut impl FnMut(StreamKey, Event<'_>),
    ) -> Result<(), ConnectionError> {
        if payload.len() != 4 {
            return Err(wrong_length());
        }
        if let Lookup::Open(key) = self.find(header)? {
            self.fail_stream(
                key,
                None,
                StreamError::Reset(ErrorCode(frame::number(payload))),
                on_event,
            );
        }
        Ok(())
    }

    fn settings(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        on_event: &mut impl FnMut(StreamKey, Event<'_>),
    ) -> Result<(), ConnectionError> {
        if header.stream != 0 {
            return Err(ConnectionError::protocol("SETTINGS for a stream"));
        }
        if header.has(frame::ACK) {
            return if payload.is_empty() { Ok(()) } else { Err(wrong_length()) };
        }
        if !payload.len().is_multiple_of(6) {
            return Err(wrong_length());
        }
        self.settings_received = true;
        for setting in payload.chunks_exact(6) {
            let identifier = u16::from_be_bytes([setting[0], setting[1]]);
            match self.peer.apply(identifier, frame::number(&setting[2..]))? {
                Some(SettingChange::MaxTableSize(size)) => self.encoder.set_max_table_size(size),
                Some(SettingChange::StreamWindows(by)) => self.change_windows(by, on_event)?,
                None => {}
            }
        }
        self.output.acknowledge(frame::settings_ack)
    }

    fn change_windows(
        &mut self,
        by: i64,
        on_event: &mut impl FnMut(StreamKey, Event<'_>),
    ) -> Result<(), ConnectionError> {
        for (key, stream) in self.streams.iter_mut().filter(|(_, stream)| !stream.sent) {
            stream.send.change(by).map_err(overflow)?;
            on_event(key, Event::WindowOpen);
        }
        Ok(())
    }

    fn ping(&mut self, header: FrameHeader, payload: &[u8]) -> Result<(), ConnectionError> {
        if header.stream != 0 {
            return Err(ConnectionError::protocol("a PING for a stream"));
        }
        if payload.len() != 8 {
            return Err(wrong_length());
        }
        if header.has(frame::ACK) {
            return Ok(());
        }
        self.output.acknowledge(|out| frame::ping_ack(payload, out))
    }

    fn go_away(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        on_event: &mut impl FnMut(StreamKey, Event<'_>),
    ) -> Result<(), ConnectionError> {
        if header.stream != 0 {
            return Err(ConnectionError::protocol("a GOAWAY for a stream"));
        }
        let (Some(_), Some(code)) = (payload.get(..4), payload.get(4..8)) else {
            return Err(wrong_length());
        };
        let (last, code) = (frame::number(payload) & 0x7fff_ffff, ErrorCode(frame::number(code)));
        self.goaway = Some(code);
        let keys: Vec<_> = self.streams.iter_mut().map(|(key, stream)| (key, stream.id)).collect();
        for (key, _) in keys.into_iter().filter(|(_, id)| *id > last) {
            self.fail_stream(key, None, StreamError::GoAway(code), on_event);
        }
        Ok(())
    }

    fn window_update(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        on_event: &mut impl FnMut(StreamKey, Event<'_>),
    ) -> Result<(), ConnectionError> {
        if payload.len() != 4 {
            return Err(wrong_length());
        }
        let by = i64::from(frame::number(payload) & 0x7fff_ffff);
        if header.stream != 0 {
            return self.open_stream_window(header, by, on_event);
        }
        if by == 0 {
            return Err(ConnectionError::protocol("a window update of zero"));
        }
        self.send.change(by).map_err(overflow)?;
        for (key, _) in self.streams.iter_mut().filter(|(_, stream)| !stream.sent) {
            on_event(key, Event::WindowOpen);
        }
        Ok(())
    }

    fn open_stream_window(
        &mut self,
        header: FrameHeader,
        by: i64,
        on_event: &mut impl FnMut(StreamKey, Event<'_>),
    ) -> Result<(), ConnectionError> {
        let Lookup::Open(key) = self.find(header)? else { return Ok(()) };
        let Some(stream) = self.streams.get(key) else { return Ok(()) };
        if by == 0 {
            let error = StreamError::Malformed("a window update of zero");
            self.fail_stream(key, Some(ErrorCode::PROTOCOL_ERROR), error, on_event);
        } else if stream.send.change(by).is_err() {
            let error = StreamError::Malformed("a window becomes larger than allowed");
            self.fail_stream(key, Some(ErrorCode::FLOW_CONTROL_ERROR), error, on_event);
        } else if !stream.sent {
            on_event(key, Event::WindowOpen);
        }
        Ok(())
    }
}

/// The error for a frame of a closed stream (section 5.1).
pub(super) const fn stream_closed() -> ConnectionError {
    ConnectionError::new(ErrorCode::STREAM_CLOSED, "a frame of a closed stream")
}
