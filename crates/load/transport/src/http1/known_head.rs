//! The head of the last response, against which the next one is compared: most of its lines come
//! again, byte by byte, and need not be parsed again (`docs/adr/0087`).

use std::ops::Range;

use httparse::{EMPTY_HEADER, Header};

use super::framing::MessageFraming;

/// Most header lines of a head that is kept.
const MOST_LINES: usize = 24;
/// Longest head that is kept, in bytes.
const LONGEST: usize = 4096;
/// The headers that tell where a body ends.
const FRAMING: [&str; 3] = ["content-length", "transfer-encoding", "connection"];

/// Room for the lines of a head that is read.
pub(super) type Lines<'a> = [Header<'a>; MOST_LINES];

/// Lines of a head that is not read yet.
pub(super) const fn no_lines<'a>() -> Lines<'a> {
    [EMPTY_HEADER; MOST_LINES]
}

/// A head that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadHead {
    pub(super) status: u16,
    pub(super) framing: MessageFraming,
    /// Header lines.
    pub(super) lines: usize,
    /// Length with the empty line, in bytes.
    pub(super) length: usize,
}

/// The last head that was parsed, whoever sent it; empty before the first.
#[derive(Debug, Default)]
pub(crate) struct KnownHead {
    /// Status line and header lines, each with its end.
    bytes: Vec<u8>,
    /// Length of the status line; 0 if no head is known.
    status_line: usize,
    lines: Vec<KnownLine>,
    /// The names of all lines.
    names: String,
    meaning: Option<Meaning>,
}

#[derive(Clone, Copy, Debug)]
struct Meaning {
    status: u16,
    minor: u8,
    to_head: bool,
    framing: MessageFraming,
}

#[derive(Debug)]
struct KnownLine {
    /// With its end, in bytes.
    length: usize,
    /// In the line.
    value: Range<usize>,
    /// In the names.
    name: Range<usize>,
    /// Whether it tells where the body ends.
    frames: bool,
}

impl KnownHead {
    /// Reads a head that has the same status line and the same header names as the known one.
    /// `None` if it differs otherwise, is not whole, or might not be well-formed.
    pub(super) fn read<'a>(
        &'a self,
        input: &'a [u8],
        to_head: bool,
        lines: &mut Lines<'a>,
    ) -> Option<ReadHead> {
        let meaning = self.meaning?;
        // Most often everything is the same.
        let same = input.starts_with(&self.bytes);
        let (start, mut known) = self.bytes.split_at(self.status_line);
        let mut rest = input.strip_prefix(start)?;
        let mut framed_anew = to_head != meaning.to_head;
        for (line, read) in self.lines.iter().zip(&mut *lines) {
            let (before, after) = known.split_at(line.length);
            let (value, left) = if same || rest.starts_with(before) {
                (&rest[line.value.clone()], &rest[line.length..])
            } else {
                framed_anew |= line.frames;
                changed_value(rest, &before[..line.value.start])?
            };
            *read = Header { name: &self.names[line.name.clone()], value };
            (known, rest) = (after, left);
        }
        rest = rest.strip_prefix(b"\r\n")?;
        let Meaning { status, minor, framing, .. } = meaning;
        let count = self.lines.len();
        let framing = if framed_anew {
            MessageFraming::new(status, minor, &lines[..count], to_head).ok()?
        } else {
            framing
        };
        Some(ReadHead { status, framing, lines: count, length: input.len() - rest.len() })
    }

    /// Keeps a well-formed head of HTTP/1.`minor` with its empty line. One that is long, or has
    /// other line ends, is not kept.
    pub(super) fn learn(
        &mut self,
        head: &[u8],
        headers: &[Header<'_>],
        (status, minor): (u16, u8),
        (to_head, framing): (bool, MessageFraming),
    ) {
        self.meaning = None;
        if self.learn_lines(head, headers).is_some() {
            self.meaning = Some(Meaning { status, minor, to_head, framing });
        }
    }

    fn learn_lines(&mut self, head: &[u8], headers: &[Header<'_>]) -> Option<()> {
        if headers.len() > MOST_LINES || head.len() > LONGEST {
            return None;
        }
        let lines = head.strip_suffix(b"\r\n")?;
        let offset = |part: &[u8]| part.as_ptr().addr().checked_sub(lines.as_ptr().addr());
        self.bytes.clear();
        self.bytes.extend_from_slice(lines);
        self.lines.clear();
        self.names.clear();
        self.status_line = lines.len();
        for (index, Header { name, value }) in headers.iter().enumerate() {
            let start = offset(name.as_bytes())?;
            if index == 0 {
                self.status_line = start;
            }
            let next = headers.get(index + 1).map(|next| next.name.as_bytes());
            let end = next.map_or(Some(lines.len()), offset)?;
            let line = lines.get(start..end).filter(|line| line.ends_with(b"\r\n"))?;
            let value_start = offset(value)?.checked_sub(start)?;
            let value = value_start..value_start + value.len();
            line.get(value.clone())?;
            let name_start = self.names.len();
            self.names.push_str(name);
            self.lines.push(KnownLine {
                length: line.len(),
                value,
                name: name_start..self.names.len(),
                frames: FRAMING.iter().any(|known| name.eq_ignore_ascii_case(known)),
            });
        }
        lines[..self.status_line].ends_with(b"\r\n").then_some(())
    }
}

/// The value of a line that begins with `name`, the colon and what follows it, and what is left
/// behind the line. Only for values of visible characters with spaces between them, of which there
/// is no doubt that they are well-formed.
fn changed_value<'i>(line: &'i [u8], name: &[u8]) -> Option<(&'i [u8], &'i [u8])> {
    let rest = line.strip_prefix(name)?;
    let length = rest.iter().position(|byte| !(b' '..=b'~').contains(byte))?;
    let (value, rest) = rest.split_at(length);
    let trimmed = !value.is_empty() && value.trim_ascii().len() == value.len();
    trimmed.then_some((value, rest.strip_prefix(b"\r\n")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The lines of a head by `httparse`, and its length.
    type Parsed = (u16, Vec<(String, Vec<u8>)>, usize, MessageFraming);

    fn owned(headers: &[Header<'_>]) -> Vec<(String, Vec<u8>)> {
        headers.iter().map(|line| (line.name.to_owned(), line.value.to_owned())).collect()
    }

    /// Parses a head without any memory, and lets `known` learn it.
    fn parse(known: Option<&mut KnownHead>, head: &[u8], to_head: bool) -> Option<Parsed> {
        let mut headers = [EMPTY_HEADER; 40];
        let mut response = httparse::Response::new(&mut headers);
        let Ok(httparse::Status::Complete(used)) = response.parse(head) else { return None };
        let (status, minor) = (response.code.unwrap(), response.version.unwrap());
        let framing = MessageFraming::new(status, minor, response.headers, to_head).ok()?;
        if let Some(known) = known {
            known.learn(&head[..used], response.headers, (status, minor), (to_head, framing));
        }
        Some((status, owned(response.headers), used, framing))
    }

    fn read(known: &KnownHead, head: &[u8], to_head: bool) -> Option<Parsed> {
        let mut lines = no_lines();
        let read = known.read(head, to_head, &mut lines)?;
        Some((read.status, owned(&lines[..read.lines]), read.length, read.framing))
    }

    const FIRST: &str =
        "HTTP/1.1 200 OK\r\ndate: Mon, 1\r\nContent-Length: 3\r\nx-a:\r\nserver: s\r\n\r\nabc";

    #[test]
    fn what_comes_again_is_read_and_what_changed_is_read_anew() {
        let mut known = KnownHead::default();
        assert_eq!(read(&known, FIRST.as_bytes(), false), None, "nothing is known");
        parse(Some(&mut known), FIRST.as_bytes(), false).unwrap();
        for (change, to) in [
            ("", ""),
            ("Mon, 1", "Tue, 22"),
            ("Content-Length: 3", "Content-Length: 1234"),
            ("x-a:", "x-a:b c"),
            ("server: s", "server: another one"),
        ] {
            let head = FIRST.replacen(change, to, 1);
            let expected = parse(None, head.as_bytes(), false);
            assert!(expected.is_some());
            assert_eq!(read(&known, head.as_bytes(), false), expected, "{to}");
            assert_eq!(
                read(&known, head.as_bytes(), true),
                parse(None, head.as_bytes(), true),
                "{to} of a HEAD"
            );
        }
    }

    #[test]
    fn what_is_in_doubt_is_left_to_the_parser() {
        let mut known = KnownHead::default();
        parse(Some(&mut known), FIRST.as_bytes(), false).unwrap();
        for (change, to) in [
            ("200 OK", "200 Ok"),
            ("date", "Date"),
            ("server: s", "server: s\u{e9}"),
            ("server: s", "server: s\r\nx-more: 1"),
            ("server: s", "server:  s "),
            ("server: s\r\n", ""),
            ("server: s\r\n", "server: t\n"),
            ("Content-Length: 3", "Content-Length: 3, 4"),
            ("\r\n\r\nabc", "\r\n"),
        ] {
            let head = FIRST.replacen(change, to, 1);
            assert_eq!(read(&known, head.as_bytes(), false), None, "{to}");
        }
        let lines = "a: b\r\n".repeat(MOST_LINES + 1);
        for head in [
            format!("HTTP/1.1 200 OK\r\n{lines}\r\n"),
            format!("HTTP/1.1 200 OK\r\na: {}\r\n\r\n", "b".repeat(LONGEST)),
            "HTTP/1.1 200 OK\na: b\n\n".to_owned(),
        ] {
            parse(Some(&mut known), head.as_bytes(), false).unwrap();
            assert_eq!(read(&known, head.as_bytes(), false), None, "{head}");
        }
    }

    fn head() -> impl Strategy<Value = Vec<u8>> {
        let names = prop::sample::select(vec!["Date", "content-length", "connection", "x"]);
        let values = prop::sample::select(vec![
            "",
            " ",
            "7",
            " 7",
            " 7 ",
            "close",
            " keep-alive",
            "a b",
            "\t",
            "\u{7f}",
            "\u{e9}",
            "1, 1",
            "1, 2",
        ]);
        let ends = prop::sample::select(vec!["\r\n", "\r\n", "\r\n", "\r\n", "\n", "", "\r\n "]);
        let lines = prop::collection::vec((names, values, ends), 0..5);
        let status =
            prop::sample::select(vec!["HTTP/1.1 200 OK", "HTTP/1.0 200", "HTTP/1.1 304 No"]);
        (status, lines).prop_map(|(status, lines)| {
            let mut head = format!("{status}\r\n");
            for (name, value, end) in lines {
                head = format!("{head}{name}:{value}{end}");
            }
            format!("{head}\r\nbody").into_bytes()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]
        #[test]
        fn whatever_is_read_is_what_the_parser_finds(
            first in head(), second in head(), to_head in any::<(bool, bool)>(), cut in 0usize..80,
        ) {
            let mut known = KnownHead::default();
            parse(Some(&mut known), &first, to_head.0);
            let second = &second[..second.len() - cut.min(second.len()) / 8];
            for head in [second, &first] {
                if let Some(found) = read(&known, head, to_head.1) {
                    prop_assert_eq!(Some(found), parse(None, head, to_head.1));
                }
            }
        }
    }
}
