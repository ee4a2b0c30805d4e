use hyper::header::{HeaderName, HeaderValue};

use super::*;

#[test]
fn equivalent_paths_have_one_form() {
    for (written, normal) in [
        ("/", None),
        ("/files/private/x", None),
        ("/a/b/", None),
        ("/a:b@c!$&'()*+,=-._~", None),
        ("/a%20b", None),
        ("/caf%C3%A9", None),
        ("/50%25/x", None),
        ("/a%2Bb", None),
        ("/%3Fq%23f", None),
        ("/...", None),
        ("/.hidden/a..b/..c", None),
        ("/files/%70rivate/x", Some("/files/private/x")),
        ("/files/%50rivate", Some("/files/Private")),
        ("/caf%c3%a9", Some("/caf%C3%A9")),
        ("/%e2%82%AC/%f0%9f%98%80", Some("/%E2%82%AC/%F0%9F%98%80")),
        ("/a%2bb", Some("/a%2Bb")),
        ("/a%3ab%40c%2Dd%7e", Some("/a:b@c-d~")),
        ("/%5b%5D%7B%7d", Some("/%5B%5D%7B%7D")),
        ("/a[1]{b}|\"^`<>", Some("/a%5B1%5D%7Bb%7D%7C%22%5E%60%3C%3E")),
        ("/a%20%62", Some("/a%20b")),
        ("/x/%2e%2e%2e", Some("/x/...")),
        ("/%25z%41", Some("/%25zA")),
    ] {
        assert_eq!(path(written), Ok(normal.map(str::to_owned)), "{written}");
        let normal = normal.unwrap_or(written);
        assert_eq!(path(normal), Ok(None), "the form of `{written}` is its own form");
    }
}

#[test]
fn what_servers_read_differently_has_no_form() {
    for written in [
        "",
        "*",
        "files",
        "//",
        "//files",
        "/files//private",
        "/a//",
        "/.",
        "/..",
        "/a/./b",
        "/a/../b",
        "/a/..",
        "/a/%2e/b",
        "/a/%2E%2e/b",
        "/a/.%2e",
        "/a%2fb",
        "/a%2Fb",
        "/a\\b",
        "/a%5cb",
        "/a;x=1/b",
        "/a%3bx",
        "/..;/b",
        "/a%00",
        "/a%0a",
        "/a%7f",
        "/a%",
        "/a%4",
        "/a%zz",
        "/a%%",
        "/a%252e",
        "/a%25%32e",
        "/a%2525%32%66",
        "/a%25%32%65",
        "/%ff",
        "/%c0%af",
        "/%e0%80%af",
        "/%c3",
        "/%c3/%a9",
        "/%ed%a0%80",
        "/%f8%88%80%80%80",
        "/%c2%85",
        "/caf\u{e9}",
        "/a b",
        "/a\t",
        "/a\u{7f}",
        "/\0",
    ] {
        assert!(path(written).is_err(), "{written:?}: {:?}", path(written));
    }
}

#[test]
fn the_normal_form_keeps_what_the_path_means() {
    // Decoding uses separate code here: one step, byte by byte.
    let mut seed = 7_u64;
    let mut drawn = 0;
    let alphabet = b"ab./%2eEfF5c0;~+A";
    for _ in 0..200_000 {
        let mut text = String::from("/");
        for _ in 0..8 {
            seed = crate::base::rng::splitmix64(seed);
            let pick = usize::try_from(seed >> 33).unwrap() % alphabet.len();
            text.push(char::from(alphabet[pick]));
        }
        let Ok(normal) = path(&text) else { continue };
        drawn += 1;
        let normal = normal.unwrap_or_else(|| text.clone());
        assert_eq!(path(&normal), Ok(None), "{text} -> {normal}");
        assert_eq!(decode_once(&text), decode_once(&normal), "{text} -> {normal}");
        let decoded = decode_once(&normal);
        assert_eq!(decode_once(&decoded), decoded, "{text} is encoded once at most");
        assert!(!decoded.contains("//") && !decoded.contains(';'), "{text}");
        assert!(decoded.split('/').all(|part| part != "." && part != ".."), "{text}");
        assert_eq!(decoded.matches('/').count(), normal.matches('/').count(), "{text}");
    }
    assert!(drawn > 1_000, "{drawn}");
}

fn decode_once(text: &str) -> String {
    let mut parts = text.split('%');
    let mut decoded = parts.next().unwrap().to_owned();
    for part in parts {
        let digits = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match digits {
            Some(byte) if !part.starts_with('+') => {
                decoded.push(char::from(byte));
                decoded.push_str(&part[2..]);
            }
            _ => {
                decoded.push('%');
                decoded.push_str(part);
            }
        }
    }
    decoded
}

#[test]
fn a_template_must_be_normal() {
    for (template, normal) in [
        ("/", true),
        ("/*", true),
        ("/v1/items/{id}", true),
        ("/files/*", true),
        ("/.well-known/agent.json", true),
        ("/%70rivate/*", false),
        ("/a//b", false),
        ("/a/../b", false),
        ("/a+b", false),
        ("/a;b", false),
        ("files", false),
        ("/caf\u{e9}", false),
        ("/caf%C3%A9", true),
    ] {
        assert_eq!(is_normal_template(template), normal, "{template}");
    }
}

#[test]
fn a_part_of_a_path_is_decoded_for_comparison() {
    for (part, text) in [("retail", "retail"), ("a%20b", "a b"), ("caf%C3%A9", "caf\u{e9}")] {
        assert_eq!(decoded(part), text);
    }
}

#[test]
fn queries_are_kept_or_refused() {
    for (text, kept) in [
        ("", true),
        ("a=1&b=%2f..;//[x]{}|\\", true),
        ("a=%0a", true),
        ("a=%00", false),
        ("a=%", false),
        ("a=%g0", false),
        ("a=\u{e9}", false),
        ("a b", false),
    ] {
        assert_eq!(query(text).is_ok(), kept, "{text:?}");
    }
}

#[test]
fn a_host_is_a_name_or_an_address() {
    for (value, valid) in [
        ("gateway", true),
        ("gateway.example.com:8080", true),
        ("my_host-1.", true),
        ("127.0.0.1:1", true),
        ("[::1]", true),
        ("[2001:db8::1]:65535", true),
        ("", false),
        (":80", false),
        ("gateway:", false),
        ("gateway:0", false),
        ("gateway:65536", false),
        ("gateway:+80", false),
        ("user@gateway", false),
        ("user:password@gateway", false),
        ("gateway/path", false),
        ("gateway, other", false),
        ("gateway other", false),
        ("a%20b", false),
        ("[::1", false),
        ("[::1]x", false),
        ("[::1%25eth0]", false),
        ("[127.0.0.1]", false),
        ("caf\u{e9}", false),
        (".gateway", false),
    ] {
        assert_eq!(host(value.as_bytes()).is_ok(), valid, "{value:?}");
    }
    assert!(host(&b"a".repeat(256)).is_err());
}

fn request(method: &str, target: &str, headers: &[(&str, &str)]) -> Request<()> {
    let mut request = Request::new(());
    *request.method_mut() = method.parse().unwrap();
    *request.uri_mut() = target.parse().unwrap();
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        request.headers_mut().append(name, HeaderValue::from_str(value).unwrap());
    }
    request
}

fn owned() -> OwnedHeaders {
    OwnedHeaders::new(["apikey", "x-tenant-id", "x-request-id"].map(HeaderName::from_static))
}

type Case = (&'static str, &'static [(&'static str, &'static str)], Option<&'static str>);

#[test]
fn headers_that_can_be_read_in_two_ways_are_refused() {
    let cases: [Case; 20] = [
        ("/", &[("host", "x")], None),
        ("/", &[], Some("invalid_host")),
        ("/", &[("host", "x"), ("host", "x")], Some("invalid_host")),
        ("/", &[("host", "u@x")], Some("invalid_host")),
        ("http://x/", &[("host", "X")], None),
        ("http://x/", &[("host", "y")], Some("invalid_host")),
        ("http://x/", &[], Some("invalid_host")),
        ("ftp://x/", &[("host", "x")], Some("invalid_target")),
        ("x:80", &[("host", "x")], Some("invalid_target")),
        ("/", &[("host", "x"), ("apikey", "a"), ("apikey", "b")], Some("invalid_header")),
        ("/", &[("host", "x"), ("accept", "a"), ("accept", "b")], None),
        ("/", &[("host", "x"), ("x_tenant_id", "a")], Some("invalid_header")),
        ("/", &[("host", "x"), ("x_other", "a")], None),
        ("/", &[("host", "x"), ("x-original-url", "/b")], Some("invalid_header")),
        ("/", &[("host", "x"), ("connection", "close, x-request-id")], Some("invalid_header")),
        ("/", &[("host", "x"), ("connection", "x y")], Some("invalid_header")),
        ("/", &[("host", "x"), ("connection", "x-hop"), ("x-hop", "1")], None),
        ("/", &[("host", "x"), ("transfer-encoding", "gzip, chunked")], Some("invalid_framing")),
        ("/", &[("host", "x"), ("expect", "200-ok")], Some("invalid_header")),
        ("/", &[("host", "x"), ("cookie", "a=1"), ("cookie", "b=2")], Some("invalid_header")),
    ];
    for (target, headers, expected) in cases {
        let mut request = request("GET", target, headers);
        let found = normalise(&mut request, &owned()).err().map(|refusal| refusal.code);
        assert_eq!(found, expected, "{target} {headers:?}");
    }
}

#[test]
fn only_upper_case_methods_that_are_no_tunnel_or_echo_are_taken() {
    for (method, taken) in [
        ("GET", true),
        ("PROPFIND", true),
        ("M-SEARCH", true),
        ("get", false),
        ("Get", false),
        ("CONNECT", false),
        ("TRACE", false),
        ("G.T", false),
        ("ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG", false),
    ] {
        let mut request = request(method, "/", &[("host", "x")]);
        assert_eq!(normalise(&mut request, &owned()).is_ok(), taken, "{method}");
    }
}

#[test]
fn the_form_has_a_path_and_no_headers_of_this_hop() {
    let mut request = request(
        "GET",
        "http://x/%61?b=%63",
        &[
            ("host", "x"),
            ("connection", "keep-alive, x-hop"),
            ("x-hop", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("expect", "100-continue"),
            ("upgrade", "h2c"),
            ("accept", "*/*"),
        ],
    );
    normalise(&mut request, &owned()).unwrap();
    assert_eq!(request.uri(), "/a?b=%63");
    let names: Vec<_> = request.headers().keys().map(HeaderName::as_str).collect();
    assert_eq!(names, ["host", "accept"]);
}

#[test]
fn http2_may_name_the_host_and_split_cookies() {
    let headers = [("cookie", "a=1"), ("cookie", "b=2")];
    let mut request = request("GET", "http://x/%61", &headers);
    *request.version_mut() = Version::HTTP_2;
    normalise(&mut request, &owned()).unwrap();
    assert_eq!(request.uri(), "/a");
    assert_eq!(request.headers()["cookie"], "a=1; b=2");
}

/// The fault in a connection's bytes, which must not depend on how they are split.
fn fault(text: &str) -> Option<(u64, WireFault)> {
    let whole = inspect(text, text.len().max(1));
    for piece in [1, 2, 3, 7] {
        assert_eq!(inspect(text, piece), whole, "{piece}: {text:?}");
    }
    whole
}

fn inspect(text: &str, piece: usize) -> Option<(u64, WireFault)> {
    let mut inspector = WireInspector::default();
    text.as_bytes().chunks(piece).for_each(|part| inspector.feed(part));
    inspector.first_fault()
}

#[test]
fn what_the_library_corrects_in_a_head_is_found() {
    use WireFault::{BareLineFeed, Coding, FoldedLine, Fragment, Lengths, LostFraming};
    let get = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";
    let post = "POST / HTTP/1.1\r\n";
    for (text, expected) in [
        (get.to_owned(), None),
        (format!("\r\n\r\n{get}"), None),
        (format!("{post}content-length: 3\r\n\r\nabc{get}"), None),
        (format!("{post}Content-Length:3\r\n\r\nabc"), None),
        (format!("{post}x-content-length: 3\r\ncontent-length: 0\r\n\r\n"), None),
        (format!("{post}content-length: 3\r\ncontent-length: 3\r\n\r\n"), Some((1, Lengths))),
        (format!("{post}content-length: 3, 3\r\n\r\n"), Some((1, Lengths))),
        (format!("{post}content-length: +3\r\n\r\n"), Some((1, Lengths))),
        (format!("{post}content-length: \r\n\r\n"), Some((1, Lengths))),
        (format!("{post}content-length:{}3\r\n\r\n", " ".repeat(60)), Some((1, Lengths))),
        (
            format!("{post}content-length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"),
            Some((1, Lengths)),
        ),
        (
            format!("{post}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n"),
            Some((1, Lengths)),
        ),
        (format!("{post}transfer-encoding: gzip, chunked\r\n\r\n"), Some((1, Coding))),
        (format!("{post}transfer-encoding:\tCHUNKED \r\n\r\n0\r\n\r\n{get}"), None),
        ("GET /#a HTTP/1.1\r\n\r\n".to_owned(), Some((1, Fragment))),
        ("GET / HTTP/1.1\nhost: x\r\n\r\n".to_owned(), Some((1, BareLineFeed))),
        ("GET / HTTP/1.1\r\nhost: x\n\r\n".to_owned(), Some((1, BareLineFeed))),
        ("GET / HTTP/1.1\r\nhost: x\r\n\n".to_owned(), Some((1, BareLineFeed))),
        (format!("{post}a: b\r\n c\r\n\r\n"), Some((1, FoldedLine))),
        // A body that looks like a bad head is not a head.
        (
            format!(
                "{post}content-length: 40\r\n\r\ncontent-length: 1\r\ncontent-length: 1\r\n#\n{get}"
            ),
            None,
        ),
        (
            format!(
                "{post}transfer-encoding: chunked\r\n\r\n5;x=\"y\"\r\n#\n\n c\r\nA \r\n0123456789\r\n0\r\nt: 1\r\n\r\n{get}"
            ),
            None,
        ),
        (
            format!("{post}transfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /#x HTTP/1.1\r\n\r\n"),
            Some((2, Fragment)),
        ),
        (format!("{post}transfer-encoding: chunked\r\n\r\nx"), Some((2, LostFraming))),
        (format!("{post}transfer-encoding: chunked\r\n\r\n1\nx"), Some((2, LostFraming))),
        (format!("{post}transfer-encoding: chunked\r\n\r\n1\r\nxy"), Some((2, LostFraming))),
        (
            format!("{post}transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n"),
            Some((2, LostFraming)),
        ),
        (format!("{get}{get}GET / HTTP/1.1\n\n"), Some((3, BareLineFeed))),
    ] {
        assert_eq!(fault(&text), expected, "{text:?}");
    }
}

#[test]
fn lines_of_chunks_and_trailers_end_with_a_carriage_return_and_have_no_controls() {
    let lost = Some((2, WireFault::LostFraming));
    let get = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";
    let chunks = "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n";
    for (text, expected) in [
        (format!("{chunks}1;a=b\tc\r\nx\r\n0\r\na: b\r\nc:\td\r\n\r\n{get}"), None),
        (format!("{chunks}1;a\nb\r\nx\r\n0\r\n\r\n"), lost),
        (format!("{chunks}1;a\rb\r\nx\r\n0\r\n\r\n"), lost),
        (format!("{chunks}1;a\0b\r\nx\r\n0\r\n\r\n"), lost),
        (format!("{chunks}0\r\na: b\nc: d\r\n\r\n"), lost),
        (format!("{chunks}0\r\na: b\n\n"), lost),
        (format!("{chunks}0\r\na: b\rc\r\n\r\n"), lost),
        (format!("{chunks}0\r\na: b\0\r\n\r\n"), lost),
        (format!("{chunks}0\r\n a: b\r\n\r\n"), lost),
        (format!("{chunks}0\r\na: b\r\n\tc\r\n\r\n"), lost),
        (format!("{chunks}0\n\n"), lost),
    ] {
        assert_eq!(fault(&text), expected, "{text:?}");
    }
}
