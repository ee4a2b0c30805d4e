//! Where a request ends, and lines of its head.

use super::{Case, Range};

const X: &[&str] = &["POST /files/x"];
const TWO: &[&str] = &["POST /files/x", "GET /files/y"];
const BAD: &[&str] = &[];

pub(super) const CASES: &[Case<'_>] = &[
    ("no body", "POST /files/x HTTP/1.1\r\n@\r\n", 200, X),
    ("a length", "POST /files/x HTTP/1.1\r\n@content-length: 2\r\n\r\nab", 200, X),
    (
        "chunks",
        "POST /files/x HTTP/1.1\r\n@transfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
        200,
        X,
    ),
    (
        "chunks, in capitals",
        "POST /files/x HTTP/1.1\r\n@Transfer-Encoding: Chunked\r\n\r\n0\r\n\r\n",
        200,
        X,
    ),
    (
        "a request after a body with a length",
        "POST /files/x HTTP/1.1\r\n@content-length: 2\r\n\r\nabGET /files/y HTTP/1.1\r\n@\r\n",
        200,
        TWO,
    ),
    (
        "a request after chunks",
        "POST /files/x HTTP/1.1\r\n@transfer-encoding: chunked\r\n\r\n2;x\r\nab\r\n0\r\nt: 1\r\n\r\n\
         GET /files/y HTTP/1.1\r\n@\r\n",
        200,
        TWO,
    ),
    (
        "a body that looks like a bad head",
        "POST /files/x HTTP/1.1\r\n@content-length: 40\r\n\r\n\
         content-length: 1\r\ncontent-length: 2\r\n\r\nGET /files/y HTTP/1.1\r\n@\r\n",
        200,
        TWO,
    ),
    (
        "two equal lengths",
        "POST /files/x HTTP/1.1\r\n@content-length: 2\r\ncontent-length: 2\r\n\r\nab",
        400,
        BAD,
    ),
    (
        "two lengths",
        "POST /files/x HTTP/1.1\r\n@content-length: 2\r\ncontent-length: 3\r\n\r\nabc",
        400,
        BAD,
    ),
    (
        "two lengths far apart",
        "POST /files/x HTTP/1.1\r\ncontent-length: 2\r\n@Content-Length: 2\r\n\r\nab",
        400,
        BAD,
    ),
    ("a list of lengths", "POST /files/x HTTP/1.1\r\n@content-length: 2, 2\r\n\r\nab", 400, BAD),
    ("a length with a sign", "POST /files/x HTTP/1.1\r\n@content-length: +2\r\n\r\nab", 400, BAD),
    ("a negative length", "POST /files/x HTTP/1.1\r\n@content-length: -2\r\n\r\nab", 400, BAD),
    ("a length in hex", "POST /files/x HTTP/1.1\r\n@content-length: 0x2\r\n\r\nab", 400, BAD),
    (
        "a length with a fraction",
        "POST /files/x HTTP/1.1\r\n@content-length: 2.0\r\n\r\nab",
        400,
        BAD,
    ),
    ("an empty length", "POST /files/x HTTP/1.1\r\n@content-length:\r\n\r\nab", 400, BAD),
    (
        "a length beyond 64 bits",
        "POST /files/x HTTP/1.1\r\n@content-length: 18446744073709551618\r\n\r\nab",
        400,
        BAD,
    ),
    (
        "a length after much space",
        "POST /files/x HTTP/1.1\r\n@content-length:                                                            2\r\n\r\nab",
        400,
        BAD,
    ),
    (
        "a length larger than allowed",
        "POST /files/x HTTP/1.1\r\n@content-length: 9999999\r\n\r\n",
        413,
        BAD,
    ),
    (
        "length before coding",
        "POST /files/x HTTP/1.1\r\n@content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n\
         0\r\n\r\nGET /files/smuggled HTTP/1.1\r\n@\r\n",
        400,
        BAD,
    ),
    (
        "coding before length",
        "POST /files/x HTTP/1.1\r\n@transfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n\
         0\r\n\r\nGET /files/smuggled HTTP/1.1\r\n@\r\n",
        400,
        BAD,
    ),
    (
        "two codings",
        "POST /files/x HTTP/1.1\r\n@transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
        BAD,
    ),
    (
        "coding twice in a list",
        "POST /files/x HTTP/1.1\r\n@transfer-encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        400,
        BAD,
    ),
    (
        "gzip, chunked",
        "POST /files/x HTTP/1.1\r\n@transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        400,
        BAD,
    ),
    (
        "chunked, identity",
        "POST /files/x HTTP/1.1\r\n@transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        400,
        BAD,
    ),
    ("identity", "POST /files/x HTTP/1.1\r\n@transfer-encoding: identity\r\n\r\n", 400, BAD),
    (
        "xchunked",
        "POST /files/x HTTP/1.1\r\n@transfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
        400,
        BAD,
    ),
    (
        "a quoted coding",
        "POST /files/x HTTP/1.1\r\n@transfer-encoding: \"chunked\"\r\n\r\n0\r\n\r\n",
        400,
        BAD,
    ),
    (
        "a coding with a parameter",
        "POST /files/x HTTP/1.1\r\n@transfer-encoding: chunked;q=1\r\n\r\n0\r\n\r\n",
        400,
        BAD,
    ),
    (
        "a coding after a vertical tab",
        "POST /files/x HTTP/1.1\r\n@transfer-encoding: \u{b}chunked\r\n\r\n0\r\n\r\n",
        400,
        BAD,
    ),
    (
        "a coding in HTTP/1.0",
        "POST /files/x HTTP/1.0\r\n@transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
        BAD,
    ),
    (
        "a space before the colon",
        "POST /files/x HTTP/1.1\r\n@transfer-encoding : chunked\r\n\r\n0\r\n\r\n",
        400,
        BAD,
    ),
    ("a folded line", "GET /files/x HTTP/1.1\r\n@a: b\r\n c\r\n\r\n", 400, BAD),
    (
        "a folded coding",
        "POST /files/x HTTP/1.1\r\n@transfer-encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
        400,
        BAD,
    ),
    ("a folded first line", "GET /files/x HTTP/1.1\r\n a: b\r\n@\r\n", 400, BAD),
    ("a bare line feed after the request line", "GET /files/x HTTP/1.1\n@\r\n", 400, BAD),
    ("a bare line feed after a header", "GET /files/x HTTP/1.1\r\n@a: b\nc: d\r\n\r\n", 400, BAD),
    ("a bare line feed at the end", "GET /files/x HTTP/1.1\r\n@\n", 400, BAD),
    ("a bare carriage return", "GET /files/x HTTP/1.1\r\n@a: b\rc: d\r\n\r\n", 400, BAD),
    ("a NUL in a value", "GET /files/x HTTP/1.1\r\n@a: b\0c\r\n\r\n", 400, BAD),
    ("a NUL in a name", "GET /files/x HTTP/1.1\r\n@a\0: b\r\n\r\n", 400, BAD),
    ("a line without a colon", "GET /files/x HTTP/1.1\r\n@abc\r\n\r\n", 400, BAD),
    ("an empty name", "GET /files/x HTTP/1.1\r\n@: b\r\n\r\n", 400, BAD),
    ("two spaces in the request line", "GET  /files/x HTTP/1.1\r\n@\r\n", 400, BAD),
    ("a tab in the request line", "GET\t/files/x\tHTTP/1.1\r\n@\r\n", 400, BAD),
    ("no version", "GET /files/x\r\n@\r\n", 400, BAD),
    ("HTTP/1.2", "GET /files/x HTTP/1.2\r\n@\r\n", 400, BAD),
    ("HTTP/2.0 in a line", "GET /files/x HTTP/2.0\r\n@\r\n", 400, BAD),
    ("http in small letters", "GET /files/x http/1.1\r\n@\r\n", 400, BAD),
    (
        "a chunk without size",
        "POST /files/x HTTP/1.1\r\n@transfer-encoding: chunked\r\n\r\n\r\nab\r\n0\r\n\r\n",
        400,
        BAD,
    ),
    (
        "a chunk size beyond 64 bits",
        "POST /files/x HTTP/1.1\r\n@transfer-encoding: chunked\r\n\r\n10000000000000002\r\nab\r\n0\r\n\r\n",
        400,
        BAD,
    ),
    (
        "a chunk size with a bare line feed",
        "POST /files/x HTTP/1.1\r\n@transfer-encoding: chunked\r\n\r\n2\nab\r\n0\r\n\r\n",
        400,
        BAD,
    ),
    (
        "a chunk longer than its size",
        "POST /files/x HTTP/1.1\r\n@transfer-encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
        400,
        BAD,
    ),
    (
        "a good request, then two lengths",
        "GET /files/y HTTP/1.1\r\n@\r\nPOST /files/x HTTP/1.1\r\n@content-length: 0\r\ncontent-length: 0\r\n\r\n",
        200,
        &["GET /files/y"],
    ),
    (
        "nothing after a refused head is served",
        "GET //x HTTP/1.1\r\n@\r\nGET /files/y HTTP/1.1\r\n@\r\n",
        400,
        BAD,
    ),
];

#[test]
fn a_request_has_one_end_or_is_refused() {
    let range = Range::new();
    range.run(CASES);
}
