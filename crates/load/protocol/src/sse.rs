//! An incremental parser of server-sent events.
//!
//! The grammar follows the WHATWG HTML standard ("Interpreting an event stream", section 9.2.6):
//! lines end in LF, CRLF or CR; the data lines of an event are joined by LF; comments and the
//! fields `id` and `retry` are skipped. Three rules differ from a browser: invalid UTF-8 is an
//! error of the target; an event without its final blank line is emitted if
//! [`finish`](Parser::finish) is called; and a field `error` is an event of that name.

use std::mem;

use memchr::memchr2;
use plimsoll_measure::ErrorClass;

/// Buffer capacity kept between streams. The excess after a huge event is freed.
const KEPT_CAPACITY: usize = 64 * 1024;

pub(crate) const BYTE_ORDER_MARK: char = '\u{feff}';

/// Whether these bytes begin like an event stream: with a comment or a field.
pub(crate) fn is_start(bytes: &[u8]) -> bool {
    const STARTS: [&[u8]; 5] = [b":", b"data:", b"event:", b"id:", b"retry:"];
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let line = bytes.trim_ascii_start();
    STARTS.iter().any(|start| line.starts_with(start))
}

/// One event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The `event` field; empty if missing.
    pub name: &'a str,
    /// The data lines, joined by `\n`.
    pub data: &'a str,
}

/// An incremental parser. Any split of the bytes gives the same events.
///
/// An event whose data line lies within one read is not copied. Between reads the parser keeps at
/// most an unfinished line, and the name and data of the unfinished event, each within the limit.
#[derive(Debug)]
pub struct Parser {
    max: usize,
    /// The start of an unfinished line.
    partial_line: Vec<u8>,
    /// Name of the unfinished event.
    name: String,
    /// Data of the unfinished event, if it has any.
    data: Option<String>,
    /// An empty buffer for the data of the next event, to avoid allocating it again.
    spare: String,
    /// Whether the last read ended in CR: an LF at the start of the next read belongs to it.
    after_cr: bool,
    /// Whether no line has been read yet, so that a byte order mark is possible.
    at_start: bool,
}

impl Parser {
    /// Creates a parser for lines of at most `max` bytes and events with at most `max` bytes of
    /// data.
    pub const fn new(max: usize) -> Self {
        Self {
            max,
            partial_line: Vec::new(),
            name: String::new(),
            data: None,
            spare: String::new(),
            after_cr: false,
            at_start: true,
        }
    }

    /// Discards the current stream.
    pub fn reset(&mut self) {
        self.partial_line.clear();
        self.partial_line.shrink_to(KEPT_CAPACITY);
        self.clear_event();
        self.spare.shrink_to(KEPT_CAPACITY);
        self.name.shrink_to(KEPT_CAPACITY);
        self.after_cr = false;
        self.at_start = true;
    }

    /// Whether an event has begun and not ended.
    pub const fn is_within_event(&self) -> bool {
        !self.partial_line.is_empty() || self.data.is_some()
    }

    /// Whether a line has begun and not ended.
    pub(crate) const fn is_within_line(&self) -> bool {
        !self.partial_line.is_empty()
    }

    /// Parses more bytes and passes each completed event to `emit`.
    ///
    /// # Errors
    /// [`ErrorClass::BodyTooLarge`] if a line or an event exceeds the limit,
    /// [`ErrorClass::MalformedBody`] if a line is not UTF-8. After an error the parser must be
    /// [reset](Self::reset).
    pub fn feed(
        &mut self,
        bytes: &[u8],
        mut emit: impl FnMut(Event<'_>),
    ) -> Result<(), ErrorClass> {
        let mut rest = self.after_split_line_end(bytes);
        let mut borrowed = None;
        while let Some(end) = memchr2(b'\n', b'\r', rest) {
            let (line, ended) = rest.split_at(end);
            rest = self.after_line_end(ended);
            if self.partial_line.is_empty() {
                let line = self.text(line)?;
                self.line(line, &mut borrowed, &mut emit)?;
            } else {
                self.spliced_line(line, &mut emit)?;
            }
        }
        self.keep_data(borrowed)?;
        self.keep_partial_line(rest)
    }

    /// Ends the stream: emits an event without its blank line.
    ///
    /// # Errors
    /// The same as [`feed`](Self::feed).
    pub fn finish(&mut self, mut emit: impl FnMut(Event<'_>)) -> Result<(), ErrorClass> {
        if !self.partial_line.is_empty() {
            self.spliced_line(b"", &mut emit)?;
        }
        self.dispatch(None, &mut emit);
        Ok(())
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
        let text = simdutf8::basic::from_utf8(line).map_err(|_| ErrorClass::MalformedBody)?;
        let first = mem::take(&mut self.at_start);
        Ok(text.strip_prefix(BYTE_ORDER_MARK).filter(|_| first).unwrap_or(text))
    }

    /// Parses one line. `borrowed` is the only data line of the event so far, as long as it need
    /// not be copied out of the current read.
    fn line<'b>(
        &mut self,
        line: &'b str,
        borrowed: &mut Option<&'b str>,
        emit: &mut impl FnMut(Event<'_>),
    ) -> Result<(), ErrorClass> {
        match Field::parse(line) {
            Field::Blank => self.dispatch(borrowed.take(), emit),
            Field::Data(value) if borrowed.is_none() && self.data.is_none() => {
                *borrowed = Some(value);
            }
            Field::Data(value) => {
                self.keep_data(borrowed.take())?;
                self.keep_data(Some(value))?;
            }
            Field::Name(name) => self.set_name(name),
            Field::Error(error) => {
                self.set_name("error");
                self.keep_data(borrowed.take())?;
                self.keep_data(Some(error))?;
            }
            Field::Other => {}
        }
        Ok(())
    }

    /// Parses a line that began in an earlier read.
    fn spliced_line(
        &mut self,
        end: &[u8],
        emit: &mut impl FnMut(Event<'_>),
    ) -> Result<(), ErrorClass> {
        self.keep_partial_line(end)?;
        let mut whole = mem::take(&mut self.partial_line);
        let mut borrowed = None;
        let line = self.text(&whole)?;
        self.line(line, &mut borrowed, emit)?;
        self.keep_data(borrowed)?;
        whole.clear();
        self.partial_line = whole;
        Ok(())
    }

    fn dispatch(&mut self, borrowed: Option<&str>, emit: &mut impl FnMut(Event<'_>)) {
        if let Some(data) = borrowed.or(self.data.as_deref()) {
            emit(Event { name: &self.name, data });
        }
        self.clear_event();
    }

    fn clear_event(&mut self) {
        self.name.clear();
        if let Some(data) = self.data.take() {
            self.spare = data;
            self.spare.clear();
        }
    }

    fn set_name(&mut self, name: &str) {
        self.name.clear();
        self.name.push_str(name);
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

    fn keep_partial_line(&mut self, bytes: &[u8]) -> Result<(), ErrorClass> {
        if self.partial_line.len() + bytes.len() > self.max {
            return Err(ErrorClass::BodyTooLarge);
        }
        self.partial_line.extend_from_slice(bytes);
        Ok(())
    }
}

/// The content of one line.
enum Field<'a> {
    Blank,
    Data(&'a str),
    Name(&'a str),
    /// `error: ...`, which some servers send instead of an event of that name.
    Error(&'a str),
    Other,
}

impl<'a> Field<'a> {
    fn parse(line: &'a str) -> Self {
        if line.is_empty() {
            return Self::Blank;
        }
        // The most common case.
        if let Some(data) = line.strip_prefix("data: ") {
            return Self::Data(data);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => Self::Data(value),
            "event" => Self::Name(value),
            "error" if !value.is_empty() => Self::Error(value),
            _ => Self::Other,
        }
    }
}
