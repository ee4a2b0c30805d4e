//! Receives header blocks: joins their frames, decodes and checks them (RFC 9113, sections 4.3,
//! 6.2, 6.10 and 8.1).

use super::frame_handlers::stream_closed;
use super::{Event, SessionState};
use crate::http2::hpack::HpackError;
use crate::http2::stream_table::{Lookup, ResponsePhase, StreamKey};
use crate::http2::{ConnectionError, ErrorCode, HeadError, StreamError, frame};

/// Largest header block that is joined from several frames, compressed.
const MAX_BLOCK: usize = 128 * 1024;
/// Maximum number of frames of a header block.
const MAX_FRAMES: usize = 64;

/// A header block whose end has not arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartialBlock {
    /// The header of its first frame.
    first: frame::FrameHeader,
    frames: usize,
}

impl SessionState {
    pub(super) fn headers(
        &mut self,
        header: frame::FrameHeader,
        payload: &[u8],
        on_event: &mut impl FnMut(StreamKey, Event<'_>),
    ) -> Result<(), ConnectionError> {
        self.find(header)?;
        let payload = frame::without_padding(header, payload)
            .ok_or(ConnectionError::protocol("padding is longer than its frame"))?;
        let skip = if header.has(frame::WITH_PRIORITY) { 5 } else { 0 };
        let short = ConnectionError::new(ErrorCode::FRAME_SIZE_ERROR, "a priority is truncated");
        let block = payload.get(skip..).ok_or(short)?;
        if header.has(frame::END_HEADERS) {
            return self.decode(header, block, on_event);
        }
        self.partial_block = Some(PartialBlock { first: header, frames: 1 });
        self.block.clear();
        self.block.extend_from_slice(block);
        Ok(())
    }

    pub(super) fn continuation(
        &mut self,
        header: frame::FrameHeader,
        payload: &[u8],
        on_event: &mut impl FnMut(StreamKey, Event<'_>),
    ) -> Result<(), ConnectionError> {
        let Some(partial) = &mut self.partial_block else { return Ok(()) };
        if header.stream != partial.first.stream {
            return Err(ConnectionError::protocol("another frame interrupts a header block"));
        }
        partial.frames += 1;
        if partial.frames > MAX_FRAMES || self.block.len() + payload.len() > MAX_BLOCK {
            return Err(ConnectionError::new(
                ErrorCode::ENHANCE_YOUR_CALM,
                "a header block is too long",
            ));
        }
        self.block.extend_from_slice(payload);
        if !header.has(frame::END_HEADERS) {
            return Ok(());
        }
        let first = partial.first;
        self.partial_block = None;
        let block = std::mem::take(&mut self.block);
        let result = self.decode(first, &block, on_event);
        self.block = block;
        result
    }

    /// Decodes a whole block, even for streams that were reset, because otherwise the decoder's
    /// dynamic table would no longer match the target's.
    fn decode(
        &mut self,
        header: frame::FrameHeader,
        block: &[u8],
        on_event: &mut impl FnMut(StreamKey, Event<'_>),
    ) -> Result<(), ConnectionError> {
        self.head.clear();
        let fields = &mut self.head;
        self.decoder.decode(block, &mut |field| fields.push(field)).map_err(
            |HpackError(detail)| ConnectionError::new(ErrorCode::COMPRESSION_ERROR, detail),
        )?;
        match self.find(header)? {
            Lookup::Open(key) => self.receive_fields(key, header.has(frame::END_STREAM), on_event),
            Lookup::Reset => Ok(()),
            Lookup::Closed => Err(stream_closed()),
        }
    }

    /// Handles the decoded fields as the response's head or its trailers.
    fn receive_fields(
        &mut self,
        key: StreamKey,
        end: bool,
        on_event: &mut impl FnMut(StreamKey, Event<'_>),
    ) -> Result<(), ConnectionError> {
        let Some(stream) = self.streams.get(key) else { return Ok(()) };
        let (response, is_head_request) = (stream.response, stream.is_head_request);
        let error = match response {
            ResponsePhase::Done => return Err(stream_closed()),
            _ if self.head.error() == Some(HeadError::TooLarge) => Some(StreamError::HeadTooLarge),
            ResponsePhase::AwaitingHead => self.head_error(end),
            ResponsePhase::Body => self.trailers_error(end),
        };
        if let Some(error) = error {
            let code = match error {
                StreamError::HeadTooLarge => ErrorCode::CANCEL,
                _ => ErrorCode::PROTOCOL_ERROR,
            };
            self.fail_stream(key, Some(code), error, on_event);
            return Ok(());
        }
        let status = self.head.status();
        if response == ResponsePhase::AwaitingHead {
            if status < 200 {
                return Ok(());
            }
            let is_empty = is_head_request || matches!(status, 204 | 304);
            let length = if is_empty { Some(0) } else { self.head.length() };
            if let Some(stream) = self.streams.get(key) {
                (stream.response, stream.body_bytes_left) = (ResponsePhase::Body, length);
            }
            on_event(key, Event::Head(&mut self.head));
        }
        if end {
            self.end_response(key, on_event);
        }
        Ok(())
    }

    fn head_error(&self, end: bool) -> Option<StreamError> {
        match (self.head.error(), self.head.status()) {
            (Some(HeadError::Malformed(detail)), _) => Some(StreamError::Malformed(detail)),
            (_, 0) => Some(StreamError::Malformed("a head without `:status`")),
            (_, 101) => Some(StreamError::Malformed("101, which HTTP/2 does not have")),
            (_, 100..=199) if end => {
                Some(StreamError::Malformed("an interim head ends the stream"))
            }
            _ => None,
        }
    }

    fn trailers_error(&self, end: bool) -> Option<StreamError> {
        match self.head.error() {
            Some(HeadError::Malformed(detail)) => Some(StreamError::Malformed(detail)),
            _ if self.head.status() != 0 => Some(StreamError::Malformed("a second head")),
            _ if !end => Some(StreamError::Malformed("trailers that do not end the stream")),
            _ => None,
        }
    }
}
