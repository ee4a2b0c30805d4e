//! Recorded answers of a service, replayed byte by byte from files.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::error::MockError;

/// Types by file extension. Streams are sent event by event.
const TYPES: [(&str, &str); 5] = [
    ("sse", EVENTS),
    ("json", "application/json"),
    ("ndjson", "application/x-ndjson"),
    ("html", "text/html"),
    ("txt", "text/plain"),
];
const EVENTS: &str = "text/event-stream";

/// Codings by the last extension.
const CODINGS: [(&str, &str); 6] = [
    ("gzip", "gzip"),
    ("gz", "gzip"),
    ("deflate", "deflate"),
    ("zlib", "deflate"),
    ("br", "br"),
    ("zstd", "zstd"),
];

/// Pieces of a compressed body, in bytes, because its events cannot be seen.
const CODED_PIECE: usize = 256;

/// The answer in a file named `NAME[.STATUS].TYPE[.CODING]`, such as `overloaded.503.json` or
/// `chat.sse.gzip`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RecordedAnswer {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) coding: Option<&'static str>,
    pub(crate) body: Vec<u8>,
}

/// The answers in a folder, by file name. Other files are ignored.
pub(crate) fn read_folder(
    folder: Option<&Path>,
) -> Result<BTreeMap<String, Arc<RecordedAnswer>>, MockError> {
    let Some(folder) = folder else { return Ok(BTreeMap::new()) };
    let answers = read_files(folder)
        .map_err(|source| MockError::Answers { path: folder.to_owned(), source })?;
    if answers.is_empty() {
        let source = io::Error::other("no file is named NAME.sse, .json, .ndjson, .html or .txt");
        return Err(MockError::Answers { path: folder.to_owned(), source });
    }
    Ok(answers)
}

fn read_files(folder: &Path) -> io::Result<BTreeMap<String, Arc<RecordedAnswer>>> {
    let mut answers = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let Some(answer) = RecordedAnswer::named(name) {
            if !path.metadata()?.is_file() {
                return Err(io::Error::other(format!("{name} is a pipe or a device, not a file")));
            }
            let body = std::fs::read(&path)?;
            answers.insert(name.to_owned(), Arc::new(RecordedAnswer { body, ..answer }));
        }
    }
    Ok(answers)
}

impl RecordedAnswer {
    /// Parses a file name; `None` if it names no type.
    fn named(name: &str) -> Option<Self> {
        let mut parts: Vec<&str> = name.split('.').skip(1).collect();
        let coding = parts.last().and_then(|last| lookup(&CODINGS, last));
        if coding.is_some() {
            parts.pop();
        }
        let content_type = lookup(&TYPES, parts.pop()?)?;
        let status = parts.pop().and_then(|status| status.parse().ok());
        let status = status.filter(|status| (200..600).contains(status)).unwrap_or(200);
        Some(Self { status, content_type, coding, body: Vec::new() })
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.content_type == EVENTS
    }

    /// The separately sent parts: the events of a stream.
    pub(crate) fn pieces(&self) -> Vec<Vec<u8>> {
        if self.coding.is_some() {
            return self.body.chunks(CODED_PIECE).map(<[u8]>::to_vec).collect();
        }
        let mut pieces = Vec::new();
        let mut rest = &self.body[..];
        while let Some(end) = event_end(rest) {
            let (piece, behind) = rest.split_at(end);
            pieces.push(piece.to_vec());
            rest = behind;
        }
        if !rest.is_empty() {
            pieces.push(rest.to_vec());
        }
        pieces
    }
}

/// The end of the first event, after its blank line.
fn event_end(text: &[u8]) -> Option<usize> {
    const BLANK: [&[u8]; 3] = [b"\n\n", b"\r\n\r\n", b"\r\r"];
    let ends = BLANK.iter().filter_map(|blank| {
        let found = text.windows(blank.len()).position(|window| window == *blank);
        found.map(|at| at + blank.len())
    });
    ends.min()
}

fn lookup(table: &[(&str, &'static str)], ending: &str) -> Option<&'static str> {
    table.iter().find(|(known, _)| *known == ending).map(|(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_status_type_and_coding() {
        for (name, expected) in [
            ("azure.sse", Some((200, EVENTS, None))),
            ("azure.sse.gz", Some((200, EVENTS, Some("gzip")))),
            ("overloaded.503.json", Some((503, "application/json", None))),
            ("v1.2.json.br", Some((200, "application/json", Some("br")))),
            ("page.999.html", Some((200, "text/html", None))),
            ("expected.tsv", None),
            ("sse", None),
            (".json", Some((200, "application/json", None))),
            ("README", None),
            ("archive.gz", None),
        ] {
            let found = RecordedAnswer::named(name);
            let found = found.map(|answer| (answer.status, answer.content_type, answer.coding));
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn a_stream_is_cut_behind_its_events() {
        let pieces = |body: &str| {
            let answer = RecordedAnswer::named("a.sse").unwrap();
            let pieces = RecordedAnswer { body: body.into(), ..answer }.pieces();
            pieces.into_iter().map(|piece| String::from_utf8(piece).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(pieces("a\nb\n\nc\n\nd"), ["a\nb\n\n", "c\n\n", "d"]);
        assert_eq!(pieces("a\r\n\r\nb\r\r\nc"), ["a\r\n\r\n", "b\r\r", "\nc"]);
        assert!(pieces("").is_empty());
        let coded =
            RecordedAnswer { body: vec![7; 600], ..RecordedAnswer::named("a.sse.br").unwrap() };
        assert_eq!(coded.pieces().iter().map(Vec::len).collect::<Vec<_>>(), [256, 256, 88]);
    }
}
