//! The handshake without I/O: a request over HTTP/1.1, and its response (section 4).

use std::ops::ControlFlow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plimsoll_measure::{ErrorClass, Rng};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use crate::failure::Failure;
use crate::http1::{Progress, ResponseParser, ResponsePart};
use crate::message::{RequestHead, ResponseHandler, ResponseHead};
use crate::rx_timestamp::RxTime;

/// Constant that a server appends to the key before hashing it (1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The status of an accepted handshake.
const SWITCHING_PROTOCOLS: u16 = 101;

/// Headers that turn a `GET` into a handshake, except the key.
pub fn upgrade_headers(subprotocol: Option<&str>) -> Vec<(&'static str, &str)> {
    let mut headers =
        vec![("upgrade", "websocket"), ("connection", "Upgrade"), ("sec-websocket-version", "13")];
    headers.extend(subprotocol.map(|name| ("sec-websocket-protocol", name)));
    headers
}

/// The value of `sec-websocket-accept` for a key (4.2.2).
pub fn accept_of(key: &str) -> String {
    let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key.as_bytes(), GUID].concat());
    STANDARD.encode(hash.as_ref())
}

/// How a handshake ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpgradeEnd {
    /// The connection now uses frames.
    Switched,
    /// The target sent an ordinary response, which is complete.
    Refused,
}

/// One handshake.
#[derive(Debug)]
pub struct Upgrade<'a> {
    key: String,
    subprotocol: Option<&'a str>,
    parser: ResponseParser,
    /// Earlier reads with only a part of the head: their number of bytes, and the arrival time of
    /// the first.
    before: Option<(usize, RxTime)>,
    refused: bool,
    end: Option<Result<UpgradeEnd, Failure>>,
}

impl<'a> Upgrade<'a> {
    /// Creates a handshake with a key of 16 bytes from `keys`.
    pub fn new(keys: &mut Rng, subprotocol: Option<&'a str>) -> Self {
        let bytes = [keys.next_u64().to_le_bytes(), keys.next_u64().to_le_bytes()].concat();
        let mut parser = ResponseParser::new();
        parser.start(false);
        Self {
            key: STANDARD.encode(bytes),
            subprotocol,
            parser,
            before: None,
            refused: false,
            end: None,
        }
    }

    /// The value of `sec-websocket-key`.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Writes the request. `head` is a `GET` with [`upgrade_headers`].
    pub fn render(&self, head: &RequestHead, request_id: Option<&[u8]>, out: &mut Vec<u8>) {
        head.render_with(request_id, "sec-websocket-key", self.key.as_bytes(), out);
    }

    /// The result of the handshake once it is known.
    pub const fn end(&self) -> Option<&Result<UpgradeEnd, Failure>> {
        self.end.as_ref()
    }

    /// Takes the result.
    pub const fn take_end(&mut self) -> Option<Result<UpgradeEnd, Failure>> {
        self.end.take()
    }

    /// Reads bytes of the target. Returns how many of them belong to the handshake; the others are
    /// frames. The handler receives the head, and the complete body of an ordinary response.
    pub fn received(
        &mut self,
        bytes: &[u8],
        rx_time: RxTime,
        handler: &mut impl ResponseHandler,
    ) -> usize {
        if self.refused {
            handler.received(bytes.len(), rx_time);
        }
        let mut used = 0;
        while self.end.is_none() && used < bytes.len() {
            // A head is read line by line, so that no byte after it is consumed.
            let rest = &bytes[used..];
            let line = rest.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
            let length = line.filter(|_| !self.refused).unwrap_or(rest.len());
            self.feed(&rest[..length], (bytes.len(), rx_time), handler);
            used += length;
        }
        if self.end.is_none() && !self.refused {
            let (bytes_before, first) = self.before.unwrap_or((0, rx_time));
            self.before = Some((bytes_before + bytes.len(), first));
        }
        used
    }

    /// Reads a part of a read of `read.0` bytes.
    fn feed(&mut self, part: &[u8], read: (usize, RxTime), handler: &mut impl ResponseHandler) {
        let Self { parser, key, subprotocol, before, refused, end } = self;
        let (mut switched, mut flow) = (None, ControlFlow::Continue(()));
        let progress = parser.feed(part, &mut |part| match part {
            ResponsePart::Head(head) if head.status == SWITCHING_PROTOCOLS => {
                handler.head(&head);
                switched = Some(check(&head, key, *subprotocol));
            }
            ResponsePart::Head(head) => {
                *refused = true;
                if let Some((bytes, first)) = before.take() {
                    handler.received(bytes, first);
                }
                handler.received(read.0, read.1);
                handler.head(&head);
            }
            ResponsePart::Body(body) if flow.is_continue() => {
                flow = handler.body(body, read.1.at);
            }
            ResponsePart::Body(_) => {}
        });
        *end = match (switched, progress) {
            (Some(checked), _) => Some(checked.map(|()| UpgradeEnd::Switched)),
            (None, Ok(Progress::Partial)) if flow.is_continue() => None,
            (None, Err(failure)) if flow.is_continue() => Some(Err(failure)),
            (None, _) => Some(Ok(UpgradeEnd::Refused)),
        };
    }

    /// Handles the target closing the connection.
    pub fn closed(&mut self) {
        if self.end.is_none() {
            self.end = Some(self.parser.close().map(|_| UpgradeEnd::Refused));
        }
    }
}

/// Checks the head of a 101 (4.1, points 2 to 6).
fn check(head: &ResponseHead<'_>, key: &str, subprotocol: Option<&str>) -> Result<(), Failure> {
    let problem = if !has_token(head, "upgrade", "websocket") {
        "the 101 does not upgrade to `websocket`"
    } else if !has_token(head, "connection", "upgrade") {
        "the 101 has no `connection: upgrade`"
    } else if head.header("sec-websocket-accept").map(str::trim) != Some(&accept_of(key)) {
        "the 101 has the wrong `sec-websocket-accept` for the key"
    } else if head.header("sec-websocket-extensions").is_some_and(|names| !names.trim().is_empty())
    {
        "the 101 has an extension that was not requested"
    } else if head.header("sec-websocket-protocol").is_some_and(|name| subprotocol != Some(name)) {
        "the 101 has a subprotocol that was not requested"
    } else {
        return Ok(());
    };
    Err(Failure::new(ErrorClass::WebsocketHandshake, problem))
}

/// Whether a header, which may have several lines, includes a word, ignoring case.
fn has_token(head: &ResponseHead<'_>, name: &str, word: &str) -> bool {
    let lines = head.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
    lines
        .flat_map(|header| header.value.split(|byte| *byte == b','))
        .any(|value| value.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
}

#[cfg(test)]
mod tests {
    use plimsoll_measure::{Moment, Seed};

    use super::*;
    use crate::buffers::EncodedRequest;

    /// Calls of a handler, as lines.
    #[derive(Debug, Default)]
    struct Lines(Vec<String>);

    impl ResponseHandler for Lines {
        fn sent(&mut self, _: Moment, _: EncodedRequest) {}
        fn received(&mut self, bytes: usize, _: RxTime) {
            self.0.push(format!("{bytes} bytes"));
        }
        fn head(&mut self, head: &ResponseHead<'_>) {
            self.0.push(format!("head {}", head.status));
        }
        fn body(&mut self, bytes: &[u8], _: Moment) -> ControlFlow<()> {
            self.0.push(format!("body {}", String::from_utf8_lossy(bytes)));
            ControlFlow::Continue(())
        }
    }

    /// A handshake whose response comes in pieces: its result, the calls of the handler, and the
    /// remaining bytes.
    fn shake(
        response: &str,
        size: usize,
        subprotocol: Option<&str>,
    ) -> (Result<Option<UpgradeEnd>, String>, Vec<String>, Vec<u8>) {
        let mut upgrade = Upgrade::new(&mut Seed(3).rng("test", 0), subprotocol);
        let response = response.replace("ACCEPT", &accept_of(upgrade.key()));
        let (mut lines, mut left) = (Lines::default(), Vec::new());
        for piece in response.as_bytes().chunks(size) {
            let used = upgrade.received(piece, RxTime::exact(Moment::EPOCH), &mut lines);
            left.extend_from_slice(&piece[used..]);
        }
        let end = upgrade.take_end().transpose().map_err(|failure| failure.to_string());
        (end, lines.0, left)
    }

    const GOOD: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\n\
        Connection: keep-alive, Upgrade\r\nSec-WebSocket-Accept: ACCEPT\r\n\r\n";

    #[test]
    fn the_key_of_the_rfc_has_the_accept_of_the_rfc() {
        // Section 1.3.
        assert_eq!(accept_of("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn a_request_has_a_key_of_16_bytes_which_the_seed_decides() {
        let upgrade = Upgrade::new(&mut Seed(3).rng("test", 0), None);
        assert_eq!(STANDARD.decode(upgrade.key()).unwrap().len(), 16);
        assert_eq!(upgrade.key(), Upgrade::new(&mut Seed(3).rng("test", 0), None).key());
        assert_ne!(upgrade.key(), Upgrade::new(&mut Seed(3).rng("test", 1), None).key());
        let headers = upgrade_headers(Some("chat"));
        let head = RequestHead::new("GET", "/ws/chat", "http://h:1", headers).unwrap();
        let mut out = Vec::new();
        upgrade.render(&head, Some(b"id-0"), &mut out);
        let expected = format!(
            "GET /ws/chat HTTP/1.1\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
             sec-websocket-version: 13\r\nsec-websocket-protocol: chat\r\nhost: h:1\r\n\
             x-request-id: id-0\r\nsec-websocket-key: {}\r\n\r\n",
            upgrade.key()
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn frames_behind_the_head_are_left_in_any_split() {
        let early =
            format!("HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n{GOOD}\u{1}\n\r\n\r\nframe");
        for size in 1..early.len() + 40 {
            let (end, lines, left) = shake(&early, size, None);
            assert_eq!(end, Ok(Some(UpgradeEnd::Switched)), "{size}");
            assert_eq!(
                (lines, &left[..]),
                (vec!["head 101".to_owned()], &b"\x01\n\r\n\r\nframe"[..])
            );
        }
    }

    #[test]
    fn an_ordinary_answer_is_a_refusal_and_comes_whole() {
        let answer = "HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno";
        let (end, lines, left) = shake(answer, 1_000, None);
        assert_eq!((end, left.len()), (Ok(Some(UpgradeEnd::Refused)), 0));
        assert_eq!(lines, ["47 bytes", "head 403", "body no"]);
        for size in 1..answer.len() {
            let (end, lines, _) = shake(answer, size, None);
            assert_eq!(end, Ok(Some(UpgradeEnd::Refused)));
            let bytes = lines.iter().filter_map(|line| line.strip_suffix(" bytes"));
            let bytes: usize = bytes.map(|bytes| bytes.parse::<usize>().unwrap()).sum();
            assert_eq!(bytes, answer.len(), "{lines:?}");
        }
        assert_eq!(shake("HTTP/1.1 403 Forbid", 3, None).0, Ok(None));
    }

    #[test]
    fn an_answer_that_is_no_proper_101_has_failed() {
        for (sentence, from, to, expected) in [
            ("another protocol", "WebSocket", "h2c", "`websocket`"),
            ("no upgrade", "keep-alive, Upgrade", "keep-alive", "`connection: upgrade`"),
            (
                "another key",
                "ACCEPT",
                "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
                "the wrong `sec-websocket-accept`",
            ),
            ("no key", "Sec-WebSocket-Accept: ACCEPT\r\n", "", "the wrong `sec-websocket-accept`"),
            (
                "an extension",
                "\r\n\r\n",
                "\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
                "an extension",
            ),
            (
                "another subprotocol",
                "\r\n\r\n",
                "\r\nSec-WebSocket-Protocol: other\r\n\r\n",
                "a subprotocol",
            ),
        ] {
            let (end, ..) = shake(&GOOD.replace(from, to), 7, Some("chat"));
            let message = end.unwrap_err();
            assert!(message.starts_with("WebSocket handshake: "), "{sentence}: {message}");
            assert!(message.contains(expected), "{sentence}: {message}");
        }
        let chosen = GOOD.replace("\r\n\r\n", "\r\nSec-WebSocket-Protocol: chat\r\n\r\n");
        assert_eq!(shake(&chosen, 7, Some("chat")).0, Ok(Some(UpgradeEnd::Switched)));
    }
}
