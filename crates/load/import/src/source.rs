//! Rows of a file: lines of JSON, JSON documents, CSV or text, also compressed.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::ops::ControlFlow;

use flate2::read::MultiGzDecoder;
use plimsoll_input::MOST;
use serde::Deserialize as _;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::format::{self, Format, SAMPLE};

/// Bytes by which the form and the format are recognised.
const HEAD: u64 = 1 << 20;

/// Unit and number of a row: `line 3`.
pub type Place = (&'static str, u64);

/// Receives rows, or why one cannot be read.
pub type Sink<'s> = dyn FnMut(Place, Result<Value, String>) -> ControlFlow<()> + 's;

/// How the file separates its rows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    JsonLines,
    Json,
    Csv(u8),
    Text(&'static Format),
}

/// An opened file: its first part, and the rest.
pub(crate) struct Source {
    head: Vec<u8>,
    rest: Box<dyn Read>,
    /// Whether invalid UTF-8 is replaced, as a log may cut a text within a character.
    pub(crate) lossy: bool,
}

impl Source {
    pub(crate) fn new(input: impl Read + 'static) -> io::Result<Self> {
        let mut file = BufReader::new(input);
        let magic = file.fill_buf()?;
        let mut rest: Box<dyn Read> = if magic.starts_with(&[0x1f, 0x8b]) {
            Box::new(MultiGzDecoder::new(file))
        } else if magic.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            Box::new(zstd::Decoder::with_buffer(file)?)
        } else {
            Box::new(file)
        };
        let mut head = Vec::new();
        rest.by_ref().take(HEAD).read_to_end(&mut head)?;
        if head.starts_with(b"\xef\xbb\xbf") {
            head.drain(..3);
        }
        Ok(Self { head, rest, lossy: false })
    }

    /// The form of the file, by its first part.
    pub(crate) fn form(&self) -> Form {
        let text = String::from_utf8_lossy(&self.head);
        let lines: Vec<_> =
            text.lines().filter(|line| !line.trim().is_empty()).take(SAMPLE).collect();
        let start: String = text.split_whitespace().take(2).collect();
        if ["{\"", "{}", "[{", "[[", "[]", "[\""].iter().any(|json| start.starts_with(json)) {
            let is_list = lines.first().is_some_and(|line| line.trim() == "[");
            let is_lines = !is_list && lines.iter().any(|line| is_row(line));
            return if is_lines { Form::JsonLines } else { Form::Json };
        }
        let delimiter = lines.first().and_then(|line| delimiter(line));
        match delimiter {
            Some(delimiter) => Form::Csv(delimiter),
            None => format::of_lines(&lines).map_or(Form::JsonLines, Form::Text),
        }
    }

    /// The first rows.
    pub(crate) fn sample(&self, form: Form) -> Vec<Value> {
        let mut rows = Vec::new();
        let rest = Box::new(io::empty());
        let head = Self { head: self.head.clone(), rest, lossy: self.lossy };
        // The first part may end within a row, so errors are ignored.
        let _ = head.read(form, &mut |_, row| {
            rows.extend(row);
            if rows.len() < SAMPLE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        rows
    }

    /// Ends the file at the maximum size to keep in memory; a longer one is broken there.
    pub(crate) fn limited(self) -> Self {
        Self { rest: Box::new(self.rest.take(MOST)), ..self }
    }

    /// Sends every row to the sink, until it breaks.
    pub(crate) fn read(self, form: Form, sink: &mut Sink<'_>) -> io::Result<()> {
        let reader = BufReader::new(Cursor::new(self.head).chain(self.rest));
        match form {
            Form::Json => read_json(reader, sink),
            Form::Csv(delimiter) => read_csv(reader, delimiter, self.lossy, sink),
            Form::JsonLines => read_lines(reader, self.lossy, &mut |place, line| {
                sink(place, line.and_then(|line| parse(&line)))
            }),
            Form::Text(format) => read_text(reader, format, self.lossy, sink),
        }
    }
}

fn parse(line: &str) -> Result<Value, String> {
    serde_json::from_str(line).map_err(|error| broken(&error))
}

fn broken(error: &serde_json::Error) -> String {
    format!("is not valid JSON ({error})")
}

/// Whether a line is a whole row: an object, or a dialogue as a list of messages.
fn is_row(line: &str) -> bool {
    let is_object = line.starts_with('{') && serde_json::from_str::<IgnoredAny>(line).is_ok();
    let list = serde_json::from_str::<Vec<Value>>(line).unwrap_or_default();
    let is_message = list.first().is_some_and(|first| first.get("role").is_some());
    is_object || is_message && format::recognise(&list).is_none()
}

/// The delimiter of a first line that names the columns of a format.
fn delimiter(line: &str) -> Option<u8> {
    [b',', b';', b'\t'].into_iter().find(|delimiter| {
        let names = line.split(char::from(*delimiter)).map(|name| name.trim().trim_matches('"'));
        let row: Map<_, _> = names.map(|name| (name.to_owned(), Value::from("x"))).collect();
        format::recognise(&[row.into()]).is_some()
    })
}

/// Sends lines without their ends, and skips empty ones.
fn read_lines(
    mut reader: impl BufRead,
    lossy: bool,
    sink: &mut dyn FnMut(Place, Result<String, String>) -> ControlFlow<()>,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        if reader.by_ref().take(MOST).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        if bytes.len() as u64 == MOST {
            let why = format!("line {number} has more than {} MiB", MOST >> 20);
            return Err(io::Error::other(why));
        }
        let line = text(&bytes, lossy);
        let line = line.map(|line| line.trim_end_matches(['\n', '\r']).to_owned());
        let is_empty = line.as_ref().is_ok_and(|line| line.trim().is_empty());
        if !is_empty && sink(("line", number), line).is_break() {
            break;
        }
    }
    Ok(())
}

/// Reads records of text. A record may have several lines: one that begins it, and others.
fn read_text(
    reader: impl BufRead,
    format: &Format,
    lossy: bool,
    sink: &mut Sink<'_>,
) -> io::Result<()> {
    let mut open: Option<(Place, String)> = None;
    read_lines(reader, lossy, &mut |place, line| {
        let line = match line {
            Ok(line) => line,
            Err(why) => return sink(place, Err(why)),
        };
        if format.several && !format.begins(&line) {
            if let Some((_, record)) = open.as_mut().filter(|_| !line.starts_with('#')) {
                *record = format!("{record}\n{line}");
            }
            return ControlFlow::Continue(());
        }
        let before = open.replace((place, line));
        before.map_or(ControlFlow::Continue(()), |(place, record)| {
            sink(place, Ok(format.parse(&record)))
        })
    })?;
    if let Some((place, record)) = open {
        let _ = sink(place, Ok(format.parse(&record)));
    }
    Ok(())
}

fn text(bytes: &[u8], lossy: bool) -> Result<String, String> {
    if lossy {
        return Ok(String::from_utf8_lossy(bytes).into_owned());
    }
    str::from_utf8(bytes).map(str::to_owned).map_err(|_| "is not UTF-8".to_owned())
}

/// Reads records of bounded size, because an unclosed quote would make one of the whole file.
fn read_csv(reader: impl Read, delimiter: u8, lossy: bool, sink: &mut Sink<'_>) -> io::Result<()> {
    let mut csv = csv::ReaderBuilder::new();
    let mut csv = csv.delimiter(delimiter).trim(csv::Trim::Headers).from_reader(reader.take(MOST));
    let names = csv.byte_headers()?.iter().map(String::from_utf8_lossy);
    let names: Vec<_> = names.map(Cow::into_owned).collect();
    let mut record = csv::ByteRecord::new();
    loop {
        csv.get_mut().set_limit(MOST);
        let row = match csv.read_byte_record(&mut record) {
            Ok(false) => return Ok(()),
            Ok(true) if csv.get_ref().limit() == 0 => {
                let why = format!("a row has more than {} MiB: a quote is not closed", MOST >> 20);
                return Err(io::Error::other(why));
            }
            Ok(true) => names
                .iter()
                .zip(&record)
                .map(|(name, value)| Ok((name.clone(), Value::from(text(value, lossy)?))))
                .collect(),
            Err(error) if error.is_io_error() => return Err(io::Error::other(error.to_string())),
            Err(error) => Err(error.to_string()),
        };
        let line = record.position().map_or(0, csv::Position::line);
        if sink(("line", line), row).is_break() {
            return Ok(());
        }
    }
}

/// Reads JSON documents. The elements of a list are rows.
fn read_json(reader: impl Read, sink: &mut Sink<'_>) -> io::Result<()> {
    let mut json = serde_json::Deserializer::from_reader(reader);
    let mut rows = Rows { sink, count: 0, stopped: false };
    while json.end().is_err() {
        match (&mut rows).deserialize(&mut json) {
            Ok(()) => {}
            Err(_) if rows.stopped => break,
            Err(error) if error.is_io() => return Err(error.into()),
            Err(error) => {
                // Broken JSON hides where the next row begins.
                let _ = (rows.sink)(("line", error.line() as u64), Err(broken(&error)));
                break;
            }
        }
    }
    Ok(())
}

struct Rows<'r, 's> {
    sink: &'r mut Sink<'s>,
    count: u64,
    stopped: bool,
}

impl Rows<'_, '_> {
    fn send<E: serde::de::Error>(&mut self, row: Value) -> Result<(), E> {
        self.count += 1;
        self.stopped = (self.sink)(("row", self.count), Ok(row)).is_break();
        if self.stopped { Err(E::custom("enough")) } else { Ok(()) }
    }
}

impl<'de> DeserializeSeed<'de> for &mut Rows<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Rows<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or a list of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(row) = list.next_element()? {
            self.send(row)?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<(), A::Error> {
        self.send(Value::Object(Map::deserialize(MapAccessDeserializer::new(members))?))
    }
}
