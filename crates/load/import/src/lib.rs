//! Converts recorded traffic to one canonical file, row by row, and counts every unused member.
//! Each format is a table of members in `formats.yaml`, which one converter reads.

mod branches;
mod client;
mod convert;
mod draft;
mod error;
mod export;
mod format;
mod history;
mod lanes;
mod messages;
mod record;
mod rows;
mod shape;
mod source;
mod summary;
mod texts;
mod value;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::path::Path;

use client::Client;
use convert::{Converter, Emit};
pub use error::ImportError;
pub use export::{export, exports};
use format::{CLIENT, Choice, LOAD, OWN};
pub use record::{After, Blocks, Header, Line, Request, VERSION, schema};
pub use rows::{Rows, unix_nanos};
use serde_json::{Value, json};
use source::{Form, Source};
pub use source::{Place, Sink};
pub use summary::{Summary, Tokens};
use texts::Texts;

/// How to import.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Name of the format; `None` recognises it.
    pub format: Option<String>,
    /// Skip and count broken rows.
    pub skip_broken: bool,
    /// Replace personal data in texts.
    pub scrub: bool,
}

/// Names of the formats that can be sent, with their titles.
pub fn formats() -> impl Iterator<Item = (&'static str, &'static str)> {
    let sendable = format::all().iter().filter(|format| format.refuse.is_none());
    sendable.map(|format| (&*format.name, &*format.title))
}

/// Converts a file to a canonical file, or options of k6 to a profile.
///
/// # Errors
/// The file cannot be read, has an unknown format, a broken row, or nothing to send.
pub fn import(
    path: &Path,
    options: &Options,
    output: &mut dyn Write,
) -> Result<Summary, ImportError> {
    let file = plimsoll_input::open(path)
        .map_err(|error| ImportError::Input(format!("cannot read {}: {error}", path.display())))?;
    let summary = read(path, file, options, &mut |line| {
        serde_json::to_writer(&mut *output, &line).map_err(io::Error::from)?;
        Ok(output.write_all(b"\n")?)
    })?;
    if let Some(stages) = &summary.stages {
        writeln!(output, "protocol: http\nhttp: {{}}\nstages: '{stages}'")?;
    }
    output.flush()?;
    Ok(summary)
}

/// Reads the requests of a file, as lines of a canonical file. The path is only a name.
///
/// # Errors
/// The same as [`import`].
pub fn read(
    path: &Path,
    input: impl Read + 'static,
    options: &Options,
    emit: &mut Emit<'_>,
) -> Result<Summary, ImportError> {
    let source = Source::new(input).map_err(|error| ImportError::unreadable(path, &error))?;
    let (form, choice) =
        choose(&source, options.format.as_deref()).map_err(|why| ImportError::of(path, &why))?;
    if choice.format.name == LOAD {
        let options = source.sample(form).into_iter().next().unwrap_or_default();
        return shape::read(&options, choice).map_err(|why| ImportError::of(path, &why));
    }
    let client = (choice.format.name == CLIENT).then(|| Client::open(path)).transpose()?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let source = if choice.format.sort { source.limited() } else { source };
    if choice.format.name != OWN {
        let tool = format!("plimsoll {}", env!("CARGO_PKG_VERSION"));
        let source = json!({ "format": choice.format.name, "files": [name], "tool": tool });
        let source = source.as_object().cloned().unwrap_or_default();
        emit(Line::Header(Header { plimsoll_traffic: VERSION, source }))?;
    }
    let folder = path.parent().unwrap_or(path);
    let mut texts = Texts { folder, scrubs: options.scrub, scrubbed: BTreeMap::new() };
    let mut complete = |mut line: Line| {
        if let Line::Request(request) = &mut line {
            texts.apply(request)?;
        }
        emit(line)
    };
    let mut converter = Converter::new(choice, &mut complete);
    let mut problem = None;
    let mut sink = |(unit, number): Place, row: Result<Value, String>| {
        let why = match row.map_err(ImportError::Input).and_then(|row| converter.add(row)) {
            Ok(()) => return ControlFlow::Continue(()),
            Err(ImportError::Input(why)) => why,
            Err(failed) => {
                problem = Some(failed);
                return ControlFlow::Break(());
            }
        };
        let why = format!("{unit} {number}: {why}");
        if options.skip_broken {
            converter.skip(why);
            return ControlFlow::Continue(());
        }
        let why = format!("{why}; correct it, or leave such rows out with --skip-broken");
        problem = Some(ImportError::of(path, &why));
        ControlFlow::Break(())
    };
    let read = source.read(form, &mut |place, row| match &client {
        Some(client) => match row.and_then(|row| client.draw(row)) {
            Ok(rows) => rows.into_iter().try_for_each(|row| sink(place, Ok(row))),
            Err(why) => sink(place, Err(why)),
        },
        None => sink(place, row),
    });
    read.map_err(|error| ImportError::unreadable(path, &error))?;
    problem.map_or(Ok(()), Err)?;
    let mut summary = converter.finish()?;
    summary.unused.extend(texts.scrubbed);
    if summary.requests == 0 {
        return Err(nothing(path, &summary));
    }
    Ok(summary)
}

fn nothing(path: &Path, summary: &Summary) -> ImportError {
    let rows = summary.unused.iter().filter(|(name, _)| name.contains(" ("));
    let rows: Vec<_> = rows.map(|(name, count)| format!("{count} {name}")).collect();
    let (format, rows) = (&summary.format, rows.join(", "));
    let why = format!("has no request to send, read as {format}: {rows}; choose with --as");
    ImportError::of(path, &why)
}

/// The form and the format, by its name or by the first rows.
fn choose(source: &Source, name: Option<&str>) -> Result<(Form, Choice), String> {
    let (form, choice) = match (name, source.form()) {
        (Some(name), form) => {
            let format = format::named(name).ok_or_else(|| format!("unknown format `{name}`"))?;
            let form = if format.is_text() { Form::Text(format) } else { form };
            (form, Choice::new(format, "by --as"))
        }
        (None, form @ Form::Text(format)) => (form, Choice::new(format, "by lines")),
        (None, form) => (form, by_rows(&source.sample(form))?),
    };
    match &choice.format.refuse {
        None => Ok((form, choice)),
        Some(fix) => Err(fix.clone()),
    }
}

fn by_rows(rows: &[Value]) -> Result<Choice, String> {
    let first = rows.first().ok_or("has no request to send")?;
    // A canonical request may have members of other formats.
    let own = first.get("plimsoll_traffic").is_some();
    format::recognise(if own { &rows[..1] } else { rows }).ok_or_else(|| {
        let names: Vec<_> = formats().map(|(name, _)| name).collect();
        let members = first.as_object().into_iter().flat_map(|row| row.keys());
        let members: Vec<_> = members.take(8).map(String::as_str).collect();
        format!(
            "unknown format (members of the first row: {}); choose one with --as: {}",
            members.join(", "),
            names.join(", ")
        )
    })
}
