//! WebSockets with servers that behave well, badly and unusually. Their frames are written by hand,
//! except those of the `tungstenite` crate.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use plimsoll_measure::{ErrorClass, Moment, Nanos, Seed};
use plimsoll_transport::websocket::{
    Message, MessageHandler, UpgradeRequest, WebSocket, upgrade_headers,
};
use plimsoll_transport::{
    EncodedRequest, Failure, RequestHead, ResponseHandler, ResponseHead, RxTime,
};
use tungstenite::handshake::derive_accept_key;

use crate::support::{Client, run, wait_until};

/// Calls of a handler. The message `end` is the last one of a response.
#[derive(Debug, Default)]
struct Seen {
    status: u16,
    body: Vec<u8>,
    messages: Vec<String>,
    reads: Vec<RxTime>,
    bytes: usize,
    upgrade_sent: bool,
    sent: bool,
    within: bool,
}

impl ResponseHandler for Seen {
    fn sent(&mut self, _: Moment, _: EncodedRequest) {
        self.sent = true;
    }
    fn received(&mut self, bytes: usize, rx_time: RxTime) {
        self.bytes += bytes;
        self.reads.push(rx_time);
    }
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.status = head.status;
    }
    fn body(&mut self, bytes: &[u8], _: Moment) -> ControlFlow<()> {
        self.body.extend_from_slice(bytes);
        ControlFlow::Continue(())
    }
}

impl MessageHandler for Seen {
    fn upgrade_sent(&mut self, _: Moment) {
        self.upgrade_sent = true;
    }
    fn message(&mut self, message: Message<'_>, _: Moment) -> ControlFlow<()> {
        let Message::Text(text) = message else { unreachable!("only texts are sent") };
        self.messages.push(text.to_owned());
        if text.starts_with("end") { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
    fn read_ended(&mut self, within_message: bool) {
        self.within = within_message;
    }
}

/// The server side of one connection.
struct Server(TcpStream);

impl Server {
    fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    /// Reads the request of the handshake.
    fn request(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.0.read_exact(&mut byte).unwrap();
            head.extend(byte);
        }
        String::from_utf8(head).unwrap()
    }

    /// The bytes that accept a handshake.
    fn accepts(head: &str) -> Vec<u8> {
        let key = head.lines().find_map(|line| line.strip_prefix("sec-websocket-key: ")).unwrap();
        let accept = derive_accept_key(key.as_bytes());
        format!(
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
             sec-websocket-accept: {accept}\r\n\r\n"
        )
        .into_bytes()
    }

    fn accept(&mut self) {
        let head = self.request();
        self.send(&Self::accepts(&head));
    }

    /// Reads a frame of the client, which must be masked: first byte and payload.
    fn frame(&mut self) -> (u8, Vec<u8>) {
        let mut start = [0; 2];
        self.0.read_exact(&mut start).unwrap();
        assert!(start[1] & 0x80 != 0, "a client masks");
        let length = match start[1] & 0x7f {
            126 => {
                let mut length = [0; 2];
                self.0.read_exact(&mut length).unwrap();
                usize::from(u16::from_be_bytes(length))
            }
            127 => {
                let mut length = [0; 8];
                self.0.read_exact(&mut length).unwrap();
                usize::try_from(u64::from_be_bytes(length)).unwrap()
            }
            short => usize::from(short),
        };
        let mut key = [0; 4];
        self.0.read_exact(&mut key).unwrap();
        let mut payload = vec![0; length];
        self.0.read_exact(&mut payload).unwrap();
        let unmasked = payload.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key);
        (start[0], unmasked.collect())
    }

    fn text(&mut self) -> String {
        let (first, payload) = self.frame();
        assert_eq!(first, 0x81);
        String::from_utf8(payload).unwrap()
    }

    /// Whether the client has closed.
    fn is_at_end(&mut self) -> bool {
        matches!(self.0.read(&mut [0]), Ok(0) | Err(_))
    }
}

/// Serves one connection on its own thread.
fn serve<T: Send + 'static>(
    script: impl FnOnce(&mut Server) -> T + Send + 'static,
) -> (SocketAddr, JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let thread = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        script(&mut Server(stream))
    });
    (address, thread)
}

async fn bounded<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(5), work).await.expect("it hangs")
}

async fn open(client: &Client, seen: &mut Seen) -> Result<Option<WebSocket>, Failure> {
    let head =
        RequestHead::new("GET", "/ws/chat", "http://a", upgrade_headers(Some("chat"))).unwrap();
    let request = UpgradeRequest {
        head: &head,
        id: Some(b"id-0"),
        subprotocol: Some("chat"),
        keys: Seed(1).rng("test", 0),
        max_message: 70_000,
    };
    let connection = client.connect().await;
    bounded(WebSocket::open(connection, request, &client.rx_clock, &client.buffers, seen)).await
}

async fn ask(
    client: &Client,
    socket: &mut WebSocket,
    text: &str,
    seen: &mut Seen,
) -> Result<(), Failure> {
    let text = EncodedRequest { head: Vec::new(), body: text.as_bytes().to_vec() };
    bounded(socket.exchange(&client.rx_clock, &client.buffers, text, seen)).await
}

#[test]
fn a_turn_is_a_masked_text_and_its_answer_up_to_the_last_message() {
    run(async {
        let (address, server) = serve(|server| {
            let head = server.request();
            server.send(&Server::accepts(&head));
            let first = server.text();
            for bytes in [&b"\x01\x01a"[..], b"\x89\x01p", b"\x80\x01b", b"\x81", b"\x03end"] {
                thread::sleep(Duration::from_millis(5));
                server.send(bytes);
            }
            let pong = server.frame();
            let second = server.text();
            server.send(b"\x81\x03end");
            let close = server.frame();
            server.send(b"\x88\x02\x03\xe8");
            (head, [first, second], [pong, close])
        });
        let client = Client::new(address);
        let mut seen = Seen::default();
        let mut socket = open(&client, &mut seen).await.unwrap().unwrap();
        assert!(seen.upgrade_sent && !seen.sent);
        assert_eq!((seen.status, seen.bytes), (101, 0), "a handshake's bytes are not an answer's");
        ask(&client, &mut socket, "hello", &mut seen).await.unwrap();
        assert_eq!(
            (seen.messages, seen.bytes, seen.within),
            (vec!["ab".into(), "end".into()], 14, false)
        );
        assert!(seen.sent && seen.reads.len() > 1);
        assert!(seen.reads.iter().all(|read| read.read_lag.is_some()), "the kernel stamps reads");
        ask(&client, &mut socket, "again", &mut Seen::default()).await.unwrap();
        assert!(socket.begin_close(1000));
        let wait = socket.finish_close(&client.rx_clock, &client.buffers, Nanos::from_secs(4));
        bounded(wait).await;
        let (head, texts, frames) = server.join().unwrap();
        assert!(head.starts_with("GET /ws/chat HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("x-request-id: id-0\r\n"), "{head}");
        assert_eq!(texts, ["hello", "again"]);
        assert_eq!(frames, [(0x8a, b"p".to_vec()), (0x88, vec![0x03, 0xe8])]);
    });
}

#[test]
fn pings_between_turns_are_answered() {
    run(async {
        let (answered, has_answer) = channel();
        let (address, server) = serve(move |server| {
            server.accept();
            server.text();
            server.send(b"\x81\x03end\x89\x05still");
            let pong = server.frame();
            answered.send(()).unwrap();
            server.text();
            server.send(b"\x81\x03end");
            pong
        });
        let client = Client::new(address);
        let mut seen = Seen::default();
        let mut socket = open(&client, &mut seen).await.unwrap().unwrap();
        ask(&client, &mut socket, "1", &mut seen).await.unwrap();
        let until = wait_until(|| has_answer.try_recv().is_ok());
        bounded(socket.idle(&client.rx_clock, &client.buffers, until)).await;
        ask(&client, &mut socket, "2", &mut seen).await.unwrap();
        assert_eq!(server.join().unwrap(), (0x8a, b"still".to_vec()));
    });
}

#[test]
fn each_bad_end_of_an_answer_has_its_class_and_none_hangs() {
    run(async {
        for (sentence, answer, class, close) in [
            ("nothing", &b""[..], ErrorClass::ClosedEarly, None),
            ("half a frame", b"\x81\x05ab", ErrorClass::StreamTruncated, None),
            ("a delta", b"\x81\x01a", ErrorClass::StreamTruncated, None),
            ("a close", b"\x81\x01a\x88\x02\x03\xf3", ErrorClass::WebsocketClosed, Some(1011)),
            ("a close without a code", b"\x88\x00", ErrorClass::WebsocketClosed, Some(1000)),
            ("a mask", b"\x81\x81abcde", ErrorClass::WebsocketProtocol, Some(1002)),
            ("a reserved bit", b"\xc1\x01a", ErrorClass::WebsocketProtocol, Some(1002)),
            ("a lone continuation", b"\x80\x01a", ErrorClass::WebsocketProtocol, Some(1002)),
            ("no UTF-8", b"\x81\x01\xff", ErrorClass::WebsocketProtocol, Some(1007)),
            ("too much", b"\x81\x7f\0\0\0\0\0\x02\0\0", ErrorClass::BodyTooLarge, Some(1009)),
        ] {
            let (address, server) = serve(move |server| {
                server.accept();
                server.text();
                server.send(answer);
                close.map(|_| server.frame())
            });
            let client = Client::new(address);
            let mut seen = Seen::default();
            let mut socket = open(&client, &mut seen).await.unwrap().unwrap();
            let end = ask(&client, &mut socket, "q", &mut seen).await;
            assert_eq!(end.map_err(|failure| failure.class), Err(class), "{sentence}");
            let code = close.map(|code: u16| (0x88, code.to_be_bytes().to_vec()));
            assert_eq!(server.join().unwrap(), code, "{sentence}");
            // Further turns must not hang either.
            let again = ask(&client, &mut socket, "q", &mut seen).await;
            assert_eq!(again.map_err(|failure| failure.class), Err(class), "{sentence}");
        }
    });
}

#[test]
fn what_comes_between_turns_ends_the_conversation() {
    run(async {
        for (sentence, surplus, class) in [
            ("a message after the end", &b"\x81\x04late"[..], ErrorClass::MalformedBody),
            ("a close", b"\x88\x02\x03\xe9", ErrorClass::WebsocketClosed),
            ("the end of the connection", b"", ErrorClass::WebsocketClosed),
        ] {
            let (address, server) = serve(move |server| {
                server.accept();
                server.text();
                server.send(&[b"\x81\x03end", surplus].concat());
            });
            let client = Client::new(address);
            let mut seen = Seen::default();
            let mut socket = open(&client, &mut seen).await.unwrap().unwrap();
            ask(&client, &mut socket, "1", &mut seen).await.unwrap();
            assert_eq!(seen.messages, ["end"], "{sentence}");
            server.join().unwrap();
            let pause = tokio::time::sleep(Duration::from_millis(20));
            bounded(socket.idle(&client.rx_clock, &client.buffers, pause)).await;
            let end = ask(&client, &mut socket, "2", &mut seen).await;
            assert_eq!(end.map_err(|failure| failure.class), Err(class), "{sentence}");
        }
        // A message before any request.
        let (address, server) = serve(|server| {
            let head = server.request();
            server.send(&[&Server::accepts(&head)[..], b"\x81\x05hello"].concat());
        });
        let client = Client::new(address);
        let mut seen = Seen::default();
        let mut socket = open(&client, &mut seen).await.unwrap().unwrap();
        let end = ask(&client, &mut socket, "1", &mut seen).await;
        assert_eq!(end.map_err(|failure| failure.class), Err(ErrorClass::MalformedBody));
        server.join().unwrap();
    });
}

#[test]
fn a_handshake_is_accepted_refused_or_has_failed() {
    run(async {
        for (answer, expected) in [
            ("HTTP/1.1 403 No\r\ncontent-length: 5\r\n\r\nsorry", Ok(403)),
            ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nsorry", Ok(200)),
            (
                "HTTP/1.1 101 Yes\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
                 sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
                Err(ErrorClass::WebsocketHandshake),
            ),
            ("HTTP/1.1 101", Err(ErrorClass::ClosedEarly)),
            ("SSH-2.0-x\r\n", Err(ErrorClass::MalformedHead)),
        ] {
            let (address, server) = serve(|server| {
                server.request();
                server.send(answer.as_bytes());
            });
            let client = Client::new(address);
            let mut seen = Seen::default();
            let opened = open(&client, &mut seen).await;
            server.join().unwrap();
            match expected {
                Ok(status) => {
                    assert!(opened.unwrap().is_none());
                    assert_eq!((seen.status, &seen.body[..]), (status, &b"sorry"[..]));
                    assert_eq!(seen.bytes, answer.len());
                }
                Err(class) => assert_eq!(opened.unwrap_err().class, class, "{answer}"),
            }
        }
    });
}

#[test]
fn a_long_message_is_not_interrupted_and_a_silent_target_does_not_hold_its_end() {
    const LONG: usize = 8 << 20;
    run(async {
        let (address, server) = serve(|server| {
            server.accept();
            // Meanwhile the socket is full, in the middle of the message.
            thread::sleep(Duration::from_millis(100));
            server.send(b"\x89\x01p");
            thread::sleep(Duration::from_millis(50));
            let length = server.text().len();
            let pong = server.frame();
            server.send(b"\x81\x03end");
            let close = server.frame();
            // It sends no response and does not close, so the client gives up.
            (length, pong.0, close.0, server.is_at_end())
        });
        let client = Client::new(address);
        let mut seen = Seen::default();
        let mut socket = open(&client, &mut seen).await.unwrap().unwrap();
        ask(&client, &mut socket, &"x".repeat(LONG), &mut seen).await.unwrap();
        assert!(socket.begin_close(1000));
        let limit = Nanos::from_millis(50);
        bounded(socket.finish_close(&client.rx_clock, &client.buffers, limit)).await;
        drop(socket);
        assert_eq!(server.join().unwrap(), (LONG, 0x8a, 0x88, true));
    });
}

/// The crate `tungstenite` echoes messages, and sends pings before that. Returns the number of
/// pongs and the code of the client's close frame.
fn echo(stream: TcpStream) -> (usize, Option<u16>) {
    let mut socket = tungstenite::accept(stream).unwrap();
    let (mut pongs, mut code) = (0, None);
    while let Ok(message) = socket.read() {
        match message {
            tungstenite::Message::Text(text) => {
                socket.send(tungstenite::Message::Ping(b"ping".to_vec().into())).unwrap();
                socket.send(tungstenite::Message::text(text.as_str())).unwrap();
                socket.send(tungstenite::Message::text("end")).unwrap();
            }
            tungstenite::Message::Pong(_) => pongs += 1,
            tungstenite::Message::Close(frame) => code = frame.map(|frame| frame.code.into()),
            other => unreachable!("{other:?}"),
        }
    }
    (pongs, code)
}

#[test]
fn a_widely_used_server_understands_us_and_we_it() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || echo(listener.accept().unwrap().0));
        let client = Client::new(address);
        let mut seen = Seen::default();
        let head = RequestHead::new("GET", "/", "http://a", upgrade_headers(None)).unwrap();
        let request = UpgradeRequest {
            head: &head,
            id: None,
            subprotocol: None,
            keys: Seed(2).rng("test", 0),
            max_message: 1 << 20,
        };
        let connection = client.connect().await;
        let opened = bounded(WebSocket::open(
            connection,
            request,
            &client.rx_clock,
            &client.buffers,
            &mut seen,
        ))
        .await;
        let mut socket = opened.unwrap().unwrap();
        let lengths = [0, 1, 125, 126, 127, 65_535, 65_536, 300_000];
        for length in lengths {
            let text = "\u{e4}".repeat(length / 2) + &"x".repeat(length % 2);
            let mut seen = Seen::default();
            ask(&client, &mut socket, &text, &mut seen).await.unwrap();
            assert_eq!(seen.messages, [text, "end".to_owned()]);
        }
        assert!(socket.begin_close(1000));
        let wait = socket.finish_close(&client.rx_clock, &client.buffers, Nanos::from_secs(4));
        bounded(wait).await;
        assert_eq!(server.join().unwrap(), (lengths.len(), Some(1000)));
    });
}
