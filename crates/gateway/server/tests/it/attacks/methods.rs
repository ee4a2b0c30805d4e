//! Methods, upgrades and tunnels.

use super::{Case, Range};

const BAD: &[&str] = &[];

pub(super) const CASES: &[Case<'_>] = &[
    ("HEAD", "HEAD /files/x HTTP/1.1\r\n@\r\n", 200, &["HEAD /files/x"]),
    ("an extension", "PROPFIND /files/x HTTP/1.1\r\n@\r\n", 200, &["PROPFIND /files/x"]),
    ("DELETE of the protected", "DELETE /files/private/x HTTP/1.1\r\n@\r\n", 403, BAD),
    ("an extension on the protected", "PROPFIND /files/private HTTP/1.1\r\n@\r\n", 403, BAD),
    ("small letters", "get /files/x HTTP/1.1\r\n@\r\n", 400, BAD),
    ("mixed letters", "Get /files/x HTTP/1.1\r\n@\r\n", 400, BAD),
    ("a digit", "GET1 /files/x HTTP/1.1\r\n@\r\n", 400, BAD),
    ("punctuation", "G!T /files/x HTTP/1.1\r\n@\r\n", 400, BAD),
    ("no token", "G(T /files/x HTTP/1.1\r\n@\r\n", 400, BAD),
    ("no method", " /files/x HTTP/1.1\r\n@\r\n", 400, BAD),
    ("a long method", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA /files/x HTTP/1.1\r\n@\r\n", 400, BAD),
    ("TRACE", "TRACE /files/x HTTP/1.1\r\n@\r\n", 400, BAD),
    ("CONNECT", "CONNECT gateway:80 HTTP/1.1\r\n@\r\n", 400, BAD),
    ("CONNECT with a path", "CONNECT /files/x HTTP/1.1\r\n@\r\n", 400, BAD),
    ("CONNECT to another host", "CONNECT 127.0.0.1:22 HTTP/1.1\r\n@\r\n", 400, BAD),
    ("OPTIONS of all", "OPTIONS * HTTP/1.1\r\n@\r\n", 400, BAD),
    ("the preface of HTTP/2, cut", "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", 400, BAD),
    (
        "a method in a header",
        "GET /files/x HTTP/1.1\r\n@x-http-method-override: DELETE\r\n\r\n",
        400,
        BAD,
    ),
    ("a method in X-HTTP-Method", "GET /files/x HTTP/1.1\r\n@X-HTTP-Method: PUT\r\n\r\n", 400, BAD),
    (
        "a method in X-Method-Override",
        "GET /files/x HTTP/1.1\r\n@X-Method-Override: PUT\r\n\r\n",
        400,
        BAD,
    ),
    (
        "a WebSocket",
        "GET /ws/x HTTP/1.1\r\n@connection: upgrade\r\nupgrade: websocket\r\n\r\n",
        101,
        &["GET /ws/x"],
    ),
    (
        "a WebSocket where there is none",
        "GET /files/x HTTP/1.1\r\n@connection: upgrade\r\nupgrade: websocket\r\n\r\n",
        200,
        &["GET /files/x"],
    ),
    (
        "a WebSocket to the protected",
        "GET /files/private/x HTTP/1.1\r\n@connection: upgrade\r\nupgrade: websocket\r\n\r\n",
        403,
        BAD,
    ),
    (
        "a WebSocket over a dot segment",
        "GET /ws/../files/private/x HTTP/1.1\r\n@connection: upgrade\r\nupgrade: websocket\r\n\r\n",
        400,
        BAD,
    ),
    (
        "an upgrade that `connection` does not name is none",
        "GET /ws/x HTTP/1.1\r\n@upgrade: websocket\r\n\r\n",
        200,
        &["GET /ws/x"],
    ),
    (
        "an upgrade to HTTP/2 is none",
        "GET /files/x HTTP/1.1\r\n@connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n\r\n",
        200,
        &["GET /files/x"],
    ),
    (
        "an upgrade to two protocols is none",
        "GET /ws/x HTTP/1.1\r\n@connection: upgrade\r\nupgrade: websocket, h2c\r\n\r\n",
        200,
        &["GET /ws/x"],
    ),
    (
        "two upgrades",
        "GET /ws/x HTTP/1.1\r\n@connection: upgrade\r\nupgrade: websocket\r\nupgrade: h2c\r\n\r\n",
        400,
        BAD,
    ),
    (
        "a WebSocket by POST is none",
        "POST /ws/x HTTP/1.1\r\n@connection: upgrade\r\nupgrade: websocket\r\n\r\n",
        200,
        &["POST /ws/x"],
    ),
    (
        "a WebSocket with a body is none",
        "GET /ws/x HTTP/1.1\r\n@connection: upgrade\r\nupgrade: websocket\r\ncontent-length: 2\r\n\r\nab",
        200,
        &["GET /ws/x"],
    ),
    (
        "a WebSocket in HTTP/1.0 is none",
        "GET /ws/x HTTP/1.0\r\n@connection: upgrade\r\nupgrade: websocket\r\n\r\n",
        200,
        &["GET /ws/x"],
    ),
    (
        "after an upgrade that is none, heads are inspected",
        "GET /files/x HTTP/1.1\r\n@connection: upgrade\r\nupgrade: h2c\r\n\r\n\
         POST /files/y HTTP/1.1\r\n@content-length: 0\r\ncontent-length: 0\r\n\r\n",
        200,
        &["GET /files/x"],
    ),
];

#[test]
fn methods_and_upgrades_open_no_way_around() {
    let range = Range::new();
    range.run(CASES);
}
