//! The normal form of the gateway's requests. Any text as a path: what has a normal form keeps its
//! meaning, has one form only, and no server can read it as another path. Any bytes as a
//! connection: no panic, and any split has the same first fault.
//!
//! Input: one byte for the split, then the text.

#![no_main]

mod pieces;

use libfuzzer_sys::fuzz_target;
use plimsoll_gateway_server::normal_form::{
    WireInspector, host, is_normal_template, path, query,
};

use pieces::pieces;

fuzz_target!(|input: &[u8]| {
    let Some((&seed, bytes)) = input.split_first() else { return };
    let inspect = |parts: &mut dyn Iterator<Item = &[u8]>| {
        let mut inspector = WireInspector::default();
        parts.for_each(|part| inspector.feed(part));
        inspector.first_fault()
    };
    let whole = inspect(&mut [bytes].into_iter());
    assert_eq!(inspect(&mut pieces(bytes, seed).into_iter()), whole);
    let _ = host(bytes);
    let Ok(text) = str::from_utf8(bytes) else { return };
    let _ = query(text);
    let _ = is_normal_template(text);
    let Ok(normal) = path(text) else { return };
    let normal = normal.unwrap_or_else(|| text.to_owned());
    assert_eq!(path(&normal), Ok(None), "a normal form is normal");
    let decoded = decode(normal.as_bytes());
    assert_eq!(decode(text.as_bytes()), decoded, "the meaning is kept");
    assert_eq!(decode(&decoded), decoded, "it is encoded once at most");
    let decoded = String::from_utf8(decoded).expect("it is text");
    assert!(normal.is_ascii() && !decoded.contains(['\\', ';', '\0']));
    assert_eq!(decoded.matches('/').count(), normal.matches('/').count(), "no slash is hidden");
    let mut segments = decoded.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        assert!(segment != "." && segment != ".." && !(segment.is_empty() && segments.peek().is_some()));
    }
});

/// Decodes a path once.
fn decode(bytes: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::new();
    let mut rest = bytes;
    while let Some((&first, tail)) = rest.split_first() {
        let digits = tail.get(..2).and_then(|digits| str::from_utf8(digits).ok());
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match digits.filter(|_| first == b'%') {
            Some(digits) => {
                decoded.push(u8::from_str_radix(digits, 16).expect("two digits"));
                rest = &tail[2..];
            }
            None => {
                decoded.push(first);
                rest = tail;
            }
        }
    }
    decoded
}

