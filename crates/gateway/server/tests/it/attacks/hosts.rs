//! Hosts. The key is in each request; the host is written out.

use super::{Case, Range};

const X: &[&str] = &["GET /files/x"];

pub(super) const CASES: &[Case<'_>] = &[
    ("a name", "GET /files/x HTTP/1.1\r\nhost: gateway\r\napikey: guest-key\r\n\r\n", 200, X),
    (
        "a name and port",
        "GET /files/x HTTP/1.1\r\nhost: gateway:80\r\napikey: guest-key\r\n\r\n",
        200,
        X,
    ),
    ("IPv4", "GET /files/x HTTP/1.1\r\nhost: 127.0.0.1:80\r\napikey: guest-key\r\n\r\n", 200, X),
    ("IPv6", "GET /files/x HTTP/1.1\r\nhost: [::1]:80\r\napikey: guest-key\r\n\r\n", 200, X),
    ("HTTP/1.0 without host", "GET /files/x HTTP/1.0\r\napikey: guest-key\r\n\r\n", 200, X),
    ("none", "GET /files/x HTTP/1.1\r\napikey: guest-key\r\n\r\n", 400, &[]),
    ("two equal", "GET /files/x HTTP/1.1\r\n@host: gateway\r\n\r\n", 400, &[]),
    ("two different", "GET /files/x HTTP/1.1\r\n@Host: other\r\n\r\n", 400, &[]),
    ("two in HTTP/1.0", "GET /files/x HTTP/1.0\r\n@host: other\r\n\r\n", 400, &[]),
    ("empty", "GET /files/x HTTP/1.1\r\nhost:\r\napikey: guest-key\r\n\r\n", 400, &[]),
    ("a list", "GET /files/x HTTP/1.1\r\nhost: a, b\r\napikey: guest-key\r\n\r\n", 400, &[]),
    ("two words", "GET /files/x HTTP/1.1\r\nhost: a b\r\napikey: guest-key\r\n\r\n", 400, &[]),
    (
        "a user",
        "GET /files/x HTTP/1.1\r\nhost: u\u{1}gateway\r\napikey: guest-key\r\n\r\n",
        400,
        &[],
    ),
    (
        "a password",
        "GET /files/x HTTP/1.1\r\nhost: u:p\u{1}gateway\r\napikey: guest-key\r\n\r\n",
        400,
        &[],
    ),
    ("a path", "GET /files/x HTTP/1.1\r\nhost: gateway/x\r\napikey: guest-key\r\n\r\n", 400, &[]),
    ("a query", "GET /files/x HTTP/1.1\r\nhost: gateway?x\r\napikey: guest-key\r\n\r\n", 400, &[]),
    (
        "a fragment",
        "GET /files/x HTTP/1.1\r\nhost: gateway#x\r\napikey: guest-key\r\n\r\n",
        400,
        &[],
    ),
    (
        "a scheme",
        "GET /files/x HTTP/1.1\r\nhost: http://gateway\r\napikey: guest-key\r\n\r\n",
        400,
        &[],
    ),
    (
        "an empty port",
        "GET /files/x HTTP/1.1\r\nhost: gateway:\r\napikey: guest-key\r\n\r\n",
        400,
        &[],
    ),
    ("port 0", "GET /files/x HTTP/1.1\r\nhost: gateway:0\r\napikey: guest-key\r\n\r\n", 400, &[]),
    (
        "port 65536",
        "GET /files/x HTTP/1.1\r\nhost: gateway:65536\r\napikey: guest-key\r\n\r\n",
        400,
        &[],
    ),
    (
        "a named port",
        "GET /files/x HTTP/1.1\r\nhost: gateway:http\r\napikey: guest-key\r\n\r\n",
        400,
        &[],
    ),
    (
        "two ports",
        "GET /files/x HTTP/1.1\r\nhost: gateway:80:81\r\napikey: guest-key\r\n\r\n",
        400,
        &[],
    ),
    (
        "an open bracket",
        "GET /files/x HTTP/1.1\r\nhost: [::1\r\napikey: guest-key\r\n\r\n",
        400,
        &[],
    ),
    (
        "a zone",
        "GET /files/x HTTP/1.1\r\nhost: [fe80::1%25a]\r\napikey: guest-key\r\n\r\n",
        400,
        &[],
    ),
    (
        "IPv6 without brackets",
        "GET /files/x HTTP/1.1\r\nhost: ::1\r\napikey: guest-key\r\n\r\n",
        400,
        &[],
    ),
    (
        "percent encoding",
        "GET /files/x HTTP/1.1\r\nhost: gate%77ay\r\napikey: guest-key\r\n\r\n",
        400,
        &[],
    ),
    (
        "not ASCII",
        "GET /files/x HTTP/1.1\r\nhost: g\u{e4}teway\r\napikey: guest-key\r\n\r\n",
        400,
        &[],
    ),
    (
        "a leading dot",
        "GET /files/x HTTP/1.1\r\nhost: .gateway\r\napikey: guest-key\r\n\r\n",
        400,
        &[],
    ),
    (
        "a whole URL without the header",
        "GET http://gateway/files/x HTTP/1.1\r\napikey: guest-key\r\n\r\n",
        400,
        &[],
    ),
    (
        "a whole URL with two headers",
        "GET http://gateway/files/x HTTP/1.1\r\n@host: gateway\r\n\r\n",
        400,
        &[],
    ),
];

#[test]
fn a_request_names_one_host() {
    let range = Range::new();
    range.run(CASES);
}
