//! Reads the log: JSON lines or CSV.

use std::cell::Cell as Shared;
use std::io::{self, BufRead, ErrorKind, Read};
use std::path::Path;
use std::rc::Rc;

use csv::{ByteRecord, Reader, ReaderBuilder};
use plimsoll_run_files::MAX_LINE;
use serde_json::{Map as Object, Value};

use crate::cell::{Cell, Cells, read_row};
use crate::error::{JoinError, quoted};
use crate::lines::{Lines, open, unreadable};
use crate::map::Map;
use crate::matcher::Joiner;

/// Number of lines from which the JSON columns are determined.
const SAMPLE: usize = 100;

/// Format of a file.
enum Format {
    Json,
    Csv,
}

/// Names of the columns.
pub(crate) fn columns(path: &Path) -> Result<Vec<String>, JoinError> {
    match format(path)? {
        Format::Json => json_columns(path),
        Format::Csv => {
            let mut reader = CsvRows::open(path)?;
            let mut header = ByteRecord::new();
            reader.next(&mut header)?;
            Ok(names(&header))
        }
    }
}

/// Passes every row to the joiner.
pub(crate) fn read(
    path: &Path,
    map: &Map,
    columns: &[String],
    joiner: &mut Joiner<'_, '_>,
) -> Result<(), JoinError> {
    match format(path)? {
        Format::Json => read_json(path, map, joiner),
        Format::Csv => read_csv(path, map, columns, joiner),
    }
}

/// Returns JSON if the first line begins with an object.
fn format(path: &Path) -> Result<Format, JoinError> {
    let mut lines = Lines::open(path)?;
    while let Some(line) = lines.next()? {
        match line.bytes.first() {
            None => {}
            Some(b'{') => return Ok(Format::Json),
            Some(b'[') => {
                return Err(JoinError::Usage(format!(
                    "{} is a single JSON array: write one line per row, for example with jq -c '.[]'",
                    path.display()
                )));
            }
            Some(_) => return Ok(Format::Csv),
        }
    }
    Err(JoinError::NoRows(format!("{} is empty", path.display())))
}

fn json_columns(path: &Path) -> Result<Vec<String>, JoinError> {
    let (mut lines, mut names) = (Lines::open(path)?, Vec::new());
    for _ in 0..SAMPLE {
        let Some(line) = lines.next()? else { break };
        let Ok(row) = serde_json::from_slice::<Object<String, Value>>(line.bytes) else { continue };
        for name in row.keys().filter(|name| !names.contains(*name)).cloned().collect::<Vec<_>>() {
            names.push(name);
        }
    }
    Ok(names)
}

fn read_json(path: &Path, map: &Map, joiner: &mut Joiner<'_, '_>) -> Result<(), JoinError> {
    let mut lines = Lines::open(path)?;
    while let Some(line) = lines.next()? {
        if line.bytes.is_empty() {
            continue;
        }
        match read_row(line.bytes, map) {
            Some(cells) => joiner.add(&cells),
            None => joiner.add_unreadable(line.number, &String::from_utf8_lossy(line.bytes)),
        }
    }
    Ok(())
}

fn read_csv(
    path: &Path,
    map: &Map,
    columns: &[String],
    joiner: &mut Joiner<'_, '_>,
) -> Result<(), JoinError> {
    let places: Vec<_> = map
        .entries
        .iter()
        .filter_map(|entry| {
            let place = columns.iter().position(|column| *column == entry.column)?;
            Some((entry.field as usize, place))
        })
        .collect();
    let (mut reader, mut record) = (CsvRows::open(path)?, ByteRecord::new());
    reader.next(&mut record)?;
    while reader.next(&mut record)? {
        if record.len() != columns.len() {
            let text = record.iter().map(String::from_utf8_lossy).collect::<Vec<_>>().join(",");
            joiner.add_unreadable(reader.line(), &text);
            continue;
        }
        let mut cells = Cells::default();
        for (field, column) in &places {
            cells[*field] =
                Cell::of_text(String::from_utf8_lossy(record.get(*column).unwrap_or_default()));
        }
        joiner.add(&cells);
    }
    Ok(())
}

fn names(header: &ByteRecord) -> Vec<String> {
    header
        .iter()
        .map(|field: &[u8]| {
            String::from_utf8_lossy(field).trim().trim_start_matches('\u{feff}').to_owned()
        })
        .collect()
}

/// The records of a CSV file, including the header. Records are limited to [`MAX_LINE`], because an
/// unclosed quote would otherwise read the whole file into memory.
struct CsvRows<'p> {
    reader: Reader<Bounded>,
    left: Rc<Shared<usize>>,
    path: &'p Path,
}

impl<'p> CsvRows<'p> {
    fn open(path: &'p Path) -> Result<Self, JoinError> {
        let left = Rc::new(Shared::new(MAX_LINE));
        let bounded = Bounded { inner: open(path)?, left: Rc::clone(&left) };
        let reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bounded);
        Ok(Self { reader, left, path })
    }

    /// Number of the line after the last record.
    fn line(&self) -> u64 {
        self.reader.position().line().saturating_sub(1)
    }

    fn next(&mut self, record: &mut ByteRecord) -> Result<bool, JoinError> {
        self.left.set(MAX_LINE);
        let line = self.line();
        self.reader.read_byte_record(record).map_err(|error| match error.kind() {
            csv::ErrorKind::Io(cause) if cause.kind() == ErrorKind::FileTooLarge => {
                JoinError::Usage(format!(
                    "the row after line {line} of {} is longer than {} MiB: a quote is not closed",
                    self.path.display(),
                    MAX_LINE >> 20
                ))
            }
            csv::ErrorKind::Io(cause) => unreadable(self.path, line, cause),
            _ => {
                JoinError::Usage(format!("{}: {}", self.path.display(), quoted(&error.to_string())))
            }
        })
    }
}

/// A reader limited to `left` bytes.
struct Bounded {
    inner: Box<dyn BufRead>,
    left: Rc<Shared<usize>>,
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left.get();
        if left == 0 {
            return Err(ErrorKind::FileTooLarge.into());
        }
        let most = buffer.len().min(left);
        let read = self.inner.read(buffer.get_mut(..most).unwrap_or_default())?;
        self.left.set(left - read);
        Ok(read)
    }
}
