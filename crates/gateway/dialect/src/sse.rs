//! Server-sent events: where they end, and what they carry.
//!
//! An event ends with an empty line; lines end with LF or CR LF. (A lone CR, which the standard also
//! allows, is not a line end here: no provider sends it.)

use std::borrow::Cow;

use memchr::{memchr, memchr_iter};

use crate::error::DialectError;

/// The longest event that is looked at, in bytes. A tool call's arguments in one event stay far below.
pub const MAX_EVENT_BYTES: usize = 4 << 20;

/// Cuts a stream into events, however its bytes arrive. An event inside one chunk is not copied.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    /// The start of an event whose end has not come.
    carry: Vec<u8>,
    line: Line,
}

/// What the current line consists of so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Line {
    #[default]
    Empty,
    Return,
    Text,
}

impl Splitter {
    /// Calls `on_event` with every event that is complete now, its empty line included.
    ///
    /// # Errors
    /// Those of `on_event`, and [`DialectError::EventTooLong`].
    pub(crate) fn feed(
        &mut self,
        chunk: &[u8],
        mut on_event: impl FnMut(&[u8]) -> Result<(), DialectError>,
    ) -> Result<(), DialectError> {
        let mut rest = chunk;
        while let Some(end) = self.end_in(rest) {
            let (event, after) = rest.split_at(end);
            rest = after;
            if self.carry.is_empty() {
                on_event(event)?;
            } else {
                self.carry.extend_from_slice(event);
                on_event(&self.carry)?;
                self.carry.clear();
            }
        }
        self.carry.extend_from_slice(rest);
        if self.carry.len() > MAX_EVENT_BYTES {
            return Err(DialectError::EventTooLong { most: MAX_EVENT_BYTES });
        }
        Ok(())
    }

    /// Bytes of an event that has not ended.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.carry
    }

    /// Where in `bytes` the current event ends, if it does.
    fn end_in(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut from = 0;
        while let Some(length) = memchr(b'\n', &bytes[from..]) {
            let blank = self.line.with(&bytes[from..from + length]) != Line::Text;
            self.line = Line::Empty;
            from += length + 1;
            if blank {
                return Some(from);
            }
        }
        self.line = self.line.with(&bytes[from..]);
        None
    }
}

impl Line {
    fn with(self, more: &[u8]) -> Self {
        match (self, more) {
            (line, []) => line,
            (Self::Empty, [b'\r']) => Self::Return,
            _ => Self::Text,
        }
    }
}

/// What an event carries.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Event<'a> {
    /// The text of `data`; several such lines are joined by LF.
    pub(crate) data: Cow<'a, [u8]>,
    /// Is there nothing but comments in it?
    pub(crate) comment: bool,
}

impl<'a> Event<'a> {
    /// Reads one event; None where there is neither data nor a comment.
    pub(crate) fn read(event: &'a [u8]) -> Option<Self> {
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

/// The value of a line's field, if it is the field of that name.
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
        let mut splitter = Splitter::default();
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
    fn events_end_at_empty_lines_of_either_kind() {
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
    fn data_comments_and_neither() {
        let data = |event| Event::read(event).map(|event| (event.data.into_owned(), event.comment));
        assert_eq!(data(b"event: m\ndata: {}\n\n"), Some((b"{}".to_vec(), false)));
        assert_eq!(data(b"data:x\ndata: y\n\n"), Some((b"x\ny".to_vec(), false)));
        assert_eq!(data(b": ping\n\n"), Some((Vec::new(), true)));
        assert_eq!(data(b"id: 7\n\n"), None);
        assert_eq!(data(b"database: 7\n\n"), None);
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut splitter = Splitter::default();
        let result = splitter.feed(&vec![b'x'; MAX_EVENT_BYTES + 1], |_| Ok(()));
        assert_eq!(result, Err(DialectError::EventTooLong { most: MAX_EVENT_BYTES }));
    }
}
