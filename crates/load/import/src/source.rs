//! Rows of a file, whatever they are packed in: lines, JSON, CSV, logs; gzip, BOM, CRLF.

use std::fmt;
use std::io::{self, BufRead as _, BufReader, Cursor, Read};
use std::ops::ControlFlow;

use flate2::read::MultiGzDecoder;
use plimsoll_input::MOST;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::format::{self, Choice};
use crate::lines::{Place, Sink, read_lines};

const HEAD: u64 = 1 << 20;

/// How rows are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    JsonLines,
    Json,
    Csv(u8),
    Combined,
    Targets,
    OtherLog,
    Plain,
}

impl Shape {
    /// The shape of a format of text.
    pub(crate) fn of_text(name: &str) -> Option<Self> {
        match name {
            "combined" => Some(Self::Combined),
            "targets" => Some(Self::Targets),
            "other-log" => Some(Self::OtherLog),
            "plain" => Some(Self::Plain),
            _ => None,
        }
    }

    /// The format of text that has this shape.
    pub(crate) fn text_format(self) -> Option<Choice> {
        let format =
            format::all().iter().find(|format| Self::of_text(format.text) == Some(self))?;
        let why = match self {
            Self::Combined => "lines have a time in brackets and a quoted request",
            Self::Targets => "it begins with a method and a URL",
            _ => "the first line is neither JSON, CSV with known columns, nor a log",
        };
        Some(Choice { format, why: why.to_owned(), also: Vec::new() })
    }
}

/// An opened file: its first part, and the rest.
pub(crate) struct Source {
    head: Vec<u8>,
    rest: Box<dyn Read>,
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
        Ok(Self { head, rest })
    }

    /// How the rows are packed, by the first part.
    pub(crate) fn shape(&self) -> Shape {
        let text = String::from_utf8_lossy(&self.head);
        let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let lines = &lines[..lines.len().min(format::SAMPLE)];
        let start = text.trim_start().as_bytes();
        let second = start.get(1..).and_then(|rest| rest.iter().find(|b| !b.is_ascii_whitespace()));
        match (start.first(), second) {
            (Some(b'{'), Some(b'"' | b'}')) => {
                let whole = lines.iter().any(|line| line.starts_with('{') && is_json(line));
                return if whole { Shape::JsonLines } else { Shape::Json };
            }
            (Some(b'['), Some(b'{' | b'[' | b']' | b'"')) => {
                let mut lists = lines.iter().filter(|line| line.starts_with('['));
                let whole = lists.next().is_some_and(|line| is_dialogue(line));
                return if whole { Shape::JsonLines } else { Shape::Json };
            }
            _ => {}
        }
        if lines.iter().filter(|line| crate::log::combined(line).is_some()).count() * 2
            > lines.len()
        {
            return Shape::Combined;
        }
        if lines.iter().find(|line| !line.starts_with('#')).is_some_and(|line| is_target(line)) {
            return Shape::Targets;
        }
        if let Some(delimiter) = lines.first().and_then(|line| delimiter(line)) {
            return Shape::Csv(delimiter);
        }
        let strange = lines.iter().filter(|line| is_log_or_table(line)).count();
        if strange * 2 > lines.len() { Shape::OtherLog } else { Shape::Plain }
    }

    /// The first rows.
    pub(crate) fn sample(&self, shape: Shape) -> Vec<Value> {
        let mut rows = Vec::new();
        let head = Self { head: self.head.clone(), rest: Box::new(io::empty()) };
        // The first part ends anywhere: an error there says nothing.
        let _ = head.read(shape, &mut |_, row| {
            rows.extend(row);
            if rows.len() < format::SAMPLE {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        rows
    }

    /// The file up to the size that may be held in memory; more of it reads as broken.
    pub(crate) fn limited(self) -> Self {
        Self { head: self.head, rest: Box::new(self.rest.take(MOST)) }
    }

    /// Gives every row to the sink, until it has enough.
    pub(crate) fn read(self, shape: Shape, sink: &mut Sink<'_>) -> io::Result<()> {
        let reader = BufReader::new(Cursor::new(self.head).chain(self.rest));
        match shape {
            Shape::Json => read_json(reader, sink),
            Shape::Csv(delimiter) => read_csv(reader, delimiter, sink),
            Shape::Targets => crate::log::read_targets(reader, sink),
            Shape::JsonLines => read_lines(reader, &mut |place, line| {
                sink(place, line.and_then(|line| json_line(&line)))
            }),
            Shape::Combined => read_lines(reader, &mut |place, line| {
                // Noise on the port is common in logs, and nothing that was to be sent.
                sink(place, line.map(|line| crate::log::combined(&line).unwrap_or(Value::Null)))
            }),
            Shape::OtherLog | Shape::Plain => read_lines(reader, &mut |place, line| {
                sink(place, line.map(|line| serde_json::json!({ "prompt": line })))
            }),
        }
    }
}

fn json_line(line: &str) -> Result<Value, String> {
    serde_json::from_str(line).map_err(|error| format!("is not valid JSON ({error})"))
}

fn is_json(line: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok()
}

fn is_dialogue(line: &str) -> bool {
    serde_json::from_str::<Value>(line).is_ok_and(|list| list[0].get("role").is_some())
}

/// Lines that nobody would send as prompts.
fn is_log_or_table(line: &str) -> bool {
    let numbers = line.split(',').filter(|field| field.trim().parse::<f64>().is_ok()).count();
    line.contains(" HTTP/") && line.contains('"') || numbers > 2
}

fn is_target(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let method = words.next().is_some_and(|word| word.bytes().all(|b| b.is_ascii_uppercase()));
    method && words.next().is_some_and(|url| url.starts_with("http")) && words.next().is_none()
}

/// The delimiter of a first line that names the columns of a format.
fn delimiter(line: &str) -> Option<u8> {
    [b',', b';', b'\t'].into_iter().find(|delimiter| {
        let names = line.split(char::from(*delimiter)).map(|name| name.trim().trim_matches('"'));
        let row: Map<_, _> = names.map(|name| (name.to_owned(), Value::from("x"))).collect();
        format::recognise(&[Value::Object(row)]).is_some()
    })
}

fn read_csv(reader: impl Read, delimiter: u8, sink: &mut Sink<'_>) -> io::Result<()> {
    let mut csv = csv::ReaderBuilder::new();
    let mut csv = csv.delimiter(delimiter).flexible(true).from_reader(reader);
    let names = csv.headers()?.clone();
    for record in csv.records() {
        let row = match record {
            Ok(record) => {
                let line = record.position().map_or(0, csv::Position::line);
                let members = names.iter().zip(&record).filter(|(_, value)| !value.is_empty());
                let members = members.map(|(name, value)| (name.trim().to_owned(), value.into()));
                let row = if record.len() == names.len() {
                    Ok(Value::Object(members.collect()))
                } else {
                    Err(format!("has {} columns of {}", record.len(), names.len()))
                };
                sink(Place::Line(line), row)
            }
            Err(error) if error.is_io_error() => return Err(error.into()),
            Err(error) => {
                let line = error.position().map_or(0, csv::Position::line);
                sink(Place::Line(line), Err(error.to_string()))
            }
        };
        if row.is_break() {
            break;
        }
    }
    Ok(())
}

/// Documents in a row; the elements of a list are rows of their own.
fn read_json(reader: impl Read, sink: &mut Sink<'_>) -> io::Result<()> {
    let mut json = serde_json::Deserializer::from_reader(reader);
    let mut rows = Rows { sink, count: 0, stopped: false };
    while json.end().is_err() {
        match rows.by_ref().deserialize(&mut json) {
            Ok(()) => {}
            Err(_) if rows.stopped => break,
            Err(error) if error.is_io() => return Err(error.into()),
            Err(error) => {
                // No row can be found behind broken JSON.
                let place = Place::Line(error.line() as u64);
                let _ = (rows.sink)(place, Err(format!("is not valid JSON ({error})")));
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

struct RowsRef<'a, 'r, 's>(&'a mut Rows<'r, 's>);

impl<'r, 's> Rows<'r, 's> {
    fn by_ref(&mut self) -> RowsRef<'_, 'r, 's> {
        RowsRef(self)
    }

    fn give<E: serde::de::Error>(&mut self, row: Value) -> Result<(), E> {
        self.count += 1;
        self.stopped = (self.sink)(Place::Row(self.count), Ok(row)).is_break();
        if self.stopped { Err(E::custom("enough")) } else { Ok(()) }
    }
}

impl<'de> DeserializeSeed<'de> for RowsRef<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for RowsRef<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or a list of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(row) = list.next_element()? {
            self.0.give(row)?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut row = Map::new();
        while let Some((name, value)) = members.next_entry()? {
            row.insert(name, value);
        }
        self.0.give(Value::Object(row))
    }
}
