//! Random bytes and floods: the gateway survives, refuses, and frees its memory.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::time::Duration;

use plimsoll_gateway_server::Gateway;

use super::support::raw::{
    OK, connect, eventually, fixed_upstream, gateway, get, open_connections, proxy, read_to_end,
    send_raw,
};

pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A frame of HTTP/2 (RFC 9113, 4.1).
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

pub(super) const HEADERS: u8 = 1;
pub(super) const RESET: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
const CONTINUATION: u8 = 9;

/// A block of headers from the static table: GET, https, /, and `:authority: x` (RFC 7541, appendix
/// A).
pub(super) const BLOCK: &[u8] = &[0x82, 0x87, 0x84, 0x41, 0x01, b'x'];

/// A client that opens HTTP/2 and then sends frames without reading; returns the bytes it wrote.
fn flood(gateway: &Gateway, most: usize, mut next: impl FnMut(u32) -> Vec<u8>) -> usize {
    let mut stream = connect(gateway);
    // A client that does not read the responses is throttled at some time.
    stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let start = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
    stream.write_all(&start).unwrap();
    let (mut written, mut number) = (0, 0);
    while written < most {
        let part: Vec<u8> = (0..64).flat_map(|turn| next(number + turn)).collect();
        number += 64;
        if stream.write_all(&part).is_err() {
            break;
        }
        written += part.len();
    }
    written
}

fn alive(gateway: &Gateway) {
    assert!(get(gateway, "/health/live").ends_with("{\"alive\":true}"));
}

#[test]
fn a_flood_of_resets_ends_its_connection() {
    let gateway = proxy(fixed_upstream(OK), "", "metrics: {}");
    let most = 8 << 20;
    let written = flood(&gateway, most, |number| {
        let stream = number * 2 + 1;
        [frame(HEADERS, 5, stream, BLOCK), frame(RESET, 0, stream, &8_u32.to_be_bytes())].concat()
    });
    assert!(written < most, "{written} bytes of resets were taken");
    alive(&gateway);
    eventually("it is closed", || open_connections(&gateway) == 0);
}

#[test]
fn endless_headers_end_their_connection() {
    let gateway = gateway("metrics: {}");
    let most = 8 << 20;
    let part: Vec<u8> =
        (0..1_000).flat_map(|_| [&[0x00, 0x01, b'a', 0x0a][..], b"0123456789"].concat()).collect();
    let written = flood(&gateway, most, |number| {
        frame(if number == 0 { HEADERS } else { CONTINUATION }, 0, 1, &part)
    });
    assert!(written < most, "{written} bytes of headers were taken");
    alive(&gateway);
    eventually("it is closed", || open_connections(&gateway) == 0);
}

#[test]
fn floods_of_settings_and_pings_are_throttled() {
    let gateway = gateway("metrics: {}");
    let most = 64 << 20;
    for (kind, payload) in [(SETTINGS, &[0, 4, 0, 1, 0, 0][..]), (PING, &[7; 8])] {
        let written = flood(&gateway, most, |_| frame(kind, 0, 0, payload));
        assert!(written < most, "{written} bytes of frames of kind {kind} were taken");
        alive(&gateway);
    }
    eventually("they are closed", || open_connections(&gateway) == 0);
}

#[test]
fn an_incomplete_header_block_ends_its_connection() {
    let gateway = gateway("server: {header_timeout: 200ms}");
    for begin in [&[][..], &frame(SETTINGS, 0, 0, &[]), &frame(HEADERS, 0, 1, BLOCK)] {
        let mut stream = connect(&gateway);
        stream.write_all(&[PREFACE, begin].concat()).unwrap();
        read_to_end(&mut stream);
    }
}

/// A random number generator, the same in each run (Marsaglia's xorshift, 2003).
struct Rng(u64);

impl Rng {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % below
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        let length = self.roll(most);
        (0..length).map(|_| u8::try_from(self.roll(256)).unwrap()).collect()
    }
}

/// A request with some random bytes.
fn bent(dice: &mut Rng) -> Vec<u8> {
    let whole = [
        "POST /x HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "POST /x HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc",
        "GET /health/live HTTP/1.1\r\nhost: x\r\n\r\nGET /x HTTP/1.1\r\nhost: x\r\n\r\n",
    ];
    let mut bytes = whole[dice.roll(3)].as_bytes().to_vec();
    for _ in 0..=dice.roll(4) {
        let at = dice.roll(bytes.len());
        match dice.roll(3) {
            0 => bytes.truncate(at.max(1)),
            1 => bytes[at] = u8::try_from(dice.roll(256)).unwrap(),
            _ => drop(bytes.splice(at..at, dice.bytes(8))),
        }
    }
    bytes
}

#[test]
fn random_bytes_never_cause_an_error_of_the_gateway() {
    let gateway = proxy(fixed_upstream(OK), "", "server: {header_timeout: 5s, body_timeout: 5s}");
    let mut dice = Rng(0x9e37_79b9);
    for round in 0..600 {
        let bytes = match round % 3 {
            0 => dice.bytes(300),
            1 => [PREFACE, &dice.bytes(300)].concat(),
            _ => bent(&mut dice),
        };
        let mut stream = connect(&gateway);
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let seen = read_to_end(&mut stream);
        for (at, _) in seen.match_indices("HTTP/1.1 ") {
            let status = &seen[at + 9..at + 12];
            // An upstream that does not read bodies takes the rest of one for a request.
            let known = ["200", "400", "404", "405", "408", "413", "431", "502"].contains(&status);
            assert!(known, "{:?}: {seen}", String::from_utf8_lossy(&bytes));
        }
    }
    alive(&gateway);
}

#[test]
fn chunks_with_invalid_sizes_are_refused() {
    let gateway = proxy(fixed_upstream(OK), "", "server: {body_timeout: 1s}");
    let start =
        "POST /x HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";
    for size in ["ffffffffffffffff", "fffffffffffffffff", "-1", "0x10", "7fffffffffffffff", "g"] {
        let answer = send_raw(&gateway, format!("{start}{size}\r\nabc"));
        let status = answer.get(9..12).unwrap_or_default();
        // The upstream may respond at once, without reading the body.
        assert!(["200", "400", "408", "413"].contains(&status), "{size}: {answer:?}");
    }
    alive(&gateway);
}

#[test]
fn five_hundred_slow_clients_do_not_block_a_fast_one() {
    let gateway = gateway("metrics: {}\nserver: {header_timeout: 1s}");
    let mut slow: Vec<_> = (0..500).map(|_| connect(&gateway)).collect();
    for byte in b"GET / HT" {
        for stream in &mut slow {
            let _ = stream.write_all(&[*byte]);
        }
        alive(&gateway);
    }
    eventually("they are disconnected", || open_connections(&gateway) == 0);
    assert!(slow.iter_mut().all(|stream| stream.read(&mut [0; 1]).map_or(true, |read| read == 0)));
}
