//! Splits a stream into server-sent events and reads their data.
//!
//! An event ends with an empty line; lines end with LF or CR LF. The standard also allows a lone
//! CR, but no provider sends it, so it is not a line end here.
//!
//! Why not `eventsource-stream` or `sse-stream`: both decode an async stream into owned strings and
//! drop the original bytes; `eventsource-stream` also drops comments and does not limit events. The
//! gateway must pass an unchanged event byte for byte, patch only the JSON string that changed, and
//! copy nothing for an event within one chunk.

use std::borrow::Cow;
use std::mem;

use memchr::{memchr, memchr_iter};
use serde::de::IgnoredAny;

use crate::error::DialectError;

/// The maximum size of an event in bytes. Even tool call arguments in one event stay far below it.
pub const MAX_EVENT_BYTES: usize = 4 << 20;

/// Memory that is kept for the next event.
const KEPT: usize = 16 << 10;

/// Splits a stream into events, regardless of chunk boundaries. An event within one chunk is not
/// copied.
#[derive(Debug, Default)]
pub struct EventSplitter {
    /// The start of an incomplete event.
    carry: Vec<u8>,
    line: LineState,
    /// The maximum size of an event, instead of [`MAX_EVENT_BYTES`].
    limit: Option<usize>,
}

/// The content of the current line so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LineState {
    #[default]
    Empty,
    CarriageReturn,
    Text,
}

impl EventSplitter {
    /// A splitter with another maximum size of an event.
    pub fn with_limit(limit: usize) -> Self {
        Self { limit: Some(limit), ..Self::default() }
    }

    /// Calls `on_event` with every complete event, including its empty line.
    ///
    /// # Errors
    /// Those of `on_event`, and [`DialectError::InvalidResponse`] for an event that is too long.
    pub fn feed(
        &mut self,
        chunk: &[u8],
        mut on_event: impl FnMut(&[u8]) -> Result<(), DialectError>,
    ) -> Result<(), DialectError> {
        let mut rest = chunk;
        while let Some(end) = self.find_end(rest) {
            let (event, after) = rest.split_at(end);
            rest = after;
            if self.carry.is_empty() {
                on_event(event)?;
            } else {
                self.carry.extend_from_slice(event);
                on_event(&self.carry)?;
                self.carry.clear();
                self.carry.shrink_to(KEPT);
            }
        }
        self.carry.extend_from_slice(rest);
        let limit = self.limit.unwrap_or(MAX_EVENT_BYTES);
        if self.carry.len() > limit {
            let problem = format!("an event is longer than {limit} bytes");
            return Err(DialectError::InvalidResponse(problem));
        }
        Ok(())
    }

    /// Ends the stream. A last event whose data is complete may lack its empty line and its line
    /// end, which it gets.
    ///
    /// # Errors
    /// Those of `on_event`, and [`DialectError::Truncated`] for a stream that ends within an event.
    pub fn finish(
        &mut self,
        on_event: impl FnOnce(&[u8]) -> Result<(), DialectError>,
    ) -> Result<(), DialectError> {
        let mut event = mem::take(&mut self.carry);
        self.line = LineState::Empty;
        if event.trim_ascii().is_empty() {
            return Ok(());
        }
        let lacking: &[u8] = if event.ends_with(b"\n") { b"\n" } else { b"\n\n" };
        event.extend_from_slice(lacking);
        let data = event_data(&event).unwrap_or_default();
        let is_complete =
            data.trim_ascii() == b"[DONE]" || serde_json::from_slice::<IgnoredAny>(&data).is_ok();
        if is_complete { on_event(&event) } else { Err(DialectError::Truncated) }
    }

    /// The bytes of the incomplete event.
    pub fn incomplete(&self) -> &[u8] {
        &self.carry
    }

    /// The position in `bytes` after the end of the current event, if it ends there.
    fn find_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut from = 0;
        while let Some(length) = memchr(b'\n', &bytes[from..]) {
            let blank = self.line.with(&bytes[from..from + length]) != LineState::Text;
            self.line = LineState::Empty;
            from += length + 1;
            if blank {
                return Some(from);
            }
        }
        self.line = self.line.with(&bytes[from..]);
        None
    }
}

impl LineState {
    fn with(self, more: &[u8]) -> Self {
        match (self, more) {
            (line, []) => line,
            (Self::Empty, [b'\r']) => Self::CarriageReturn,
            _ => Self::Text,
        }
    }
}

/// The content of an event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SseEvent<'a> {
    /// The value of `data`; several `data` lines are joined by LF.
    pub(crate) data: Cow<'a, [u8]>,
    /// Whether the event has comments but no data.
    pub(crate) comment: bool,
}

impl<'a> SseEvent<'a> {
    /// Parses one event; None if it has neither data nor a comment.
    pub(crate) fn parse(event: &'a [u8]) -> Option<Self> {
        let mut data: Option<Cow<'a, [u8]>> = None;
        let mut comment = false;
        for line in lines(event) {
            if let Some(more) = field(line, b"data") {
                match &mut data {
                    None => data = Some(Cow::Borrowed(more)),
                    Some(data) => data.to_mut().extend([b"\n", more].concat()),
                }
            }
            comment |= line.first() == Some(&b':');
        }
        match data {
            Some(data) => Some(Self { data, comment: false }),
            None => comment.then_some(Self { data: Cow::Borrowed(b""), comment }),
        }
    }
}

/// The data of one whole event, such as [`EventSplitter::feed`] gives; several lines of data are
/// joined by LF. `None` if it has none.
pub fn event_data(event: &[u8]) -> Option<Cow<'_, [u8]>> {
    SseEvent::parse(event).map(|event| event.data).filter(|data| !data.is_empty())
}

/// The value of a line, if it has the given field name.
fn field<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let value = line.strip_prefix(name)?;
    match value {
        [] => Some(value),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}

fn lines(event: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut from = 0;
    memchr_iter(b'\n', event).map(move |end| {
        let line = &event[from..end];
        from = end + 1;
        line.strip_suffix(b"\r").unwrap_or(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(chunks: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut splitter = EventSplitter::default();
        let mut events = Vec::new();
        for chunk in chunks {
            splitter
                .feed(chunk, |event| {
                    events.push(event.to_vec());
                    Ok(())
                })
                .unwrap();
        }
        events
    }

    #[test]
    fn events_end_at_an_empty_line_with_lf_or_crlf() {
        let events = split(&[b"data: a\n\ndata: b\r\n\r\nevent: x\ndata: c\n\nrest"]);
        let expected: [&[u8]; 3] = [b"data: a\n\n", b"data: b\r\n\r\n", b"event: x\ndata: c\n\n"];
        assert_eq!(events, expected);
    }

    #[test]
    fn one_byte_at_a_time_gives_the_same_events() {
        let stream = b"data: a\r\n\r\n: ping\n\ndata: b\ndata: c\n\n\n";
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(split(&bytes), split(&[stream]));
        assert_eq!(split(&bytes).len(), 4);
    }

    #[test]
    fn data_and_comments_are_read() {
        let data =
            |event| SseEvent::parse(event).map(|event| (event.data.into_owned(), event.comment));
        assert_eq!(data(b"event: m\ndata: {}\n\n"), Some((b"{}".to_vec(), false)));
        assert_eq!(data(b"data:x\ndata: y\n\n"), Some((b"x\ny".to_vec(), false)));
        assert_eq!(data(b": ping\n\n"), Some((Vec::new(), true)));
        assert_eq!(data(b"id: 7\n\n"), None);
        assert_eq!(data(b"database: 7\n\n"), None);
        let expected: [(&[u8], Option<&[u8]>); 4] = [
            (b"event: m\ndata: {\ndata:}\r\n\r\n", Some(b"{\n}")),
            (b"data\n\n", None),
            (b": ping\n\n", None),
            (b"id: 7\n\n", None),
        ];
        for (event, expected) in expected {
            assert_eq!(event_data(event).as_deref(), expected);
        }
    }

    /// The last event of a stream, given in chunks, when it ends.
    fn ended(stream: &str, size: usize) -> Result<Option<String>, DialectError> {
        let (mut splitter, mut last) = (EventSplitter::default(), None);
        for chunk in stream.as_bytes().chunks(size) {
            splitter.feed(chunk, |_| Ok(()))?;
        }
        splitter.finish(|event| {
            last = Some(String::from_utf8_lossy(event).into_owned());
            Ok(())
        })?;
        Ok(last)
    }

    #[test]
    fn a_last_event_without_its_empty_line_is_completed() {
        for (stream, last) in [
            ("data: a\n\ndata: {}", Ok(Some("data: {}\n\n"))),
            ("data: a\n\ndata: [DONE]\n", Ok(Some("data: [DONE]\n\n"))),
            ("event: x\r\ndata: {}\r\n", Ok(Some("event: x\r\ndata: {}\r\n\n"))),
            ("data: a\n\n", Ok(None)),
            ("data: a\n\n \r", Ok(None)),
            ("", Ok(None)),
            ("data: {\"a\":1", Err(DialectError::Truncated)),
            ("data: [DON", Err(DialectError::Truncated)),
            ("event: message_stop\nda", Err(DialectError::Truncated)),
        ] {
            for size in [1, 3, 100] {
                let found = ended(stream, size);
                let found = found.as_ref().map(Option::as_deref);
                assert_eq!(found, last.as_ref().copied(), "{stream:?} in chunks of {size}");
            }
        }
    }

    #[test]
    fn an_event_that_exceeds_the_limit_is_rejected() {
        let mut splitter = EventSplitter::default();
        let result = splitter.feed(&vec![b'x'; MAX_EVENT_BYTES + 1], |_| Ok(()));
        assert!(result.unwrap_err().to_string().contains("longer than 4194304 bytes"));
    }
}
