//! Headers: those of this hop, those that the gateway needs, and those that replace others.

use super::{GUEST, Range};

/// The headers, the status, and texts that the upstream's head has, or does not have if the text
/// starts with `!`.
pub(super) const CASES: &[(&str, u16, &[&str])] = &[
    ("", 200, &["x-request-id: "]),
    ("x-request-id: mine\r\n", 200, &["x-request-id: mine\r\n"]),
    ("connection: close\r\n", 200, &["!connection"]),
    ("connection: keep-alive, x-hop\r\nx-hop: 1\r\n", 200, &["!x-hop", "!connection"]),
    (
        "connection: x-hop\r\nconnection: x-two\r\nx-hop: 1\r\nx-two: 2\r\n",
        200,
        &["!x-hop", "!x-two"],
    ),
    ("Connection: X-Hop\r\nx-hOP: 1\r\n", 200, &["!x-hop"]),
    ("connection: ,, x-hop ,\r\nx-hop: 1\r\n", 200, &["!x-hop"]),
    ("keep-alive: timeout=5\r\n", 200, &["!keep-alive"]),
    ("proxy-connection: keep-alive\r\n", 200, &["!proxy-connection"]),
    ("proxy-authorization: Basic eA==\r\n", 200, &["!proxy-authorization"]),
    ("te: trailers\r\n", 200, &["!te: "]),
    ("trailer: x\r\n", 200, &["!trailer"]),
    ("upgrade: x\r\n", 200, &["!upgrade"]),
    ("http2-settings: x\r\n", 200, &["!http2-settings"]),
    ("accept: a\r\naccept: b\r\n", 200, &["accept: a\r\n", "accept: b\r\n"]),
    ("cookie: a=1; b=2\r\n", 200, &["cookie: a=1; b=2\r\n"]),
    ("x_other: 1\r\n", 200, &["x_other: 1"]),
    (
        "authorization: Bearer theirs\r\n",
        200,
        &["authorization: bearer theirs", "!apikey", "!guest-key"],
    ),
    ("x-tenant-id: b\r\n", 200, &["x-tenant-id: b"]),
    // Headers that the gateway needs cannot be removed.
    ("connection: x-request-id\r\nx-request-id: a\r\n", 400, &[]),
    ("connection: close, X-Request-Id\r\n", 400, &[]),
    ("connection: apikey\r\n", 400, &[]),
    ("connection: x-tenant-id\r\nx-tenant-id: b\r\n", 400, &[]),
    ("connection: host\r\n", 400, &[]),
    ("connection: content-length\r\n", 400, &[]),
    ("connection: content-type\r\n", 400, &[]),
    ("connection: authorization\r\n", 400, &[]),
    ("connection: cookie\r\n", 400, &[]),
    ("connection: x-forwarded-for\r\n", 400, &[]),
    ("connection: x-api-key\r\n", 400, &[]),
    ("connection: a b\r\n", 400, &[]),
    ("connection: a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a\r\n", 400, &[]),
    ("connection: \"close\"\r\n", 400, &[]),
    // Two where there is one.
    ("apikey: owner-key\r\n", 400, &[]),
    ("apikey: guest-key\r\n", 400, &[]),
    ("x-tenant-id: b\r\nx-tenant-id: a\r\n", 400, &[]),
    ("x-request-id: a\r\nx-request-id: b\r\n", 400, &[]),
    ("authorization: Bearer a\r\nauthorization: Bearer b\r\n", 400, &[]),
    ("content-type: a/b\r\ncontent-type: c/d\r\n", 400, &[]),
    ("content-encoding: gzip\r\ncontent-encoding: br\r\n", 400, &[]),
    ("cookie: a=1\r\ncookie: b=2\r\n", 400, &[]),
    ("x-api-key: a\r\nx-api-key: b\r\n", 400, &[]),
    // Other spellings of what the gateway needs.
    ("x_tenant_id: a\r\n", 400, &[]),
    ("X_Request_Id: a\r\n", 400, &[]),
    ("x_forwarded_for: 127.0.0.1\r\n", 400, &[]),
    ("content_length: 5\r\n", 400, &[]),
    ("x-tenant_id: a\r\n", 400, &[]),
    // Headers that replace path or method at some servers.
    ("x-original-url: /files/private/x\r\n", 400, &[]),
    ("X-Rewrite-URL: /files/private/x\r\n", 400, &[]),
    ("x-original-method: DELETE\r\n", 400, &[]),
    ("x_http_method_override: DELETE\r\n", 400, &[]),
    ("x-http_method-override: DELETE\r\n", 400, &[]),
    ("x.http.method.override: DELETE\r\n", 400, &[]),
    ("X-Original_URL: /files/private/x\r\n", 400, &[]),
    ("x-http-verb: DELETE\r\n", 400, &[]),
    ("x-override-url: /x\r\n", 400, &[]),
    // Headers reserved for proxies, and headers that servers trust.
    ("x-original-uri: /files/private/x\r\n", 200, &["!x-original-uri"]),
    ("x_original_uri: /files/private/x\r\n", 200, &["!x_original_uri"]),
    ("x-envoy-original-path: /x\r\n", 200, &["!x-envoy"]),
    ("x-forwarded-prefix: /x\r\nx_forwarded_prefix: /y\r\n", 200, &["!x-forwarded-prefix", "!x_f"]),
    ("proxy: http://evil\r\n", 200, &["!proxy"]),
    ("script-name: /x\r\npath_info: /y\r\n", 200, &["!script", "!path"]),
    ("x-accel-redirect: /x\r\nx-sendfile: /y\r\n", 200, &["!x-accel", "!x-sendfile"]),
    ("x-host: evil\r\n", 200, &["!x-host"]),
    ("x-note_1: a\r\n", 200, &["x-note_1: a"]),
    // Expectations.
    ("expect: 100-continue\r\n", 200, &["!expect"]),
    ("expect: 200-ok\r\n", 400, &[]),
    ("expect: 100-continue\r\nexpect: x\r\n", 400, &[]),
    // The caller's identity.
    ("x-tenant-id: a\r\n", 403, &[]),
    ("x-tenant-id:\r\n", 400, &[]),
];

#[test]
fn headers_pass_that_mean_one_thing() {
    let range = Range::new();
    for (headers, status, texts) in CASES {
        let request = format!("GET /files/x HTTP/1.1\r\n{GUEST}{headers}\r\n");
        let mut found = range.send(request.as_bytes());
        if headers.starts_with("expect: 100-continue") && found == 100 {
            // The interim response comes first.
            found = 200;
        }
        let seen = range.seen();
        assert_eq!((found, seen.len()), (*status, usize::from(*status == 200)), "{headers:?}");
        let head = seen.first().map(|head| head.to_ascii_lowercase()).unwrap_or_default();
        for text in *texts {
            let (text, wanted) = text.strip_prefix('!').map_or((*text, true), |text| (text, false));
            let has = head.contains(&format!("\r\n{text}"));
            assert_eq!(has, wanted, "{headers:?}: `{text}` in {head:?}");
        }
    }
    range.settle();
}
