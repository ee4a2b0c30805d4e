//! Server-sent events, read as they come in.
//!
//! The grammar is that of the WHATWG HTML standard ("Interpreting an event stream", section 9.2.6):
//! lines end in LF, CRLF or CR; the data lines of an event are joined by LF; comments and the
//! fields `id` and `retry` are skipped; an event without the blank line at its end is dropped. Unlike
//! a browser, which replaces invalid UTF-8, we refuse it: a target that sends it is at fault.

use std::mem;

use memchr::memchr2;
use plimsoll_measure::ErrorClass;

/// Capacity that is kept between streams; what one huge event needed beyond it is given back.
const KEPT: usize = 64 * 1024;

const BYTE_ORDER_MARK: char = '\u{feff}';

/// One event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The `event` field; empty where there is none.
    pub name: &'a str,
    /// The data lines, joined by `\n`.
    pub data: &'a str,
}

/// An incremental parser: any split of the bytes gives the same events.
///
/// An event whose data line lies within one read is not copied. What is kept between reads is at
/// most an unfinished line, the name, and the data of the unfinished event, each within the limit.
#[derive(Debug)]
pub struct Parser {
    max: usize,
    /// The line that the last read left unfinished.
    tail: Vec<u8>,
    /// Name of the unfinished event.
    name: String,
    /// Data of the unfinished event, if it has any.
    data: Option<String>,
    /// A buffer for the next event's data, so that it need not be allocated again.
    spare: String,
    /// The last read ended in CR: an LF at the start of the next one belongs to it.
    after_cr: bool,
    /// No line has been read yet: there may be a byte order mark.
    at_start: bool,
}

impl Parser {
    /// A parser for lines of at most `max` bytes and events with at most `max` bytes of data.
    pub const fn new(max: usize) -> Self {
        Self {
            max,
            tail: Vec::new(),
            name: String::new(),
            data: None,
            spare: String::new(),
            after_cr: false,
            at_start: true,
        }
    }

    /// Forgets everything about the present stream.
    pub fn reset(&mut self) {
        self.tail.clear();
        self.tail.shrink_to(KEPT);
        self.forget_event();
        self.spare.shrink_to(KEPT);
        self.name.shrink_to(KEPT);
        self.after_cr = false;
        self.at_start = true;
    }

    /// Reads on, and hands each event that is now complete to `emit`.
    ///
    /// # Errors
    /// [`ErrorClass::BodyTooLarge`] where a line or an event is longer than the limit, and
    /// [`ErrorClass::MalformedBody`] where a line is not UTF-8. Either ends the stream: the parser
    /// must be [reset](Self::reset).
    pub fn feed(
        &mut self,
        bytes: &[u8],
        mut emit: impl FnMut(Event<'_>),
    ) -> Result<(), ErrorClass> {
        let mut rest = self.after_split_line_end(bytes);
        let mut here = None;
        while let Some(end) = memchr2(b'\n', b'\r', rest) {
            let (line, ended) = rest.split_at(end);
            rest = self.after_line_end(ended);
            if self.tail.is_empty() {
                let line = self.text(line)?;
                self.line(line, &mut here, &mut emit)?;
            } else {
                self.spliced_line(line, &mut emit)?;
            }
        }
        self.keep_data(here)?;
        self.keep_tail(rest)
    }

    fn after_split_line_end<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let split = !bytes.is_empty() && mem::take(&mut self.after_cr);
        bytes.strip_prefix(b"\n").filter(|_| split).unwrap_or(bytes)
    }

    fn after_line_end<'b>(&mut self, ended: &'b [u8]) -> &'b [u8] {
        self.after_cr = ended == b"\r";
        ended.strip_prefix(b"\r\n").unwrap_or_else(|| &ended[1..])
    }

    /// The line as text, without the byte order mark of the first one.
    fn text<'b>(&mut self, line: &'b [u8]) -> Result<&'b str, ErrorClass> {
        if line.len() > self.max {
            return Err(ErrorClass::BodyTooLarge);
        }
        let text = str::from_utf8(line).map_err(|_| ErrorClass::MalformedBody)?;
        let first = mem::take(&mut self.at_start);
        Ok(text.strip_prefix(BYTE_ORDER_MARK).filter(|_| first).unwrap_or(text))
    }

    /// Reads one line. `here` is the only data line of the event so far, as long as it need not be
    /// copied out of the read that brought it.
    fn line<'b>(
        &mut self,
        line: &'b str,
        here: &mut Option<&'b str>,
        emit: &mut impl FnMut(Event<'_>),
    ) -> Result<(), ErrorClass> {
        match Field::of(line) {
            Field::Blank => self.dispatch(here.take(), emit),
            Field::Data(value) if here.is_none() && self.data.is_none() => *here = Some(value),
            Field::Data(value) => {
                self.keep_data(here.take())?;
                self.keep_data(Some(value))?;
            }
            Field::Name(name) => {
                self.name.clear();
                self.name.push_str(name);
            }
            Field::Other => {}
        }
        Ok(())
    }

    /// Reads a line whose start came with an earlier read.
    fn spliced_line(
        &mut self,
        end: &[u8],
        emit: &mut impl FnMut(Event<'_>),
    ) -> Result<(), ErrorClass> {
        self.keep_tail(end)?;
        let mut whole = mem::take(&mut self.tail);
        let mut here = None;
        let line = self.text(&whole)?;
        self.line(line, &mut here, emit)?;
        self.keep_data(here)?;
        whole.clear();
        self.tail = whole;
        Ok(())
    }

    fn dispatch(&mut self, here: Option<&str>, emit: &mut impl FnMut(Event<'_>)) {
        if let Some(data) = here.or(self.data.as_deref()) {
            emit(Event { name: &self.name, data });
        }
        self.forget_event();
    }

    fn forget_event(&mut self) {
        self.name.clear();
        if let Some(data) = self.data.take() {
            self.spare = data;
            self.spare.clear();
        }
    }

    fn keep_data(&mut self, line: Option<&str>) -> Result<(), ErrorClass> {
        let Some(line) = line else { return Ok(()) };
        let Some(data) = &mut self.data else {
            self.data.insert(mem::take(&mut self.spare)).push_str(line);
            return Ok(());
        };
        if data.len() + 1 + line.len() > self.max {
            return Err(ErrorClass::BodyTooLarge);
        }
        data.push('\n');
        data.push_str(line);
        Ok(())
    }

    fn keep_tail(&mut self, bytes: &[u8]) -> Result<(), ErrorClass> {
        if self.tail.len() + bytes.len() > self.max {
            return Err(ErrorClass::BodyTooLarge);
        }
        self.tail.extend_from_slice(bytes);
        Ok(())
    }
}

/// What one line says.
enum Field<'a> {
    Blank,
    Data(&'a str),
    Name(&'a str),
    Other,
}

impl<'a> Field<'a> {
    fn of(line: &'a str) -> Self {
        if line.is_empty() {
            return Self::Blank;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => Self::Data(value),
            "event" => Self::Name(value),
            _ => Self::Other,
        }
    }
}
