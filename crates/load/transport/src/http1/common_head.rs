//! Reads a response head of the form that nearly all have, in half the steps of the general parser,
//! which reads all others.

use httparse::Header;
use memchr::memchr;

/// The most header lines of such a head.
pub(super) const MAX_LINES: usize = 32;

/// A head of the common form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CommonHead {
    pub(super) status: u16,
    /// Of HTTP/1.`minor`.
    pub(super) minor: u8,
    /// Its header lines.
    pub(super) lines: usize,
    /// Its length in bytes, with the empty line.
    pub(super) length: usize,
}

/// Reads a head at the start of `bytes`. `None` if it is not complete, or not of the common form:
/// all lines end with CR LF and consist of printable ASCII, and a value has no white space around
/// it but one space before it. Such a head means the same to the general parser.
pub(super) fn read<'b>(
    bytes: &'b [u8],
    headers: &mut [Header<'b>; MAX_LINES],
) -> Option<CommonHead> {
    let (first, mut length) = line(bytes, 0)?;
    let (minor, status) = status_line(first)?;
    let mut lines = 0;
    loop {
        let (line, next) = line(bytes, length)?;
        length = next;
        if line.is_empty() {
            return Some(CommonHead { status, minor, lines, length });
        }
        *headers.get_mut(lines)? = header(line)?;
        lines += 1;
    }
}

/// The line that begins at `from`, and where the next one does.
#[inline]
fn line(bytes: &[u8], from: usize) -> Option<(&[u8], usize)> {
    let rest = &bytes[from..];
    let end = memchr(b'\n', rest)?;
    let line = rest[..end].strip_suffix(b"\r")?;
    let printable = |all: bool, byte: &u8| all & (b' '..=b'~').contains(byte);
    line.iter().fold(true, printable).then_some((line, from + end + 1))
}

/// The minor version and the status of a status line.
fn status_line(line: &[u8]) -> Option<(u8, u16)> {
    let (start, reason) = line.split_first_chunk::<12>()?;
    let [b'H', b'T', b'T', b'P', b'/', b'1', b'.', minor @ b'0'..=b'1', b' ', status @ ..] = start
    else {
        return None;
    };
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| u16::from(byte - b'0'));
    let status = status.iter().try_fold(0, |status, byte| Some(status * 10 + digit(byte)?))?;
    matches!(reason, [] | [b' ', ..]).then_some((minor - b'0', status))
}

#[inline]
fn header(line: &[u8]) -> Option<Header<'_>> {
    let colon = line.iter().position(|byte| !IS_TOKEN[usize::from(*byte)])?;
    let (name, value) = (&line[..colon], line[colon..].strip_prefix(b":")?);
    let value = value.strip_prefix(b" ").unwrap_or(value);
    let has_space = value.first() == Some(&b' ') || value.last() == Some(&b' ');
    let name = str::from_utf8(name).ok()?;
    (!name.is_empty() && !has_space).then_some(Header { name, value })
}

/// Whether a byte is a character of a header's name (RFC 9110, 5.6.2).
static IS_TOKEN: [bool; 256] = {
    let others = b"!#$%&'*+-.^_`|~";
    let mut is_token = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        is_token[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    let mut other = 0;
    while other < others.len() {
        is_token[others[other] as usize] = true;
        other += 1;
    }
    is_token
};

#[cfg(test)]
mod tests {
    use httparse::{EMPTY_HEADER, Response, Status};
    use proptest::prelude::*;

    use super::*;

    fn read_all(bytes: &[u8]) -> Option<(CommonHead, Vec<Header<'_>>)> {
        let mut headers = [EMPTY_HEADER; MAX_LINES];
        let head = read(bytes, &mut headers)?;
        Some((head, headers[..head.lines].to_vec()))
    }

    /// What the general parser reads.
    fn general(bytes: &[u8]) -> Option<(CommonHead, Vec<Header<'_>>)> {
        let mut headers = [EMPTY_HEADER; 2 * MAX_LINES];
        let mut response = Response::new(&mut headers);
        let Ok(Status::Complete(length)) = response.parse(bytes) else { return None };
        let (status, minor, lines) = (response.code?, response.version?, response.headers.len());
        Some((CommonHead { status, minor, lines, length }, response.headers.to_vec()))
    }

    #[test]
    fn heads_of_the_common_form_are_read_as_the_general_parser_reads_them() {
        for head in [
            "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Sun, 23 Nov 2025 05:00:00 GMT\r\nContent-Length: 37\r\n\r\nbody",
            "HTTP/1.0 404\r\n\r\n",
            "HTTP/1.1 503 \r\nx-a:1\r\nempty:\r\n\r\n",
        ] {
            assert_eq!(read_all(head.as_bytes()), general(head.as_bytes()), "{head}");
            assert!(read_all(head.as_bytes()).is_some(), "{head}");
        }
    }

    #[test]
    fn heads_of_any_other_form_are_left_to_the_general_parser() {
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(MAX_LINES + 1));
        for head in [
            "",
            "HTTP/1.1 200 OK\r\na: b\r\n",
            "HTTP/1.1 200 OK\n\n",
            "\r\nHTTP/1.1 200 OK\r\n\r\n",
            "HTTP/2.0 200 OK\r\n\r\n",
            "HTTP/1.1 2000\r\n\r\n",
            "HTTP/1.1 200 OK\r\na:  b\r\n\r\n",
            "HTTP/1.1 200 OK\r\na: b \r\n\r\n",
            "HTTP/1.1 200 OK\r\na: b\tc\r\n\r\n",
            "HTTP/1.1 200 OK\r\na b: c\r\n\r\n",
            "HTTP/1.1 200 OK\r\n: c\r\n\r\n",
            "HTTP/1.1 200 OK\r\na: \u{fc}\r\n\r\n",
            &many,
        ] {
            assert_eq!(read_all(head.as_bytes()), None, "{head}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_means_the_same_to_the_general_parser(
            parts in prop::collection::vec(prop::sample::select(vec![
                "HTTP/1.1", " 200", " OK", "\r\n", "\r\n", "\r\n", "\r", "\n", "content-length", ":", ": ", ": 3",
                "a", "B-_", " ", "\t", "\u{7f}", "\u{fc}", "\0", "\"", "/", "(", "~",
            ]), 0..14),
            is_response in any::<bool>(),
        ) {
            let start = if is_response { "HTTP/1.1 200 OK\r\n" } else { "" };
            let text = format!("{start}{}\r\n\r\n", parts.concat());
            if let Some(found) = read_all(text.as_bytes()) {
                prop_assert_eq!(Some(found), general(text.as_bytes()), "{}", text);
            }
        }
    }
}
