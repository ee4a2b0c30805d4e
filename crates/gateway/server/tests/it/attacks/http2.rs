//! The same over HTTP/2, with raw frames.

use std::io::{Read as _, Write as _};

use super::{Range, first_line};
use crate::support::raw::connect;

/// Additional fields of a request for `GET /files/x` at the host `gateway`. A field replaces one of
/// the same name; with an empty value it is left out; `+` before the name adds it. Then the status,
/// 0 where the stream is reset or the connection ends, and the line that the upstream saw.
type Case = (&'static [(&'static str, &'static str)], u16, &'static str);

pub(super) const CASES: &[Case] = &[
    (&[], 200, "GET /files/x"),
    (&[(":path", "/files/%78?y=%2f")], 200, "GET /files/x?y=%2f"),
    (&[(":path", "/files/private/x")], 403, ""),
    (&[(":path", "/files/%70rivate/x")], 403, ""),
    (&[(":path", "//files/private/x")], 400, ""),
    (&[(":path", "/files//private/x")], 400, ""),
    (&[(":path", "/files/../files/private")], 400, ""),
    (&[(":path", "/files/%2e%2e/private")], 400, ""),
    (&[(":path", "/files%2fprivate")], 400, ""),
    (&[(":path", "/files\\private")], 400, ""),
    (&[(":path", "/files/..;/private")], 400, ""),
    (&[(":path", "/files/%252e")], 400, ""),
    (&[(":path", "/files/%00")], 400, ""),
    (&[(":path", "/files/%ff")], 400, ""),
    // The library cuts a fragment off before anybody sees it.
    (&[(":path", "/files/x#/../private")], 200, "GET /files/x"),
    (&[(":path", "*")], 400, ""),
    (&[(":path", "")], 0, ""),
    (&[(":path", "files/x")], 0, ""),
    (&[("+:path", "/files/private/x")], 0, ""),
    (&[(":method", "get")], 400, ""),
    (&[(":method", "TRACE")], 400, ""),
    (&[(":method", "G T")], 0, ""),
    (&[(":scheme", "ftp")], 400, ""),
    (&[(":scheme", "")], 0, ""),
    (&[(":authority", "other"), ("host", "gateway")], 400, ""),
    (&[(":authority", "gateway"), ("host", "GATEWAY")], 200, "GET /files/x"),
    (&[(":authority", ""), ("host", "gateway")], 200, "GET /files/x"),
    (&[(":authority", "")], 400, ""),
    (&[("host", "gateway"), ("+host", "gateway")], 400, ""),
    (&[(":authority", "u@gateway")], 400, ""),
    (&[("apikey", "guest-key"), ("+apikey", "owner-key")], 400, ""),
    (&[("x-tenant-id", "a")], 403, ""),
    (&[("x-tenant-id", "b"), ("+x-tenant-id", "a")], 400, ""),
    (&[("x_tenant_id", "a")], 400, ""),
    (&[("x-original-url", "/files/private/x")], 400, ""),
    (&[("cookie", "a=1"), ("+cookie", "b=2")], 200, "GET /files/x"),
    (&[("te", "trailers")], 200, "GET /files/x"),
    (&[("te", "gzip")], 0, ""),
    (&[("connection", "x-request-id")], 0, ""),
    (&[("transfer-encoding", "chunked")], 0, ""),
    (&[("upgrade", "websocket")], 0, ""),
    (&[("X-Upper", "1")], 0, ""),
    (&[("x-break", "a\r\nb: c")], 0, ""),
    (&[("x-nul", "a\0b")], 0, ""),
    (&[("content-length", "5")], 0, ""),
    (&[("content-length", "0"), ("+content-length", "0")], 400, ""),
    (&[("content-length", "x")], 0, ""),
    (&[("expect", "x")], 400, ""),
];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The fields of a request: literals without indexing (RFC 7541, 6.2.2).
fn block(changes: &[(&str, &str)]) -> Vec<u8> {
    let mut fields = vec![
        (":method", "GET"),
        (":scheme", "http"),
        (":authority", "gateway"),
        (":path", "/files/x"),
        ("apikey", "guest-key"),
    ];
    for &(name, value) in changes {
        let place = fields.iter().position(|(known, _)| *known == name);
        match (name.strip_prefix('+'), place) {
            (Some(name), _) if name.starts_with(':') => fields.insert(4, (name, value)),
            (Some(name), _) => fields.push((name, value)),
            // An empty path is an attack of its own.
            (None, Some(place)) if value.is_empty() && name != ":path" => {
                fields.remove(place);
            }
            (None, Some(place)) => fields[place].1 = value,
            (None, None) => fields.push((name, value)),
        }
    }
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).unwrap());
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// Sends one request. The status of its response, or 0.
fn ask(range: &Range, changes: &[(&str, &str)]) -> u16 {
    let mut stream = connect(&range.gateway);
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice();
    let bytes = [preface, &frame(4, 0, 0, &[]), &frame(1, 5, 1, &block(changes))].concat();
    stream.write_all(&bytes).unwrap();
    loop {
        let mut head = [0; 9];
        if stream.read_exact(&mut head).is_err() {
            return 0;
        }
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        stream.read_exact(&mut payload).unwrap();
        match head[3] {
            1 => return status(&payload),
            3 | 7 => return 0,
            _ => {}
        }
    }
}

/// The first field of a response, which is `:status` (RFC 7541, appendices A and B).
fn status(block: &[u8]) -> u16 {
    let start = block.iter().position(|byte| byte & 0xe0 != 0x20).unwrap();
    match block[start..] {
        [0x88, ..] => 200,
        [0x8c, ..] => 400,
        [0x8d, ..] => 404,
        [0x48 | 0x08 | 0x18, length, ref rest @ ..] => {
            let text = &rest[..usize::from(length & 0x7f)];
            if length & 0x80 == 0 {
                return std::str::from_utf8(text).unwrap().parse().unwrap();
            }
            huffman_digits(text).parse().unwrap()
        }
        _ => panic!("no status: {block:x?}"),
    }
}

/// Three digits: `0` to `2` have five bits, the others six.
fn huffman_digits(bytes: &[u8]) -> String {
    let bits = bytes.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
    let mut left = bytes.len() * 8;
    let mut text = String::new();
    while text.len() < 3 {
        let five = bits >> (left - 5) & 31;
        let (digit, length) =
            if five < 3 { (five, 5) } else { ((bits >> (left - 6) & 63) - 22, 6) };
        text.push(char::from_digit(digit, 10).unwrap());
        left -= length;
    }
    text
}

#[test]
fn http2_has_the_same_normal_form() {
    let range = Range::new();
    for (changes, expected, line) in CASES {
        let found = ask(&range, changes);
        let seen = range.seen();
        let seen: Vec<_> = seen.iter().map(|head| first_line(head)).collect();
        let lines: &[&str] = if line.is_empty() { &[] } else { &[line] };
        assert_eq!((found, &*seen), (*expected, lines), "{changes:?}");
    }
    range.settle();
}
