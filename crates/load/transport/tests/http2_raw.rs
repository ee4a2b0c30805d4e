//! HTTP/2 against servers that follow a script or the `h2` crate: limits of streams, cancelled and refused requests,
//! connections that end, and targets that mean ill.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    dead_code,
    unreachable_pub,
    reason = "tests may fail loudly, and use a part of the common server"
)]

mod common;

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use common::{Client, Heard, options, run};
use plimsoll_measure::{ErrorClass, Nanos};
use plimsoll_transport::{Connection, Connector, Endpoint, Pool, SocketOptions};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;

fn client(address: SocketAddr) -> Client {
    let endpoint = Endpoint::new(address.ip().to_string(), address.port());
    let options = SocketOptions { http2_streams: Some(10), ..options(Nanos::from_secs(2)) };
    Client::with(Connector::new(endpoint, None, options).unwrap())
}

async fn acquire(pool: &Pool, client: &Client) -> Connection {
    pool.acquire(&client.connector, &client.stamper).await.connection.unwrap()
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [&head, payload].concat()
}

/// A server that says its settings, and after the first request of each connection the given bytes. It keeps what it
/// was told.
async fn scripted(wire: Vec<u8>, then_close: bool) -> (SocketAddr, Rc<RefCell<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, told) = (listener.local_addr().unwrap(), Rc::new(RefCell::new(Vec::new())));
    let keep = Rc::clone(&told);
    spawn_local(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            spawn_local(play(tcp, wire.clone(), then_close, Rc::clone(&keep)));
        }
    });
    (address, told)
}

async fn play(mut tcp: TcpStream, wire: Vec<u8>, then_close: bool, told: Rc<RefCell<Vec<u8>>>) {
    tcp.write_all(&frame(4, 0, 0, b"")).await.unwrap();
    let (mut buffer, mut said) = (vec![0; 65_536], false);
    loop {
        let length = tcp.read(&mut buffer).await.unwrap_or(0);
        if length == 0 {
            return;
        }
        told.borrow_mut().extend_from_slice(&buffer[..length]);
        let asked = told.borrow().windows(6).any(|bytes| bytes == b"x-test" || bytes == b"\x80");
        if !asked || std::mem::replace(&mut said, true) {
            continue;
        }
        if tcp.write_all(&wire).await.is_err() || then_close {
            return;
        }
    }
}

#[test]
fn what_a_target_does_wrong_is_told_by_its_class() {
    const OK: &[u8] = &[0x88];
    let continuations: Vec<u8> = (0..2_000).flat_map(|_| frame(9, 0, 1, &[0; 1_000])).collect();
    for (sentence, wire, class) in [
        ("a reset", frame(3, 0, 1, &[0, 0, 0, 2]), ErrorClass::Reset),
        ("a refusal", frame(3, 0, 1, &[0, 0, 0, 7]), ErrorClass::Reset),
        ("a farewell", frame(7, 0, 0, &[0; 8]), ErrorClass::ClosedEarly),
        ("the end", Vec::new(), ErrorClass::ClosedEarly),
        ("the end in mid-body", frame(1, 4, 1, OK), ErrorClass::ClosedEarly),
        ("no HPACK", frame(1, 5, 1, b"\x80"), ErrorClass::MalformedHead),
        ("a push", frame(5, 4, 1, b"\0\0\0\x02\x88"), ErrorClass::MalformedHead),
        ("no status", frame(1, 5, 1, b"\x40\x01a\x01b"), ErrorClass::MalformedHead),
        (
            "a short body",
            [frame(1, 4, 1, b"\x88\x5c\x015"), frame(0, 1, 1, b"a")].concat(),
            ErrorClass::BodyTruncated,
        ),
        (
            "a head without an end",
            [frame(1, 0, 1, OK), continuations].concat(),
            ErrorClass::MalformedHead,
        ),
        (
            "a head that is too large",
            frame(1, 5, 1, &[b"\x88".to_vec(), b"\x00\x01a\x01b".repeat(101)].concat()),
            ErrorClass::HeadTooLarge,
        ),
    ] {
        run(async {
            let (address, _) = scripted(wire, true).await;
            let (client, pool) = (client(address), Pool::new());
            let mut connection = acquire(&pool, &client).await;
            let (heard, end) = client.get(&mut connection).await;
            assert_eq!(end, Err(class), "{sentence}");
            assert!(heard.sent.is_some(), "{sentence}: the request was sent");
        });
    }
}

#[test]
fn a_connection_that_broke_a_rule_is_told_so_and_replaced() {
    run(async {
        let (address, told) = scripted(frame(6, 0, 1, &[0; 8]), false).await;
        let (client, pool) = (client(address), Pool::new());
        let mut connection = acquire(&pool, &client).await;
        let end = client.get(&mut connection).await.1;
        assert_eq!((end, connection.is_idle()), (Err(ErrorClass::MalformedHead), false));
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(told.borrow().ends_with(&frame(7, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 1])));
        pool.give(connection);
        let again = acquire(&pool, &client).await;
        assert!(!again.was_used(), "a new connection");
    });
}

#[test]
fn a_request_that_is_given_up_is_withdrawn() {
    run(async {
        let (address, told) = scripted(Vec::new(), false).await;
        let (client, pool) = (client(address), Pool::new());
        let mut connection = acquire(&pool, &client).await;
        let mut heard = Heard::default();
        let first = client.send_to(&mut connection, "GET", b"", &mut heard);
        assert!(tokio::time::timeout(Duration::from_millis(30), first).await.is_err());
        assert!(heard.sent.is_some(), "told though the exchange was dropped");
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(told.borrow().ends_with(&frame(3, 0, 1, &[0, 0, 0, 8])));
    });
}

#[test]
fn a_connection_is_used_on_after_a_request_was_given_up() {
    run(async {
        let client = client(limited(10, Duration::from_millis(40)).await);
        let pool = Pool::new();
        let mut connection = acquire(&pool, &client).await;
        let first = client.get(&mut connection);
        assert!(tokio::time::timeout(Duration::from_millis(20), first).await.is_err());
        assert!(connection.was_used() && connection.is_idle());
        assert_eq!(client.get(&mut connection).await.1, Ok(true));
    });
}

/// A server by the `h2` crate with a limit of streams, that answers each request after a rest with the number of those
/// that it had at once.
async fn limited(most: u32, rest: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    spawn_local(async move {
        let (tcp, _) = listener.accept().await.unwrap();
        let mut builder = h2::server::Builder::new();
        builder.max_concurrent_streams(most);
        let mut connection = builder.handshake::<_, Bytes>(tcp).await.unwrap();
        let open = Rc::new(RefCell::new(0_u32));
        while let Some(Ok((_, respond))) = connection.accept().await {
            *open.borrow_mut() += 1;
            spawn_local(answer_late(respond, rest, Rc::clone(&open)));
        }
    });
    address
}

async fn answer_late(
    mut respond: h2::server::SendResponse<Bytes>,
    rest: Duration,
    open: Rc<RefCell<u32>>,
) {
    tokio::time::sleep(rest).await;
    let at_once = open.borrow().to_string();
    *open.borrow_mut() -= 1;
    // One that was given up takes nothing.
    if let Ok(mut stream) = respond.send_response(http::Response::new(()), false) {
        let _ = stream.send_data(at_once.into(), true);
    }
}

#[test]
fn requests_beyond_the_targets_limit_of_streams_wait_their_turn() {
    run(async {
        let address = limited(2, Duration::from_millis(20)).await;
        let client = Rc::new(client(address));
        let pool = Rc::new(Pool::new());
        // The first one hears of the limit.
        let mut connection = acquire(&pool, &client).await;
        assert_eq!(client.get(&mut connection).await.1, Ok(true));
        pool.give(connection);
        let order = Rc::new(RefCell::new(Vec::new()));
        let tasks: Vec<_> = (0..6)
            .map(|number| {
                let (client, pool, order) =
                    (Rc::clone(&client), Rc::clone(&pool), Rc::clone(&order));
                spawn_local(async move {
                    let mut connection = acquire(&pool, &client).await;
                    let (heard, end) = client.get(&mut connection).await;
                    order.borrow_mut().push(number);
                    assert!(end == Ok(true) && heard.body <= b"2".to_vec(), "{heard:?}");
                    heard.send_stall
                })
            })
            .collect();
        let mut stalls = Vec::new();
        for task in tasks {
            stalls.push(task.await.unwrap());
        }
        assert_eq!(*order.borrow(), [0, 1, 2, 3, 4, 5], "first come, first served");
        assert_eq!(stalls[..2], [None, None]);
        assert!(
            stalls[2..].iter().all(|stall| stall.unwrap() >= Nanos::from_millis(15)),
            "{stalls:?}"
        );
    });
}

#[test]
fn one_that_waits_for_a_stream_can_be_given_up_without_holding_up_the_others() {
    run(async {
        let address = limited(1, Duration::from_millis(30)).await;
        let (client, pool) = (client(address), Pool::new());
        let mut connection = acquire(&pool, &client).await;
        assert_eq!(client.get(&mut connection).await.1, Ok(true));
        let (mut a, mut b, mut c) = (
            acquire(&pool, &client).await,
            acquire(&pool, &client).await,
            acquire(&pool, &client).await,
        );
        let ((_, first), waiting, (_, last)) = tokio::join!(
            client.get(&mut a),
            tokio::time::timeout(Duration::from_millis(10), client.get(&mut b)),
            client.get(&mut c),
        );
        assert_eq!((first, waiting.is_err(), last), (Ok(true), true, Ok(true)));
    });
}

#[test]
fn a_target_that_leaves_finishes_what_it_has_and_gets_nothing_new() {
    run(async {
        let wire = [
            frame(7, 0, 0, b"\x7f\xff\xff\xff\0\0\0\0"),
            frame(7, 0, 0, b"\0\0\0\x01\0\0\0\0"),
            frame(1, 4, 1, b"\x88"),
            frame(0, 1, 1, b"bye"),
        ];
        let (address, _) = scripted(wire.concat(), false).await;
        let (client, pool) = (client(address), Pool::new());
        let (mut a, mut b) = (acquire(&pool, &client).await, acquire(&pool, &client).await);
        let ((heard, end), (_, left)) = tokio::join!(client.get(&mut a), client.get(&mut b));
        assert_eq!(
            (heard.body, end, left),
            (b"bye".to_vec(), Ok(true), Err(ErrorClass::ClosedEarly))
        );
        assert!(!a.is_idle(), "nobody uses it again");
    });
}

#[test]
fn a_connection_is_closed_with_a_farewell_when_nobody_needs_it() {
    run(async {
        let (address, told) = scripted(frame(1, 5, 1, b"\x88"), false).await;
        let (client, pool) = (client(address), Pool::new());
        let mut connection = acquire(&pool, &client).await;
        assert_eq!(client.get(&mut connection).await.1, Ok(true));
        drop((connection, pool));
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(told.borrow().ends_with(&frame(7, 0, 0, &[0; 8])));
    });
}

/// What a server by the `h2` crate answers, and what it was asked.
#[derive(Clone, Debug, PartialEq)]
struct Talk {
    status: u16,
    headers: Vec<(String, Vec<u8>)>,
    data: Vec<Vec<u8>>,
    trailers: bool,
}

fn talks() -> impl Strategy<Value = Vec<Talk>> {
    let name =
        prop::sample::select(vec!["a", "x-y", "server", "etag", "set-cookie", "cache-control"]);
    let value =
        prop::string::bytes_regex("[!-~\\x80-\\xff]([ -~\\x80-\\xff]{0,40}[!-~])?").unwrap();
    let headers = prop::collection::vec((name.prop_map(str::to_owned), value), 0..20);
    let data = prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40_000), 0..4);
    let talk = (200_u16..600, headers, data, any::<bool>()).prop_map(
        |(status, headers, data, trailers)| {
            let data = if matches!(status, 204 | 205 | 304) { Vec::new() } else { data };
            Talk { status, headers, data, trailers }
        },
    );
    prop::collection::vec(talk, 1..6)
}

/// Serves the talks in order on one connection; tells what it was asked.
async fn serve_talks(tcp: TcpStream, talks: Vec<Talk>) -> Vec<(String, String, usize)> {
    let mut connection = h2::server::handshake(tcp).await.unwrap();
    let (asked, mut talks) = (Rc::new(RefCell::new(Vec::new())), talks.into_iter());
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let (Some(talk), asked) = (talks.next(), Rc::clone(&asked)) else { break };
        spawn_local(async move {
            let header =
                |name: &str| request.headers().get(name).unwrap().to_str().unwrap().to_owned();
            let (test, id) = (header("x-test"), header("x-request-id"));
            let (mut body, mut length) = (request.into_body(), 0);
            while let Some(data) = body.data().await {
                let data = data.unwrap();
                length += data.len();
                body.flow_control().release_capacity(data.len()).unwrap();
            }
            asked.borrow_mut().push((test, id, length));
            let mut response = http::Response::builder().status(talk.status);
            for (name, value) in &talk.headers {
                response = response.header(name, &value[..]);
            }
            let ends = talk.data.is_empty() && !talk.trailers;
            let mut stream = respond.send_response(response.body(()).unwrap(), ends).unwrap();
            let last = talk.data.len();
            for (index, data) in talk.data.into_iter().enumerate() {
                stream.send_data(data.into(), !talk.trailers && index + 1 == last).unwrap();
            }
            if talk.trailers {
                let mut trailers = http::HeaderMap::new();
                trailers.insert("x-end", "1".parse().unwrap());
                stream.send_trailers(trailers).unwrap();
            }
        });
    }
    asked.take()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn what_the_h2_crate_says_is_heard_and_what_we_say_is_understood(
        talks in talks(),
        sizes in prop::collection::vec(0_usize..100_000, 6),
    ) {
        run(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let client = client(listener.local_addr().unwrap());
            let server = talks.clone();
            let server = spawn_local(async move { serve_talks(listener.accept().await.unwrap().0, server).await });
            let pool = Pool::new();
            let mut connection = acquire(&pool, &client).await;
            let mut expected = Vec::new();
            for (talk, size) in talks.iter().zip(&sizes) {
                let (heard, end) = client.send(&mut connection, "POST", &vec![b'x'; *size]).await;
                assert_eq!((heard.status, end), (talk.status, Ok(true)));
                assert!(heard.body == talk.data.concat());
                expected.push(("1".to_owned(), "id".to_owned(), *size));
                let headers: Vec<_> = talk.headers.iter().map(|(_, value)| value.clone()).collect();
                let lines: Vec<_> = heard.headers.iter().map(|(_, value)| value.clone()).collect();
                // The crate groups fields of a name, and adds a date of its own nowhere.
                let sorted = |mut values: Vec<Vec<u8>>| { values.sort(); values };
                assert_eq!(sorted(lines), sorted(headers));
            }
            drop((connection, pool));
            assert_eq!(server.await.unwrap(), expected);
        });
    }
}
