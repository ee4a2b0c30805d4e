//! Field sections: put together, decoded, and judged (RFC 9113, sections 4.3, 6.2, 6.10 and 8.1).

use super::frames::closed;
use super::{Core, Cut, Event};
use crate::http2::error::{Code, Violation};
use crate::http2::frame;
use crate::http2::head::Fault;
use crate::http2::hpack::Broken;
use crate::http2::streams::{Found, Key, Response};

/// Largest compressed field section that is put together.
const MAX_BLOCK: usize = 128 * 1024;
/// Most frames that one may be split into.
const MAX_FRAMES: usize = 64;

/// A field section whose end has not come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section {
    /// Its first frame.
    head: frame::Head,
    frames: usize,
}

impl Core {
    pub(super) fn headers(
        &mut self,
        head: frame::Head,
        payload: &[u8],
        on: &mut impl FnMut(Key, Event<'_>),
    ) -> Result<(), Violation> {
        self.find(head)?;
        let payload = frame::without_padding(head, payload)
            .ok_or(Violation::protocol("padding is longer than its frame"))?;
        let skip = if head.has(frame::WITH_PRIORITY) { 5 } else { 0 };
        let short = Violation::new(Code::FRAME_SIZE_ERROR, "a priority is cut off");
        let block = payload.get(skip..).ok_or(short)?;
        if head.has(frame::END_HEADERS) {
            return self.decode(head, block, on);
        }
        self.section = Some(Section { head, frames: 1 });
        self.block.clear();
        self.block.extend_from_slice(block);
        Ok(())
    }

    pub(super) fn continuation(
        &mut self,
        head: frame::Head,
        payload: &[u8],
        on: &mut impl FnMut(Key, Event<'_>),
    ) -> Result<(), Violation> {
        let Some(section) = &mut self.section else { return Ok(()) };
        if head.stream != section.head.stream {
            return Err(Violation::protocol("a field section is torn apart"));
        }
        section.frames += 1;
        if section.frames > MAX_FRAMES || self.block.len() + payload.len() > MAX_BLOCK {
            return Err(Violation::new(Code::ENHANCE_YOUR_CALM, "a field section has no end"));
        }
        self.block.extend_from_slice(payload);
        if !head.has(frame::END_HEADERS) {
            return Ok(());
        }
        let first = section.head;
        self.section = None;
        let block = std::mem::take(&mut self.block);
        let result = self.decode(first, &block, on);
        self.block = block;
        result
    }

    /// Decodes a whole section. That is done for streams that nobody waits for as well: the tables must keep in step.
    fn decode(
        &mut self,
        head: frame::Head,
        block: &[u8],
        on: &mut impl FnMut(Key, Event<'_>),
    ) -> Result<(), Violation> {
        self.head.clear();
        let fields = &mut self.head;
        self.decoder
            .decode(block, &mut |field| fields.push(field))
            .map_err(|Broken(detail)| Violation::new(Code::COMPRESSION_ERROR, detail))?;
        match self.find(head)? {
            Found::Open(key) => self.respond(key, head.has(frame::END_STREAM), on),
            Found::Reset => Ok(()),
            Found::Closed => Err(closed()),
        }
    }

    /// Judges the fields by where the response is.
    fn respond(
        &mut self,
        key: Key,
        end: bool,
        on: &mut impl FnMut(Key, Event<'_>),
    ) -> Result<(), Violation> {
        let Some(stream) = self.streams.get(key) else { return Ok(()) };
        let (response, to_head) = (stream.response, stream.to_head);
        let fault = match response {
            Response::Over => return Err(closed()),
            _ if self.head.fault() == Some(Fault::TooLarge) => Some(Cut::HeadTooLarge),
            Response::Awaited => self.fault_of_head(end),
            Response::Body => self.fault_of_trailers(end),
        };
        if let Some(cut) = fault {
            let code = match cut {
                Cut::HeadTooLarge => Code::CANCEL,
                _ => Code::PROTOCOL_ERROR,
            };
            self.cut(key, Some(code), cut, on);
            return Ok(());
        }
        let status = self.head.status();
        if response == Response::Awaited {
            if status < 200 {
                return Ok(());
            }
            let is_empty = to_head || matches!(status, 204 | 304);
            let length = if is_empty { Some(0) } else { self.head.length() };
            if let Some(stream) = self.streams.get(key) {
                (stream.response, stream.missing) = (Response::Body, length);
            }
            on(key, Event::Head(&mut self.head));
        }
        if end {
            self.end_response(key, on);
        }
        Ok(())
    }

    fn fault_of_head(&self, end: bool) -> Option<Cut> {
        match (self.head.fault(), self.head.status()) {
            (Some(Fault::Malformed(detail)), _) => Some(Cut::Malformed(detail)),
            (_, 0) => Some(Cut::Malformed("a head without `:status`")),
            (_, 101) => Some(Cut::Malformed("101, which HTTP/2 does not have")),
            (_, 100..=199) if end => Some(Cut::Malformed("an interim head ends the stream")),
            _ => None,
        }
    }

    fn fault_of_trailers(&self, end: bool) -> Option<Cut> {
        match self.head.fault() {
            Some(Fault::Malformed(detail)) => Some(Cut::Malformed(detail)),
            _ if self.head.status() != 0 => Some(Cut::Malformed("a second head")),
            _ if !end => Some(Cut::Malformed("trailers that do not end the stream")),
            _ => None,
        }
    }
}
