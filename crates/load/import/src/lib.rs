//! Converts recorded traffic to one canonical file, row by row, and counts every member that is
//! left out. Each format is a table of members in `formats.txt`, read by one converter.

mod convert;
mod draft;
mod format;
mod lines;
mod log;
mod messages;
mod record;
mod source;
mod summary;
mod value;

use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::path::Path;

pub use record::{
    After, Blocks, Dialect, Header, Line, Origin, Recorded, Request, VERSION, Wait, schema,
};
pub use summary::{Summary, Tokens};

use convert::Converter;
use format::{Choice, OWN, has_version};
use source::{Shape, Source};

/// How to import.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Name of the format; `None` recognises it.
    pub format: Option<String>,
    /// Skip rows that are broken, and count them.
    pub skip_broken: bool,
}

/// Why a file cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The input cannot be read.
    #[error("cannot read {0}: {1}")]
    Read(String, io::Error),
    /// The output cannot be written.
    #[error("cannot write the requests: {0}")]
    Write(io::Error),
    /// No format fits, or the one that fits has no requests to send.
    #[error("{0}: {1}")]
    Refused(String, String),
    /// A row is broken.
    #[error("{file}: {place}: {problem}; correct it, or leave such rows out with --skip-broken")]
    Row {
        /// Name of the file.
        file: String,
        /// Line or row.
        place: String,
        /// The member, and what is wrong with it.
        problem: String,
    },
}

impl ImportError {
    /// Whether the input is at fault.
    pub const fn is_usage(&self) -> bool {
        !matches!(self, Self::Write(_))
    }
}

/// Names of the formats, with their titles.
pub fn formats() -> impl Iterator<Item = (&'static str, &'static str)> {
    format::all().iter().map(|format| (format.name, format.title))
}

/// Converts a file; what is written is canonical.
///
/// # Errors
/// The file cannot be read, is of no known format, has a broken row, or has no request.
pub fn import(
    path: &Path,
    options: &Options,
    output: &mut dyn Write,
) -> Result<Summary, ImportError> {
    let file = plimsoll_input::open(path);
    let file = file.map_err(|error| ImportError::Read(path.display().to_string(), error))?;
    let summary = read(path, file, options, &mut |line| {
        serde_json::to_writer(&mut *output, &line)?;
        output.write_all(b"\n")
    })?;
    output.flush().map_err(ImportError::Write)?;
    Ok(summary)
}

/// Reads the requests of a file, or of what is in its place, line by line of the canonical form.
///
/// # Errors
/// As [`import`].
pub fn read(
    path: &Path,
    input: impl Read + 'static,
    options: &Options,
    emit: &mut dyn FnMut(Line) -> io::Result<()>,
) -> Result<Summary, ImportError> {
    let file = path.display().to_string();
    let unreadable = |error| ImportError::Read(file.clone(), error);
    let mut source = Source::new(input).map_err(unreadable)?;
    let mut shape = source.shape();
    let choice = choose(&source, &mut shape, options.format.as_deref());
    let choice = choice.map_err(|why| ImportError::Refused(file.clone(), why))?;
    if choice.format.sort {
        source = source.limited();
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut converter = Converter::new(&choice, name, emit);
    let mut problem = None;
    source
        .read(shape, &mut |place, row| {
            let Err(why) = row.and_then(|row| converter.add(place, row)) else {
                return ControlFlow::Continue(());
            };
            if !options.skip_broken {
                problem = Some((place, why));
                return ControlFlow::Break(());
            }
            converter.skip(format!("{place}: {why}"));
            ControlFlow::Continue(())
        })
        .map_err(unreadable)?;
    if let Some((place, problem)) = problem {
        return Err(ImportError::Row { file, place: place.to_string(), problem });
    }
    let summary = converter.finish(options.skip_broken);
    let summary = summary.map_err(|problem| ImportError::Refused(file.clone(), problem))?;
    if let Some(error) = converter.failed.take() {
        return Err(ImportError::Write(error));
    }
    if summary.requests == 0 {
        let rows = summary.unused.iter().filter(|(name, _)| name.contains(" ("));
        let rows: Vec<_> = rows.map(|(name, count)| format!("{count} {name}")).collect();
        let (format, rows) = (&summary.format, rows.join(", "));
        let why = format!("has no request to send, read as {format}: {rows}; choose with --as");
        return Err(ImportError::Refused(file, why));
    }
    Ok(summary)
}

/// Whether a file is of a known format with signs of its own.
pub fn is_traffic(path: &Path) -> bool {
    let source = plimsoll_input::open(path).and_then(Source::new);
    source.is_ok_and(|source| {
        let mut shape = source.shape();
        shape != Shape::Plain && choose(&source, &mut shape, None).is_ok()
    })
}

/// The format, by its name or by the first rows.
fn choose(source: &Source, shape: &mut Shape, name: Option<&str>) -> Result<Choice, String> {
    let choice = match name {
        Some(name) => {
            let format = format::named(name).ok_or_else(|| format!("unknown format `{name}`"))?;
            *shape = Shape::of_text(format.text).unwrap_or(*shape);
            Choice { format, why: "chosen with --as".to_owned(), also: Vec::new() }
        }
        None => match shape.text_format() {
            Some(choice) => choice,
            None => by_rows(&source.sample(*shape))?,
        },
    };
    match choice.format.refuse {
        "" => Ok(choice),
        fix => Err(fix.to_owned()),
    }
}

fn by_rows(rows: &[serde_json::Value]) -> Result<Choice, String> {
    // Its requests have members of other formats.
    if let Some(format) = format::named(OWN).filter(|_| rows.first().is_some_and(has_version)) {
        let why = "its first line has plimsoll_traffic".to_owned();
        return Ok(Choice { format, why, also: Vec::new() });
    }
    format::recognise(rows).ok_or_else(|| {
        let names: Vec<_> = formats().map(|(name, _)| name).collect();
        let first = rows.first().and_then(serde_json::Value::as_object);
        let members: Vec<_> = first.into_iter().flat_map(|row| row.keys()).take(8).collect();
        format!(
            "is of no known format (members of the first row: {members:?}); name it with --as: {}",
            names.join(", ")
        )
    })
}
